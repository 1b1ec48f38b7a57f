"""The Python interface line by line: every name, argument, default and kind of result that scripts rely on."""

import inspect
import math
import os
import signal
import threading
import time

import numpy as np
import onnx
import pytest
from models import mlp, rows, two_heads, with_weights
from onnx import TensorProto, helper

import onnxtrain as ot


@pytest.fixture
def path(tmp_path):
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


def feeds(n=64, seed=1):
    x, y = rows(n, seed)
    return {"x": x, "label": y}


# ---- load, Model
def test_load(path):
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes())):
        assert isinstance(ot.load(source), ot.Model)
    model = ot.load(path)
    assert model.inputs == ["x"] and model.outputs == ["logits"]
    assert list(model.parameters) == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert isinstance(model.parameters["fc1.weight"], np.ndarray) and model.parameters["fc1.weight"].dtype == np.float32
    assert isinstance(model.proto(), bytes)
    onnx.checker.check_model(onnx.load_from_string(model.proto()))


def test_summary_is_text(path):
    text = ot.prepare(path).summary()
    assert isinstance(text, str) and repr(text) == str(text)
    for word in ("x", "logits", "float[N,3]", "4 initializers", "training 0", "label"):
        assert word in text


def test_save_keeps_everything(path, tmp_path):
    model = ot.load(path)
    model.parameters["fc1.bias"] = np.arange(16, dtype=np.float32)
    model.save(tmp_path / "again.onnx")
    again = ot.load(tmp_path / "again.onnx")
    np.testing.assert_array_equal(again.parameters["fc1.bias"], np.arange(16))
    with pytest.raises(KeyError):
        again.parameters["nothing"]


def test_parse():
    model = ot.parse('<ir_version: 8, opset_import: ["": 17]> double (float[N] x) => (float[N] y) { y = Add (x, x) }')
    assert ot.Session(model).run({"x": np.float32([1, 2])})["y"].tolist() == [2, 4]


# ---- prepare
def test_prepare_signature():
    p = inspect.signature(ot.prepare).parameters
    defaults = {n: v.default for n, v in p.items() if v.default is not inspect.Parameter.empty}
    expected = dict(label=None, freeze=(), only=None, clip_norm=None, clip_value=None, schedule=None, accumulate=1,
                    mode="train", lowered=False)
    assert {k: defaults[k] for k in expected} == expected
    assert list(p)[:3] == ["model", "loss", "optimizer"]


def test_prepare_from_everything(path):
    for source in (path, str(path), ot.load(path), path.read_bytes(), onnx.load(path)):
        train = ot.prepare(source, loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
        assert train.trainable and isinstance(train, ot.Model)
    assert not ot.load(path).trainable


def cross_entropy(z, y, weight=None, smoothing=0.0, ignore=None):
    """PyTorch's cross_entropy in float64."""
    z = z.astype(np.float64)
    logp = z - np.log(np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True)) - z.max(1, keepdims=True)
    w = np.ones(z.shape[1]) if weight is None else np.asarray(weight)
    keep = np.ones(len(y), bool) if ignore is None else y != ignore
    safe = np.where(keep, y, 0)
    hit = -(w[safe] * logp[np.arange(len(y)), safe])[keep].sum()
    spread = -(w * logp)[keep].sum() / z.shape[1]
    return ((1 - smoothing) * hit + smoothing * spread) / (w[safe] * keep).sum()


@pytest.mark.parametrize("arguments", [{}, {"weight": [1, 2, 0.5]}, {"label_smoothing": 0.2}, {"ignore_index": 1}], ids=str)
def test_cross_entropy_spec(path, arguments):
    f = feeds()
    z = ot.Session(path).run({"x": f["x"]})["logits"]
    want = cross_entropy(z, f["label"], arguments.get("weight"), arguments.get("label_smoothing", 0), arguments.get("ignore_index"))
    t = ot.Trainer(ot.prepare(path, loss=ot.losses.CrossEntropy(**arguments), optimizer=ot.SGD(lr=0.0)))
    assert t.step(f).loss == pytest.approx(want, rel=1e-5)


def test_cross_entropy_spec_defaults():
    p = inspect.signature(ot.losses.CrossEntropy).parameters
    assert [(n, p[n].default) for n in list(p)[:4]] == [
        ("weight", None), ("ignore_index", None), ("label_smoothing", 0), ("reduction", "mean")]


