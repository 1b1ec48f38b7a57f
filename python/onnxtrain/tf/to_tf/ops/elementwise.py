"""Elementwise operators, matrix products, casts. At kinks and ties the gradient is PyTorch's, as onnxtrain's is."""

import functools
import math

import tensorflow as tf

from ..layout import Value, order_of
from .table import Unsupported, dims, elementwise, op, pointwise, positive, rank_of, tf_dtype, through_wide, wide


def _divide(a, b):
    if a.dtype.is_floating or a.dtype.is_complex:
        return tf.math.divide(a, b)
    return through_wide(lambda x, y: tf.cast(tf.truncatediv(x, y), x.dtype))(a, b)


def _larger(a, b):
    """Equal elements share the gradient."""
    if not a.dtype.is_floating:
        return through_wide(tf.maximum)(a, b)
    return tf.where(a > b, a, tf.where(a < b, b, 0.5 * (a + b)))


def _smaller(a, b):
    if not a.dtype.is_floating:
        return through_wide(tf.minimum)(a, b)
    return tf.where(a < b, a, tf.where(a > b, b, 0.5 * (a + b)))


def _compare(f):
    return lambda a, b: f(wide(a), wide(b))


def _fold(f):
    return lambda *xs: functools.reduce(f, xs)


def _softplus(x):
    return tf.maximum(x, 0) + tf.math.log1p(tf.exp(-tf.abs(x)))


def _hard_swish(x):
    return x * tf.clip_by_value(x / 6 + 0.5, 0, 1)


_BINARY = {
    "Add": through_wide(tf.add), "Sub": through_wide(tf.subtract), "Mul": through_wide(tf.multiply), "Div": _divide,
    "And": tf.logical_and, "Or": tf.logical_or, "Xor": tf.math.logical_xor,
    "Equal": _compare(tf.equal), "Less": _compare(tf.less), "Greater": _compare(tf.greater),
    "LessOrEqual": _compare(tf.less_equal), "GreaterOrEqual": _compare(tf.greater_equal),
    "BitwiseAnd": tf.bitwise.bitwise_and, "BitwiseOr": tf.bitwise.bitwise_or, "BitwiseXor": tf.bitwise.bitwise_xor,
}


def _old_axis(n, a, b):
    """The broadcasting of opset < 7: the second operand starts at `axis` of the first."""
    axis = n.get("axis")
    if n.version >= 7 or axis is None or b.rank == 0:
        return b
    return Value(tf.reshape(b.plain, [*dims(b.plain), *[1] * (a.rank - axis - b.rank)]))


def _register_binary(name, f):
    @op(name, values=True)
    def run(n, a, b):
        return elementwise(f, a, _old_axis(n, a, b))


for _name, _f in _BINARY.items():
    _register_binary(_name, _f)

pointwise({
    "Abs": through_wide(tf.abs), "Acos": tf.acos, "Acosh": tf.acosh, "Asin": tf.asin, "Asinh": tf.asinh,
    "Atan": tf.atan, "Atanh": tf.atanh, "Ceil": tf.math.ceil, "Cos": tf.cos, "Cosh": tf.cosh, "Erf": tf.math.erf,
    "Exp": tf.exp, "Floor": tf.floor, "Identity": lambda x: x, "IsNaN": tf.math.is_nan, "Log": tf.math.log,
    "Neg": through_wide(tf.negative), "Not": tf.logical_not, "Reciprocal": tf.math.reciprocal, "Relu": tf.nn.relu,
    "Round": tf.round, "Sigmoid": tf.sigmoid, "Sign": through_wide(tf.sign), "Sin": tf.sin, "Sinh": tf.sinh,
    "Softplus": _softplus, "Softsign": lambda x: x / (1 + tf.abs(x)), "Sqrt": tf.sqrt, "Tan": tf.tan, "Tanh": tf.tanh,
    "Mish": lambda x: x * tf.tanh(_softplus(x)), "HardSwish": _hard_swish, "BitwiseNot": tf.bitwise.invert,
    "Sum": _fold(tf.add), "Max": _fold(_larger), "Min": _fold(_smaller),
    "Mean": lambda *xs: functools.reduce(tf.add, xs) / len(xs),
})


@op("Det")
def determinant(n, x):
    return tf.linalg.det(x)


