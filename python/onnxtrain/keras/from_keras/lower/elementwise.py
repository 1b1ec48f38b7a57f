"""Functions of every element: arithmetic, comparisons, activations, choices."""

import math

import numpy as np

from ...shared import versions
from ..values import Traced
from . import kinks
from .table import OPERATIONS, operation

UNARY = {
    "Absolute": "Abs", "Abs": "Abs", "Fabs": "Abs", "Exp": "Exp", "Log": "Log", "Negative": "Neg",
    "Sign": "Sign", "Floor": "Floor", "Ceil": "Ceil", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Arcsin": "Asin",
    "Arccos": "Acos", "Arctan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Tanh": "Tanh", "Arcsinh": "Asinh",
    "Arccosh": "Acosh", "Arctanh": "Atanh", "Sigmoid": "Sigmoid", "Relu": "Relu", "Softplus": "Softplus",
    "Softsign": "Softsign", "Erf": "Erf", "Reciprocal": "Reciprocal", "Copy": "Identity",
}
_SLICED = {"Absolute", "Abs", "Fabs", "Sqrt", "Negative", "Sign", "Floor", "Ceil", "Sin", "Tan", "Sinh", "Tanh",
           "Copy"}  # of IndexedSlices: occurrence by occurrence, as TensorFlow's backend does


def spec(op, *args, **kwargs):
    return op.compute_output_spec(*args, **kwargs)


def wide(dtype, *args):
    """The element type of a result. JAX, numpy and PyTorch make 32 bits of 64 in Keras; the file keeps 64, so that it
    is the same on every backend."""
    wider = {"int32": "int64", "float32": "float64"}.get(dtype)
    there = {getattr(a, "dtype", None) for a in args}
    mixed = wider == "int64" and any(str(d).startswith("float") for d in there)
    return wider if wider is not None and wider in there and not mixed else dtype



def unary(t, x, make, dtype=None):
    """make(name) -> name, in any order of axes."""
    x = t.value(x)
    if dtype is not None:
        x = t.cast(x, dtype)
    return x.like(make(x.onnx))


def sliced(t, x, make):
    """The same on the rows of a gradient."""
    values, indices = x.slices
    return x.rows(make(values), indices, t.dense)


def _plain(kind, name):
    def lower(t, op, x):
        if isinstance(x, Traced) and x.slices is not None and kind in _SLICED:
            return sliced(t, x, lambda v: t.e.op(name, v))
        made = unary(t, x, lambda v: t.e.op(name, v), spec(op, x).dtype)
        if name == "Sigmoid":
            t.logits[made.onnx] = ("Sigmoid", t.value(x))
        return made

    return lower


for _kind, _name in UNARY.items():
    OPERATIONS[_kind] = _plain(_kind, _name)


def number(t, value, like):
    """A constant in the element type of a Traced."""
    return t.e.const(np.asarray(value, versions.numpy_dtype(like.dtype)))


def formula(*names, sliced_too=False):
    """A function of one tensor written with t.e."""
    def add(f):
        def lower(t, op, x):
            if sliced_too and isinstance(x, Traced) and x.slices is not None:
                return sliced(t, x, lambda v: f(t, op, x.like(v)))
            x = t.cast(t.value(x), spec(op, x).dtype)
            return x.like(f(t, op, x))

        for n in names:
            OPERATIONS[n] = lower
        return f

    return add


@formula("Square", sliced_too=True)
def square(t, op, x):
    return t.e.op("Mul", x.onnx, x.onnx)


@formula("Sqrt", sliced_too=True)
def sqrt(t, op, x):
    return kinks.root(t, x)


@formula("Rsqrt")
def rsqrt(t, op, x):
    return kinks.root(t, x, inverse=True)


@formula("Cbrt")
def cbrt(t, op, x):
    power = t.e.op("Pow", t.e.op("Abs", x.onnx), number(t, 1 / 3, x))
    return t.e.op("Mul", t.e.op("Sign", x.onnx), power)


