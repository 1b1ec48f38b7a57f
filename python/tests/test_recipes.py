"""What `ot.prepare` takes: losses, optimizers, schedules, clipping, accumulation; arguments, defaults and numbers."""

import inspect
import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxtrain as ot
from models import feeds, mlp, rows, two_heads


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


@pytest.mark.parametrize("arguments", [{}, {"weight": [1, 2, 0.5]}, {"label_smoothing": 0.2}, {"ignore_index": 1}],
                         ids=str)
def test_cross_entropy_spec(path, arguments):
    f = feeds()
    z = ot.Session(path).run({"x": f["x"]})["logits"]
    want = cross_entropy(z, f["label"], arguments.get("weight"), arguments.get("label_smoothing", 0),
                         arguments.get("ignore_index"))
    t = ot.Trainer(ot.prepare(path, loss=ot.losses.CrossEntropy(**arguments), optimizer=ot.SGD(lr=0.0)))
    assert t.step(f).loss == pytest.approx(want, rel=1e-5)


def per_position(shape, classes=3):
    """A model that scales its input: scores of any rank with the classes on axis 1."""
    w = np.linspace(0.5, 1.5, int(np.prod(shape[1:])), dtype=np.float32).reshape(shape[1:])
    g = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["logits"])], "scaled",
                          [helper.make_tensor_value_info("x", 1, ["N", *shape[1:]])],
                          [helper.make_tensor_value_info("logits", 1, ["N", *shape[1:]])],
                          [onnx.numpy_helper.from_array(w, "w")])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)], ids=str)
def test_cross_entropy_with_everything(shape, lowered):
    """Weights, smoothing and ignored labels at once, at any rank: loss, and gradient by differences of it."""
    rng = np.random.default_rng(3)
    model, x = per_position(shape), rng.standard_normal(shape).astype(np.float32)
    y = rng.integers(0, 3, (shape[0], *shape[2:]))
    y.flat[::4] = -100
    arguments = {"weight": [1, 2, 0.5], "label_smoothing": 0.2, "ignore_index": -100}
    w = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)

    def value(w):
        z = np.moveaxis(x * w, 1, -1).reshape(-1, 3)
        return cross_entropy(z, y.reshape(-1), [1, 2, 0.5], 0.2, -100)
    t = ot.Trainer(ot.prepare(model, loss=ot.losses.CrossEntropy(**arguments), optimizer=ot.SGD(lr=1.0),
                              lowered=lowered))
    before = t.state["w"]
    assert t.step({"x": x, "label": y}).loss == pytest.approx(value(w), rel=1e-5)
    direction = rng.standard_normal(w.shape)
    slope = (value(w + 1e-5 * direction) - value(w - 1e-5 * direction)) / 2e-5
    assert float(((before - t.state["w"]) * direction).sum()) == pytest.approx(slope, rel=1e-3, abs=1e-5)


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
    whole, parts = (ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), accumulate=n))
                    for n in (1, 2))
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
    ot.Adam(lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1, amsgrad=True), ot.Adam(style="keras"),
    ot.AdamW(style="keras"), ot.Adagrad(lr_decay=0.1, initial_accumulator_value=0.1, weight_decay=0.1),
    ot.Adagrad(style="keras"), ot.RMSprop(lr=0.001, momentum=0.9, centered=True, weight_decay=0.1),
    ot.RMSprop(lr=0.001, style="keras"), ot.AdamW(overrides={"*.bias": {"weight_decay": 0.0, "lr_scale": 0.5}}),
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
    np.testing.assert_allclose(t.state["fc2.weight"] - before["fc2.weight"],
                               free["fc2.weight"] - 0.5 * before["fc2.weight"], atol=1e-6)


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
    for arguments in ({"loss": "cross_entrpy"}, {"optimizer": "adamm"}, {"loss": 3}, {"optimizer": 3},
                      {"accumulate": 0}, {"loss": [("mse", "l1")]}):
        with pytest.raises(ot.Error) as e:
            ot.prepare(path, **arguments)
        assert e.value.code.startswith("OT")


# ---- old files, bodies
OLD = [("Upsample <mode = \"linear\"> (z, s)", 9), ("Resize <mode = \"linear\"> (z, s)", 10),
       ("Resize <mode = \"nearest\"> (z, s)", 10), ("Hardmax <axis = 1> (z)", 11), ("Softmax <axis = 1> (z)", 11)]


