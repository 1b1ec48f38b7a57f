"""Elementwise functions of one tensor, and activations."""

import math

import torch

from .base import Value, inexact, lower

_SAME = {
    "abs": "Abs", "neg": "Neg", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign", "sgn": "Sign",
    "relu": "Relu", "isnan": "IsNaN", "isinf": "IsInf", "bitwise_not": "BitwiseNot", "logical_not": "Not",
}
_FLOAT = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "sigmoid": "Sigmoid", "erf": "Erf", "special_expit": "Sigmoid",
    "special_erf": "Erf", "arccos": "Acos", "arcsin": "Asin", "arctan": "Atan", "absolute": "Abs", "mish": "Mish",
}


def _simple(torch_name, onnx_name, floating):
    @lower(f"aten.{torch_name}")
    def f(c, a):
        x = a.self
        if floating:
            return c.op(onnx_name, c.tensor(x, c.dtype))
        if torch_name in ("bitwise_not", "logical_not"):
            return (
                c.op("Not", c.tensor(x, torch.bool))
                if x.dtype == torch.bool or torch_name == "logical_not"
                else c.op("BitwiseNot", x)
            )
        if torch_name in ("isnan", "isinf") and not x.dtype.is_floating_point:
            return c.op("Not", c.op("Equal", x, x))
        if torch_name in ("floor", "ceil", "round") and not x.dtype.is_floating_point:
            return x
        if torch_name == "round" and a.decimals:
            scale = c.num(10.0 ** a.decimals, x)
            return c.op("Div", c.op("Round", c.op("Mul", x, scale)), scale)
        return c.op(onnx_name, x)

    return f


for _t, _o in _SAME.items():
    _simple(_t, _o, False)
for _t, _o in _FLOAT.items():
    _simple(_t, _o, True)


def _float(c, a):
    return c.tensor(a.self, c.dtype)


@lower("aten.rsqrt")
def rsqrt(c, a):
    return c.op("Reciprocal", c.op("Sqrt", _float(c, a)))


@lower("aten.square")
def square(c, a):
    return c.op("Mul", a.self, a.self)


@lower("aten.expm1", "aten.special_expm1")
def expm1(c, a):
    # near 0 the difference loses digits: tanh(x/2)·(exp(x)+1) is the same number without that loss
    x = _float(c, a)
    half = c.op("Tanh", c.op("Mul", x, c.num(0.5, x)))
    return c.op("Mul", half, c.op("Add", c.op("Exp", x), c.num(1.0, x)))


@lower("aten.exp2", "aten.special_exp2")
def exp2(c, a):
    x = _float(c, a)
    return c.op("Pow", c.num(2.0, x), x)


@lower("aten.log2")
def log2(c, a):
    x = _float(c, a)
    return c.op("Mul", c.op("Log", x), c.num(1 / math.log(2), x))


@lower("aten.log10")
def log10(c, a):
    x = _float(c, a)
    return c.op("Mul", c.op("Log", x), c.num(1 / math.log(10), x))


@lower("aten.log1p", "aten.special_log1p")
def log1p(c, a):
    # log(u)·x/(u-1) with u = 1+x, x itself where u is 1; the quotient's gradient needs a safe divisor
    x = _float(c, a)
    u = c.op("Add", x, c.num(1.0, x))
    d = c.op("Sub", u, c.num(1.0, x))
    small = c.op("Equal", d, c.num(0.0, x))
    ratio = c.op("Div", c.detach(x), c.where(small, c.num(1.0, x), c.detach(d)))
    return c.where(small, x, c.op("Mul", c.op("Log", c.where(small, c.num(1.0, x), u)), ratio))


@lower("aten.erfc", "aten.special_erfc")
def erfc(c, a):
    x = _float(c, a)
    return c.op("Sub", c.num(1.0, x), c.op("Erf", x))


