"""`fit` of a trainer that was trained before, and steps from several threads."""

import json
import threading

import numpy as np
import pytest

import onnxtrain as ot
from models import mlp, three_classes, trainer


@pytest.fixture
def data():
    return three_classes()


def test_fit_again_trains_again(data):
    t = trainer()
    first, second = t.fit(*data, epochs=2, shuffle=False), t.fit(*data, epochs=2, shuffle=False)
    assert len(first) == len(second) == 2 and second["loss"][0] < first["loss"][-1]
    whole = trainer()
    whole.fit(*data, epochs=4, shuffle=False)
    for name in whole.state:
        np.testing.assert_array_equal(t.state[name], whole.state[name])
    before = t.step_count
    t.fit(data[0][:8], data[1][:8], epochs=9, steps=3, batch_size=4)  # other data, so many steps more
    assert t.step_count == before + 3


def test_several_threads_step_one_trainer(data):
    t = trainer()
    feeds = dict(zip([*t.inputs, *t.targets], data))
    work = [threading.Thread(target=lambda: [t.step(feeds) for _ in range(100)]) for _ in range(4)]
    for w in work:
        w.start()
    for w in work:
        w.join()
    alone = trainer()
    for _ in range(400):
        alone.step(feeds)
    assert t.step_count == 400
    for name in alone.state:
        np.testing.assert_array_equal(t.state[name], alone.state[name])


def read(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_batches_into_the_folder_of_another_run_keep_both(data, tmp_path):
    x, y = data
    batches = [(x[k:k + 16], y[k:k + 16]) for k in range(0, len(x), 16)]
    trainer().fit(x, y, epochs=3, out=tmp_path)
    t = trainer()
    t.fit(batches, epochs=2, out=tmp_path)
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2] and len(read(tmp_path / "earlier-001")) == 3
    assert (tmp_path / "earlier-001/data.npz").exists() and not (
        tmp_path / "data.npz"
    ).exists()  # resume must not take another run's data
    t.fit(iter(batches), out=tmp_path)  # the same trainer goes on
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2, 3] and not (tmp_path / "earlier-002").exists()
    assert [e["step"] for e in read(tmp_path)] == [len(batches) * k for k in (1, 2, 3)]
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 4
    ot.resume(tmp_path).fit(batches, epochs=1)
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2, 3, 4]
    trainer().fit(iter(batches), out=tmp_path)
    assert len(read(tmp_path)) == 1 and len(read(tmp_path / "earlier-002")) == 4


def test_steps_made_by_hand_count(data, tmp_path):
    t = trainer()
    feeds = dict(zip([*t.inputs, *t.targets], data))
    for _ in range(5):
        t.step(feeds)
    t.fit(*data, epochs=1, batch_size=len(data[0]), out=tmp_path)
    assert t.step_count == 6 and [e["step"] for e in read(tmp_path)] == [6]
    t.fit(*data, epochs=9, steps=3)
    assert t.step_count == 9


@pytest.mark.parametrize("wrong", [dict(epochs=0), dict(epochs=1.5), dict(epochs="3"), dict(batch_size=0),
                                   dict(valid=-0.1), dict(valid=1), dict(valid=float("nan")), dict(valid="a"),
                                   dict(patience=-1), dict(steps=-1), dict(save_every=-2)], ids=str)
def test_numbers_out_of_range_are_refused(data, wrong):
    t = trainer()
    with pytest.raises(ot.UsageError, match="must be|from 0 up to 1") as e:
        t.fit(*data, **{"epochs": 1, **wrong})
    assert e.value.code == "OT1152" and t.step_count == 0


def test_numbers_of_numpy_are_numbers(data, tmp_path):
    from models import mlp
    t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=np.float32(0.5)),
                              accumulate=np.int64(1)))
    assert t.lr == 0.5
    t.fit(*data, epochs=np.int64(2), batch_size=np.int32(16), out=tmp_path)
    assert len(read(tmp_path)) == 2
    with pytest.raises(ot.UsageError, match="counted from 0"):
        t.step({}, which=-2)


def test_gradients_of_nothing_and_with_plain_numbers(data):
    from models import mlp
    m, x = mlp().SerializeToString(), {"x": data[0]}
    assert ot.gradients(m, x, of="logits", wrt=[]) == {}
    one, two = (ot.gradients(m, x, of="logits", wrt="x", cotangent=c)["x"]
                for c in (1.0, np.full((len(data[0]), 3), 2, np.float32)))
    np.testing.assert_allclose(2 * one, two, rtol=1e-6)


def test_an_optimizer_that_is_changed_after_fit_is_said(data):
    optimizer = ot.AdamW(lr=1e-3)
    model = ot.load(mlp()).compile(optimizer=optimizer)
    model.fit(*data, epochs=1)
    model.fit(*data, epochs=1)  # the same again: nothing is said
    optimizer.lr = 10
    with pytest.warns(UserWarning, match="changed after training began"):
        model.fit(*data, epochs=1)
    assert model.trainer().lr == pytest.approx(1e-3)


def test_an_export_from_before_the_training_is_said(data, tmp_path, recwarn):
    prepared = ot.prepare(ot.load(mlp()))
    prepared.export(tmp_path / "before.onnx")
    t = ot.Trainer(prepared)
    prepared.export(tmp_path / "before.onnx")
    assert not [w for w in recwarn if "before the training" in str(w.message)]
    t.step(dict(zip([*t.inputs, *t.targets], data)))
    t.export(tmp_path / "after.onnx")
    with pytest.warns(UserWarning, match="before the training"):
        prepared.export(tmp_path / "before.onnx")
    model = ot.load(mlp()).compile()
    model.fit(*data, epochs=1)
    recwarn.clear()
    model.export(tmp_path / "model.onnx")  # it has taken the weights
    assert not [w for w in recwarn if "before the training" in str(w.message)]


@pytest.mark.parametrize("make", [
    lambda: ot.callbacks.ReduceLROnPlateau(factor=10), lambda: ot.callbacks.ReduceLROnPlateau(factor=0),
    lambda: ot.callbacks.EarlyStopping(patience=-3), lambda: ot.callbacks.EarlyStopping(patience=1.5)])
def test_callbacks_with_numbers_that_make_no_sense(make):
    with pytest.raises(ot.UsageError) as e:
        make()
    assert e.value.code == "OT1152" and "=" in e.value.hint


def test_a_callback_that_waits_for_the_worse(recwarn):
    with pytest.warns(UserWarning, match="smaller 'valid_accuracy'"):
        ot.callbacks.EarlyStopping(monitor="valid_accuracy", mode="min")
    ot.callbacks.EarlyStopping(monitor="valid_accuracy", mode="max")
    ot.callbacks.EarlyStopping(monitor="valid_loss", mode="min")
    ot.callbacks.EarlyStopping(monitor="my_own", mode="max")
    assert not recwarn.list


def test_a_loss_that_is_no_number_is_not_the_best():
    stop = ot.callbacks.EarlyStopping(monitor="loss", patience=2)
    assert not stop.improved({"loss": float("nan")}) and stop.improved({"loss": 2.0}) and stop.best == 2


def test_a_stream_of_bytes_and_other_numbers_is_said(data):
    x, y = data
    with pytest.warns(UserWarning, match="uint8 after float32"):
        ot.load(mlp()).compile().fit([(x, y), ((x * 10).astype("u1"), y)], epochs=1)