@pytest.mark.parametrize("node,opset", OLD, ids=str)
def test_old_files_keep_their_meaning(node, opset):
    """prepare brings old files to a newer opset: the model must go on computing what it did."""
    w = ", ".join(str(0.1 * k) for k in range(32))
    model = onnx.parser.parse_model(f'''<ir_version: 5, opset_import: ["" : {opset}]> g (float[1,2,4,4] x)
        => (float[N,C,H,W] y, float[1,2,4,4] z)
        <float[1,2,4,4] w = {{{w}}}, float[4] s = {{1, 1, 3, 1.5}}> {{ z = Mul (x, w)  y = {node} }}''')
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    before = ot.Session(model.SerializeToString()).run({"x": x})
    train = ot.prepare(model, loss=ot.losses.MSE(output="z"), optimizer=ot.SGD(lr=0.1))
    after = ot.Session(train).run({"x": x})
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6, err_msg=name)


LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,8] x, bool c) => (float[2,8] y)
    <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float r = {0.5}> {
    n = Constant <value = int64 {3}> ()  one = Constant <value = bool {1}> ()  h = Mul (x, w)
    y = Loop (n, one, h) <body = b (int64 i, bool k, float[2,8] s) => (bool k2, float[2,8] s2) { k2 = Identity (k)
        s2 = If (c) <then_branch = t () => (float[2,8] a) { a = Dropout (s, r) }, else_branch = e () => (float[2,8] d)
        { d = Identity (s) }> }> }"""


def test_dropout_inside_a_branch_inside_a_loop():
    """It is switched to training in the twin, and the backward pass sees the forward pass's masks."""
    model = onnx.parser.parse_model(LOOP)
    f = {"x": np.ones((2, 8), np.float32), "c": np.array(True), "t": np.zeros((2, 8), np.float32)}
    options = dict(loss=ot.losses.MSE(reduction="sum", label="t"), optimizer=ot.SGD(lr=1.0))
    np.testing.assert_array_equal(ot.Session(model.SerializeToString()).run({k: f[k] for k in "xc"})["y"][0],
                                  np.arange(1, 9))
    t = ot.Trainer(ot.prepare(model, **options))
    w = t.state["w"]
    loss = t.step(f).loss  # the sum of (m w)^2: its gradient times w is twice the loss
    assert 0 < loss != 2 * float((w**2).sum())
    assert float(((w - t.state["w"]) * w).sum()) == pytest.approx(2 * loss, rel=1e-5)
    with pytest.raises(ot.ModelError, match="random numbers") as e:
        ot.prepare(model, lowered=True, **options)
    assert e.value.code == "OT1247"


def test_batch_normalization_inside_a_branch_is_refused():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[4,2] x, bool c)
        => (float[4,2] y)
        <float[2] s = {1, 2}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}> {
        y = If (c) <then_branch = t () => (float[4,2] a) { a = BatchNormalization (x, s, b, m, v) },
                    else_branch = e () => (float[4,2] d) { d = Mul (x, s) }> }""")
    with pytest.raises(ot.ModelError) as e:
        ot.prepare(model, loss="mse")
    assert e.value.code == "OT1248" and "freeze=" in e.value.hint
    assert ot.prepare(model, loss="mse", mode="as_is").trainable


def test_a_loop_over_sequences_lowered():
    """In ONNX Runtime too: tests/trajectories/lowered.py runs such files there."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x) => (float[N,M] y)
        <float[3] w = {0.3, -0.2, 0.9}> {
        h = Mul (x, w)  e = SequenceConstruct (h)  n = Constant <value = int64 {3}> ()
        one = Constant <value = bool {1}> ()
        q = Loop (n, one, e) <body = b (int64 i, bool c, seq(float[N,3]) s) => (bool c2, seq(float[N,3]) s2) {
            c2 = Identity (c)  last = Constant <value = int64 {-1}> ()  t = SequenceAt (s, last)  u = Mul (t, w)
            v = Tanh (u)
            s2 = SequenceInsert (s, v) }>
        y = ConcatFromSequence <axis = 1> (q) }""")
    x, goal = rows(5)[0][:, :3], np.zeros((5, 12), np.float32)
    a, b = (ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.5), lowered=low)) for low in (False, True))
    for _ in range(3):
        assert a.step({"x": x, "label": goal}).loss == pytest.approx(b.step({"x": x, "label": goal}).loss, rel=1e-6)
    np.testing.assert_allclose(a.state["w"], b.state["w"], rtol=1e-5)


def test_class_losses_want_class_numbers():
    m = ot.parse('<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x, float[N] t) => (float[N,3] y)'
                 " <float w = {1.0}> { s = ReduceSum <keepdims = 0> (t) a = Mul (x, w) y = Add (a, s) }")
    with pytest.raises(ot.ModelError, match="needs class numbers .int64., input 't' is float"):
        ot.prepare(m, loss="cross_entropy", label="t", optimizer="sgd")
