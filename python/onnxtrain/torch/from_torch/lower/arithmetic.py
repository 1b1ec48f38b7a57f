"""Operators of two and more operands: arithmetic, comparisons, logic, choice."""

import math

import torch

from .base import Value, lower
from .index import true_places


def _binary(name, op):
    @lower(f"aten.{name}")
    def f(c, a):
        x, y = c.common(a.self, a.other)
        return c.op(op, x, y)

    return f


_COMPARE = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "less": "Less",
            "greater": "Greater", "less_equal": "LessOrEqual", "greater_equal": "GreaterOrEqual"}
_EXTREMA = {"maximum": "Max", "fmax": "Max", "minimum": "Min", "fmin": "Min"}
for _t, _o in {**_COMPARE, **_EXTREMA}.items():
    _binary(_t, _o)


@lower("aten.ne", "aten.not_equal")
def ne(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("Not", c.op("Equal", x, y))


def _scaled(c, x, alpha):
    return x if alpha in (1, 1.0, None) else c.op("Mul", x, c.tensor(alpha, x.dtype))


@lower("aten.add")
def add(c, a):
    x, y = c.common(a.self, a.other)
    if x.dtype == torch.bool:
        return c.op("Or", x, y)
    return c.op("Add", x, _scaled(c, y, a.alpha))


@lower("aten.sub", "aten.subtract")
def sub(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("Sub", x, _scaled(c, y, a.alpha))


@lower("aten.rsub")
def rsub(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("Sub", y, _scaled(c, x, a.alpha))


@lower("aten.mul", "aten.multiply")
def mul(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("And" if x.dtype == torch.bool else "Mul", x, y)


@lower("aten.div", "aten.true_divide", "aten.divide")
def div(c, a):
    if a.rounding_mode is None:
        return c.op("Div", c.tensor(a.self, c.dtype), c.tensor(a.other, c.dtype))
    x, y = c.common(a.self, a.other)
    if a.rounding_mode == "floor":
        return floor_div(c, x, y)
    q = c.op("Div", x, y)
    return q if not x.dtype.is_floating_point else c.op("Mul", c.op("Sign", q), c.op("Floor", c.op("Abs", q)))


def floor_div(c, x, y):
    if x.dtype.is_floating_point:
        return c.op("Floor", c.op("Div", x, y))
    # integer division of ONNX goes towards zero; the remainder has the divisor's sign
    return c.op("Div", c.op("Sub", x, c.op("Mod", x, y)), y)


@lower("aten.floor_divide")
def floor_divide(c, a):
    return floor_div(c, *c.common(a.self, a.other))


@lower("aten.remainder")
def remainder(c, a):
    x, y = c.common(a.self, a.other)
    if not x.dtype.is_floating_point:
        return c.op("Mod", x, y)
    return c.op("Sub", x, c.op("Mul", y, c.op("Floor", c.op("Div", x, y))))


@lower("aten.fmod")
def fmod(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("Mod", x, y, fmod=1)


@lower("aten.pow")
def pow_(c, a):
    base, power = a.self, a.exponent
    if isinstance(power, (int, float)) and isinstance(base, Value):
        x = c.tensor(base, c.dtype)
        if power == 2:
            return c.op("Mul", x, x)
        if power == 1:
            return x
        if power == 0.5 and x.dtype.is_floating_point:
            return c.op("Sqrt", x)
        if power == -1 and x.dtype.is_floating_point:
            return c.op("Reciprocal", x)
        if power == -0.5 and x.dtype.is_floating_point:
            return c.op("Reciprocal", c.op("Sqrt", x))
    return c.op("Pow", c.tensor(base, c.dtype), c.tensor(power, c.dtype))


@lower("aten.float_power")
def float_power(c, a):
    return c.op("Pow", c.tensor(a.self, c.dtype), c.tensor(a.exponent, c.dtype))


@lower("aten.atan2", "aten.arctan2")
def atan2(c, a):
    y, x = (c.tensor(v, c.dtype) for v in (a.self, a.other))
    zero, pi = c.num(0.0, x), c.num(math.pi, x)
    safe = c.where(c.op("Equal", x, zero), c.num(1.0, x), x)
    base = c.op("Atan", c.op("Div", y, safe))
    down = c.op("Less", y, zero)
    turned = c.where(c.op("Less", x, zero), c.where(down, c.op("Sub", base, pi), c.op("Add", base, pi)), base)
    half = c.where(down, c.num(-math.pi / 2, x), c.where(c.op("Greater", y, zero), c.num(math.pi / 2, x), zero))
    return c.where(c.op("Equal", x, zero), half, turned)


# ---- logic
def _logic(name, op):
    @lower(f"aten.logical_{name}")
    def f(c, a):
        return c.op(op, c.tensor(a.self, torch.bool), c.tensor(a.other, torch.bool))

    @lower(f"aten.bitwise_{name}", f"aten.__{name}__")
    def g(c, a):
        x, y = c.common(a.self, a.other)
        return c.op(op if x.dtype == torch.bool else "Bitwise" + op, x, y)

    return f, g


for _t, _o in (("and", "And"), ("or", "Or"), ("xor", "Xor")):
    _logic(_t, _o)


def _shift(c, a, direction):
    x, y = c.common(a.self, a.other)
    factor = c.op("Pow", c.num(2, x), y)
    return c.op("Mul", x, factor) if direction == "LEFT" else floor_div(c, x, factor)


@lower("aten.bitwise_left_shift", "aten.__lshift__")
def left_shift(c, a):
    return _shift(c, a, "LEFT")


@lower("aten.bitwise_right_shift", "aten.__rshift__")
def right_shift(c, a):
    return _shift(c, a, "RIGHT")


# ---- choice and bounds
@lower("aten.where")
def where(c, a):
    if a.self is None:
        return tuple(true_places(c, a.condition))
    x, y = c.common(a.self, a.other)
    return c.where(c.tensor(a.condition, torch.bool), x, y)


@lower("aten.masked_fill")
def masked_fill(c, a):
    x = a.self
    return c.where(c.tensor(a.mask, torch.bool), c.tensor(a.value, x.dtype), x)


@lower("aten.clamp", "aten.clip", "aten.clamp_min", "aten.clamp_max")
def clamp(c, a):
    x = c.tensor(a.self, c.dtype)
    low, high = a.min, a.max
    plain = all(v is None or isinstance(v, (int, float)) for v in (low, high))
    if plain:
        return c.op(
            "Clip",
            x,
            None if low is None else c.tensor(low, x.dtype),
            None if high is None else c.tensor(high, x.dtype),
        )
    if low is not None:
        x = c.op("Max", x, c.tensor(low, x.dtype))
    return x if high is None else c.op("Min", x, c.tensor(high, x.dtype))


@lower("aten.addcmul")
def addcmul(c, a):
    p = c.op("Mul", c.tensor(a.tensor1, c.dtype), c.tensor(a.tensor2, c.dtype))
    return c.op("Add", c.tensor(a.self, c.dtype), _scaled(c, p, a.value))


@lower("aten.addcdiv")
def addcdiv(c, a):
    p = c.op("Div", c.tensor(a.tensor1, c.dtype), c.tensor(a.tensor2, c.dtype))
    return c.op("Add", c.tensor(a.self, c.dtype), _scaled(c, p, a.value))


@lower("aten.lerp")
def lerp(c, a):
    x, y = a.self, a.end
    return c.op("Add", x, c.op("Mul", c.tensor(a.weight, x.dtype), c.op("Sub", y, x)))


@lower("aten.xlogy", "aten.special_xlogy")
def xlogy(c, a):
    x, y = c.tensor(a.self, c.dtype), c.tensor(a.other, c.dtype)
    zero = c.op("Equal", x, c.num(0.0, x))
    return c.where(zero, c.num(0.0, x), c.op("Mul", x, c.op("Log", c.where(zero, c.num(1.0, x), y))))


@lower("aten.logaddexp")
def logaddexp(c, a):
    x, y = c.common(a.self, a.other)
    low = c.op("Neg", c.op("Abs", c.op("Sub", x, y)))
    return c.op("Add", c.op("Max", x, y), c.op("Softplus", low))


@lower("aten.hypot")
def hypot(c, a):
    x, y = c.common(a.self, a.other)
    return c.op("Sqrt", c.op("Add", c.op("Mul", x, x), c.op("Mul", y, y)))


@lower("aten.copysign")
def copysign(c, a):
    x, y = c.common(a.self, a.other)
    size = c.op("Abs", x)
    return c.where(c.op("Less", y, c.num(0.0, y)), c.op("Neg", size), size)


# ---- numbers that torch computes from sizes
def _sizes(names, op):
    @lower(*names)
    def f(c, a):
        values = [c.tensor(x) for x in a.positional]
        dtype = torch.float64 if any(v.dtype.is_floating_point for v in values) else torch.int64
        return Value(c.op(op, *[c.tensor(v, dtype) for v in values]).name, None, [])

    return f


for _n, _o in (("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("mod", "Mod"), ("pow", "Pow"), ("neg", "Neg")):
    _sizes([f"_operator.{_n}"], _o)
for _n, _o in (("eq", "Equal"), ("lt", "Less"), ("le", "LessOrEqual"), ("gt", "Greater"), ("ge", "GreaterOrEqual")):
    _sizes([f"_operator.{_n}"], _o)
_sizes(["torch.sym_max"], "Max")
_sizes(["torch.sym_min"], "Min")


@lower("_operator.floordiv")
def size_floordiv(c, a):
    x, y = (c.tensor(v, torch.int64) for v in a.positional)
    return floor_div(c, x, y)


@lower("_operator.truediv")
def size_truediv(c, a):
    x, y = (c.tensor(v, torch.float64) for v in a.positional)
    return c.op("Div", x, y)


@lower("torch.sym_float")
def sym_float(c, a):
    return c.tensor(a.positional[0], torch.float64)


@lower("torch.sym_int", "math.trunc", "math.floor", "math.ceil")
def sym_int(c, a):
    x = a.positional[0]
    if isinstance(x, Value) and x.dtype.is_floating_point and "ceil" in str(c.node.target):
        x = c.op("Ceil", x)
    return c.tensor(x, torch.int64)


@lower("torch.sym_not")
def sym_not(c, a):
    return c.op("Not", a.positional[0])


@lower("torch.sym_ite")
def sym_ite(c, a):
    cond, yes, no = a.positional
    return c.where(cond, *c.common(yes, no))


@lower("aten.sym_size")
def sym_size(c, a):
    return c.tensor(c.dim(a.self, a.dim), torch.int64)


@lower("aten.sym_numel")
def sym_numel(c, a):
    return c.op("Size", a.self)
