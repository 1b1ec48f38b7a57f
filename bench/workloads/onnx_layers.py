"""The layers of the workloads as an ONNX graph, node for node what PyTorch's exporter writes for opset 17 (its chains
of Shape, Concat and Constant are folded). Initializers have PyTorch's names; the LSTM's are lstm.W, lstm.R and lstm.B,
because ONNX orders its gates otherwise."""

from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from harness.graph import GraphBuilder
from workloads.shapes import window

EPSILON = 1e-5


class Value(NamedTuple):
    name: str
    shape: tuple


class OnnxLayers:
    def __init__(self, workload):
        self.graph = GraphBuilder()
        self.values = workload.parameters() | workload.running()

    def _node(self, op, shape, *inputs, **attributes):
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        return Value(self.graph.node(op, *names, **attributes), tuple(shape))

    def _weights(self, name, *parts):
        """Initializers name.part; each is taken once."""
        return [self.graph.weight(self.values.pop(f"{name}.{p}"), f"{name}.{p}") for p in parts]

    def _reshape(self, x, shape):
        return self._node("Reshape", shape, x, self.graph.constant(np.array(shape, np.int64)))

    def linear(self, x, name, inputs, outputs, bias=True, image=()):
        weight, *rest = self._weights(name, "weight", *(["bias"] if bias else []))
        shape = x.shape[:-1] + (outputs,)
        if len(x.shape) == 2:
            return self._node("Gemm", shape, x, weight, *rest, transB=1)
        y = self._node("MatMul", shape, x, self.graph.node("Transpose", weight, perm=[1, 0]))
        return self._node("Add", shape, *rest, y) if rest else y

    def conv(self, x, name, inputs, outputs, kernel, stride, pad, groups=1, bias=False):
        weights = self._weights(name, "weight", *(["bias"] if bias else []))
        shape = (x.shape[0], outputs, *(window(n, kernel, stride, pad) for n in x.shape[2:]))
        return self._node("Conv", shape, x, *weights, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                          dilations=[1, 1], group=groups)

    def batch_norm(self, x, name, channels):
        weights = self._weights(name, "weight", "bias", "running_mean", "running_var")
        y, _, _ = self.graph.node("BatchNormalization", x.name, *weights, outputs=3, epsilon=EPSILON, momentum=0.9,
                                  training_mode=1)
        return Value(y, x.shape)

    def layer_norm(self, x, name, width):
        weights = self._weights(name, "weight", "bias")
        return self._node("LayerNormalization", x.shape, x, *weights, axis=-1, epsilon=EPSILON)

    def relu(self, x):
        return self._node("Relu", x.shape, x)

    def relu6(self, x):
        return self._node("Clip", x.shape, x, self.graph.constant(0.0), self.graph.constant(6.0))

    def gelu(self, x):
        erf = self._node("Erf", x.shape, self._node("Div", x.shape, x, self.graph.constant(2**0.5)))
        y = self._node("Mul", x.shape, x, self._node("Add", x.shape, erf, self.graph.constant(1.0)))
        return self._node("Mul", x.shape, y, self.graph.constant(0.5))

    def tanh(self, x):
        return self._node("Tanh", x.shape, x)

    def add(self, x, y):
        return self._node("Add", x.shape, x, y)

    def dropout(self, x, ratio):
        if not ratio:
            return x
        training = self.graph.constant(np.array(True))
        y, _ = self.graph.node("Dropout", x.name, self.graph.constant(ratio), training, outputs=2)
        return Value(y, x.shape)

    def max_pool(self, x, kernel, stride, pad):
        shape = x.shape[:2] + tuple(window(n, kernel, stride, pad) for n in x.shape[2:])
        return self._node("MaxPool", shape, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def global_average(self, x):
        return self.flatten(self._node("GlobalAveragePool", x.shape[:2] + (1, 1), x))

    def flatten(self, x):
        return self._node("Flatten", (x.shape[0], int(np.prod(x.shape[1:]))), x, axis=1)

    def embedding(self, x, name, words, width):
        return self._node("Gather", x.shape + (width,), *self._weights(name, "weight"), x)

    def position(self, name, length, width):
        return Value(*self._weights(name, "weight"), (length, width))

    def split3(self, x):
        width = x.shape[2] // 3
        shape, axis = x.shape[:2] + (width,), self.graph.constant(np.array([-1]))
        ends = [self.graph.constant(np.array([k * width])) for k in range(4)]
        return [self._node("Slice", shape, x, *ends[k:k + 2], axis) for k in range(3)]

    def attention(self, q, k, v, heads, causal, dropout):
        """softmax(q k^T / sqrt(width)) v; both factors get the square root of the scale, as in the exporter."""
        batch, length, size = q.shape
        width = size // heads
        q, k, v = (self._reshape(t, (batch, length, heads, width)) for t in (q, k, v))
        row, column = (batch, heads, length, width), (batch, heads, width, length)
        scores = (batch, heads, length, length)
        scale = self.graph.constant(width**-0.25)
        q = self._node("Mul", row, self._node("Transpose", row, q, perm=[0, 2, 1, 3]), scale)
        k = self._node("Mul", column, self._node("Transpose", column, k, perm=[0, 2, 3, 1]), scale)
        v = self._node("Transpose", row, v, perm=[0, 2, 1, 3])
        s = self._node("MatMul", scores, q, k)
        if causal:
            mask = np.triu(np.full((length, length), -np.inf, np.float32), 1)
            s = self._node("Add", scores, s, self.graph.constant(mask))
        p = self.dropout(self._node("Softmax", scores, s, axis=-1), dropout)
        y = self._node("Transpose", (batch, length, heads, width), self._node("MatMul", row, p, v), perm=[0, 2, 1, 3])
        return self._reshape(y, (batch, length, size))

    def first_token(self, x):
        return self._node("Gather", (x.shape[0], x.shape[2]), x, self.graph.constant(np.array(0)), axis=1)

    def lstm_last(self, x, name, inputs, hidden):
        batch, length, _ = x.shape
        state = self.graph.constant(np.zeros((1, batch, hidden), np.float32))
        first = self._node("Transpose", (length, batch, inputs), x, perm=[1, 0, 2])
        y, _, _ = self.graph.node("LSTM", first.name, *self._lstm_weights(name), "", state, state, outputs=3,
                                  hidden_size=hidden)
        y = self._node("Squeeze", (length, batch, hidden), y, self.graph.constant(np.array([1])))
        y = self._node("Transpose", (batch, length, hidden), y, perm=[1, 0, 2])
        return self._node("Gather", (batch, hidden), y, self.graph.constant(np.array(-1)), axis=1)

    def _lstm_weights(self, name):
        """PyTorch's gates are input, forget, cell, output; ONNX's are input, output, forget, cell."""
        def gates(part):
            i, f, c, o = np.split(self.values.pop(f"{name}.{part}"), 4)
            return np.concatenate([i, o, f, c])

        bias = np.concatenate([gates("bias_ih_l0"), gates("bias_hh_l0")])
        weights = {"W": gates("weight_ih_l0"), "R": gates("weight_hh_l0"), "B": bias}
        return [self.graph.weight(value[None], f"{name}.{part}") for part, value in weights.items()]


def onnx_model(workload):
    """Input `x`, output `logits`, no loss."""
    layers = OnnxLayers(workload)
    y = workload.build(layers, Value("x", tuple(workload.input_shape)))
    if layers.values:
        raise AssertionError(f"{workload.id}: parameters that no layer took: {list(layers.values)}")
    layers.graph.nodes[-1].output[0] = "logits"
    kind = TensorProto.INT64 if workload.vocabulary else TensorProto.FLOAT
    return layers.graph.model({"x": (kind, workload.input_shape)}, "logits", y.shape)
