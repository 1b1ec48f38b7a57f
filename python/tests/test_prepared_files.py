"""Models that are unusual but legal, through prepare, a few steps and export: 16-bit types, files of IR 3,
weights inside branches and loops, old opsets in other types; new start values for every kind of parameter."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = {"float": (TensorProto.FLOAT, np.float32), "float16": (TensorProto.FLOAT16, np.float16),
         "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def parsed(text, weights=(), opset=17, ir=8):
    m = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> {text}')
    m.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in dict(weights).items())
    return m


# ---- element types

NETS = {
    "dense": ("""g (T[N,6] x) => (T[N,3] y) { h = Gemm <transB = 1> (x, w1, b1)  a = Relu (h)  d = Dropout (a, r)
        z = Clip (d, lo)
        y = Gemm <transB = 1> (z, w2, b2) }""", {"w1": (8, 6), "b1": (8,), "w2": (3, 8), "b2": (3,)}, (6,)),
    "convolution": ("""g (T[N,2,6,6] x) => (T[N,3] y) { c = Conv <kernel_shape = [3,3]> (x, w1)
        n = BatchNormalization (c, s, b, m, v)
        a = Relu (n)  p = GlobalAveragePool (a)  f = Flatten (p)  y = Gemm <transB = 1> (f, w2, b2) }""",
                    {"w1": (4, 2, 3, 3), "s": (4,), "b": (4,), "w2": (3, 4), "b2": (3,)}, (2, 6, 6)),
    "attention": ("""g (T[N,4,6] x) => (T[N,4,3] y) { l = LayerNormalization (x, s, b)  q = MatMul (l, wq)
        k = MatMul (l, wk)
        t = Transpose <perm = [0,2,1]> (k)  p0 = MatMul (q, t)  p = Softmax (p0)  o = MatMul (p, l)  e = Gelu (o)
        y = MatMul (e, w2) }""",
                  {"s": (6,), "b": (6,), "wq": (6, 6), "wk": (6, 6), "w2": (6, 3)}, (4, 6)),
}


def net(name, kind):
    """The same numbers (those of bfloat16) in every type."""
    text, shapes, _ = NETS[name]
    proto, array = TYPES[kind]
    rng = np.random.default_rng(3)
    m = parsed(text.replace("T[", kind + "["), opset=22, ir=10)

    def tensor(n, v):
        m.graph.initializer.append(helper.make_tensor(n, proto, v.shape,
                                                      v.astype(ml_dtypes.bfloat16).astype(array).tobytes(), raw=True))
    for n, shape in shapes.items():
        tensor(n, (n == "s") + 0.5 * rng.standard_normal(shape))
    if name == "convolution":
        tensor("m", np.zeros(4))
        tensor("v", np.ones(4))
    if name == "dense":
        tensor("lo", np.array(-3.0))
        m.graph.initializer.append(helper.make_tensor("r", TensorProto.FLOAT, [], [0.0]))
    return m


def batch(name, kind):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((8, *NETS[name][2])).astype(ml_dtypes.bfloat16).astype(TYPES[kind][1])
    return {"x": x, "label": rng.integers(0, 3, (8, 4) if name == "attention" else 8)}


def gradients(name, kind):
    """By way of a momentum, which is the gradient after one step."""
    t = ot.Trainer(ot.prepare(net(name, kind), loss="cross_entropy", optimizer=ot.SGD(lr=0.0, momentum=0.9)))
    t.step(batch(name, kind))
    return {n: np.asarray(t.state[n + ".momentum"], np.float64) for n in NETS[name][1]}


@pytest.mark.parametrize("kind,near", [("float16", 0.01), ("bfloat16", 0.08)])
@pytest.mark.parametrize("name", NETS)
def test_sixteen_bits(name, kind, near, tmp_path):
    want, got = gradients(name, "float"), gradients(name, kind)
    for n, g in want.items():
        assert np.isfinite(got[n]).all() and np.abs(got[n] - g).max() <= near * np.abs(g).max(), n
    for lowered in (False, True):
        train = ot.prepare(net(name, kind), loss="cross_entropy", optimizer=ot.AdamW(lr=0.05), clip_norm=1.0,
                           accumulate=2, lowered=lowered)
        onnx.checker.check_model(onnx.load_from_string(train.proto()))
        t, f = ot.Trainer(train), batch(name, kind)
        losses = [t.step(f).loss for _ in range(30)]
        assert np.isfinite(losses).all() and losses[-1] < 0.8 * losses[0], losses
        assert t.state["w2"].dtype == TYPES[kind][1] and t.state["w2.exp_avg_sq"].dtype == np.float32
    t.export(tmp_path / "trained.onnx")
    onnx.checker.check_model(tmp_path / "trained.onnx", full_check=True)


# ---- files

def test_ir_3(tmp_path):
    """Initializers must be inputs too."""
    weights = {"w": np.arange(12, dtype=np.float32).reshape(4, 3) / 9, "b": np.ones(3, np.float32)}
    m = parsed("g (float[N,4] x) => (float[N,3] y) { a = Gemm (x, w, b)  y = Tanh (a) }", weights, 9, 3)
    m.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in weights.items())
    onnx.checker.check_model(m)
    t = ot.Trainer(ot.prepare(m, loss="mse", optimizer=ot.SGD(lr=0.3)))
    x, goal = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32), np.zeros((6, 3), np.float32)
    losses = [t.step({"x": x, "label": goal}).loss for _ in range(10)]
    assert losses[-1] < losses[0]
    t.save(tmp_path / "t.onnx")
    t.export(tmp_path / "e.onnx")
    for name in ("t.onnx", "e.onnx"):
        onnx.checker.check_model(tmp_path / name, full_check=True)
        onnxruntime = pytest.importorskip("onnxruntime")
        runtime = onnxruntime.InferenceSession(str(tmp_path / name), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(runtime.run(["y"], {"x": x})[0], ot.Session(tmp_path / "e.onnx").run({"x": x})["y"],
                                   atol=1e-6)


@pytest.mark.parametrize("kind,dtype", [("double", np.float64), ("float16", np.float16)])
def test_settings_of_old_files_in_other_types(kind, dtype):
    """Bounds of Clip and the filling of Pad were attributes; they become tensors of the data's type."""
    m = parsed(f"g ({kind}[N,4] x) => ({kind}[N,6] y) {{ a = MatMul (x, w)  c = Clip <min = -0.4, max = 0.6> (a)  "
               f"y = Pad <pads = [0,1,0,1], value = 0.3> (c) }}",
               {"w": np.eye(4, dtype=dtype)}, 9, 4)
    x = np.linspace(-1, 1, 8, dtype=dtype).reshape(2, 4)
    want = ot.Session(m.SerializeToString()).run({"x": x})["y"]
    t = ot.Trainer(ot.load(ot.prepare(m, loss="mse", optimizer=ot.SGD(lr=0.1)).proto()))
    goal = np.zeros((2, 6), dtype)
    assert t.step({"x": x, "label": goal}).loss == pytest.approx(float((want.astype(np.float64) ** 2).mean()), rel=2e-3)
    assert t.state["w"].dtype == dtype