@pytest.mark.parametrize("name", ["mse", "l1", "huber", "bce_logits", "hinge"])
def test_losses_by_name(path, name):
    x, _ = rows(8)
    z = ot.Session(path).run({"x": x})["logits"].astype(np.float64)
    target = (np.arange(24).reshape(8, 3) % 2).astype(np.float32)
    if name == "hinge":
        target = 2 * target - 1
    d = z - target
    want = {
        "mse": d**2, "l1": abs(d), "huber": np.where(abs(d) < 1, d**2 / 2, abs(d) - 0.5),
        "bce_logits": np.maximum(z, 0) - z * target + np.log1p(np.exp(-abs(z))), "hinge": np.maximum(0, 1 - z * target),
    }[name].mean()
    t = ot.Trainer(ot.prepare(path, loss=name, optimizer=ot.SGD(lr=0.0), label="goal"))
    assert t.step({"x": x, "goal": target}).loss == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("style", ["tuples", "products", "dicts"])
def test_weighted_terms_on_named_outputs(style):
    ce, mse = ot.losses.CrossEntropy(output="scores", label="kind"), ot.losses.MSE(output="size", label="goal")
    loss = {
        "tuples": [(2.0, ce), (0.5, mse)],
        "products": [2.0 * ce, mse * 0.5],
        "dicts": [{"loss": "cross_entropy", "output": "scores", "label": "kind", "weight": 2.0},
                  {"loss": "mse", "output": "size", "label": "goal", "weight": 0.5}],
    }[style]
    x, y = rows(16)
    goal = x[:, :1] * 2
    out = ot.Session(two_heads().SerializeToString()).run({"x": x})
    want = 2 * cross_entropy(out["scores"], y) + 0.5 * ((out["size"] - goal).astype(np.float64) ** 2).mean()
    t = ot.Trainer(ot.prepare(two_heads(), loss=loss, optimizer=ot.SGD(lr=0.0)))
    assert t.step({"x": x, "kind": y, "goal": goal}).loss == pytest.approx(want, rel=1e-5)


def test_loss_and_optimizer_as_graphs(path, tmp_path):
    ot.parse('''<ir_version: 8, opset_import: ["": 17]>
        square (float[N, 3] logits, float[N, 3] wanted) => (float loss)
        { d = Sub (logits, wanted) s = Mul (d, d) loss = ReduceSum <keepdims = 0> (s) }''').save(tmp_path / "loss.onnx")
    ot.parse('''<ir_version: 8, opset_import: ["": 17]>
        sign (float R, int64 T, float[n] X, float[n] G) => (float[n] X1)
        { s = Sign (G) m = Mul (R, s) X1 = Sub (X, m) }''').save(tmp_path / "sign.onnx")
    x, _ = rows(8)
    wanted = np.ones((8, 3), np.float32)
    for kind in (str, type(path)):
        t = ot.Trainer(ot.prepare(path, loss=kind(tmp_path / "loss.onnx"), optimizer=kind(tmp_path / "sign.onnx")))
        before = t.state["fc2.bias"]
        z = ot.Session(path).run({"x": x})["logits"].astype(np.float64)
        assert t.step({"x": x, "wanted": wanted}).loss == pytest.approx(((z - 1) ** 2).sum(), rel=1e-5)
        moved = np.abs(t.state["fc2.bias"] - before)
        np.testing.assert_allclose(moved, moved[0], rtol=1e-5)
        assert moved[0] > 0


def test_freeze_and_only(path):
    for arguments in ({"freeze": ["fc1.*"]}, {"freeze": "fc1.*"}, {"only": ["fc2.*"]}, {"only": "fc2.*"}):
        t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.1), **arguments))
        assert "fc1.weight" not in t.state and "fc2.weight" in t.state


def first_update(path, **options):
    f = feeds()
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=1.0), **options))
    before = {n: v for n, v in t.state.items() if n.startswith("fc")}
    t.step(f)
    return {n: t.state[n] - v for n, v in before.items()}


def test_clipping(path):
    free = first_update(path)
    norm = math.sqrt(sum(float((v.astype(np.float64) ** 2).sum()) for v in free.values()))
    for name, value in first_update(path, clip_norm=norm / 4).items():
        np.testing.assert_allclose(value, free[name] / 4, rtol=1e-3, atol=1e-6)
    for name, value in first_update(path, clip_value=0.01).items():
        np.testing.assert_allclose(value, np.clip(free[name], -0.01, 0.01), rtol=1e-3, atol=1e-6)


