"""The layers of the workloads without numbers: shapes, parameters, floating point operations.

A network is written once, against the methods of `Shapes`. The same methods exist for ONNX (onnx_layers.py), PyTorch
(torch_layers.py), JAX and TensorFlow (peers/jax_layers.py, peers/tf_layers.py).
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    shape: tuple
    kind: str  # linear, conv, bias, embedding, lstm, one, zero
    fan: int = 0  # inputs per output where the shape does not tell
    image: tuple = ()  # of a linear layer behind a flattened image: its channels, height, width


def window(size, kernel, stride, pad):
    return (size + 2 * pad - kernel) // stride + 1


class Shapes:
    """x is a shape everywhere. Operations count 2 per multiplication with addition."""

    def __init__(self, input_has_gradient):
        self.parameters, self.running = [], []
        self.forward_flops = self.step_flops = 0
        self._first = not input_has_gradient  # the first layer on a float input needs no gradient of its input

    def _add(self, name, shape, kind, **more):
        self.parameters.append(Parameter(name, tuple(shape), kind, **more))

    def _count(self, multiplications):
        self.forward_flops += 2 * multiplications
        self.step_flops += 2 * multiplications * (2 if self._first else 3)
        self._first = False

    def linear(self, x, name, inputs, outputs, bias=True, image=()):
        assert x[-1] == inputs, (name, x, inputs)
        self._add(name + ".weight", (outputs, inputs), "linear", image=image)
        if bias:
            self._add(name + ".bias", (outputs,), "bias", fan=inputs)
        self._count(int(np.prod(x)) * outputs)
        return x[:-1] + (outputs,)

    def conv(self, x, name, inputs, outputs, kernel, stride, pad, groups=1, bias=False):
        assert x[1] == inputs, (name, x, inputs)
        self._add(name + ".weight", (outputs, inputs // groups, kernel, kernel), "conv")
        if bias:
            self._add(name + ".bias", (outputs,), "bias", fan=inputs * kernel * kernel)
        height, width = (window(n, kernel, stride, pad) for n in x[2:])
        self._count(x[0] * outputs * height * width * (inputs // groups) * kernel * kernel)
        return x[0], outputs, height, width

    def batch_norm(self, x, name, channels):
        self._add(name + ".weight", (channels,), "one")
        self._add(name + ".bias", (channels,), "zero")
        self.running += [Parameter(name + ".running_mean", (channels,), "zero"),
                         Parameter(name + ".running_var", (channels,), "one")]
        return x

    def layer_norm(self, x, name, width):
        self._add(name + ".weight", (width,), "one")
        self._add(name + ".bias", (width,), "zero")
        return x

    def relu(self, x):
        return x

    relu6 = gelu = tanh = relu

    def add(self, x, y):
        return x

    def dropout(self, x, ratio):
        return x

    def max_pool(self, x, kernel, stride, pad):
        return x[:2] + tuple(window(n, kernel, stride, pad) for n in x[2:])

    def global_average(self, x):
        return x[:2]

    def flatten(self, x):
        return x[0], int(np.prod(x[1:]))

    def embedding(self, x, name, words, width):
        self._add(name + ".weight", (words, width), "embedding")
        return x + (width,)

    def position(self, name, length, width):
        self._add(name + ".weight", (length, width), "embedding")
        return length, width

    def split3(self, x):
        return (x[:2] + (x[2] // 3,),) * 3

    def attention(self, q, k, v, heads, causal, dropout):
        batch, length, width = q
        self._count(2 * batch * length * length * width)  # the full square, even under a causal mask
        return q

    def first_token(self, x):
        return x[0], x[2]

    def lstm_last(self, x, name, inputs, hidden):
        """The hidden state behind the last of x[1] steps."""
        for part, shape in (("weight_ih_l0", (4 * hidden, inputs)), ("weight_hh_l0", (4 * hidden, hidden)),
                            ("bias_ih_l0", (4 * hidden,)), ("bias_hh_l0", (4 * hidden,))):
            self._add(f"{name}.{part}", shape, "lstm", fan=hidden)
        batch, length, _ = x
        self._count(batch * length * inputs * 4 * hidden)
        self._count(batch * length * hidden * 4 * hidden)
        return batch, hidden
