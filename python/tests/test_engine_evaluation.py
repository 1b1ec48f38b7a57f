"""Validation in the engine that makes the steps; runs that go on in other engines."""

import json
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot
from onnxtrain import engines
from onnxtrain.engines import driver, evaluation

pytest.importorskip("onnxruntime")
ROOT = Path(__file__).parents[2]


def _numbers(a):
    return ", ".join(repr(float(v)) for v in np.asarray(a, np.float32).reshape(-1))


@pytest.fixture
def train():
    """A convolution, BatchNormalization and Dropout: training and inference form differ."""
    rng = np.random.RandomState(0)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    cnn (float[N,1,6,6] x) => (float[N,3] logits)
    <float[4,1,3,3] k = {%s}, float[4] scale = {1,1,1,1}, float[4] bias = {0,0,0,0}, float[4] mean = {0,0,0,0},
     float[4] var = {1,1,1,1}, float[64,3] w = {%s}, float ratio = {0.25}>
    { c = Conv <pads = [0,0,0,0]> (x, k)
      n = BatchNormalization (c, scale, bias, mean, var)
      r = Relu (n) f = Flatten (r) d = Dropout (f, ratio) logits = MatMul (d, w) }""" % (
        _numbers(rng.randn(4, 1, 3, 3) * 0.4), _numbers(rng.randn(64, 3) * 0.2))
    return ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2))


@pytest.fixture
def plain():
    """No random numbers: every engine makes the same steps."""
    rng = np.random.RandomState(3)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[N,1,6,6] x) => (float[N,3] logits)
    <float[4,1,3,3] k = {%s}, float[4] scale = {1,1,1,1}, float[4] bias = {0,0,0,0}, float[4] mean = {0,0,0,0},
     float[4] var = {1,1,1,1}, float[64,3] w = {%s}>
    { c = Conv (x, k) n = BatchNormalization (c, scale, bias, mean, var)
      r = Relu (n) f = Flatten (r) logits = MatMul (f, w) }""" % (
        _numbers(rng.randn(4, 1, 3, 3) * 0.4), _numbers(rng.randn(64, 3) * 0.2))
    return ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.SGD(lr=0.05, momentum=0.9))


def data(rows=60, seed=1):
    rng = np.random.RandomState(seed)
    return rng.randn(rows, 1, 6, 6).astype(np.float32), rng.randint(0, 3, rows)


def refuse_second_section(monkeypatch):
    """The engine has no form of the second training section."""
    made = driver.Driver.made

    def refuse(self, section, dims):
        if section == 1:
            raise ValueError("not here")
        return made(self, section, dims)

    monkeypatch.setattr(driver.Driver, "made", refuse)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_evaluation_in_the_engine_gives_the_numbers_of_native(train, engine):
    pytest.importorskip(engine)
    x, y = data(37)
    t = ot.Trainer(train, engine=engine)
    for k in range(4):
        t.step({"x": x[8 * k:8 * k + 8], "label": y[8 * k:8 * k + 8]})
    got = t.evaluate(x, y, batch_size=16)  # a ragged last batch
    native = ot.Trainer(t.model())
    want = native.evaluate(x, y, batch_size=16)
    assert got.keys() == want.keys()
    for k in got.keys() - {"per_class"}:
        np.testing.assert_allclose(got[k], want[k], atol=1e-5, err_msg=k)
    for mine, native_class in zip(got["per_class"], want["per_class"], strict=True):
        assert mine == pytest.approx(native_class, abs=1e-5)
    t.state["w"] = np.zeros((64, 3), np.float32)  # somebody assigns to the state
    assert t.evaluate(x, y)["loss"] == pytest.approx(np.log(3), abs=1e-5)


class _Marked:
    """An engine whose evaluation can be told from everybody else's."""

    name = runtime = "onnxruntime"

    def __init__(self, change):
        self.change, self.good = change, engines.find("onnxruntime")

    def compile(self, step, device, threads=0):
        runner = self.good.compile(step, device, threads=threads)
        if not step.feedback:
            made = runner.step
            runner.step = lambda feeds: self.change(made(feeds))
        return runner


