"""Inference networks with random weights, built node by node: what bench/inference.py measures."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, shape, scale=None, fill=None):
        self.count += 1
        name = f"w{self.count}"
        fan = int(np.prod(shape[1:]))
        value = np.full(shape, fill, np.float32) if fill is not None else self.rng.standard_normal(shape).astype(np.float32) * np.float32(scale or fan**-0.5)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, values):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), f"i{self.count}"))
        return f"i{self.count}"

    def fixed(self, value):
        """A constant that is never trained."""
        return self.add("Constant", value=numpy_helper.from_array(np.asarray(value, np.float32)))

    def add(self, op, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"t{self.count}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def model(self, x, shape, y, kind=TensorProto.FLOAT):
        graph = helper.make_graph(self.nodes, "network", [helper.make_tensor_value_info(x, kind, shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def resnet18(batch):
    b = Builder()

    def conv(x, c_in, c_out, k, stride):
        y = b.add("Conv", x, b.weight([c_out, c_in, k, k]), strides=[stride] * 2, pads=[k // 2] * 4, kernel_shape=[k, k])
        return b.add("BatchNormalization", y, b.weight([c_out], fill=1.0), b.weight([c_out], scale=0.1), b.weight([c_out], scale=0.1), b.weight([c_out], fill=1.0))

    x = b.add("Relu", conv("image", 3, 64, 7, 2))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            y = conv(b.add("Relu", conv(x, c, width, 3, stride)), width, width, 3, 1)
            x = b.add("Relu", b.add("Add", y, x if stride == 1 and c == width else conv(x, c, width, 1, stride)))
            c = width
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    y = b.add("Gemm", x, b.weight([1000, 512]), b.weight([1000], scale=0.1), transB=1)
    return b.model("image", [batch, 3, 224, 224], y), {"image": b.rng.standard_normal((batch, 3, 224, 224)).astype(np.float32)}


def encoder(batch=1, layers=4, hidden=256, heads=4, length=128, words=5000):
    b = Builder()
    split, join = b.ints([0, 0, heads, hidden // heads]), b.ints([0, 0, hidden])

    def dense(x, n, m):
        return b.add("Add", b.add("MatMul", x, b.weight([n, m], scale=n**-0.5)), b.weight([m], scale=0.1))

    def norm(x):
        return b.add("LayerNormalization", x, b.weight([hidden], fill=1.0), b.weight([hidden], scale=0.1), axis=-1)

    def gelu(x):  # as exporters of opset 17 spell it
        erf = b.add("Erf", b.add("Div", x, b.weight([], fill=2**0.5)))
        return b.add("Mul", b.add("Mul", x, b.add("Add", erf, b.weight([], fill=1.0))), b.weight([], fill=0.5))

    x = norm(b.add("Add", b.add("Gather", b.weight([words, hidden], scale=0.5), "words"), b.weight([length, hidden], scale=0.5)))
    for _ in range(layers):
        q, k, v = (b.add("Transpose", b.add("Reshape", dense(x, hidden, hidden), split), perm=p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        scores = b.add("Softmax", b.add("Div", b.add("MatMul", q, k), b.weight([], fill=(hidden // heads) ** 0.5)), axis=-1)
        mixed = b.add("Reshape", b.add("Transpose", b.add("MatMul", scores, v), perm=(0, 2, 1, 3)), join)
        x = norm(b.add("Add", dense(mixed, hidden, hidden), x))
        x = norm(b.add("Add", dense(gelu(dense(x, hidden, 4 * hidden)), 4 * hidden, hidden), x))
    return b.model("words", [batch, length], x, TensorProto.INT64), {"words": b.rng.integers(0, words, (batch, length))}


def recurrent(cell="LSTM", batch=16, length=64, inputs=128, hidden=256, directions=1):
    b = Builder()
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
    more = {"linear_before_reset": 1} if cell == "GRU" else {}
    y = b.add(cell, "x", b.weight([directions, gates * hidden, inputs], scale=0.1), b.weight([directions, gates * hidden, hidden], scale=0.8 * hidden**-0.5),
              b.weight([directions, 2 * gates * hidden], scale=0.1), outputs=3 if cell == "LSTM" else 2, hidden_size=hidden,
              direction="bidirectional" if directions == 2 else "forward", **more)[0]
    return b.model("x", [length, batch, inputs], y), {"x": b.rng.standard_normal((length, batch, inputs)).astype(np.float32)}


def mlp(batch=64, width=1):
    """784 -> 512 -> 256 -> 10, hidden layers `width` times as wide."""
    b, x, sizes = Builder(), "x", [784, 512 * width, 256 * width, 10]
    for k, (n, m) in enumerate(zip(sizes, sizes[1:])):
        x = b.add("Gemm", x, b.weight([m, n]), b.weight([m], scale=0.1), transB=1)
        x = b.add("Relu", x) if k < 2 else x
    return b.model("x", [batch, 784], x), {"x": b.rng.standard_normal((batch, 784)).astype(np.float32)}


def gpt(batch=4, length=128, layers=6, hidden=192, heads=6, words=256):
    """A causal language model; its logits are [batch * length, words]."""
    b = Builder()
    split, join, flat = b.ints([0, 0, heads, hidden // heads]), b.ints([0, 0, hidden]), b.ints([-1, words])
    mask = b.fixed(np.triu(np.full((length, length), -np.inf, np.float32), 1))

    def dense(x, n, m):
        return b.add("Add", b.add("MatMul", x, b.weight([n, m], scale=n**-0.5)), b.weight([m], scale=0.1))

    def norm(x):
        return b.add("LayerNormalization", x, b.weight([hidden], fill=1.0), b.weight([hidden], scale=0.1), axis=-1)

    x = b.add("Add", b.add("Gather", b.weight([words, hidden], scale=0.5), "words"), b.weight([length, hidden], scale=0.5))
    for _ in range(layers):
        q, k, v = b.add("Split", dense(norm(x), hidden, 3 * hidden), b.ints([hidden] * 3), outputs=3, axis=-1)
        q, k, v = (b.add("Transpose", b.add("Reshape", t, split), perm=p) for t, p in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3))))
        scores = b.add("Add", b.add("Div", b.add("MatMul", q, k), b.fixed((hidden // heads) ** 0.5)), mask)
        mixed = b.add("Reshape", b.add("Transpose", b.add("MatMul", b.add("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3)), join)
        x = b.add("Add", dense(mixed, hidden, hidden), x)
        h = dense(norm(x), hidden, 4 * hidden)
        erf = b.add("Erf", b.add("Div", h, b.fixed(2**0.5)))
        h = b.add("Mul", b.add("Mul", h, b.add("Add", erf, b.fixed(1.0))), b.fixed(0.5))
        x = b.add("Add", dense(h, 4 * hidden, hidden), x)
    y = b.add("Reshape", b.add("MatMul", norm(x), b.weight([hidden, words], scale=hidden**-0.5)), flat)
    return b.model("words", [batch, length], y, TensorProto.INT64), {"words": b.rng.integers(0, words, (batch, length))}


NETWORKS = {
    "ResNet-18 224, batch 1": lambda: resnet18(1),
    "ResNet-18 224, batch 8": lambda: resnet18(8),
    "encoder 4x256, sequence 128, batch 1": lambda: encoder(1),
    "encoder 4x256, sequence 128, batch 8": lambda: encoder(8),
    "LSTM 128->256, 64 steps, batch 16": lambda: recurrent(),
    "LSTM 128->256, 64 steps, batch 1": lambda: recurrent(batch=1),
}

# Sizes of recurrent layers, for cliffs: cell, batch, length, inputs, hidden, directions.
RECURRENT = [("LSTM", 1, 64, 128, 64, 1), ("LSTM", 1, 500, 128, 256, 1), ("LSTM", 1, 64, 128, 512, 1), ("LSTM", 1, 64, 128, 1024, 1),
             ("LSTM", 4, 64, 128, 64, 1), ("LSTM", 4, 64, 128, 256, 1), ("LSTM", 4, 10, 128, 1024, 1),
             ("LSTM", 32, 64, 64, 64, 1), ("LSTM", 32, 64, 128, 256, 1), ("LSTM", 32, 20, 128, 512, 1), ("LSTM", 32, 10, 256, 1024, 1),
             ("LSTM", 128, 10, 128, 64, 1), ("LSTM", 128, 20, 128, 256, 1), ("LSTM", 1, 64, 128, 256, 2), ("LSTM", 16, 64, 128, 256, 2),
             ("LSTM", 2, 64, 128, 200, 1), ("LSTM", 3, 64, 100, 100, 2), ("GRU", 1, 64, 128, 256, 1), ("GRU", 16, 64, 128, 256, 1),
             ("GRU", 32, 64, 128, 64, 2), ("GRU", 4, 20, 128, 512, 1), ("RNN", 1, 64, 128, 256, 1), ("RNN", 16, 64, 128, 256, 1)]
RECURRENT = {f"{c} {i}->{h}, {n} steps, batch {b}" + (", both ways" if d == 2 else ""): (lambda a=(c, b, n, i, h, d): recurrent(*a))
             for c, b, n, i, h, d in RECURRENT}


def save(name, path):
    model, feeds = (NETWORKS | RECURRENT)[name]()
    onnx.save(model, path)
    return feeds
