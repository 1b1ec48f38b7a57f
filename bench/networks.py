"""Inference networks with random weights, built node by node: what bench/inference.py measures."""

import numpy as np
import onnx
from onnx import TensorProto

from harness.graph import GraphBuilder


class Builder(GraphBuilder):
    def __init__(self, seed=0):
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def random(self, shape, scale=None):
        """A weight; without `scale` divided by the root of its inputs."""
        fan = int(np.prod(shape[1:]))
        return self.weight(self.rng.standard_normal(shape).astype(np.float32) * np.float32(scale or fan**-0.5))

    def filled(self, shape, value):
        return self.weight(np.full(shape, value, np.float32))

    def ints(self, values):
        return self.weight(np.array(values, np.int64))

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)


def resnet18(batch):
    b = Builder()

    def conv(x, c_in, c_out, k, stride):
        y = b.node("Conv", x, b.random([c_out, c_in, k, k]), strides=[stride] * 2, pads=[k // 2] * 4,
                   kernel_shape=[k, k])
        return b.node("BatchNormalization", y, b.filled([c_out], 1.0), b.random([c_out], 0.1), b.random([c_out], 0.1),
                      b.filled([c_out], 1.0))

    x = b.node("Relu", conv("image", 3, 64, 7, 2))
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            y = conv(b.node("Relu", conv(x, c, width, 3, stride)), width, width, 3, 1)
            x = b.node("Relu", b.node("Add", y, x if stride == 1 and c == width else conv(x, c, width, 1, stride)))
            c = width
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    y = b.node("Gemm", x, b.random([1000, 512]), b.random([1000], 0.1), transB=1)
    shape = (batch, 3, 224, 224)
    return b.model({"image": (TensorProto.FLOAT, shape)}, y), {"image": b.normal(*shape)}


def encoder(batch=1, layers=4, hidden=256, heads=4, length=128, words=5000):
    b = Builder()
    split, join = b.ints([0, 0, heads, hidden // heads]), b.ints([0, 0, hidden])

    def dense(x, n, m):
        return b.node("Add", b.node("MatMul", x, b.random([n, m], n**-0.5)), b.random([m], 0.1))

    def norm(x):
        return b.node("LayerNormalization", x, b.filled([hidden], 1.0), b.random([hidden], 0.1), axis=-1)

    def gelu(x):  # as exporters of opset 17 spell it
        erf = b.node("Erf", b.node("Div", x, b.filled([], 2**0.5)))
        return b.node("Mul", b.node("Mul", x, b.node("Add", erf, b.filled([], 1.0))), b.filled([], 0.5))

    words_in = b.node("Gather", b.random([words, hidden], 0.5), "words")
    x = norm(b.node("Add", words_in, b.random([length, hidden], 0.5)))
    for _ in range(layers):
        q, k, v = (b.node("Transpose", b.node("Reshape", dense(x, hidden, hidden), split), perm=p)
                   for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        scaled = b.node("Div", b.node("MatMul", q, k), b.filled([], (hidden // heads) ** 0.5))
        mixed = b.node("MatMul", b.node("Softmax", scaled, axis=-1), v)
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=(0, 2, 1, 3)), join)
        x = norm(b.node("Add", dense(mixed, hidden, hidden), x))
        x = norm(b.node("Add", dense(gelu(dense(x, hidden, 4 * hidden)), 4 * hidden, hidden), x))
    feeds = {"words": b.rng.integers(0, words, (batch, length))}
    return b.model({"words": (TensorProto.INT64, (batch, length))}, x), feeds


def recurrent(cell="LSTM", batch=16, length=64, inputs=128, hidden=256, directions=1):
    b = Builder()
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell] * hidden
    more = {"linear_before_reset": 1} if cell == "GRU" else {}
    weights = (b.random([directions, gates, inputs], 0.1), b.random([directions, gates, hidden], 0.8 * hidden**-0.5),
               b.random([directions, 2 * gates], 0.1))
    y = b.node(cell, "x", *weights, outputs=3 if cell == "LSTM" else 2, hidden_size=hidden,
               direction="bidirectional" if directions == 2 else "forward", **more)[0]
    shape = (length, batch, inputs)
    return b.model({"x": (TensorProto.FLOAT, shape)}, y), {"x": b.normal(*shape)}


NETWORKS = {
    "ResNet-18 224, batch 1": lambda: resnet18(1),
    "ResNet-18 224, batch 8": lambda: resnet18(8),
    "encoder 4x256, sequence 128, batch 1": lambda: encoder(1),
    "encoder 4x256, sequence 128, batch 8": lambda: encoder(8),
    "LSTM 128->256, 64 steps, batch 16": lambda: recurrent(),
    "LSTM 128->256, 64 steps, batch 1": lambda: recurrent(batch=1),
}

# Sizes of recurrent layers, to find cliffs: cell, batch, length, inputs, hidden, directions.
SIZES = [("LSTM", 1, 64, 128, 64, 1), ("LSTM", 1, 500, 128, 256, 1), ("LSTM", 1, 64, 128, 512, 1),
         ("LSTM", 1, 64, 128, 1024, 1), ("LSTM", 4, 64, 128, 64, 1), ("LSTM", 4, 64, 128, 256, 1),
         ("LSTM", 4, 10, 128, 1024, 1), ("LSTM", 32, 64, 64, 64, 1), ("LSTM", 32, 64, 128, 256, 1),
         ("LSTM", 32, 20, 128, 512, 1), ("LSTM", 32, 10, 256, 1024, 1), ("LSTM", 128, 10, 128, 64, 1),
         ("LSTM", 128, 20, 128, 256, 1), ("LSTM", 1, 64, 128, 256, 2), ("LSTM", 16, 64, 128, 256, 2),
         ("LSTM", 2, 64, 128, 200, 1), ("LSTM", 3, 64, 100, 100, 2), ("GRU", 1, 64, 128, 256, 1),
         ("GRU", 16, 64, 128, 256, 1), ("GRU", 32, 64, 128, 64, 2), ("GRU", 4, 20, 128, 512, 1),
         ("RNN", 1, 64, 128, 256, 1), ("RNN", 16, 64, 128, 256, 1)]
RECURRENT = {f"{c} {i}->{h}, {n} steps, batch {b}" + (", both ways" if d == 2 else ""):
             (lambda a=(c, b, n, i, h, d): recurrent(*a)) for c, b, n, i, h, d in SIZES}


def save(name, path):
    model, feeds = (NETWORKS | RECURRENT)[name]()
    onnx.save(model, path)
    return feeds