def _fit(model, monkeypatch, change, out, **more):
    monkeypatch.setattr(driver, "open_engine", lambda spec: (_Marked(change), "cpu"))
    x, y = data()
    t = ot.Trainer(model, engine="onnxruntime")
    return t.fit(x, y, valid=0.25, epochs=2, batch_size=15, out=out, **more)


def test_the_numbers_of_a_run_come_from_the_engine(plain, monkeypatch, tmp_path):
    def change(got):
        return got | {"loss": np.float32(7.5), "onnxtrain_scores": np.eye(3, dtype=np.float32)[
            np.zeros(len(got["onnxtrain_scores"]), int)]}

    history = _fit(plain, monkeypatch, change, tmp_path / "run")
    lines = [json.loads(x) for x in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert len(history) == 2 and all(x["valid_loss"] == 7.5 for x in lines)
    confusion = np.array(json.loads((tmp_path / "run/confusion.json").read_text()))  # class 0 for every row
    assert confusion[:, 0].sum() == 15 and confusion[:, 1:].sum() == 0


@pytest.mark.parametrize(("change", "said"), [
    (lambda got: {k: v for k, v in got.items() if k != "onnxtrain_scores"}, "did not return the output"),
    (lambda got: got | {"onnxtrain_scores": got["onnxtrain_scores"][:-1]}, "with the shape"),
    (lambda got: got | {"onnxtrain_scores": got["onnxtrain_scores"][:, :2]}, "with the shape"),
    (lambda got: got | {"loss": np.zeros(3, np.float32)}, "no loss of one number")])
def test_wrong_answers_of_an_evaluation(plain, monkeypatch, tmp_path, change, said):
    with pytest.raises(ot.Error, match=said):
        _fit(plain, monkeypatch, change, tmp_path / "run", save_every=1)
    assert ot.resume(tmp_path / "run").step_count > 0  # what was saved is whole


def test_an_engine_that_refuses_the_inference_form_is_said(plain, monkeypatch, tmp_path, capfd):
    made = driver.Driver.made

    def refuse(self, section, dims):
        if section == evaluation.EVALUATION:
            raise ValueError("no room for it")
        return made(self, section, dims)

    monkeypatch.setattr(driver.Driver, "made", refuse)
    x, y = data()
    t = ot.Trainer(plain, engine="onnxruntime")
    with pytest.warns(UserWarning, match="OT4513.*no room for it"):
        h = t.fit(x, y, valid=0.25, epochs=2, batch_size=15)
    other = ot.Trainer(plain).fit(x, y, valid=0.25, epochs=2, batch_size=15)
    assert h["valid_loss"] == pytest.approx(other["valid_loss"], abs=1e-5)


@pytest.mark.parametrize("order", [
    ("native", "onnxruntime", "openvino", "native"), ("onnxruntime", "native", "openvino", "onnxruntime"),
    ("openvino", "onnxruntime", "native", "openvino")])
def test_a_run_goes_on_in_every_engine(plain, tmp_path, order):
    pytest.importorskip("openvino")
    x, y = data()
    whole = ot.Trainer(plain)
    whole.fit(x, y, valid=0.25, epochs=4, batch_size=10, out=tmp_path / "whole")
    ot.Trainer(plain, engine=order[0]).fit(x, y, valid=0.25, epochs=1, batch_size=10, out=tmp_path / "run")
    for k, engine in enumerate(order[1:]):
        t = ot.resume(tmp_path / "run", engine=engine)
        t.fit(epochs=k + 2)
    assert t.step_count == whole.step_count
    for name, value in whole.state.items():
        np.testing.assert_allclose(t.state[name], value, atol=1e-4, err_msg=name)
    one, two = ([json.loads(line) for line in (tmp_path / n / "metrics.jsonl").read_text().splitlines()]
                for n in ("whole", "run"))
    for p, q in zip(one, two, strict=True):
        assert q["valid_loss"] == pytest.approx(p["valid_loss"], abs=1e-4)
        assert q["train_loss"] == pytest.approx(p["train_loss"], abs=1e-4)


def test_in_a_process_of_its_own(plain):
    x, y = data()
    t, native = ot.Trainer(plain, engine="onnxruntime", isolated=True), ot.Trainer(plain)
    for trainer in (t, native):
        trainer.step({"x": x[:8], "label": y[:8]})
    assert t.evaluate(x, y)["loss"] == pytest.approx(native.evaluate(x, y)["loss"], abs=1e-5)


def _two_sections():
    rng = np.random.RandomState(0)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    mlp (float[N,6] x) => (float[N,3] logits) <float[6,8] w1 = {%s}, float[8,3] w2 = {%s}>
    { h = MatMul (x, w1) a = Relu (h) logits = MatMul (a, w2) }""" % (
        _numbers(rng.randn(6, 8) * 0.3), _numbers(rng.randn(8, 3) * 0.3))
    first = ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.SGD(lr=0.1, momentum=0.9), only=["w1"])
    return ot.prepare(first, loss="cross_entropy", optimizer=ot.SGD(lr=0.05), only=["w2"], append=True)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_section_that_the_engine_refuses_stays_native(monkeypatch, tmp_path, isolated):
    model, rng = _two_sections(), np.random.RandomState(2)
    x, y = rng.randn(32, 6).astype(np.float32), rng.randint(0, 3, 32)
    names = {v["name"] for t in model.info["training"] for v in t["inputs"]}
    if isolated:  # the process reads this at its start
        (tmp_path / "sitecustomize.py").write_text(
            "from onnxtrain.engines import driver\nmade = driver.Driver.made\n"
            "def refuse(self, k, dims):\n    if k == 1:\n        raise ValueError('not here')\n"
            "    return made(self, k, dims)\ndriver.Driver.made = refuse\n")
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT / 'python'}")
    else:
        refuse_second_section(monkeypatch)
    t, native = ot.Trainer(model, engine="onnxruntime", isolated=isolated), ot.Trainer(model)
    with pytest.warns(UserWarning, match="OT4514.*section 1.*not here"):
        for k in range(4):
            feeds = {"x": x[8 * k:8 * k + 8]} | {n: y[8 * k:8 * k + 8] for n in names}
            assert t.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-5)
    for name, value in native.state.items():
        np.testing.assert_allclose(t.state[name], value, atol=1e-5, err_msg=name)


def test_no_section_runs_there(monkeypatch):
    def refuse(self, section, dims):
        raise ValueError("not here")

    monkeypatch.setattr(driver.Driver, "made", refuse)
    t = ot.Trainer(_two_sections(), engine="onnxruntime")
    names = {v["name"] for s in t.model().info["training"] for v in s["inputs"]}
    with pytest.raises(ot.Error, match="not here"):
        t.step({"x": np.zeros((4, 6), np.float32)} | {n: np.zeros(4, np.int64) for n in names})


def test_random_numbers_of_a_native_section_go_on_after_a_resume(monkeypatch, tmp_path):
    """Section 0 in ONNX Runtime, section 1 with its Dropout here: a resumed run draws what a native run draws."""
    rng = np.random.RandomState(0)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    mlp (float[N,6] x) => (float[N,3] logits) <float[6,8] w1 = {%s}, float[8,3] w2 = {%s}, float ratio = {0.5}>
    { h = MatMul (x, w1) a = Relu (h) d = Dropout (a, ratio) logits = MatMul (d, w2) }""" % (
        _numbers(rng.randn(6, 8) * 0.3), _numbers(rng.randn(8, 3) * 0.3))
    first = ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.SGD(lr=0.1), only=["w1"], mode="as_is",
                       label="label")
    model = ot.prepare(first, loss="cross_entropy", optimizer=ot.SGD(lr=0.1), only=["w2"], append=True, label="label")
    refuse_second_section(monkeypatch)
    x, y = rng.randn(40, 6).astype(np.float32), rng.randint(0, 3, 40)
    whole = ot.Trainer(model, seed=5)
    whole.fit(x, y, valid=None, epochs=4, batch_size=8)
    with pytest.warns(UserWarning, match="OT4514.*section 1"):
        begun = ot.Trainer(model, seed=5, engine="onnxruntime")
        begun.fit(x, y, valid=None, epochs=2, batch_size=8, out=tmp_path / "r")
        t = ot.resume(tmp_path / "r", engine="onnxruntime")
        t.fit(epochs=4)
    for name, value in whole.state.items():
        np.testing.assert_allclose(t.state[name], value, atol=1e-5, err_msg=name)


