"""Small ONNX models and data for tests that drive the command line."""

import os
import pathlib
import subprocess

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build" / "release" / "onnxtrain"


def cli(*args, cwd=None, env=None, **more):
    """Runs the tool; nothing is raised."""
    return subprocess.run([str(BINARY), *map(str, args)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **(env or {})}, timeout=120, **more)


def _model(nodes, inputs, outputs, weights, name="model", opset=17):
    graph = helper.make_graph(nodes, name, inputs, outputs,
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 8
    return m


def _info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def mlp(inputs=4, hidden=16, classes=3, seed=0, op="Relu"):
    r = np.random.default_rng(seed)
    f = lambda *s: (r.standard_normal(s) * 0.5).astype(np.float32)  # noqa: E731
    return _model(
        [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], "fc1", transB=1),
         helper.make_node(op, ["h"], ["a"], "act"),
         helper.make_node("Gemm", ["a", "fc2.weight", "fc2.bias"], ["logits"], "fc2", transB=1)],
        [_info("x", ["N", inputs])], [_info("logits", ["N", classes])],
        {"fc1.weight": f(hidden, inputs), "fc1.bias": np.zeros(hidden, np.float32),
         "fc2.weight": f(classes, hidden), "fc2.bias": np.zeros(classes, np.float32)})


def cnn(classes=3, size=8, channels=3, seed=0):
    """Convolution, BatchNormalization, Dropout, dense layer."""
    r = np.random.default_rng(seed)
    f = lambda *s: (r.standard_normal(s) * 0.3).astype(np.float32)  # noqa: E731
    n = 4 * (size // 2) ** 2
    return _model(
        [helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], "conv", kernel_shape=[3, 3], pads=[1] * 4),
         helper.make_node("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b"], "bn"),
         helper.make_node("Relu", ["b"], ["r"], "relu"),
         helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
         helper.make_node("Flatten", ["p"], ["f"], "flatten"),
         helper.make_node("Dropout", ["f", "ratio"], ["d"], "drop"),
         helper.make_node("Gemm", ["d", "fc.weight", "fc.bias"], ["logits"], "fc", transB=1)],
        [_info("x", ["N", channels, size, size])], [_info("logits", ["N", classes])],
        {"conv.weight": f(4, channels, 3, 3), "conv.bias": np.zeros(4, np.float32),
         "bn.weight": np.ones(4, np.float32), "bn.bias": np.zeros(4, np.float32),
         "bn.mean": np.zeros(4, np.float32), "bn.var": np.ones(4, np.float32),
         "ratio": np.array(0.3, np.float32),
         "fc.weight": f(classes, n), "fc.bias": np.zeros(classes, np.float32)})


def transformer(classes=4, width=8, seed=0):
    """One block: attention with two heads' worth of work in plain operators, layer norms, Gelu, dropout."""
    r = np.random.default_rng(seed)
    f = lambda *s: (r.standard_normal(s) * 0.3).astype(np.float32)  # noqa: E731
    w = {k: f(width, width) for k in ("wq", "wk", "wv", "wo")}
    w |= {"ln1.w": np.ones(width, np.float32), "ln1.b": np.zeros(width, np.float32),
          "ln2.w": np.ones(width, np.float32), "ln2.b": np.zeros(width, np.float32),
          "up": f(width, 4 * width), "down": f(4 * width, width), "head": f(width, classes),
          "scale": np.array(width ** -0.5, np.float32), "ratio": np.array(0.1, np.float32)}
    n = helper.make_node
    return _model(
        [n("LayerNormalization", ["x", "ln1.w", "ln1.b"], ["n1"], "ln1"),
         n("MatMul", ["n1", "wq"], ["q"], "q"), n("MatMul", ["n1", "wk"], ["k"], "k"),
         n("MatMul", ["n1", "wv"], ["v"], "v"), n("Transpose", ["k"], ["kt"], "kt", perm=[0, 2, 1]),
         n("MatMul", ["q", "kt"], ["s0"], "s"), n("Mul", ["s0", "scale"], ["s1"], "scaled"),
         n("Softmax", ["s1"], ["p"], "softmax"), n("Dropout", ["p", "ratio"], ["pd"], "drop"),
         n("MatMul", ["pd", "v"], ["a"], "a"), n("MatMul", ["a", "wo"], ["o"], "o"), n("Add", ["x", "o"], ["r1"], "r1"),
         n("LayerNormalization", ["r1", "ln2.w", "ln2.b"], ["n2"], "ln2"),
         n("MatMul", ["n2", "up"], ["u"], "up_"), n("Tanh", ["u"], ["g"], "act"),
         n("MatMul", ["g", "down"], ["dn"], "down_"), n("Add", ["r1", "dn"], ["r2"], "r2"),
         n("ReduceMean", ["r2"], ["m"], "mean", axes=[1], keepdims=0), n("MatMul", ["m", "head"], ["logits"], "head_")],
        [_info("x", ["N", 6, width])], [_info("logits", ["N", classes])], w)


def lstm(classes=3, inputs=5, hidden=8, seed=0):
    r = np.random.default_rng(seed)
    f = lambda *s: (r.standard_normal(s) * 0.3).astype(np.float32)  # noqa: E731
    n = helper.make_node
    return _model(
        [n("LSTM", ["xt", "W", "R", "B"], ["Y", "Yh"], "lstm", hidden_size=hidden),
         n("Squeeze", ["Yh", "zero"], ["h"], "squeeze"), n("MatMul", ["h", "head"], ["logits"], "head_")],
        [_info("xt", [6, "N", inputs])], [_info("logits", ["N", classes])],
        {"W": f(1, 4 * hidden, inputs), "R": f(1, 4 * hidden, hidden), "B": f(1, 8 * hidden),
         "head": f(hidden, classes), "zero": np.array([0], np.int64)})


def save(model, path):
    path = pathlib.Path(path)
    path.write_bytes(model.SerializeToString())
    return path


def images(rows=96, classes=3, size=8, channels=3, seed=1):
    r = np.random.default_rng(seed)
    y = r.integers(0, classes, rows)
    x = r.standard_normal((rows, channels, size, size)).astype(np.float32)
    x += y[:, None, None, None].astype(np.float32)
    return x, y


def table(rows=120, inputs=4, classes=3, seed=1):
    r = np.random.default_rng(seed)
    x = r.standard_normal((rows, inputs)).astype(np.float32)
    return x, (np.abs(x[:, 0] * 3).astype(np.int64) % classes)


def done(work, *args):
    """A command that succeeds."""
    r = cli(*args, cwd=work)
    assert r.returncode == 0, r.stderr
    return r


def refused(work, code, exit_code, *args):
    """What a command says that is refused with this code."""
    r = cli(*args, cwd=work)
    assert r.returncode == exit_code and f"error[{code}]" in r.stderr, r.stderr
    return r.stderr
