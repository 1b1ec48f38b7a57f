"""Activations."""

import numpy as np

from . import kinks
from .elementwise import formula, number
from .table import exact, operation


@formula("Relu6")
def relu6(t, op, x):
    """Without a gradient at 0 and at 6, where Clip has one."""
    above, most = t.e.op("Relu", x.onnx), number(t, 6, x)
    return t.e.op("Where", t.e.op("GreaterOrEqual", above, most), most, above)


@formula("Silu")
def silu(t, op, x):
    return t.e.op("Mul", x.onnx, t.e.op("Sigmoid", x.onnx))


@formula("LogSigmoid")
def log_sigmoid(t, op, x):
    return t.e.op("Neg", t.e.op("Softplus", t.e.op("Neg", x.onnx)))


@formula("LeakyRelu")
def leaky_relu(t, op, x):
    if not exact(x, op.negative_slope) and t.semantics != "tensorflow":  # whose own attribute is float32 too
        return t.e.op("Where", t.e.op("Less", x.onnx, number(t, 0, x)),
                      t.e.op("Mul", x.onnx, number(t, op.negative_slope, x)), x.onnx)
    return t.e.op("LeakyRelu", x.onnx, alpha=float(op.negative_slope))


@formula("Selu")
def selu(t, op, x):
    tensorflow = kinks.as_tensorflow(t, x)
    if x.dtype != "float64" and not tensorflow:
        return t.e.op("Selu", x.onnx)
    zero, scale = number(t, 0, x), 1.0507009873554804934
    left = t.e.op("Less" if tensorflow else "LessOrEqual", x.onnx, zero)  # at 0 the slope is that of its side
    if x.dtype == "float64":  # the operator's own numbers are float32
        below = t.e.op("Sub", t.e.op("Exp", t.e.op("Where", left, x.onnx, zero)), number(t, 1, x))
        below = t.e.op("Mul", below, number(t, scale * 1.6732632423543772848, x))
    else:
        below = t.e.op("Selu", x.onnx)
    return t.e.op("Where", left, below, t.e.op("Mul", x.onnx, number(t, scale, x)))


def _hard_sigmoid(t, x):
    if not exact(x, 1 / 6):
        line = t.e.op("Add", t.e.op("Mul", x.onnx, number(t, 1 / 6, x)), number(t, 0.5, x))
        return t.e.op("Clip", line, number(t, 0, x), number(t, 1, x))
    return t.e.op("HardSigmoid", x.onnx, alpha=1 / 6, beta=0.5)


@formula("HardSigmoid")
def hard_sigmoid(t, op, x):
    return _hard_sigmoid(t, x)


@formula("HardSilu")
def hard_silu(t, op, x):
    return t.e.op("Mul", x.onnx, _hard_sigmoid(t, x))


@formula("HardTanh")
def hard_tanh(t, op, x):
    return t.e.op("Clip", x.onnx, number(t, -1, x), number(t, 1, x))


@formula("TanhShrink")
def tanh_shrink(t, op, x):
    return t.e.op("Sub", x.onnx, t.e.op("Tanh", x.onnx))


@formula("HardShrink", "SoftShrink")
def shrink(t, op, x):
    bias = float(op.threshold) if type(op).__name__ == "SoftShrink" else 0.0
    return t.e.op("Shrink", x.onnx, lambd=float(op.threshold), bias=bias)


@formula("Threshold")
def threshold(t, op, x):
    above = t.e.op("Greater", x.onnx, number(t, op.threshold, x))
    return t.e.op("Where", above, x.onnx, number(t, op.default_value, x))


@formula("Elu")
def elu(t, op, x):
    return t.e.op("Elu", x.onnx, alpha=float(op.alpha))


@formula("Celu")
def celu(t, op, x):
    if kinks.as_tensorflow(t, x):
        return kinks.celu(t, x, op.alpha)
    return t.e.op("Celu", x.onnx, alpha=float(op.alpha))


@formula("Gelu")
def gelu(t, op, x):
    if x.dtype == "float64" and t.semantics == "tensorflow":
        return _tensorflow_gelu(t, op, x)
    return t.e.op("Gelu", x.onnx, approximate="tanh" if op.approximate else "none")


def _tensorflow_gelu(t, op, x):
    """In float64 TensorFlow rounds one of its numbers to float32: the root of 1/2, or 0.044715."""
    e, one, half = t.e, number(t, 1, x), number(t, 0.5, x)
    if op.approximate:
        cube = e.op("Mul", e.op("Pow", x.onnx, number(t, 3, x)), number(t, float(np.float32(0.044715)), x))
        inner = e.op("Tanh", e.op("Mul", number(t, 0.7978845608028654, x), e.op("Add", x.onnx, cube)))
    else:
        turned = e.op("Erf", e.op("Mul", x.onnx, number(t, -float(np.float32(0.7071067811865476)), x)))
        return e.op("Mul", e.op("Mul", half, x.onnx), e.op("Sub", one, turned))
    return e.op("Mul", e.op("Mul", half, x.onnx), e.op("Add", one, inner))


@formula("Squareplus")
def squareplus(t, op, x):
    root = t.e.op("Sqrt", t.e.op("Add", t.e.op("Mul", x.onnx, x.onnx), number(t, op.b, x)))
    return t.e.op("Mul", t.e.op("Add", x.onnx, root), number(t, 0.5, x))


@formula("SparsePlus")
def sparse_plus(t, op, x):
    one = number(t, 1, x)
    inner = t.e.op("Mul", number(t, 0.25, x), t.e.op("Pow", t.e.op("Add", x.onnx, one), number(t, 2, x)))
    above = t.e.op("Where", t.e.op("Less", x.onnx, one), inner, x.onnx)
    return t.e.op("Where", t.e.op("LessOrEqual", x.onnx, number(t, -1, x)), number(t, 0, x), above)


@formula("SparseSigmoid")
def sparse_sigmoid(t, op, x):
    zero, one = number(t, 0, x), number(t, 1, x)
    half = t.e.op("Mul", t.e.op("Add", x.onnx, one), number(t, 0.5, x))
    below = t.e.op("Where", t.e.op("GreaterOrEqual", half, one), one, half)
    return t.e.op("Where", t.e.op("LessOrEqual", half, zero), zero, below)


@operation("Glu")
def glu(t, op, x):
    import keras

    x = t.value(x)
    first, gate = keras.ops.split(x, 2, axis=op.axis)
    return first * keras.ops.sigmoid(gate)