@formula("Log1p")
def log1p(t, op, x):
    return t.e.op("Log", t.e.op("Add", x.onnx, number(t, 1, x)))


@formula("Expm1")
def expm1(t, op, x):
    return t.e.op("Sub", t.e.op("Exp", x.onnx), number(t, 1, x))


@formula("Exp2")
def exp2(t, op, x):
    return t.e.op("Pow", number(t, 2, x), x.onnx)


@formula("Log2")
def log2(t, op, x):
    return t.e.op("Mul", t.e.op("Log", x.onnx), number(t, 1 / math.log(2), x))


@formula("Log10")
def log10(t, op, x):
    return t.e.op("Mul", t.e.op("Log", x.onnx), number(t, 1 / math.log(10), x))


@formula("Erfc")
def erfc(t, op, x):
    return t.e.op("Sub", number(t, 1, x), t.e.op("Erf", x.onnx))


@formula("Trunc")
def trunc(t, op, x):
    return t.e.op("Mul", t.e.op("Sign", x.onnx), t.e.op("Floor", t.e.op("Abs", x.onnx)))


@formula("Deg2rad")
def deg2rad(t, op, x):
    return t.e.op("Mul", x.onnx, number(t, math.pi / 180, x))


@formula("Rad2deg")
def rad2deg(t, op, x):
    return t.e.op("Mul", x.onnx, number(t, 180 / math.pi, x))


@operation("Round")
def round_(t, op, x):
    x = t.value(x)
    if not x.dtype.startswith("float"):
        return x
    scale = 10.0 ** getattr(op, "decimals", 0)
    if scale == 1:
        return x.like(t.e.op("Round", x.onnx))
    return x.like(t.e.op("Div", t.e.op("Round", t.e.op("Mul", x.onnx, number(t, scale, x))), number(t, scale, x)))


# ---- questions
@operation("Isnan", "Isinf")
def is_special(t, op, x):
    x = t.value(x)
    name = {"Isnan": "IsNaN", "Isinf": "IsInf"}[type(op).__name__]
    return x.like(t.e.op(name, x.onnx), dtype="bool")


@operation("Isfinite")
def is_finite(t, op, x):
    x = t.value(x)
    bad = t.e.op("Or", t.e.op("IsNaN", x.onnx), t.e.op("IsInf", x.onnx))
    return x.like(t.e.op("Not", bad), dtype="bool")


@operation("LogicalNot")
def logical_not(t, op, x):
    x = t.cast(t.value(x), "bool")
    return x.like(t.e.op("Not", x.onnx))


# ---- two and more tensors
def broadcast(t, values, make, dtype, shape):
    """make(names) -> name, over values of one element type in one order of axes."""
    values, layout = t.aligned(values, len(shape))
    return Traced(make(*[v.onnx for v in values]), shape, dtype, layout)


def operands(t, args, dtype):
    """Traced in one element type; Python numbers become constants of it."""
    return [t.cast(t.value(a), dtype) if t.is_symbolic(a) else t.value(a, dtype) for a in args]


_ARITHMETIC = {"Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div", "TrueDivide": "Div",
               "Maximum": "Max", "Minimum": "Min", "Fmax": "Max", "Fmin": "Min", "Power": "Pow"}
_COMPARISONS = {"Equal": ("Equal", False), "NotEqual": ("Equal", True), "Less": ("Less", False),
                "LessEqual": ("LessOrEqual", False), "Greater": ("Greater", False),
                "GreaterEqual": ("GreaterOrEqual", False)}