def test_accumulate(path):
    f = feeds(64)
    halves = [{k: v[i::2] for k, v in f.items()} for i in range(2)]
    whole, parts = (ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), accumulate=n)) for n in (1, 2))
    start = parts.state["fc1.weight"]
    for _ in range(3):
        whole.step(f)
        parts.step(halves[0])
        if parts.step_count == 1:
            np.testing.assert_array_equal(parts.state["fc1.weight"], start)
        parts.step(halves[1])
    np.testing.assert_allclose(parts.state["fc1.weight"], whole.state["fc1.weight"], atol=1e-5)


@pytest.mark.parametrize("schedule", [
    ot.Schedule("step", {"step_size": 2, "gamma": 0.5}),
    {"kind": "step", "numbers": {"step_size": 2, "gamma": 0.5}},
    {"kind": "step", "step_size": 2, "gamma": 0.5},
])
def test_schedule(path, schedule):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.8), schedule=schedule))
    rates = []
    for _ in range(5):
        rates.append(t.lr)
        t.step(feeds())
    assert rates == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2])


def dropout_model():
    m = mlp(hidden=64)
    m.graph.node[1].output[0] = "before"
    m.graph.initializer.append(helper.make_tensor("ratio", TensorProto.FLOAT, [], [0.5]))
    m.graph.node.insert(2, helper.make_node("Dropout", ["before", "ratio"], ["a"], "drop"))
    return m


def test_mode():
    f, losses = feeds(), {}
    for mode in ("train", "as_is"):
        t = ot.Trainer(ot.prepare(dropout_model(), loss="cross_entropy", optimizer=ot.SGD(lr=0.0), mode=mode))
        losses[mode] = {t.step(f).loss for _ in range(3)}
    assert len(losses["train"]) == 3 and len(losses["as_is"]) == 1
    with pytest.raises(ot.UsageError):
        ot.prepare(dropout_model(), mode="other")


def test_lowered(path):
    train = ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), lowered=True)
    step = onnx.load_from_string(train.proto()).training_info[0].algorithm
    assert "Gradient" not in {n.op_type for n in step.node}
    a, b = ot.Trainer(train), ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01)))
    assert [a.step(feeds()).loss for _ in range(5)] == pytest.approx([b.step(feeds()).loss for _ in range(5)], rel=1e-5)


# ---- optimizers
NAMES = {
    ot.SGD: "lr momentum dampening nesterov weight_decay overrides",
    ot.Adam: "lr betas eps weight_decay amsgrad style overrides",
    ot.AdamW: "lr betas eps weight_decay amsgrad style overrides",
    ot.Adagrad: "lr lr_decay eps initial_accumulator_value weight_decay style overrides",
    ot.RMSprop: "lr alpha eps momentum centered weight_decay style overrides",
    ot.Lion: "lr betas weight_decay overrides",
    ot.Lamb: "lr betas eps weight_decay overrides",
    ot.OnnxAdam: "lr alpha beta epsilon norm_coefficient norm_coefficient_post t0",
    ot.OnnxMomentum: "lr alpha beta mode norm_coefficient t0",
    ot.OnnxAdagrad: "lr decay_factor epsilon norm_coefficient t0",
}


@pytest.mark.parametrize("kind", NAMES, ids=lambda k: k.__name__)
def test_optimizer_arguments(kind, path):
    assert set(NAMES[kind].split()) <= set(inspect.signature(kind).parameters)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=kind(lr=1e-3)))
    f = feeds()
    first = t.step(f).loss
    for _ in range(20):
        last = t.step(f).loss
    assert last < first


VARIANTS = [
    ot.SGD(lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01), ot.SGD(lr=0.1, momentum=0.9, nesterov=True),
    ot.Adam(lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1, amsgrad=True), ot.Adam(style="keras"), ot.AdamW(style="keras"),
    ot.Adagrad(lr_decay=0.1, initial_accumulator_value=0.1, weight_decay=0.1), ot.Adagrad(style="keras"),
    ot.RMSprop(lr=0.001, momentum=0.9, centered=True, weight_decay=0.1), ot.RMSprop(lr=0.001, style="keras"),
    ot.AdamW(overrides={"*.bias": {"weight_decay": 0.0, "lr_scale": 0.5}}),
    ot.OnnxMomentum(lr=0.1, alpha=0.9, beta=0.9, mode="nesterov", norm_coefficient=0.01, t0=1),
    ot.OnnxAdagrad(decay_factor=0.1, epsilon=1e-5, t0=3),
    "sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop", "lion", "lamb", None,
]