FIRST = [  # (opset, nodes from x [N,3,2,2] to y, weights)
    (6, "a = Mul <broadcast = 1, axis = 1> (x, w)  y = Add <broadcast = 1, axis = 1> (a, b)", {"w": (3,), "b": (3,)}),
    (6, "a = Mul <broadcast = 1, axis = 1> (x, w)  y = Div <broadcast = 1> (a, b)", {"w": (3, 2), "b": (1,)}),
    (6, "a = Mul <broadcast = 1> (x, w)  y = PRelu (a, b)", {"w": (2, 2), "b": (3,)}),
    (6, "f = Reshape (x, s)  g1 = Gemm <broadcast = 1> (f, w, b)  y = Reshape (g1, t)", {"w": (12, 12), "b": (12,)}),
    (5, "n = BatchNormalization <is_test = 1, consumed_inputs = [0, 0, 0, 1, 1]> (x, w, b, m, v)  "
        "d = Dropout <is_test = 1> (n)  y = Relu <consumed_inputs = [0]> (d)",
     {"w": (3,), "b": (3,)}),
    (1, "f = Reshape <shape = [-1, 12]> (x)  c = Cast <to = \"FLOAT\"> (f)  a = Mul <broadcast = 1, axis = 1> (c, w)  "
        "p = Pad <paddings = [0, 0, 0, 12]> (a)  q, r = Split <axis = 1, split = [12, 12]> (p)  k = Sum (q, r)  "
        "y = Reshape <shape = [-1, 3, 2, 2]> (k)",
     {"w": (12,)}),
]


