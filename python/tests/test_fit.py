"""compile, fit, evaluate, predict, resume; data as arrays, dicts, lists and iterators."""

import math

import numpy as np
import pytest

import onnxtrain as ot
from models import rows, with_weights


def test_four_lines(path, tmp_path):
    x, y = rows(300)
    model = ot.load(path)
    model.compile(loss="auto", optimizer=ot.AdamW(lr=1e-2), metrics=["accuracy"])
    hist = model.fit(x, y, valid=0.1, epochs=3, batch_size=32, out=tmp_path / "run")
    model.export(tmp_path / "trained.onnx")
    assert len(hist) == 3 and len(hist["loss"]) == 3 and "valid_accuracy" in hist
    assert hist.history["loss"] == hist["loss"] and hist.best_epoch in (1, 2, 3) and hist.epochs[0]["epoch"] == 1
    scores = model.evaluate(x, y)
    got = model.predict(x)
    assert isinstance(scores["loss"], float) and got.shape == (300, 3)
    assert scores["accuracy"] == pytest.approx((got.argmax(1) == y).mean())
    np.testing.assert_array_equal(ot.Session(tmp_path / "trained.onnx").run({"x": x})["logits"], got)


@pytest.mark.parametrize("kept", ["in memory", "in the folder"])
def test_resume_knows_its_run(path, tmp_path, kept, monkeypatch):
    x, y = rows(200)
    if kept == "in memory":
        monkeypatch.setattr("onnxtrain.runs.KEPT_BYTES", 100)
    model = ot.load(path).compile(loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    model.fit(x, y, valid=0.1, epochs=2, batch_size=16, out=tmp_path / "run")
    assert (tmp_path / "run/data.npz").exists() == (kept == "in the folder")
    resumed = ot.resume(tmp_path / "run")
    assert len(resumed.fit(epochs=4)) == 2
    whole = ot.load(path).compile(loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    whole.fit(x, y, valid=0.1, epochs=4, batch_size=16)
    for name, value in whole.parameters.items():
        assert resumed.state[name].tobytes() == value.tobytes()
    np.testing.assert_array_equal(resumed.predict(x), whole.predict(x))


def test_resume_asks_for_large_data(path, tmp_path, monkeypatch):
    x, y = rows(50)
    monkeypatch.setattr("onnxtrain.runs.KEPT_BYTES", 100)
    ot.load(path).compile(loss="cross_entropy").fit(x, y, epochs=1, out=tmp_path / "run")
    monkeypatch.setattr("onnxtrain.runs._IN_THIS_PROCESS", {})
    with pytest.raises(ot.UsageError, match="does not hold its data"):
        ot.resume(tmp_path / "run").fit(epochs=2)
    assert len(ot.resume(tmp_path / "run").fit(x, y, epochs=2)) == 1


def test_parameters_and_training_agree(path):
    x, y = rows(50)
    model = ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    before = model.predict(x)
    model.fit(x, y, epochs=1)
    assert (model.predict(x) != before).any()
    model.parameters["fc2.weight"] = np.zeros((3, 16), np.float32)
    model.parameters["fc2.bias"] = np.zeros(3, np.float32)
    assert (model.predict(x) == 0).all() and model.evaluate(x, y)["loss"] == pytest.approx(math.log(3))


def test_fit_on_a_file_that_carries_its_training(path, tmp_path):
    x, y = rows(100)
    train = ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    train.fit(x, y, epochs=1)
    train.save(tmp_path / "t.onnx")
    assert np.abs(ot.Trainer(tmp_path / "t.onnx").state["fc1.weight.exp_avg"]).max() > 0
    with pytest.raises(ot.UsageError, match="carries its own training"):
        train.compile(loss="mse")


@pytest.mark.parametrize("kind", ["float64", "lists", "dict", "named y", "int32 labels", "column labels"])
def test_data_of_many_kinds(path, kind):
    x, y = rows(60)
    want = ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.1)).fit(x, y, epochs=1)["loss"]
    arguments = {
        "float64": (x.astype(np.float64), y), "lists": (x.tolist(), y.tolist()), "dict": ({"x": x, "label": y},),
        "named y": ({"x": x}, {"label": y}), "int32 labels": (x, y.astype(np.int32)), "column labels": (x, y[:, None]),
    }[kind]
    assert (
        ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.1)).fit(*arguments, epochs=1)["loss"] == want
    )


def test_predict_fits_data_as_fit_does():
    m = with_weights('''image (float[N, 1, 2, 2] image) => (float[N, 2] scores)
        { flat = Flatten (image) scores = Gemm <transB = 1> (flat, "w", "b") }''', {"w": (2, 4), "b": (2,)})
    model = ot.load(m.SerializeToString()).compile(loss="cross_entropy")
    pixels = np.random.default_rng(0).integers(0, 256, (20, 2, 2)).astype(np.uint8)
    model.fit(pixels, np.arange(20) % 2, epochs=1)
    exact = ot.Session(model).run({"image": (pixels / np.float32(255)).reshape(20, 1, 2, 2)})["scores"]
    np.testing.assert_allclose(model.predict(pixels), exact, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.predict({"image": pixels}), model.predict(pixels, batch_size=7))


# ---- iterators
def loader(x, y, size):
    for i in range(0, len(x), size):
        yield x[i:i + size], y[i:i + size]