@pytest.mark.parametrize("optimizer", VARIANTS, ids=str)
def test_optimizer_variants(optimizer, path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=optimizer))
    before = t.state["fc1.weight"]
    assert math.isfinite(t.step(feeds()).loss) and (t.state["fc1.weight"] != before).any()


def test_overrides_scale_and_spare(path):
    free = first_update(path)
    f = feeds()
    optimizer = ot.SGD(lr=1.0, weight_decay=0.5, overrides={"fc1.*": {"weight_decay": 0.0, "lr_scale": 0.25}})
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=optimizer))
    before = {n: v for n, v in t.state.items() if n.startswith("fc")}
    t.step(f)
    np.testing.assert_allclose(t.state["fc1.weight"] - before["fc1.weight"], 0.25 * free["fc1.weight"], atol=1e-6)
    np.testing.assert_allclose(t.state["fc2.weight"] - before["fc2.weight"], free["fc2.weight"] - 0.5 * before["fc2.weight"], atol=1e-6)


def test_onnx_adam_counter(path):
    """t0 = 1 corrects the bias in the first step, t0 = 0 does not (the standard's rule)."""
    moves = {}
    for t0 in (0, 1):
        t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.OnnxAdam(lr=0.01, epsilon=1e-12, t0=t0)))
        before = t.state["fc2.bias"]
        t.step(feeds())
        moves[t0] = np.abs(t.state["fc2.bias"] - before)
    np.testing.assert_allclose(moves[1], 0.01, rtol=1e-3)
    np.testing.assert_allclose(moves[0], 0.01 * 0.1 / math.sqrt(0.001), rtol=1e-3)


def test_wrong_arguments_are_refused(path):
    with pytest.raises(TypeError):
        ot.AdamW(learning_rate=1)
    for arguments in ({"loss": "cross_entrpy"}, {"optimizer": "adamm"}, {"loss": 3}, {"optimizer": 3}, {"accumulate": 0},
                      {"loss": [("mse", "l1")]}):
        with pytest.raises(ot.Error) as e:
            ot.prepare(path, **arguments)
        assert e.value.code.startswith("OT")


# ---- Trainer
def test_trainer_signature():
    p = inspect.signature(ot.Trainer).parameters
    assert list(p)[:3] == ["model", "seed", "threads"] and p["seed"].default == 0


def test_step_result(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.1)), seed=0, threads=2)
    r = t.step(feeds())
    assert type(r.loss) is float and isinstance(r.outputs, dict)
    assert float(r.outputs["loss"]) == pytest.approx(r.loss)
    assert t.step_count == 1 and t.step(feeds(), which=0).loss < r.loss and t.step_count == 2
    with pytest.raises(ot.Error):
        t.step(feeds(), which=1)


def test_state_read_and_write(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01)))
    assert {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc1.weight.exp_avg", "T"} <= set(t.state)
    new = np.full((3, 16), 0.25, np.float32)
    t.state["fc2.weight"] = new
    np.testing.assert_array_equal(t.state["fc2.weight"], new)
    np.testing.assert_array_equal(t.model().parameters["fc2.weight"], new)
    t.state["fc2.weight"][:] = 7  # what was read is a copy
    np.testing.assert_array_equal(t.state["fc2.weight"], new)
    with pytest.raises(KeyError):
        t.state["nothing"] = new
    with pytest.raises(ot.Error):
        t.state["fc2.weight"] = np.zeros((2, 2), np.float32)
    with pytest.raises(TypeError):
        del t.state["T"]


def test_rate(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.5)))
    assert t.lr == pytest.approx(0.5)
    t.lr = 0.0
    before = t.state["fc1.weight"]
    t.step(feeds())
    np.testing.assert_array_equal(t.state["fc1.weight"], before)