@pytest.mark.parametrize("opset,nodes,shapes", FIRST, ids=range(len(FIRST)))
def test_the_first_opsets_with_an_open_batch(opset, nodes, shapes):
    """Broadcasting was an attribute; prepare brings the file to a newer opset with the same meaning."""
    rng = np.random.default_rng(2)
    weights = {n: 0.5 + rng.random(s).astype(np.float32) for n, s in shapes.items()}
    more = {"s": np.array([-1, 12]), "t": np.array([-1, 3, 2, 2]), "m": np.zeros(3, np.float32),
            "v": np.ones(3, np.float32)}
    more = {n: v for n, v in more.items() if f" {n})" in nodes or f" {n}," in nodes}
    m = parsed(f"g (float[N,3,2,2] x) => (float[N,3,2,2] y) {{ {nodes} }}", weights | more, opset, 3)
    m.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in m.graph.initializer)
    onnx.checker.check_model(m)
    x, goal = (rng.standard_normal((4, 3, 2, 2)).astype(np.float32) for _ in range(2))
    before = ot.Session(m.SerializeToString()).run({"x": x})["y"]
    train = ot.prepare(m, loss="mse", optimizer=ot.SGD(lr=0.2), mode="as_is")
    onnx.checker.check_model(onnx.load_from_string(train.proto()), full_check=True)
    np.testing.assert_allclose(ot.Session(train).run({"x": x})["y"], before, rtol=1e-6)
    want = ot.gradients(m.SerializeToString(), {"x": x}, of="y", wrt=list(weights),
                        cotangent=2 * (before - goal) / before.size)
    t = ot.Trainer(train)
    assert t.step({"x": x, "label": goal}).loss == pytest.approx(float(((before - goal) ** 2).mean()), rel=1e-5)
    for n, w in weights.items():
        np.testing.assert_allclose((w - t.state[n]) / 0.2, want[n], rtol=1e-3, atol=1e-6)


BODY = """g (float[N,3] x, bool c) => (float[N,3] y) <float[3] s = {1, 2, 3}> { z = Mul (x, s)
    y = If (c) <then_branch = t () => (float[N,3] a) <float[3] w = {1, -1, 2}> { a = Mul (z, w) },
                else_branch = e () => (float[N,3] b) <float[3] w = {2, 1, 1}> {
                    n = Constant <value = int64 {2}> ()  one = Constant <value = bool {1}> ()
                    b = Loop (n, one, z) <body = l (int64 i, bool k, float[N,3] q) => (bool k2, float[N,3] q2)
                    <float[3] v = {0.5, 1, 2}> {
                        k2 = Identity (k)  p = Mul (q, v)  q2 = Mul (p, w) }> }> }"""


@pytest.mark.parametrize("branch", [True, False])
def test_weights_inside_branches_and_loops_are_trained(branch, tmp_path):
    m, x = parsed(BODY), np.array([[1, 2, -1], [0.5, 1, 1]], np.float32)
    f = {"x": x, "c": np.array(branch)}
    before = ot.Session(m.SerializeToString()).run(f)["y"].astype(np.float64)
    train = ot.prepare(m, loss=ot.losses.MSE(reduction="sum"), optimizer=ot.SGD(lr=1e-3))
    onnx.checker.check_model(onnx.load_from_string(train.proto()))
    t = ot.Trainer(ot.load(train.proto()))
    start = {n: v for n, v in t.state.items() if v.shape == (3,)}
    assert len(start) == 4  # s, v and both that are named w
    t.step({**f, "label": np.zeros_like(x)})
    moved = {n: (start[n] - t.state[n]) / 1e-3 for n in start}
    slope = 2 * (before**2).sum(0)  # of each weight times itself, once per use
    for n, v in start.items():
        used = {"s": 1, "v": 0 if branch else 2}.get(n)
        if used is None:
            used = (1 if branch else 0) if v[1] == -1 else (0 if branch else 2)
        np.testing.assert_allclose(moved[n] * v, used * slope, rtol=1e-3, atol=1e-2, err_msg=n)
    t.export(tmp_path / "e.onnx")
    onnx.checker.check_model(tmp_path / "e.onnx", full_check=True)
    after = ot.Session(tmp_path / "e.onnx").run(f)["y"]
    assert (after.astype(np.float64) ** 2).sum() < (before**2).sum()