@lower("aten.trunc", "aten.fix")
def trunc(c, a):
    x = a.self
    if not x.dtype.is_floating_point:
        return x
    return c.op("Mul", c.op("Sign", x), c.op("Floor", c.op("Abs", x)))


@lower("aten.frac")
def frac(c, a):
    return c.op("Sub", a.self, trunc(c, a))


@lower("aten.isfinite")
def isfinite(c, a):
    x = a.self
    if not x.dtype.is_floating_point:
        return c.op("Equal", x, x)
    return c.op("Not", c.op("Or", c.op("IsNaN", x), c.op("IsInf", x)))


@lower("aten.logit", "aten.special_logit")
def logit(c, a):
    x = _float(c, a)
    if a.eps is not None:
        x = c.op("Clip", x, c.num(a.eps, x), c.num(1 - a.eps, x))
    return c.op("Log", c.op("Div", x, c.op("Sub", c.num(1.0, x), x)))


@lower("aten.nan_to_num")
def nan_to_num(c, a):
    x = a.self
    info = torch.finfo(x.dtype)
    x = c.where(c.op("IsNaN", x), c.num(a.nan or 0.0, x), x)
    high, low = (
        c.num(info.max if a.posinf is None else a.posinf, x),
        c.num(info.min if a.neginf is None else a.neginf, x),
    )
    x = c.where(c.op("IsInf", x, detect_negative=0), high, x)
    return c.where(c.op("IsInf", x, detect_positive=0), low, x)


# ---- activations
@lower("aten.gelu")
def gelu(c, a):
    return c.op("Gelu", a.self, approximate=a.approximate or "none")


@lower("aten.silu", "aten.swish")
def silu(c, a):
    return c.op("Mul", a.self, c.op("Sigmoid", a.self))


@lower("aten.relu6")
def relu6(c, a):
    x = c.op("Relu", a.self)
    return _up_to(c, x, c.num(6.0, x))


@lower("aten.hardtanh")
def hardtanh(c, a):
    least, most = c.num(a.min_val, a.self), c.num(a.max_val, a.self)
    return c.op("Where", c.op("LessOrEqual", a.self, least), least, _up_to(c, a.self, most))


def _up_to(c, x, most):
    """Without a gradient at the bound itself, where Clip, as torch.clamp, has one."""
    return c.op("Where", c.op("GreaterOrEqual", x, most), most, x)


@lower("aten.hardsigmoid")
def hardsigmoid(c, a):
    x = a.self
    if inexact(x, 1.0 / 6.0):
        return _with_slope_of(c, _sixths(c, x, 1.0 / 6.0), _sixths(c, x, _rounded(1.0 / 6.0)))
    return c.op("HardSigmoid", x, alpha=1.0 / 6.0, beta=0.5)


def _sixths(c, x, sixth):
    return c.op("Mul", c.op("Clip", c.op("Add", x, c.num(3.0, x)), c.num(0.0, x), c.num(6.0, x)), c.num(sixth, x))


def _rounded(number):
    return float(torch.tensor(number, dtype=torch.float32))


def _with_slope_of(c, value, other):
    """torch rounds numbers of some derivatives to float32, in float64 too: one form's value, the other's gradient."""
    return c.op("Add", other, c.detach(c.op("Sub", value, other)))


@lower("aten.hardswish")
def hardswish(c, a):
    return (
        c.op("Mul", a.self, _sixths(c, a.self, 1.0 / 6.0)) if inexact(a.self, 1.0 / 6.0) else c.op("HardSwish", a.self)
    )


@lower("aten.leaky_relu")
def leaky_relu(c, a):
    return _leaky(c, a.self, float(a.negative_slope))


def _leaky(c, x, slope):
    if inexact(x, slope):
        return c.where(c.op("Greater", x, c.num(0.0, x)), x, c.op("Mul", x, c.num(slope, x)))
    return c.op("LeakyRelu", x, alpha=slope)