@op("Pow", values=True)
def power(n, x, y):
    def run(a, b):
        if a.dtype.is_floating:
            return tf.pow(a, tf.cast(b, a.dtype))
        if b.dtype.is_floating:
            return tf.cast(tf.pow(tf.cast(a, tf.float64), tf.cast(b, tf.float64)), a.dtype)
        return tf.cast(tf.pow(tf.cast(a, tf.int64), tf.cast(b, tf.int64)), a.dtype)

    number = n.numbers(1)
    if number is not None and number.size == 1 and number.item() == 2 and x.any.dtype.is_floating and y.rank <= x.rank:
        return elementwise(tf.square, x)
    return elementwise(run, x, _old_axis(n, x, y))


@op("Mod", values=True)
def modulo(n, a, b):
    return elementwise(through_wide(tf.truncatemod if n.get("fmod", 0) else tf.math.floormod), a, b)


@op("BitShift")
def bit_shift(n, a, b):
    """Shifts by a negative number, or by all bits and more, leave no bit but the sign's."""
    left, bits, zero = n.get("direction") == "LEFT", 8 * a.dtype.size, tf.zeros_like(b)
    shift = tf.bitwise.left_shift if left else tf.bitwise.right_shift
    beyond = (b < zero) | (b >= tf.cast(bits, b.dtype))
    far = tf.zeros_like(a) if left or a.dtype.is_unsigned else shift(a, tf.cast(bits - 1, a.dtype))
    return tf.where(beyond, far, shift(a, tf.where(beyond, zero, b)))


@op("IsInf", values=True)
def is_inf(n, x):
    negative, positive_too = n.get("detect_negative", 1), n.get("detect_positive", 1)

    def run(a):
        found = tf.math.is_inf(a)
        if not negative:
            found &= a > 0
        return found if positive_too else found & (a < 0)

    return elementwise(run, x)


@op("Clip", values=True, settings=(1, 2))
def clip(n, x, low=None, high=None):
    if n.version < 11:
        low, high = (None if n.get(k) is None else tf.cast(n.get(k), x.any.dtype) for k in ("min", "max"))
    else:
        low, high = (None if v is None else tf.reshape(v.plain, []) for v in (low, high))

    def run(a):
        keep = a.dtype
        a, lo, hi = (None if v is None else wide(v) for v in (a, low, high))
        if lo is not None and hi is not None:
            return tf.cast(tf.minimum(tf.maximum(a, lo), hi), keep) if not keep.is_floating else _clamp(a, lo, hi)
        if lo is not None:
            return tf.cast(tf.maximum(a, lo), keep)
        return tf.cast(a if hi is None else tf.minimum(a, hi), keep)

    return elementwise(run, x)


def _clamp(a, lo, hi):
    """Bounds pass the gradient; where they cross, the upper one wins."""
    return tf.where(a > hi, hi, tf.where(a < lo, tf.minimum(lo, hi), a))


def _with_alpha(name, f, default):
    @op(name, values=True)
    def run(n, x):
        alpha = n.get("alpha", default)
        return elementwise(lambda a: f(a, alpha), x)


def _elu(x, alpha):
    return tf.nn.elu(x) if alpha == 1 else tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0)))


for _name, _f, _default in (
    ("LeakyRelu", lambda x, a: tf.where(x > 0, x, a * x), 0.01), ("Elu", _elu, 1.0),
    ("Celu", lambda x, a: tf.where(x > 0, x, a * tf.math.expm1(tf.minimum(x, 0) / a)), 1.0),
    ("ThresholdedRelu", lambda x, a: tf.where(x > a, x, tf.zeros_like(x)), 1.0),
    ("Swish", lambda x, a: x * tf.sigmoid(a * x), 1.0),
):
    _with_alpha(_name, _f, _default)


@op("Selu", values=True)
def selu(n, x):
    alpha, gamma = n.get("alpha", 1.67326319217681884765625), n.get("gamma", 1.05070102214813232421875)
    return elementwise(lambda a: gamma * _elu(a, alpha), x)


@op("Gelu", values=True)
def gelu(n, x):
    near = n.get("approximate", "none") == "tanh"
    exact = lambda a: 0.5 * a * (1 + tf.math.erf(a * math.sqrt(0.5)))
    return elementwise((lambda a: tf.nn.gelu(a, True)) if near else exact, x)


@op("HardSigmoid", values=True)
def hard_sigmoid(n, x):
    alpha, beta = n.get("alpha", 0.2), n.get("beta", 0.5)
    return elementwise(lambda a: tf.clip_by_value(alpha * a + beta, 0, 1), x)


@op("Shrink", values=True)
def shrink(n, x):
    lambd, bias = n.get("lambd", 0.5), n.get("bias", 0.0)
    run = lambda a: tf.where(a < -lambd, a + bias, tf.where(a > lambd, a - bias, tf.zeros_like(a)))
    if x.any.dtype.is_floating:
        return elementwise(run, x)
    return elementwise(lambda a: tf.cast(run(tf.cast(a, tf.float64)), a.dtype), x)


