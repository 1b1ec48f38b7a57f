"""Elementwise operators: arithmetic, comparisons, logic, activations."""

import functools
import math

import torch
import torch.nn.functional as F

from .table import op, simple, through_wide, torch_dtype, wide


def _aligned(n, f):
    """The broadcasting of opset < 7: the second operand starts at `axis` of the first."""
    axis = n.get("axis")
    if n.version >= 7 or axis is None:
        return f

    def run(a, b):
        return f(a, b.reshape(*b.shape, *[1] * (a.dim() - axis - b.dim())) if b.dim() else b)

    return run


def _binary(name, f):
    @op(name)
    def build(n):
        return _aligned(n, through_wide(f))


def _divide(a, b):
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


def _compare(f):
    return lambda a, b: f(wide(a), wide(b))


for _name, _f in {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": _divide,
    "And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor,
    "Equal": _compare(torch.eq), "Less": _compare(torch.lt), "Greater": _compare(torch.gt),
    "LessOrEqual": _compare(torch.le), "GreaterOrEqual": _compare(torch.ge),
    "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor,
}.items():
    _binary(_name, _f)


def _fold(f):
    run = through_wide(lambda *xs: functools.reduce(f, xs))
    return lambda *xs: xs[0] if len(xs) == 1 else run(*xs)


simple({
    "Abs": through_wide(torch.abs), "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh,
    "Atan": torch.atan, "Atanh": torch.atanh, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh,
    "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Identity": lambda x: x, "IsNaN": torch.isnan,
    "Log": torch.log, "Neg": through_wide(torch.neg), "Not": torch.logical_not, "Reciprocal": torch.reciprocal,
    "Relu": F.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": through_wide(torch.sign), "Sin": torch.sin,
    "Sinh": torch.sinh, "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tan": torch.tan,
    "Tanh": torch.tanh, "Mish": F.mish, "HardSwish": F.hardswish, "BitwiseNot": through_wide(torch.bitwise_not),
    "Det": torch.linalg.det, "Sum": _fold(torch.add), "Max": _fold(torch.maximum), "Min": _fold(torch.minimum),
    "Mean": lambda *xs: functools.reduce(torch.add, xs) / len(xs),
})


@op("Pow")
def power(n):
    y = n.constant(1)
    number = y.item() if y is not None and y.numel() == 1 else None

    def run(x, y):
        if x.dtype.is_floating_point:
            if number is not None and y.dim() <= x.dim():
                return torch.pow(x, number)
            return torch.pow(x, y.to(x.dtype) if y.dtype != x.dtype else y)
        if y.dtype.is_floating_point:
            return torch.pow(x.to(torch.float64), y.to(torch.float64)).to(x.dtype)
        return torch.pow(wide(x), wide(y)).to(x.dtype)

    return _aligned(n, run)


@op("Mod")
def modulo(n):
    return through_wide(torch.fmod if n.get("fmod", 0) else torch.remainder)


@op("BitShift")
def bit_shift(n):
    shift = torch.bitwise_left_shift if n.get("direction") == "LEFT" else torch.bitwise_right_shift
    return through_wide(shift)


@op("IsInf")
def is_inf(n):
    negative, positive = n.get("detect_negative", 1), n.get("detect_positive", 1)

    def run(x):
        if negative and positive:
            return torch.isinf(x)
        if positive:
            return torch.isposinf(x)
        return torch.isneginf(x) if negative else torch.zeros_like(x, dtype=torch.bool)

    return run


@op("Clip")
def clip(n):
    if n.version < 11:
        low, high = n.get("min"), n.get("max")
        return lambda x: x if low is None and high is None else torch.clamp(x, low, high)
    fixed = [n.constant(k) for k in (1, 2)]
    if all(c is not None or not n.has(k) for k, c in zip((1, 2), fixed)):
        low, high = (None if c is None else c.item() for c in fixed)

        def run(x, *_):
            if low is None and high is None:
                return x
            return torch.clamp(wide(x), low, high).to(x.dtype) if wide(x) is not x else torch.clamp(x, low, high)

        return run

    def dynamic(x, low=None, high=None):
        x = x if low is None else torch.maximum(x, low)
        return x if high is None else torch.minimum(x, high)

    return dynamic


def _with_alpha(name, f, default):
    @op(name)
    def build(n):
        alpha = n.get("alpha", default)
        return lambda x: f(x, alpha)


for _name, _f, _default in (("LeakyRelu", F.leaky_relu, 0.01), ("Elu", F.elu, 1.0), ("Celu", F.celu, 1.0)):
    _with_alpha(_name, _f, _default)


@op("Selu")
def selu(n):
    alpha, gamma = n.get("alpha", 1.67326319217681884765625), n.get("gamma", 1.05070102214813232421875)
    if abs(alpha - 1.6732632) < 1e-6 and abs(gamma - 1.0507010) < 1e-6:
        return F.selu
    return lambda x: gamma * F.elu(x, alpha)