def test_save_and_export(path, tmp_path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.AdamW(lr=0.01)))
    for _ in range(3):
        t.step(feeds())
    t.save(tmp_path / "last.train.onnx")
    t.export(str(tmp_path / "model.onnx"))
    for name in ("last.train.onnx", "model.onnx"):
        onnx.checker.check_model(onnx.load(tmp_path / name), full_check=True)
    assert not ot.load(tmp_path / "model.onnx").trainable
    again = ot.Trainer(tmp_path / "last.train.onnx")
    assert [again.step(feeds()).loss for _ in range(3)] == [t.step(feeds()).loss for _ in range(3)]


# ---- compile, fit, evaluate, predict, resume
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
    model = ot.load(path).compile(loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    model.fit(x, y, valid=0.1, epochs=2, batch_size=16, out=tmp_path / "run")
    if kept == "in the folder":
        monkeypatch.setattr("onnxtrain.runs._IN_THIS_PROCESS", {})
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
    assert ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=0.1)).fit(*arguments, epochs=1)["loss"] == want


def test_predict_fits_data_as_fit_does():
    m = with_weights('''picture (float[N, 1, 2, 2] image) => (float[N, 2] scores)
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
        "function": lambda: t.fit(lambda: loader(x, y, 32), **common),
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
    for wrong in (lambda: model.fit(loader(x, y, 8), epochs=3), lambda: model.fit(loader(x, y, 8), valid=0.1),
                  lambda: model.fit(loader(x, y, 8), y), lambda: model.fit("data.npz"), lambda: model.fit(x, y, steps_per_epoch=3)):
        with pytest.raises(ot.UsageError):
            wrong()
    with pytest.raises(ot.DataError, match="'label'"):
        model.fit(iter([x]))
    with pytest.raises(ot.DataError, match="no batches"):
        model.fit(iter([]))
    assert len(model.fit(loader(x, y, 8))) == 1


# ---- Session
def test_session_run(path):
    s = ot.Session(path)
    x, _ = rows(5)
    out = s.run({"x": x})
    assert list(out) == ["logits"] and out["logits"].shape == (5, 3)
    assert list(s.run({"x": x}, outputs=["logits"])) == ["logits"] and list(s.run({"x": x}, "logits")) == ["logits"]
    with pytest.raises(ot.Error):
        s.run({"x": x}, outputs=["nothing"])


def node_model(op, inputs, outputs, domain="", opset=21, **attributes):
    graph = helper.make_graph([helper.make_node(op, [i.name for i in inputs], [o.name for o in outputs], **attributes)],
                              "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_types_beyond_numpy(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    number = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19, "uint4": 21, "int4": 22}[name]
    value = np.array([[1, 2], [3, 7]]).astype(getattr(ml_dtypes, name))
    m = node_model("Identity", [helper.make_tensor_value_info("x", number, [2, 2])],
                   [helper.make_tensor_value_info("y", number, [2, 2])])
    got = ot.Session(m).run({"x": value})["y"]
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got.astype(np.float32), value.astype(np.float32))


def test_sequences_and_optionals():
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)))
    m = node_model("SequenceInsert", [sequence, helper.make_tensor_value_info("x", 1, None)],
                   [helper.make_value_info("t", sequence.type)])
    out = ot.Session(m).run({"s": [np.ones(2, np.float32), np.ones((1, 3), np.float32)], "x": np.float32(5)})["t"]
    assert isinstance(out, list) and [a.shape for a in out] == [(2,), (1, 3), ()]
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))
    m = node_model("OptionalHasElement", [helper.make_value_info("o", optional)], [helper.make_tensor_value_info("b", 9, [])])
    s = ot.Session(m)
    assert not s.run({"o": None})["b"] and s.run({"o": np.ones(2, np.float32)})["b"]
    m = node_model("Identity", [helper.make_value_info("o", optional)], [helper.make_value_info("p", optional)])
    assert ot.Session(m).run({"o": None})["p"] is None


# ---- gradients
def test_gradients(path):
    x, _ = rows(6)
    w2 = ot.load(path).parameters["fc2.weight"].astype(np.float64)
    g = ot.gradients(path, {"x": x})
    assert set(g) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}
    np.testing.assert_allclose(g["fc2.bias"], [6, 6, 6])
    c = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    for cotangent in (c, {"logits": c}):
        g = ot.gradients(path, {"x": x}, of="logits", wrt=["a", "fc2.bias", "x"], cotangent=cotangent)
        np.testing.assert_allclose(g["a"], c @ w2, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(g["fc2.bias"], c.sum(0), rtol=1e-4, atol=1e-5)
        assert g["x"].shape == x.shape


def test_gradients_of_several_outputs():
    x, _ = rows(3)
    c = {"scores": np.zeros((3, 3), np.float32), "size": np.ones((3, 1), np.float32)}
    g = ot.gradients(two_heads(), {"x": x}, of=["scores", "size"], wrt="scores.bias", cotangent=c)
    assert list(g) == ["scores.bias"] and (g["scores.bias"] == 0).all()
    g = ot.gradients(two_heads(), {"x": x}, of="size", wrt=["scores.weight", "size.bias"])
    assert (g["scores.weight"] == 0).all() and g["size.bias"] == [3]
    with pytest.raises(ot.UsageError):
        ot.gradients(two_heads(), {"x": x}, cotangent=c["size"])
    with pytest.raises(ot.UsageError):
        ot.gradients(two_heads(), {"x": x}, of="size", cotangent=c)


# ---- errors, threads, signals
def test_exceptions(path, tmp_path):
    for kind in (ot.ModelError, ot.DataError, ot.DivergedError, ot.CheckpointError, ot.UsageError):
        assert issubclass(kind, ot.Error)
    with pytest.raises(ot.ModelError) as e:
        ot.load(b"not a model")
    assert e.value.code.startswith("OT") and isinstance(e.value.hint, str) and e.value.code in str(e.value)
    with pytest.raises(ot.DataError) as e:
        ot.load(path).compile(loss="cross_entropy").fit(rows(9)[0], np.arange(9) % 3 + 1)
    assert e.value.code == "OT2104" and "label-offset" in e.value.hint
    with pytest.raises(ot.DivergedError):
        ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=1e30)).fit(*rows(64), epochs=5)
    with pytest.raises(ot.Error):
        ot.load(tmp_path / "missing.onnx")


def wide():
    return ot.prepare(mlp(inputs=256, hidden=1024, classes=256), loss="mse", optimizer=ot.SGD(lr=1e-3))


def test_gil_is_free_during_steps():
    """While one thread steps, another one gets on with Python."""
    t, x = ot.Trainer(wide(), threads=1), np.zeros((256, 256), np.float32)
    f = {"x": x, "label": x}
    t.step(f)
    counted, done = 0, threading.Event()
    worker = threading.Thread(target=lambda: (t.steps(f, 30), done.set()))
    worker.start()
    while not done.is_set():  # `steps` is one call into the library: with the GIL held nothing would be counted
        counted += 1
        time.sleep(0.0001)
    worker.join()
    assert counted > 3


def test_threads_share_a_trainer_and_a_session(path):
    """Whoever comes second waits: the sum of the work is the same as from one thread."""
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    alone = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    s, f = ot.Session(path), feeds()
    want, wrong = s.run({"x": f["x"]})["logits"], []

    def work():
        for _ in range(50):
            t.step(f)
            if not (s.run({"x": f["x"]})["logits"] == want).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    for _ in range(200):
        alone.step(f)
    assert not wrong and t.step_count == 200 and t.state["fc1.weight"].tobytes() == alone.state["fc1.weight"].tobytes()


def test_interrupt_saves_and_stops(path, tmp_path):
    x, y = rows(2000)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    calls = []

    def on_epoch(entry):
        calls.append(entry["epoch"])
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        t.fit(x, y, epochs=10_000, batch_size=8, out=tmp_path / "run", on_epoch=on_epoch)
    assert 2 <= len(calls) < 5
    assert ot.resume(tmp_path / "run").step_count == t.step_count
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_callback_stops_and_raises(path):
    x, y = rows(100)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy"))
    assert len(t.fit(x, y, epochs=9, on_epoch=lambda e: e["epoch"] == 2)) == 2
    with pytest.raises(ZeroDivisionError):
        t.fit(x, y, epochs=9, on_epoch=lambda e: 1 / 0)


def test_backend_module():
    import onnxtrain.backend as backend

    x, _ = rows(3)
    m = mlp()
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    prepared = backend.prepare(m).run([x])[0]
    np.testing.assert_array_equal(backend.run_model(m, [x])[0], prepared)
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])[0].shape == x.shape
