"""Trainer.step: arrays straight to slots, results that stay right, several steps per call."""

import numpy as np
import pytest
from onnx import numpy_helper

import onnxtrain as ot
from test_slice import batch, mlp, reference_step


def trainer(threads=1, **kw):
    m = ot.prepare(ot.load(mlp().SerializeToString()), loss="cross_entropy", label="label",
                   optimizer=kw.pop("optimizer", ot.SGD(lr=0.1)), **kw)
    return ot.Trainer(m, threads=threads)


def test_steps_in_one_call_are_the_same_steps():
    a, b = trainer(), trainer()
    feeds = batch()
    for _ in range(7):
        last = a.step(feeds)
    assert b.steps(feeds, 7).loss == last.loss
    assert a.step_count == b.step_count == 7
    for name in a.state:
        np.testing.assert_array_equal(a.state[name], b.state[name])


def test_feeds_of_every_kind_give_the_same_step():
    feeds = batch()
    want = trainer().step(feeds).loss
    strided = np.zeros((32, 8), np.float32)
    strided[:, ::2] = feeds["x"]
    for x in (strided[:, ::2], np.asfortranarray(feeds["x"]), memoryview(feeds["x"])):
        assert trainer().step({"x": x, "label": feeds["label"]}).loss == want
    assert trainer().step(dict(feeds, unused=np.zeros(3))).loss == want


def test_batches_of_other_sizes_and_moved_memory():
    t = trainer()
    m = mlp()
    for n, seed in ((32, 1), (5, 2), (32, 3), (5, 2)):
        feeds = batch(n, seed)
        loss, new = reference_step(m, feeds, 0.1)
        r = t.step(feeds)
        assert r.loss == pytest.approx(loss, rel=1e-5)
        for i in m.graph.initializer:
            i.CopyFrom(numpy_helper.from_array(new[i.name].astype(np.float32), i.name))
        np.testing.assert_allclose(t.state["fc1.weight"], new["fc1.weight"], rtol=2e-4, atol=1e-6)


def test_outputs_of_a_step():
    t = trainer()
    feeds = batch()
    first = t.step(feeds)
    names = list(first.outputs)
    assert names[0] == "loss" and any(n.startswith("fc1.weight") for n in names)
    assert first.outputs["loss"] == np.float32(first.loss)
    np.testing.assert_array_equal(first.outputs["fc1.weight_new"], t.state["fc1.weight"])
    second = t.step(feeds)
    np.testing.assert_array_equal(second.outputs["fc1.weight_new"], t.state["fc1.weight"])
    third = t.step(feeds)
    again = t.step(feeds)
    assert third.outputs["loss"] == np.float32(third.loss) != np.float32(again.loss)
    with pytest.raises(ot.Error, match="gone"):
        third.outputs["fc1.weight_new"]


def test_wrong_feeds_say_what_is_wrong():
    t, feeds = trainer(), batch()
    with pytest.raises(ot.DataError, match="'label'.*was not given"):
        t.step({"x": feeds["x"]})
    t.step(feeds)
    with pytest.raises(ot.DataError, match="'x'"):
        t.step({"x": feeds["x"].astype(np.float64), "label": feeds["label"]})
    with pytest.raises(ot.DataError, match="'x'"):
        t.step({"x": feeds["x"][:, :3].copy(), "label": feeds["label"]})
    assert t.step(feeds).loss > 0 and t.step_count == 2


@pytest.mark.parametrize("optimizer", [ot.SGD(lr=0.1), ot.SGD(lr=0.1, momentum=0.9), ot.Adam(lr=0.01),
                                       ot.AdamW(lr=0.01), ot.RMSprop(lr=0.01), ot.Lion(lr=0.01)])
def test_threads_do_not_change_bits(optimizer):
    losses = []
    for threads in (1, 2, 4):
        t = trainer(threads, optimizer=optimizer)
        losses.append([t.step(batch(64)).loss for _ in range(5)])
    assert losses[0] == losses[1] == losses[2]
    assert losses[0][-1] < losses[0][0]


def test_a_batch_without_rows_is_refused():
    """No step is made: neither state nor counter change, and the next batch goes on."""
    feeds, empty = batch(), {k: v[:0] for k, v in batch().items()}
    for t in (trainer(), trainer(optimizer=ot.AdamW(lr=0.1))):
        t.step(feeds)
        before = {name: np.array(t.state[name]) for name in t.state}
        for call in (lambda t=t: t.step(empty), lambda t=t: t.steps(empty, 3), lambda t=t: t.step(empty, 0)):
            with pytest.raises(ot.DataError, match="without rows") as e:
                call()
            assert e.value.code == "OT2101"
        assert t.step_count == 1
        for name, value in before.items():
            np.testing.assert_array_equal(t.state[name], value)
        t.step(feeds)