@operation(*_ARITHMETIC)
def arithmetic(t, op, x1, x2):
    out, kind = spec(op, x1, x2), type(op).__name__
    rows = _on_rows(t, kind, x1, x2)
    if rows is not None:
        return rows
    if kind == "Add":
        for x, bias in ((x1, x2), (x2, x1)):
            biased = _bias(t, x, bias, out)
            if biased is not None:
                return biased
    if out.dtype == "bool":
        name = {"Add": "Or", "Maximum": "Or", "Multiply": "And", "Minimum": "And"}[kind]
    else:
        name = _ARITHMETIC[kind]
    dtype = wide(out.dtype, x1, x2)
    values = operands(t, (x1, x2), dtype)
    make = {"Max": kinks.larger, "Min": kinks.smaller}.get(name) if kinks.as_tensorflow(t, values[0]) else None
    return broadcast(t, values, lambda *v: make(t.e, *v) if make else t.e.op(name, *v), dtype, out.shape)


def _bias(t, x, bias, out):
    """A vector of channels behind a convolution is the convolution's bias."""
    conv = t.e.maker.get(t.e.current(x.onnx)) if isinstance(x, Traced) else None
    if conv is None or conv.op not in ("Conv", "ConvTranspose") or len(conv.inputs) != 2 or not t.is_symbolic(bias):
        return None
    channel = (x.layout or tuple(range(x.rank)))[1]
    bias = t.value(bias)
    vector, axis = (bias.onnx, x.rank - 1) if bias.rank == 1 else t.vectors.get(bias.onnx, (None, None))
    if vector is None or axis != channel or bias.dtype != x.dtype or tuple(out.shape) != tuple(x.shape):
        return None
    return x.like(t.e.op(conv.op, *conv.inputs, vector, **conv.attrs))


def _on_rows(t, kind, x1, x2):
    """IndexedSlices times or over a dense tensor stay IndexedSlices in TensorFlow's backend."""
    first, second = (isinstance(x, Traced) and x.slices is not None for x in (x1, x2))
    if first == second or kind not in ("Multiply", "Divide", "TrueDivide") or second and kind != "Multiply":
        return None
    rows, other = (x1, x2) if first else (x2, x1)
    values, indices = rows.slices
    other = t.logical(t.value(other, rows.dtype))
    factor = other.onnx
    if other.rank == rows.rank:
        flat = t.e.op("Squeeze", indices, t.e.ints([1]))
        factor = t.e.op("Gather", other.onnx, flat, axis=0) if other.shape[0] != 1 else other.onnx
    elif other.rank:
        return None
    name = "Mul" if kind == "Multiply" else "Div"
    return rows.rows(t.e.op(name, values, factor), indices, t.dense)


@operation(*_COMPARISONS)
def comparison(t, op, x1, x2):
    out = spec(op, x1, x2)
    name, negated = _COMPARISONS[type(op).__name__]
    dtype = wide(versions.result_type(x1, x2), x1, x2)
    if dtype == "bool" and name != "Equal":
        dtype = "int32"

    def make(*v):
        made = t.e.op(name, *v)
        return t.e.op("Not", made) if negated else made

    return broadcast(t, operands(t, (x1, x2), dtype), make, "bool", out.shape)


@operation("LogicalAnd", "LogicalOr", "LogicalXor")
def logical(t, op, x1, x2):
    name = type(op).__name__.removeprefix("Logical")
    return broadcast(t, operands(t, (x1, x2), "bool"), lambda *v: t.e.op(name, *v), "bool", spec(op, x1, x2).shape)


@operation("DivideNoNan")
def divide_no_nan(t, op, x1, x2):
    out = spec(op, x1, x2)

    def make(a, b):
        zero, one = (t.e.const(np.array(n, versions.numpy_dtype(out.dtype))) for n in (0, 1))
        none = t.e.op("Equal", b, zero)
        return t.e.op("Where", none, zero, t.e.op("Div", a, t.e.op("Where", none, one, b)))

    return broadcast(t, operands(t, (x1, x2), out.dtype), make, out.dtype, out.shape)


@operation("FloorDivide")
def floor_divide(t, op, x1, x2):
    out = spec(op, x1, x2)
    dtype = wide(out.dtype, x1, x2)

    def make(a, b):
        if dtype.startswith("float"):
            return t.e.op("Floor", t.e.op("Div", a, b))
        rest = t.e.op("Mod", a, b)  # has the sign of the divisor
        return t.e.op("Div", t.e.op("Sub", a, rest), b)

    return broadcast(t, operands(t, (x1, x2), dtype), make, dtype, out.shape)