def test_a_rule_and_a_loss_of_another_type_and_opset(tmp_path):
    onnx.save(parsed("g (float[N,2] y, float[N,2] goal) => (float l) { d = Sub (y, goal)  "
                     "s = ReduceSumSquare <axes = [1], keepdims = 0> (d)  l = ReduceMean <keepdims = 0> (s) }",
                     opset=11, ir=6), tmp_path / "loss.onnx")
    onnx.save(parsed("g (float R, float[n] X, float[n] G) => (float[n] X1) { d = Mul (R, G)  X1 = Sub (X, d) }",
                     opset=22, ir=10), tmp_path / "rule.onnx")
    m = parsed("g (double[N,3] x) => (double[N,2] y) { y = MatMul (x, w) }", {"w": np.ones((3, 2))})
    train = ot.prepare(m, loss=tmp_path / "loss.onnx", optimizer=tmp_path / "rule.onnx")
    onnx.checker.check_model(onnx.load_from_string(train.proto()))
    t, x = ot.Trainer(ot.load(train.proto())), np.arange(6, dtype=np.float64).reshape(2, 3)
    w = t.state["w"]
    assert t.step({"x": x, "goal": np.zeros((2, 2), np.float32)}).loss == pytest.approx(2 * (9 + 144) / 2)
    np.testing.assert_allclose(w - t.state["w"], 0.01 * x.T @ (x @ w), rtol=1e-5)
    onnx.save(parsed("g (float[N,2] y) => (float l) { s = Swish (y)  l = ReduceMean <keepdims = 0> (s) }", opset=24,
                     ir=12), tmp_path / "new.onnx")
    with pytest.raises(ot.ModelError) as e:
        ot.prepare(m, loss=tmp_path / "new.onnx")
    assert e.value.code == "OT1239" and "opset 17" in str(e.value)


# ---- new start values

RESET = """g (float[N,2,8,8] x, int64[N,5] i) => (float[N,4] y) {
    c = Conv <kernel_shape = [3,3]> (x, "conv.w", "conv.b")  n = BatchNormalization (c, "bn.s", "bn.b", "bn.m", "bn.v")
    u = ConvTranspose <kernel_shape = [2,2]> (n, "up.w")  k = Mul (u, "scale")  k2 = Add (k, "shift")  r = PRelu (k2,
    "slope") p = GlobalAveragePool (r)  f = Flatten (p)  g1 = Gemm <transB = 1> (f, "fc.w", "fc.b")
    e = Gather ("table", i)  e2 = Add (e, "places")  l = LayerNormalization (e2, "ln.s", "ln.b")
    t = Transpose <perm = [1,0,2]> (l) o, h = LSTM <hidden_size = 16> (t, "lstm.w", "lstm.r", "lstm.b")
    hs = Squeeze (h, "zero") m1 = MatMul (hs, "mm.w")  m2 = Add (m1, "mm.b")
    q = Einsum <equation = "ni,ijk->njk"> (m2, "ein.w")  q1 = ReduceMean <axes = [2], keepdims = 0> (q)
    n3 = Constant <value = int64 {2}> ()  one = Constant <value = bool {1}> () z = Loop (n3, one, q1)
    <body = b (int64 it, bool kc, float[N,12] s) => (bool k3, float[N,12] s2) { k3 = Identity (kc)  s2 = MatMul (s,
    "loop.w") }> a = Concat <axis = 1> (g1, z)  y = MatMul (a, "out.w") }"""
SHAPES = {"conv.w": (64, 2, 3, 3), "conv.b": (64,), "bn.s": (64,), "bn.b": (64,), "bn.m": (64,), "bn.v": (64,),
          "up.w": (64, 32, 2, 2), "scale": (1, 32, 1, 1), "shift": (1, 32, 1, 1), "slope": (32, 1, 1),
          "fc.w": (20, 32), "fc.b": (20,), "table": (100, 24), "places": (5, 24), "ln.s": (24,), "ln.b": (24,),
          "lstm.w": (1, 64, 24), "lstm.r": (1, 64, 16), "lstm.b": (1, 128), "mm.w": (16, 10), "mm.b": (10,),
          "ein.w": (10, 12, 6), "loop.w": (12, 12), "out.w": (32, 4)}
FLAT = {"bn.s": 1, "bn.b": 0, "bn.m": 0, "bn.v": 1, "scale": 1, "shift": 0, "slope": 0.25, "ln.s": 1, "ln.b": 0}
BOUND = {"conv.w": 18, "conv.b": 18, "up.w": 128, "fc.w": 32, "fc.b": 32, "lstm.w": 16, "lstm.r": 16, "lstm.b": 16,
         "mm.w": 16, "mm.b": 16, "ein.w": 10, "loop.w": 12, "out.w": 32}
NORMAL = {"table": 1.0, "places": 0.02}