@op("Gelu")
def gelu(n):
    approximate = n.get("approximate", "none")
    return lambda x: F.gelu(x, approximate=approximate)


@op("Swish")
def swish(n):
    alpha = n.get("alpha", 1.0)
    return F.silu if alpha == 1 else (lambda x: x * torch.sigmoid(alpha * x))


@op("HardSigmoid")
def hard_sigmoid(n):
    alpha, beta = n.get("alpha", 0.2), n.get("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return F.hardsigmoid
    return lambda x: torch.clamp(alpha * x + beta, 0, 1)


@op("ThresholdedRelu")
def thresholded_relu(n):
    alpha = n.get("alpha", 1.0)
    return lambda x: F.threshold(x, alpha, 0.0)


@op("Shrink")
def shrink(n):
    lambd, bias = n.get("lambd", 0.5), n.get("bias", 0.0)

    def run(x):
        zero = torch.zeros((), dtype=x.dtype, device=x.device)
        return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, zero)).to(x.dtype)

    return run


@op("PRelu")
def prelu(n):
    def run(x, slope):
        if slope.dim() == x.dim() - 1 and slope.numel() == slope.shape[0] == (x.shape[1] if x.dim() > 1 else 0):
            return F.prelu(x, slope.reshape(-1))
        if slope.numel() == 1 and x.dtype.is_floating_point:
            return F.prelu(x, slope.reshape(-1))
        return torch.where(x > 0, x, slope * x)

    return run


def _softmax(name, f):
    @op(name)
    def build(n):
        axis = n.get("axis", -1 if n.version >= 13 else 1)
        if n.version >= 13:
            return lambda x: f(x, dim=axis)

        def coerced(x):  # everything from axis on is one row
            a = axis + x.dim() if axis < 0 else axis
            rows = math.prod(x.shape[:a])
            return f(x.reshape(rows, -1), dim=1).reshape(x.shape)

        return lambda x: f(x, dim=axis) if axis in (-1, x.dim() - 1) else coerced(x)


def _hardmax(x, dim):
    return torch.zeros_like(x).scatter(dim, x.argmax(dim, keepdim=True), 1)


_softmax("Softmax", F.softmax)
_softmax("LogSoftmax", F.log_softmax)
_softmax("Hardmax", _hardmax)


@op("Cast", "CastLike")
def cast(n):
    if n.op == "CastLike":
        return lambda x, like: _convert(x, like.dtype)
    dtype = torch_dtype(n.get("to"))
    return lambda x, *_: _convert(x, dtype)


def _convert(x, dtype):
    if x.dtype == dtype:
        return x
    if dtype == torch.bool:
        return x != 0
    return x.to(dtype)


@op("Where")
def where(n):
    def run(c, a, b):
        if a.dtype in (torch.uint16, torch.uint32, torch.uint64):
            return torch.where(c, wide(a), wide(b)).to(a.dtype)
        return torch.where(c, a, b)

    return run


@op("Gemm")
def gemm(n):
    alpha, beta, ta, tb = n.get("alpha", 1.0), n.get("beta", 1.0), n.get("transA", 0), n.get("transB", 0)

    def run(a, b, c=None):
        a = a.t() if ta else a
        if alpha == 1 and (c is None or (beta == 1 and c.dim() == 1 and c.shape[0] == b.shape[0 if tb else 1])):
            return F.linear(a, b if tb else b.t(), c)
        b = b.t() if tb else b
        if a.dtype.is_floating_point:
            return alpha * (a @ b) if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)
        y = wide(a) @ wide(b)
        return (y if c is None else y + wide(c)).to(a.dtype)

    return run


@op("MatMul")
def matmul(n):
    def run(a, b):
        if wide(a) is not a:
            return torch.matmul(wide(a), wide(b)).to(a.dtype)
        return torch.matmul(a, b)

    return run


@op("Einsum")
def einsum(n):
    equation = n.get("equation").replace(" ", "")
    return lambda *xs: torch.einsum(equation, *xs)


@op("CumSum", "CumProd", host=(1,))
def cumulative(n):
    f = torch.cumsum if n.op == "CumSum" else torch.cumprod
    exclusive, reverse, empty = n.get("exclusive", 0), n.get("reverse", 0), 0 if n.op == "CumSum" else 1

    def run(x, axis):
        axis = axis[0] if isinstance(axis, list) else axis
        y = x.flip(axis) if reverse else x
        if exclusive and y.shape[axis]:
            y = torch.cat([torch.full_like(y.narrow(axis, 0, 1), empty), y.narrow(axis, 0, y.shape[axis] - 1)], axis)
        y = f(y, axis, dtype=x.dtype)
        return y.flip(axis) if reverse else y

    return run