@operation("Mod")
def mod(t, op, x1, x2):
    out = spec(op, x1, x2)
    dtype = wide(out.dtype, x1, x2)

    def make(a, b):
        if not dtype.startswith("float"):
            return t.e.op("Mod", a, b)
        return t.e.op("Sub", a, t.e.op("Mul", b, t.e.op("Floor", t.e.op("Div", a, b))))

    return broadcast(t, operands(t, (x1, x2), dtype), make, dtype, out.shape)


@operation("Logaddexp")
def logaddexp(t, op, x1, x2):
    out = spec(op, x1, x2)

    def make(a, b):
        far = t.e.op("Neg", t.e.op("Abs", t.e.op("Sub", a, b)))
        top = kinks.larger(t.e, a, b) if kinks.as_tensorflow(t, out) else t.e.op("Max", a, b)
        return t.e.op("Add", top, t.e.op("Softplus", far))

    return broadcast(t, operands(t, (x1, x2), out.dtype), make, out.dtype, out.shape)


@operation("Arctan2")
def arctan2(t, op, x1, x2):
    out = spec(op, x1, x2)

    def make(y, x):
        def c(v):
            return t.e.const(np.array(v, versions.numpy_dtype(out.dtype)))

        plain = t.e.op("Atan", t.e.op("Div", y, x))
        up = t.e.op("GreaterOrEqual", y, c(0))
        half = t.e.op("Where", up, c(math.pi), c(-math.pi))
        left = t.e.op("Where", t.e.op("Less", x, c(0)), t.e.op("Add", plain, half), plain)
        upright = t.e.op("Mul", t.e.op("Sign", y), c(math.pi / 2))
        return t.e.op("Where", t.e.op("Equal", x, c(0)), upright, left)

    return broadcast(t, operands(t, (x1, x2), out.dtype), make, out.dtype, out.shape)


@operation("Clip")
def clip(t, op, x):
    if isinstance(x, Traced) and x.slices is not None and t.semantics == "tensorflow":
        return sliced(t, x, lambda v: t.e.op("Clip", v, number(t, op.x_min, x), number(t, op.x_max, x)))
    out = spec(op, x)
    x = t.cast(t.value(x), out.dtype)
    if all(not t.is_symbolic(b) and np.ndim(versions.to_numpy(b)) == 0 for b in (op.x_min, op.x_max)):
        low, high = (number(t, versions.to_numpy(b), x) for b in (op.x_min, op.x_max))
        return x.like(t.e.op("Clip", x.onnx, low, high))
    low, high = operands(t, (op.x_min, op.x_max), out.dtype)
    return broadcast(t, [x, low, high], lambda v, a, b: t.e.op("Min", t.e.op("Max", v, a), b), out.dtype, out.shape)


@operation("Where")
def where(t, op, condition, x1=None, x2=None):
    if x1 is None or x2 is None:
        return t.refuse("keras.ops.where with one argument gives positions, whose number is open")
    out = spec(op, condition, x1, x2)
    values = [t.cast(t.value(condition), "bool"), *operands(t, (x1, x2), out.dtype)]
    return broadcast(t, values, lambda *v: t.e.op("Where", *v), out.dtype, out.shape)


@operation("NanToNum")
def nan_to_num(t, op, x):
    x = t.value(x)
    fixed = t.e.op("Where", t.e.op("IsNaN", x.onnx), number(t, op.nan, x), x.onnx)
    info = np.finfo(versions.numpy_dtype(x.dtype))
    low, high = (float(v) if v is not None else w for v, w in ((op.neginf, info.min), (op.posinf, info.max)))
    return x.like(t.e.op("Clip", fixed, number(t, low, x), number(t, high, x)))