@pytest.mark.parametrize("how", ["file", "initialize"])
def test_reset(how):
    """PyTorch's start values: uniform in 1/sqrt(inputs of a unit), embeddings normal, scales 1, shifts 0."""
    rng = np.random.default_rng(0)
    weights = {n: 7 + rng.random(s).astype(np.float32) for n, s in SHAPES.items()}
    m = parsed(RESET, {**weights, "zero": np.array([0])})
    t = ot.Trainer(ot.prepare(m, loss="mse", optimizer=ot.Adam(), reset=True, seed=5))
    if how == "initialize":
        t.initialize()
    for n in SHAPES:
        v = np.asarray(t.state[n], np.float64)
        if n in FLAT:
            assert (v == FLAT[n]).all(), n
        elif n in NORMAL:
            assert abs(v.std() / NORMAL[n] - 1) < 0.15 and abs(v.mean()) < 0.2 * NORMAL[n], n
        else:
            bound = 1 / np.sqrt(BOUND[n])
            assert np.abs(v).max() <= bound and v.std() > 0, (n, np.abs(v).max(), bound)
            if v.size >= 60:
                assert np.abs(v).max() > 0.9 * bound and abs(v.std() - bound / np.sqrt(3)) < 0.1 * bound, (
                    n,
                    v.std(),
                    bound,
                )
    assert (t.state["conv.w.exp_avg"] == 0).all() and t.step_count == 0


# ---- activations behind reshapings

ENDS = [  # (nodes from p [N,5,1,1] to y, shape of y, opset, loss)
    ("y = Softmax (p)", "[N,5,1,1]", 8, "auto"), ("y = Softmax (p)", "[N,5,1,1]", 12, "auto"),
    ("s = Softmax <axis = 1> (p)  y = Flatten (s)", "[N,5]", 17, "auto"),
    ("f = Flatten (p)  s = Softmax (f)  y = Reshape (s, shape)", "[N,5,1]", 13, "auto"),
    ("t = Transpose <perm = [0,2,3,1]> (p)  s = Softmax (t)  y = Squeeze (s, axes)", "[N,5]", 17, "cross_entropy"),
    ("s = LogSoftmax <axis = 1> (p)  y = Flatten (s)", "[N,5]", 17, "cross_entropy"),
    ("s = Sigmoid (p)  y = Flatten (s)", "[N,5]", 17, "auto"),
    ("s = Softmax <axis = 1> (p)  y = Flatten (s)", "[N,5]", 17, "kl"),
]


@pytest.mark.parametrize("nodes,shape,opset,loss", ENDS, ids=range(len(ENDS)))
def test_probabilities_behind_a_reshaping_are_not_taken_for_scores(nodes, shape, opset, loss):
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((5, 3, 1, 1)).astype(np.float32),
               "b": rng.standard_normal(5).astype(np.float32)}
    more = {"shape": np.array([-1, 5, 1]), "axes": np.array([1, 2])}
    more = {n: v for n, v in more.items() if f" {n})" in nodes}
    m = parsed(f"g (float[N,3,2,2] x) => (float{shape} y) {{ c = Conv <kernel_shape = [1,1]> (x, w, b)  "
               f"p = GlobalAveragePool (c)  {nodes} }}",
               weights | more, opset, 7)
    x, label = rng.standard_normal((4, 3, 2, 2)).astype(np.float32), np.array([0, 1, 4, 2])
    y = ot.Session(m.SerializeToString()).run({"x": x})["y"].reshape(4, 5).astype(np.float64)
    if "Sigmoid" in nodes:
        label = rng.random((4, 5)).astype(np.float32)
        want = -(label * np.log(y) + (1 - label) * np.log(1 - y)).mean()
    elif loss == "kl":
        label = rng.dirichlet(np.ones(5), 4).astype(np.float32)
        want = (label * (np.log(label) - np.log(y))).mean()
    else:
        want = -(y if "Log" in nodes else np.log(y))[range(4), label].mean()
        label = label.reshape(4, *[1] * (shape.count(",") - 1))
    for lowered in (False, True):
        t = ot.Trainer(ot.load(ot.prepare(m, loss=loss, optimizer=ot.SGD(lr=0.5), lowered=lowered).proto()))
        assert t.step({"x": x, "label": label}).loss == pytest.approx(want, rel=1e-5)
        assert t.step({"x": x, "label": label}).loss < want


def test_a_softmax_over_several_axes_has_no_classes():
    m = parsed("g (float[N,3,2,2] x) => (float[N,3,2,2] y) { a = Mul (x, w)  y = Softmax (a) }",
               {"w": np.ones((3, 1, 1), np.float32)}, 9, 4)
    with pytest.raises(ot.ModelError) as e:
        ot.prepare(m)
    assert e.value.code == "OT1238" and "output=" in e.value.hint