@pytest.mark.parametrize("kind", ["generator", "function", "list-like", "dicts"])
def test_iterators(path, kind, tmp_path):
    x, y = rows(96)
    want = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=1e-2)))
    want.fit(x, y, epochs=2, batch_size=32, shuffle=False)

    class Loader:
        def __iter__(self):
            return loader(x, y, 32)

    def twice():
        yield from loader(x, y, 32)
        yield from loader(x, y, 32)

    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=1e-2)))
    common = {"epochs": 2, "valid": (x, y), "out": tmp_path / "run"}
    hist = {
        "generator": lambda: t.fit(twice(), steps_per_epoch=3, **common),
        "function": lambda: t.fit(lambda: [*loader(x, y, 32), (x[:0], y[:0])].__iter__(),
                                  **common),  # an empty batch is passed over
        "list-like": lambda: t.fit(Loader(), **common),
        "dicts": lambda: t.fit(({"x": a, "label": b} for a, b in twice()), steps_per_epoch=3, **common),
    }[kind]()
    assert len(hist) == 2 and t.step_count == 6 and hist["valid_accuracy"][-1] > 0.3
    for name in want.state:
        assert t.state[name].tobytes() == want.state[name].tobytes()
    assert ot.resume(tmp_path / "run").step_count == 6 and (tmp_path / "run/model.onnx").exists()
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == 3


def test_iterator_mistakes(path):
    x, y = rows(32)
    model = ot.load(path).compile(loss="cross_entropy")
    for wrong in (
        lambda: model.fit(loader(x, y, 8), epochs=3),
        lambda: model.fit(loader(x, y, 8), valid=0.1),
        lambda: model.fit(loader(x, y, 8), y),
        lambda: model.fit("data.npz"),
        lambda: model.fit(x, y, steps_per_epoch=3),
    ):
        with pytest.raises(ot.UsageError):
            wrong()
    with pytest.raises(ot.DataError, match="'label'"):
        model.fit(iter([x]))
    with pytest.raises(ot.DataError, match="no batches"):
        model.fit(iter([]))
    assert len(model.fit(loader(x, y, 8))) == 1


@pytest.mark.parametrize("wrong, code", [
    ("no rows", "OT2101"), ("text", "OT2105"), ("other rows", "OT2103"), ("no labels", "OT2106"), ("NaN", "OT2120"),
    ("shape", "OT2110"), ("epochs", "OT1152"), ("batch", "OT1152"), ("ragged", "OT2105"), ("number", "OT2105"),
])
def test_wrong_data_is_refused(path, wrong, code):
    x, y = rows(8)
    nan = x.copy()
    nan[5, 2] = np.nan
    arguments = {
        "no rows": (x[:0], y[:0]), "text": (x, np.array(list("abababab"))), "other rows": (x, y[:7]),
        "no labels": (x,), "NaN": (nan, y), "shape": (x[:, :3], y), "ragged": ([[1.0, 2.0], [1.0]], y[:2]),
        "number": (3.0, y),
    }.get(wrong, (x, y))
    more = {"epochs": {"epochs": 0}, "batch": {"batch_size": 0}}.get(wrong, {})
    with pytest.raises(ot.Error) as e:
        ot.load(path).compile(loss="cross_entropy").fit(*arguments, **more)
    assert e.value.code == code, e.value


def test_keys_are_names_of_inputs_and_targets(path):
    """A key that is none of them is never matched because one input is left over."""
    x, y = rows(60)
    model = ot.load(path).compile(loss="cross_entropy")
    before = {n: np.array(v) for n, v in model.parameters.items()}
    for call in (lambda: model.fit({"wrong": x}, y, epochs=1), lambda: model.fit(x, {"wrong": y}, epochs=1),
                 lambda: model.fit(x, y, valid=({"wrong": x}, y), epochs=1), lambda: model.evaluate({"wrong": x}, y),
                 lambda: model.predict({"wrong": x}), lambda: model.trainer().predict({"wrong": x})):
        with pytest.raises(ot.DataError, match="'wrong'") as e:
            call()
        assert e.value.code == "OT2195" and e.value.hint in ("{'x': x}", "{'label': y}"), e.value.hint
    for name, value in model.parameters.items():
        np.testing.assert_array_equal(before[name], value)
    model.fit({"x": x}, {"label": y}, epochs=1)
    model.fit({"x": x, "y": y}, epochs=1)  # y stands for the only target
    np.testing.assert_array_equal(model.predict({"x": x}), model.predict(x))


def test_metric_decides_the_best_epoch(path, tmp_path):
    """As --metric: the best epoch is the first with the best value of it, also after resuming."""
    x, y = rows(200)
    model = ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.5))
    by_loss = model.fit(x, y, valid=0.2, epochs=6, metric="loss", out=tmp_path / "run")
    assert by_loss.best_epoch == 1 + int(np.argmin(by_loss["valid_loss"]))
    again = ot.resume(tmp_path / "run").fit(epochs=8)
    assert 'metric = "loss"' in (tmp_path / "run/config.toml").read_text() and len(again) == 2
    model = ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.5))
    by_f1 = model.fit(x, y, valid=0.2, epochs=6, metric="f1")
    assert max(by_f1["valid_f1"]) == by_f1["valid_f1"][by_f1.best_epoch - 1]
    for wrong, text in ((dict(metric="f2", valid=0.2), "'f2'"), (dict(metric="f1"), "validation rows"),
                        (dict(metric=3), "metric")):
        with pytest.raises(ot.UsageError, match=text):
            ot.load(path).compile(loss="cross_entropy").fit(x, y, epochs=1, **wrong)
