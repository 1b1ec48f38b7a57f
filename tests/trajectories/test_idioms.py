"""What exporters and other tools write: each model trains, its trained tensors are the right ones,
and its lowered form gives the same losses in ONNX Runtime (an oracle for the forward pass)."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).parent))

RNG = np.random.RandomState(3)


def w(*shape, dtype=np.float32):
    return (0.4 * RNG.standard_normal(shape)).astype(dtype)


def build(text, weights, opset=17, ir=8, as_inputs=False):
    m = parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> {text}')
    for name, value in weights.items():
        t = numpy_helper.from_array(np.asarray(value), name)
        m.graph.initializer.append(t)
        if as_inputs:  # IR 3: every initializer is an input too
            m.graph.input.append(helper.make_tensor_value_info(name, t.data_type, t.dims))
    onnx.checker.check_model(m)
    return m


X = {"x": ("normal", (4, 6))}
IMAGE = {"x": ("normal", (2, 3, 8, 8))}
CLASSES = {"fc": w(3, 8), "fb": w(3)}
CASES = {}


def case(name, model, inputs, trained, **recipe):
    CASES[name] = (model, inputs, trained, recipe)


for opset in (9, 11, 12, 13, 15, 16, 18, 20, 21, 22):
    case(f"mlp, opset {opset}", build(
        "g (float[N,6] x) => (float[N,3] y) { h = Gemm<transB=1>(x, w1, b1) a = Relu(h) y = Gemm<transB=1>(a, fc, fb) "
        "}",
        {"w1": w(8, 6), "b1": w(8), **CLASSES}, opset,
        {9: 4, 11: 6, 12: 7, 13: 7, 20: 9, 21: 10, 22: 10}.get(opset, 8)), X, ["b1", "fb", "fc", "w1"])
NORM = {"s": 1 + w(8), "b": w(8), "mean": w(8), "var": 1 + np.abs(w(8))}
OLD = """g (float[N,3,8,8] x) => (float[N,3] y) { c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w1)
    n = BatchNormalization<epsilon=0.001>(c, s, b, mean, var) a = Relu(n) DROP
    p = GlobalAveragePool(d) f = Flatten(p) y = Gemm<transB=1>(f, fc, fb) }"""
case("IR 3, BatchNormalization-9, Dropout-7", build(
    OLD.replace("DROP", "d = Dropout<ratio=0.0>(a)"), {"w1": w(8, 3, 3, 3), **NORM, **CLASSES}, 9, 3, as_inputs=True),
    IMAGE, ["b", "fb", "fc", "s", "w1"])
case("Dropout-12 in training form, ratio 0", build(
    OLD.replace("DROP", "d = Dropout(a, ratio, yes)"),
    {"w1": w(8, 3, 3, 3), **NORM, **CLASSES, "ratio": np.float32(0), "yes": np.array(True)}, 14), IMAGE,
     ["b", "fb", "fc", "s", "w1"])
case("BatchNormalization-14 in training form", build(
    OLD.replace("n = BatchNormalization<epsilon=0.001>",
                "n, rm, rv = BatchNormalization<training_mode=1, epsilon=0.001>").replace("DROP", "d = Identity(a)"),
    {"w1": w(8, 3, 3, 3), **NORM, **CLASSES}, 16), IMAGE, ["b", "fb", "fc", "s", "w1"])
case("weights as Constant nodes", build(
    "g (float[N,6] x) => (float[N,3] y) { w1 = Constant<value=float[6,3]{" + ",".join(str(v) for v in w(18)) + "}>() "
    "b1 = Constant<value=float[3]{0.1,-0.2,0.3}>() half = Constant<value_float=0.5>() "
    "h = MatMul(x, w1) a = Add(h, b1) y = Mul(a, half) }", {}), X, ["b1", "w1"])
case("one weight read by two nodes", build(
    "g (float[N,6] x) => (float[N,6] y) { h = MatMul(x, w1) a = Tanh(h) y = MatMul(a, w1) }", {"w1": w(6, 6)}), X,
     ["w1"])
case("a transposed weight", build(
    "g (float[N,6] x) => (float[N,3] y) { t = Transpose<perm=[1,0]>(w1) y = MatMul(x, t) }", {"w1": w(3, 6)}), X,
     ["w1"])
case("an aliased weight", build(
    "g (float[N,6] x) => (float[N,6] y) { w2 = Identity(w1) h = MatMul(x, w1) y = MatMul(h, w2) }", {"w1": w(6, 6)}),
     X, ["w1", "w2"])
case("tied embedding through a Transpose", build(
    "g (int64[N,5] ids) => (float[N,5,7] y) { e = Gather(wte, ids) t = Transpose<perm=[1,0]>(wte) y = MatMul(e, t) }",
    {"wte": w(7, 4)}), {"ids": ("ints", 7, (3, 5))}, ["wte"], label_shape=(3, 5), classes=7)
case("double precision", build(
    "g (double[N,6] x) => (double[N,3] y) { h = MatMul(x, w1) y = Add(h, b1) }",
    {"w1": w(6, 3, dtype=np.float64), "b1": w(3, dtype=np.float64)}), X, ["b1", "w1"])
case("half precision", build(
    "g (float16[N,6] x) => (float16[N,3] y) { h = MatMul(x, w1) r = Relu(h) y = Add(r, b1) }",
    {"w1": w(6, 3, dtype=np.float16), "b1": w(3, dtype=np.float16)}), X, ["b1", "w1"])
case("quantized weights, float bias", build(
    "g (float[N,6] x) => (float[N,3] y) { w1 = DequantizeLinear(q, scale, zero) h = MatMul(x, w1) y = Add(h, b1) }",
    {"q": RNG.randint(-100, 100, (6, 3)).astype(np.int8), "scale": np.float32(0.01), "zero": np.int8(0), "b1": w(3)}),
     X, ["b1"],
    lowered=False)  # ONNX Runtime computes these products in 8 bits
case("channels last, as tf2onnx writes it", build(
    """g (float[N,8,8,3] x) => (float[N,3] y) { t = Transpose<perm=[0,3,1,2]>(x)
    c = Conv<auto_pad="SAME_UPPER", kernel_shape=[3,3], strides=[2,2]>(t, const_fold_opt__12) cb = Add(c,
    const_fold_opt__13)
    r = Relu(cb) u = Transpose<perm=[0,2,3,1]>(r) s = Shape(u) n = Slice(s, zero, one, zero) k = Concat<axis=0>(n,
    minus)
    f = Reshape(u, k) m = MatMul(f, dense) y = Add(m, dense_bias) }""",
    {"const_fold_opt__12": w(4, 3, 3, 3), "const_fold_opt__13": w(1, 4, 1, 1), "dense": w(64, 3), "dense_bias": w(3),
     "zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1])}),
    {"x": ("normal", (2, 8, 8, 3))}, ["const_fold_opt__12", "const_fold_opt__13", "dense", "dense_bias"])
case("Shape, Gather, Concat, Reshape, Expand, Where, Trilu", build(
    """g (float[N,5,8] x) => (float[N,5,3] y) { q = MatMul(x, wq) k = MatMul(x, wk) kt = Transpose<perm=[0,2,1]>(k)
    a = MatMul(q, kt)
    s = Shape(a) t = Gather<axis=0>(s, two) ti = Unsqueeze(t, ax) tt = Concat<axis=0>(ti, ti)
    o = ConstantOfShape<value=float[1]{1.0}>(tt)
    l = Trilu<upper=0>(o) z = Equal(l, fzero) m = Where(z, low, a) p = Softmax<axis=-1>(m) v = MatMul(p, x)
    full = Shape(v) e = Expand(bias, full) g = Add(v, e) y = MatMul(g, wo) }""",
    {"wq": w(8, 4), "wk": w(8, 4), "bias": w(8), "wo": w(8, 3), "two": np.array(2), "ax": np.array([0]),
     "fzero": np.float32(0), "low": np.float32(-1e9)}), {"x": ("normal", (2, 5, 8))}, ["bias", "wk", "wo", "wq"],
     label_shape=(2, 5))
case("Einsum, GatherND, ScatterND, Mod", build(
    """g (float[N,6] x) => (float[N,3] y) { h = Einsum<equation="ni,ij->nj">(x, w1) i = Mod(at, five)
    r = GatherND(table, i)
    u = ScatterND(base, where, r) ur = Reshape(u, flat) hb = Add(h, ur) y = MatMul(hb, w2) }""",
    {"w1": w(6, 4), "table": w(5, 2), "at": np.array([[6], [13]]), "five": np.array(5), "base": w(2, 2),
     "where": np.array([[1], [0]]), "flat": np.array([4]), "w2": w(4, 3)}, 18), X, ["base", "table", "w1", "w2"])
case("LayerNorm in pieces, opset 13", build(
    """g (float[N,6] x) => (float[N,3] y) { m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Pow(d, two)
    v = ReduceMean<axes=[-1]>(q)
    e = Add(v, eps) s = Sqrt(e) n = Div(d, s) g = Mul(n, gamma) b = Add(g, beta) y = MatMul(b, w1) }""",
    {"two": np.float32(2), "eps": np.float32(1e-5), "gamma": 1 + w(6), "beta": w(6), "w1": w(6, 3)}, 13), X,
    ["beta", "gamma", "w1"])
case("a Loop over steps", build(
    """g (float[N,4,6] x) => (float[N,3] y) { z = Constant<value=int64{4}>() yes = Constant<value=bool{1}>()
    xs = Transpose<perm=[1,0,2]>(x) f = Gather<axis=0>(xs, i0) h0 = MatMul(f, w1)
    last = Loop(z, yes, h0) <body = b (int64 i, bool c, float[N,5] h) => (bool k, float[N,5] h2)
      { k = Identity(c) xi = Gather<axis=0>(xs, i) a = MatMul(xi, w1) r = MatMul(h, w2) s = Add(a, r) h2 = Tanh(s) }>
    y = MatMul(last, w3) }""", {"w1": w(6, 5), "w2": w(5, 5), "w3": w(5, 3), "i0": np.array(0)}),
    {"x": ("normal", (2, 4, 6))}, ["w1", "w2", "w3"])
case("a Loop with an If in it and products behind it", build(
    """g (float[N,7,5] x) => (float[N,3] y) { xs = Transpose<perm=[1,0,2]>(x) n = Constant<value=int64{7}>()
    yes = Constant<value=bool{1}>()
    f0 = Gather<axis=0>(xs, i0) h0 = MatMul(f0, w0)
    h, hs = Loop(n, yes, h0) <body = b (int64 i, bool c, float[N,4] s) => (bool k, float[N,4] s2, float[N,4] o)
    { k = Identity(c)
      xi = Gather<axis=0>(xs, i) a = MatMul(xi, w0) r = MatMul(s, w1) t = Add(a, r) two = Constant<value=int64{2}>()
      m = Mod(i, two) e = Equal(m, i0)
      s2 = If(e) <then_branch = p () => (float[N,4] u) { u = Tanh(t) }, else_branch = q () => (float[N,4] v)
      { v0 = Sigmoid(t) v = Mul(v0, gain) }>
      o = Identity(s2) }>
    m = ReduceMax<axes=[0], keepdims=0>(hs) j = Concat<axis=1>(h, m) y = MatMul(j, w2) }""",
    {"i0": np.array(0), "w0": w(5, 4), "w1": w(4, 4), "gain": 1 + w(4), "w2": w(8, 3)}), {"x": ("normal", (3, 7, 5))},
     ["gain", "w0", "w1", "w2"])
case("an If on a constant", build(
    """g (float[N,6] x) => (float[N,3] y) { h = MatMul(x, w1)
    y = If(flag) <then_branch = a () => (float[N,3] p) { p = Relu(h) }, else_branch = b () => (float[N,3] q)
    { q = Mul(h, s) }> }""",
    {"w1": w(6, 3), "flag": np.array(False), "s": w(3)}), X, ["s", "w1"])
case("a sequence made and joined", build(
    """g (float[N,6] x) => (float[N,3] y) { p = SplitToSequence<axis=1>(x, sizes) a = SequenceAt(p, i0)
    b = SequenceAt(p, i1)
    h = MatMul(a, w1) k = MatMul(b, w2) s = SequenceConstruct(h, k) c = ConcatFromSequence<axis=1>(s) y = MatMul(c, w3)
    }""",
    {"sizes": np.array([2, 4]), "i0": np.array(0), "i1": np.array(-1), "w1": w(2, 3), "w2": w(4, 3), "w3": w(6, 3)}),
     X, ["w1", "w2", "w3"])


SCAN_8 = """g (float[N,4,6] x, int64[N] len) => (float[N,3] y) { m = ReduceMean<axes=[1], keepdims=0>(x) h0 = MatMul(m,
    w1)
    last, all = Scan(LEN, h0, x) <num_scan_inputs = 1, directions = [1], body = b (float[5] h, float[6] e)
    => (float[5] h2, float[5] o)
      { u = Unsqueeze<axes=[0]>(e) a = MatMul(u, w1) q = Squeeze<axes=[0]>(a) r = Mul(h, w2) s = Add(q, r) h2 = Tanh(s)
      o = Mul(h2, r) }>
    k = ReduceMax<axes=[1], keepdims=0>(all) t = Add(last, k) y = MatMul(t, w3) }"""
for name, lengths in (("Scan-8", ""), ("Scan-8 with lengths", "len")):
    case(name, build(SCAN_8.replace("LEN", lengths), {"w1": w(6, 5), "w2": w(5), "w3": w(5, 3)}, 8, 4),
         {"x": ("normal", (3, 4, 6)), "len": ("ints", 5, (3,), 1)}, ["w1", "w2", "w3"])
case("Hardmax-11 over two axes", build(
    "g (float[N,2,3] x) => (float[N,3] y) { h = Mul(x, w1) k = Hardmax(h) m = Mul(h, k) f = Flatten(m) y = MatMul(f, "
    "w2) }",
    {"w1": w(2, 3), "w2": w(6, 3)}, 11, 6), {"x": ("normal", (4, 2, 3))}, ["w1", "w2"])
FUNCTION = parser.parse_model("""<ir_version: 8, opset_import: ["" : 11, "my" : 1]> g (float[N,6] x) => (float[N,3] y)
    { h = my.dense(x, w1, b1)  y = Relu(h) }
    <domain: "my", opset_import: ["" : 11]> dense (a, b, c) => (d) { t = MatMul(a, b)  u = Unsqueeze<axes=[0]>(t)
    v = Squeeze<axes=[0]>(u)  d = Add(v, c) }""")
FUNCTION.graph.initializer.extend([numpy_helper.from_array(w(6, 3), "w1"), numpy_helper.from_array(w(3), "b1")])
case("a function of opset 11", FUNCTION, X, ["b1", "w1"])
SPARSE = build("g (float[N,6] x) => (float[N,3] y) { h = MatMul(x, w1) y = Add(h, b1) }", {"w1": w(6, 3), "b1": w(3)})
SPARSE.graph.sparse_initializer.add(values=numpy_helper.from_array(w(4), "w1"),
                                    indices=numpy_helper.from_array(np.array([1, 4, 9, 16]), "i"), dims=[6, 3])
del SPARSE.graph.initializer[0]
case("a sparse initializer", SPARSE, X, ["b1", "w1"])


def data_of(inputs, elem, recipe, step):
    rng = np.random.RandomState(50 + step)
    out = {}
    for name, (kind, *rest) in inputs.items():
        if kind == "ints":
            out[name] = rng.randint(rest[2] if len(rest) > 2 else 0, rest[0], rest[1]).astype(np.int64)
        else:
            out[name] = rng.standard_normal(rest[0]).astype(elem)
    first = next(iter(out.values()))
    out["label"] = rng.randint(0, recipe.get("classes", 3), recipe.get("label_shape", first.shape[:1])).astype(np.int64)
    return out


@pytest.mark.parametrize("name", CASES)
def test_idiom(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    from lowered import Runner

    model, inputs, trained, recipe = CASES[name]
    elem = helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    how = dict(loss="cross_entropy", optimizer=ot.SGD(lr=0.1, momentum=0.9), freeze=recipe.get("freeze", ()))
    source = model.SerializeToString()
    train = ot.prepare(source, **how)
    assert ot.check(train) == []
    proto = onnx.load_from_string(train.proto())
    onnx.checker.check_model(proto)
    names = {e.key for e in proto.training_info[0].update_binding}
    want = [n for n in trained if n not in recipe.get("freeze", ())]
    assert sorted(n[:-len(".momentum")] for n in names if n.endswith(".momentum")) == want
    t = ot.Trainer(ot.load(train.proto()))
    losses = [t.step(data_of(inputs, elem, recipe, k)).loss for k in range(4)]
    assert np.isfinite(losses).all() and len(set(losses)) == 4
    main = onnx.load_from_string(train.proto())
    data = {k: v for k, v in data_of(inputs, elem, recipe, 0).items() if k in inputs}
    feeds = {i.name for i in main.graph.input}
    plain = onnxruntime.SessionOptions()  # some of its rewrites compute quantized weights in 8 bits
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(main.SerializeToString(),
                                          plain).run(None, {k: v for k, v in data.items() if k in feeds})[0]
    np.testing.assert_allclose(ot.Session(train).run(data)["y"], theirs, rtol=2e-2 if elem == np.float16 else 1e-4,
                               atol=1e-3 if elem == np.float16 else 1e-5)
    if not recipe.get("lowered", True):
        return
    low = onnx.load_from_string(ot.prepare(source, **how, lowered=True).proto())
    onnx.checker.check_model(low)
    runner = Runner(low)
    for k, loss in enumerate(losses):
        got = runner.step(data_of(inputs, elem, recipe, k))
        assert got == pytest.approx(loss, rel=2e-2 if elem == np.float16 else 2e-5), f"step {k}"