def _with_dropout(sections):
    rng = np.random.RandomState(0)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    mlp (float[N,6] x) => (float[N,3] logits) <float[6,8] w1 = {%s}, float[8,3] w2 = {%s}>
    { h = MatMul (x, w1) a = Relu (h) d = Dropout (a) logits = MatMul (d, w2) }""" % (
        _numbers(rng.randn(6, 8) * 0.3), _numbers(rng.randn(8, 3) * 0.3))
    model = ot.parse(text)
    for only in (["w1"], ["w2"])[:sections]:
        model = ot.prepare(model, loss="cross_entropy", optimizer=ot.SGD(lr=0.1), only=only, label="label",
                           append=model.trainable)
    return model


def test_random_numbers_of_an_engine_follow_the_seed():
    rng, model = np.random.RandomState(4), _with_dropout(1)
    feeds = {"x": rng.randn(8, 6).astype(np.float32), "label": rng.randint(0, 3, 8)}

    def losses(seed):
        t = ot.Trainer(model, seed=seed, engine="onnxruntime")
        return [t.step(feeds).loss for _ in range(3)]

    assert losses(1) == losses(1)
    assert len({tuple(losses(seed)) for seed in (0, 1, 2)}) == 3


@pytest.mark.parametrize("sections", [1, 2])
def test_random_numbers_of_an_engine_go_on_after_a_resume(tmp_path, sections):
    """Sections share one counter: a step of two sections takes two places of it."""
    rng, model = np.random.RandomState(3), _with_dropout(sections)
    x, y = rng.randn(40, 6).astype(np.float32), rng.randint(0, 3, 40)
    whole = ot.Trainer(model, seed=5, engine="onnxruntime")
    whole.fit(x, y, valid=None, epochs=4, batch_size=8)
    begun = ot.Trainer(model, seed=5, engine="onnxruntime")
    begun.fit(x, y, valid=None, epochs=2, batch_size=8, out=tmp_path / "r")
    t = ot.resume(tmp_path / "r", engine="onnxruntime")
    t.fit(epochs=4)
    for name, value in whole.state.items():
        np.testing.assert_array_equal(t.state[name], value, err_msg=name)


@pytest.mark.parametrize("isolated", [False, True])
def test_feeds_that_do_not_fit_are_errors_of_the_data(isolated):
    """A runtime would say it in its own words, repeat one label for all rows, or ignore a class that there is not."""
    rng, t = np.random.RandomState(4), ot.Trainer(_with_dropout(1), engine="onnxruntime", isolated=isolated)
    good = {"x": rng.randn(8, 6).astype(np.float32), "label": rng.randint(0, 3, 8)}
    for change, code, said in (
            ({"label": good["label"][:1]}, "OT2165", "'x' and 'label' have different sizes: 8 and 1"),
            ({"label": good["label"] + 3}, "OT2104", "in input 'label' is out of range: 0 to 2"),
            ({"label": good["label"].astype(np.int32)}, "OT2111", "'label' is int32, the step wants int64"),
            ({"x": good["x"][:, :4]}, "OT2111", r"'x' has the shape \[8, 4\], the step wants \['N', 6\]")):
        with pytest.raises(ot.DataError, match=said) as e:
            t.step(good | change)
        assert e.value.code == code and e.value.hint
    with pytest.raises(ot.DataError, match="'label' was not given"):
        t.step({"x": good["x"]})
    assert t.step_count == 0 and t.step(good).loss > 0


def test_a_training_that_the_engine_cannot_run_says_what_can():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (double[N,2] x) => (double[N,2] y) <double[2,2] w = {1.0, 0.5, 0.2, 1.0}> { y = MatMul (x, w) }"""
    t = ot.Trainer(ot.prepare(ot.parse(text), loss="mse"), engine="onnxruntime")
    feeds = {"x": np.ones((3, 2)), "label": np.zeros((3, 2))}
    with pytest.raises(ot.Error, match="(?s)'x' is double.*engine='native'"):
        t.step(feeds)
    assert ot.Trainer(t.model(), engine="native").step(feeds).loss > 0