@lower("aten.elu")
def elu(c, a):
    alpha, scale, inner = (1.0 if v is None else float(v) for v in (a.alpha, a.scale, a.input_scale))
    if (scale, inner) != (1, 1) or inexact(a.self, alpha):
        return _exponential(c, a.self, alpha, scale, inner)
    return c.op("Elu", a.self, alpha=alpha)


def _exponential(c, x, alpha, scale, inner):
    """scale * x above zero, scale * alpha * (exp(inner * x) - 1) below."""
    low = c.op(
        "Mul",
        c.op("Sub", c.op("Exp", c.op("Mul", c.op("Min", x, c.num(0.0, x)), c.num(inner, x))), c.num(1.0, x)),
        c.num(alpha * scale, x),
    )
    return c.where(c.op("Greater", x, c.num(0.0, x)), c.op("Mul", x, c.num(scale, x)), low)


@lower("aten.selu")
def selu(c, a):
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return (
        _exponential(c, a.self, alpha, scale, 1.0)
        if inexact(a.self, alpha)
        else c.op("Selu", a.self, alpha=alpha, gamma=scale)
    )


@lower("aten.celu")
def celu(c, a):
    alpha = float(a.alpha)
    if not inexact(a.self, alpha, 1.0 / alpha):
        return c.op("Celu", a.self, alpha=alpha)
    return _with_slope_of(
        c, *[_exponential(c, a.self, alpha, 1.0, inner) for inner in (1.0 / alpha, 1.0 / _rounded(alpha))]
    )


@lower("aten.softplus")
def softplus(c, a):
    x, beta, threshold = a.self, float(a.beta), float(a.threshold)
    scaled = x if beta == 1 else c.op("Mul", x, c.num(beta, x))
    y = c.op("Softplus", scaled)
    if beta != 1:
        y = c.op("Div", y, c.num(beta, x))
    return c.where(c.op("Greater", scaled, c.num(threshold, x)), x, y)


@lower("aten.log_sigmoid", "aten.log_sigmoid_forward")
def log_sigmoid(c, a):
    x = a.self
    return c.op("Neg", c.op("Softplus", c.op("Neg", x)))


@lower("aten.softshrink", "aten.hardshrink")
def shrink(c, a):
    x, limit = a.self, float(a.lambd)
    bias = limit if c.operator.endswith("softshrink") else 0.0
    if not inexact(x, limit):
        return c.op("Shrink", x, bias=bias, lambd=limit)
    low = c.where(c.op("Less", x, c.num(-limit, x)), c.op("Add", x, c.num(bias, x)), c.num(0.0, x))
    return c.where(c.op("Greater", x, c.num(limit, x)), c.op("Sub", x, c.num(bias, x)), low)


@lower("aten.threshold")
def threshold(c, a):
    x = a.self
    return c.where(c.op("Greater", x, c.num(a.threshold, x)), x, c.num(a.value, x))


@lower("aten.prelu", "aten._prelu_kernel")
def prelu(c, a):
    x, w = a.self, a.weight
    if len(x.shape) > 2 and len(w.shape) == 1:
        w = c.reshape(w, [w.shape[0]] + [1] * (len(x.shape) - 2))
    return c.op("PRelu", x, w)


@lower("aten.glu")
def glu(c, a):
    axis = a.dim % len(a.self.shape)
    left, right = c.node_n("Split", [a.self], 2, axis=axis, num_outputs=2)
    return c.op("Mul", left, c.op("Sigmoid", right))


@lower("aten.rrelu", "aten.rrelu_with_noise", "aten.rrelu_with_noise_functional")
def rrelu(c, a):
    if a.training:  # a slope for every element
        slope = Value(
            c.e.node("RandomUniformLike", [a.self], low=float(a.lower), high=float(a.upper))[0],
            a.self.dtype,
            a.self.shape,
        )
        return c.where(c.op("Greater", a.self, c.num(0.0, a.self)), a.self, c.op("Mul", a.self, slope))
    return _leaky(c, a.self, (float(a.lower) + float(a.upper)) / 2)
