"""The models and arrays that the recorded cases use. make.py writes them to models/, feeds.npz and tables."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cli_models import cnn, lstm, mlp, transformer  # noqa: E402


def parsed(text, weights=(), opset=17, ir=8):
    """A model in ONNX's text syntax, with initializers from arrays."""
    m = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> {text}')
    m.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in dict(weights).items())
    return m


def heads():
    """Three outputs: probabilities of classes (Softmax), two real numbers, one probability (Sigmoid)."""
    r = np.random.default_rng(3)
    w = {n: (0.4 * r.standard_normal(s)).astype(np.float32)
         for n, s in {"body.weight": (8, 4), "body.bias": (8,), "kind.weight": (3, 8), "size.weight": (2, 8),
                      "chance.weight": (1, 8)}.items()}
    return parsed("""heads (float[N,4] x) => (float[N,3] kind, float[N,2] size, float[N,1] chance) {
        h = Gemm <transB = 1> (x, "body.weight", "body.bias")  a = Tanh (h)
        k = Gemm <transB = 1> (a, "kind.weight")  kind = Softmax (k)
        size = Gemm <transB = 1> (a, "size.weight")
        c = Gemm <transB = 1> (a, "chance.weight")  chance = Sigmoid (c) }""", w)


def words():
    """An embedding and an output layer over sequences of any length."""
    r = np.random.default_rng(4)
    w = {"table": r.standard_normal((20, 8)).astype(np.float32),
         "head": (0.3 * r.standard_normal((8, 20))).astype(np.float32)}
    return parsed("""words (int64[N,T] ids) => (float[N,T,20] logits) {
        e = Gather (table, ids)  t = Tanh (e)  logits = MatMul (t, head) }""", w)


def branches():
    """Weights inside a branch and inside a loop."""
    return parsed("""branches (float[N,3] x, bool c) => (float[N,3] y) <float[3] s = {1, 2, 3}> { z = Mul (x, s)
    y = If (c) <then_branch = t () => (float[N,3] a) <float[3] w = {1, -1, 2}> { a = Mul (z, w) },
                else_branch = e () => (float[N,3] b) <float[3] w = {2, 1, 1}> {
                    n = Constant <value = int64 {2}> ()  one = Constant <value = bool {1}> ()
                    b = Loop (n, one, z) <body = l (int64 i, bool k, float[N,3] q) => (bool k2, float[N,3] q2)
                        <float[3] v = {0.5, 1, 2}> { k2 = Identity (k)  p = Mul (q, v)  q2 = Mul (p, w) }> }> }""")


def old():
    """Opset 6: broadcasting is an attribute, initializers are inputs."""
    r = np.random.default_rng(5)
    w = {"w": (0.5 + r.random((3,))).astype(np.float32), "b": r.random((3,)).astype(np.float32)}
    m = parsed("""old (float[N,3,2,2] x) => (float[N,3,2,2] y) {
        a = Mul <broadcast = 1, axis = 1> (x, w)  y = Add <broadcast = 1, axis = 1> (a, b) }""", w, 6, 3)
    m.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in w.items())
    return m


def half():
    """float16 weights: updated in float32."""
    r = np.random.default_rng(6)
    w = {n: (0.5 * r.standard_normal(s)).astype(np.float16) for n, s in {"w1": (8, 4), "w2": (3, 8)}.items()}
    return parsed("""half (float16[N,4] x) => (float16[N,3] y) {
        h = Gemm <transB = 1> (x, w1)  a = Relu (h)  y = Gemm <transB = 1> (a, w2) }""", w, 22, 10)


def fixed():
    """Made for batches of eight rows."""
    m = mlp(seed=7)
    for v in [*m.graph.input, *m.graph.output]:
        v.type.tensor_type.shape.dim[0].dim_value = 8
    return m


def loss():
    """A loss as a graph of its own: squared distance to `goal`."""
    return parsed("""loss (float[N,3] logits, float[N,3] goal) => (float l) {
        d = Sub (logits, goal)  s = ReduceSumSquare <axes = [1], keepdims = 0> (d)
        l = ReduceMean <keepdims = 0> (s) }""", opset=11, ir=6)


def rule():
    """An optimizer as a graph of its own, with one state variable."""
    return parsed("""rule (float R, float[n] X, float[n] G, float[n] V) => (float[n] X1, float[n] V1) {
        k = Constant <value = float {0.9}> ()  a = Mul (V, k)  V1 = Add (a, G)  d = Mul (R, V1)  X1 = Sub (X, d) }""")


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "lstm": lstm, "heads": heads, "words": words,
          "branches": branches, "old": old, "half": half, "fixed": fixed, "loss": loss, "rule": rule}


def feeds():
    """One batch of eight rows of everything that an input or a target may want."""
    r = np.random.default_rng(11)
    f = lambda *s: r.standard_normal(s).astype(np.float32)  # noqa: E731
    return {"x4": f(8, 4), "x3": f(8, 3), "image": f(8, 3, 8, 8), "block": f(8, 6, 8), "time_first": f(6, 8, 5),
            "old": f(8, 3, 2, 2), "x4_half": f(8, 4).astype(np.float16), "yes": np.array(True), "no": np.array(False),
            "ids": r.integers(0, 20, (8, 5)), "next_ids": r.integers(0, 20, (8, 5)),
            "class3": r.integers(0, 3, 8), "class4": r.integers(0, 4, 8), "real3": f(8, 3), "real2": f(8, 2),
            "real_old": f(8, 3, 2, 2), "unit3": r.random((8, 3)).astype(np.float32),
            "unit1": r.random((8, 1)).astype(np.float32), "sign3": np.sign(f(8, 3)),
            "share3": r.dirichlet(np.ones(3), 8).astype(np.float32)}


def table(rows=120):
    r = np.random.default_rng(12)
    x = r.standard_normal((rows, 4)).astype(np.float32)
    return x, (np.abs(x[:, 0] * 3 + x[:, 1]).astype(np.int64) % 3)


def csv_text(x, y):
    names = ("ant", "bee", "cat")
    rows = [f"{10 + 3 * a:.4f},{names[k]},{10 + 3 * b:.4f},{10 + 3 * c:.4f},{10 + 3 * d:.4f}"
            for (a, b, c, d), k in zip(x.tolist(), y.tolist(), strict=True)]
    return "\n".join(["a,species,b,c,d", *rows]) + "\n"


def images(rows=48):
    """Bytes, as photographs come."""
    r = np.random.default_rng(13)
    y = r.integers(0, 3, rows)
    x = r.integers(0, 160, (rows, 3, 8, 8)) + 40 * y[:, None, None, None]
    return x.astype(np.uint8), y


def write(folder):
    (folder / "models").mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        (folder / f"models/{name}.onnx").write_bytes(make().SerializeToString(deterministic=True))
    np.savez_compressed(folder / "feeds.npz", **feeds())
    x, y = table()
    np.savez_compressed(folder / "table.npz", x=x, y=y)
    (folder / "table.csv").write_text(csv_text(x, y))
    x, y = images()
    np.savez_compressed(folder / "images.npz", x=x, y=y)