@op("PRelu", values=True)
def prelu(n, x, slope):
    if n.version < 7 and slope.rank == 1 and x.rank > 2 and slope.shape()[0] != 1:
        slope = Value(tf.reshape(slope.plain, [-1, *[1] * (x.rank - 2)]))
    return elementwise(lambda a, s: tf.where(a > 0, a, s * a), x, slope)


def _softmax(name, f):
    @op(name, values=True)
    def run(n, x):
        axis = n.get("axis", -1 if n.version >= 13 else 1)
        if n.version >= 13:
            order = order_of(x)
            return order.wrap(f(order.take(x), order.axis(axis)))
        rank = rank_of(x.any)
        axis = positive(axis, rank)
        if axis == rank - 1:
            return Value(f(x.plain, axis))
        sizes = dims(x.plain)  # everything from axis on is one row
        rows = functools.reduce(lambda a, b: a * b, sizes[:axis], 1)
        return Value(tf.reshape(f(tf.reshape(x.plain, [rows, -1]), 1), sizes))


def _hardmax(x, axis):
    return tf.one_hot(tf.argmax(x, axis), dims(x)[axis], axis=axis, dtype=x.dtype)


_softmax("Softmax", tf.nn.softmax)
_softmax("LogSoftmax", tf.nn.log_softmax)
_softmax("Hardmax", _hardmax)


def convert(x, dtype):
    if x.dtype == dtype:
        return x
    if dtype == tf.string or x.dtype == tf.string:
        return _text(x, dtype)
    if dtype == tf.bool:
        return tf.not_equal(x, tf.zeros([], x.dtype))
    return tf.cast(x, dtype)


def _text(x, dtype):
    if dtype == tf.string:
        return tf.strings.as_string(x)
    if dtype in (tf.float32, tf.float64, tf.int32, tf.int64):
        return tf.strings.to_number(x, dtype)
    raise Unsupported(f"TensorFlow makes no {dtype.name} of text")


@op("Cast", values=True)
def cast(n, x):
    to = tf_dtype(n.get("to"))
    return elementwise(lambda a: convert(a, to), x)


@op("CastLike", values=True)
def cast_like(n, x, like):
    return elementwise(lambda a: convert(a, like.any.dtype), x)


@op("Where", values=True)
def where(n, c, a, b):
    return elementwise(tf.where, c, a, b)


@op("Gemm")
def gemm(n, a, b, c=None):
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    y = matmul_of(a, b, bool(n.get("transA", 0)), bool(n.get("transB", 0)))
    if alpha != 1:
        y = tf.cast(alpha, y.dtype) * y
    if c is None:
        return y
    if c.shape.rank == 2 and c.shape[0] == 1:  # TensorFlow takes a row for a bias, which must be a vector there
        c = tf.reshape(c, [-1])
    return y + (c if beta == 1 else tf.cast(beta, c.dtype) * c)


def matmul_of(a, b, ta=False, tb=False):
    if a.dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64, tf.complex128):
        return tf.matmul(a, b, transpose_a=ta, transpose_b=tb)
    y = tf.matmul(tf.cast(a, tf.int64), tf.cast(b, tf.int64), transpose_a=ta, transpose_b=tb)
    return tf.cast(y, a.dtype)


@op("MatMul")
def matmul(n, a, b):
    left, right = rank_of(a), rank_of(b)
    if left == 1 and right == 1:
        return tf.reduce_sum(a * b)
    if left == 1:
        return tf.squeeze(matmul_of(tf.expand_dims(a, 0), b), -2)
    if right == 1:
        return tf.squeeze(matmul_of(a, tf.expand_dims(b, -1)), -1)
    if left > 2 and right == 2:  # one product of matrices instead of many
        sizes = dims(a)
        flat = matmul_of(tf.reshape(a, [-1, sizes[-1]]), b)
        return tf.reshape(flat, [*sizes[:-1], dims(b)[-1]])
    return matmul_of(a, b)


@op("Einsum")
def einsum(n, *xs):
    return tf.einsum(n.get("equation").replace(" ", ""), *xs)


@op("CumSum", "CumProd", settings=(1,))
def cumulative(n, x, axis):
    f = tf.cumsum if n.op == "CumSum" else tf.math.cumprod
    exclusive, reverse = bool(n.get("exclusive", 0)), bool(n.get("reverse", 0))
    axis = tf.cast(tf.reshape(axis, []), tf.int32)
    return through_wide(lambda a: f(a, axis, exclusive, reverse))(x)
