"""Elementwise operations, matrix products, casts."""

import numpy as np
import tensorflow as tf

from ....graph import OWN
from .table import Unsupported, elementwise, formula, op

_SAME = {  # TensorFlow's name -> ONNX's
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "Asin": "Asin", "Asinh": "Asinh", "Atan": "Atan",
    "Atanh": "Atanh", "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh", "Elu": "Elu", "Erf": "Erf", "Exp": "Exp",
    "Floor": "Floor", "IsInf": "IsInf", "IsNan": "IsNaN", "Log": "Log", "LogicalNot": "Not", "Neg": "Neg",
    "Reciprocal": "Reciprocal", "Inv": "Reciprocal", "Relu": "Relu", "Rint": "Round", "Round": "Round",
    "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh", "Softplus": "Softplus", "Softsign": "Softsign",
    "Tan": "Tan", "Tanh": "Tanh", "Invert": "BitwiseNot",
    "Add": "Add", "AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Div": "Div", "TruncateDiv": "Div",
    "Pow": "Pow", "Equal": "Equal", "Less": "Less", "Greater": "Greater",
    "LessEqual": "LessOrEqual", "GreaterEqual": "GreaterOrEqual", "LogicalAnd": "And", "LogicalOr": "Or",
    "BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor", "AddN": "Sum",
    "AccumulateNV2": "Sum",
}


def _same(name, onnx):
    @op(name)
    def write(n):
        return elementwise(n, onnx, *n.inputs)


for _name, _onnx in _SAME.items():
    _same(_name, _onnx)


@op("Identity", "IdentityN", "Snapshot", "PreventGradient", "CheckNumerics", "EnsureShape", "PlaceholderWithDefault")
def identity(n):
    return [s.copy() for s in n.inputs[:len(n.op.outputs)]]


@op("StopGradient")
def stop_gradient(n):
    return elementwise(n, "Detach", n[0], domain=OWN)


@op("NotEqual")
def not_equal(n):
    return formula(n, lambda a, b: n.e.op("Not", n.e.op("Equal", a, b)), *n.inputs)


@op("LogicalXor")
def xor(n):
    return elementwise(n, "Xor", *n.inputs)


@op("Square")
def square(n):
    return formula(n, lambda x: n.e.op("Mul", x, x), n[0])


@op("SquaredDifference")
def squared_difference(n):
    def write(a, b):
        d = n.e.op("Sub", a, b)
        return n.e.op("Mul", d, d)

    return formula(n, write, *n.inputs)


@op("Sqrt", "Rsqrt")
def root(n):
    """TensorFlow's gradient at 0 is 0 where what comes to it is 0. Where it is not, TensorFlow has an infinite one and
    the file 0."""
    inverse = n.op.type == "Rsqrt"

    def write(x):
        none = n.e.op("Equal", x, n.number(0))
        made = n.e.op("Sqrt", n.e.op("Where", none, n.number(1), x))
        made = n.e.op("Reciprocal", made) if inverse else made
        return n.e.op("Where", none, n.number(np.inf if inverse else 0), made)

    def plain(x):
        return n.e.op("Reciprocal", n.e.op("Sqrt", x)) if inverse else n.e.op("Sqrt", x)

    return formula(n, plain if not n.dtype.is_floating or _lifted(n.op.inputs[0].op) else write, n[0])


def _lifted(made):
    """Whether a positive constant was added, as normalizations do: it is not 0."""
    if made.type not in ("Add", "AddV2"):
        return False
    known = [tf.get_static_value(v) for v in made.inputs]
    return any(v is not None and v.size and v.min() > 0 for v in known)


@op("Selu")
def selu(n):
    """At 0 the slope is that of its right side."""
    scale = 1.0507009873554804934
    return formula(n, lambda x: n.e.op("Where", n.e.op("Less", x, n.number(0)), n.e.op("Selu", x),
                                       n.e.op("Mul", x, n.number(scale))), n[0])


@op("Log1p")
def log1p(n):
    return formula(n, lambda x: n.e.op("Log", n.e.op("Add", x, n.number(1))), n[0])


@op("Expm1")
def expm1(n):
    return formula(n, lambda x: n.e.op("Sub", n.e.op("Exp", x), n.number(1)), n[0])


@op("Erfc")
def erfc(n):
    return formula(n, lambda x: n.e.op("Sub", n.number(1), n.e.op("Erf", x)), n[0])


@op("Relu6")
def relu6(n):
    """Without a gradient at 0 and at 6, where Clip has one."""
    def write(x):
        above, most = n.e.op("Relu", x), n.number(6)
        return n.e.op("Where", n.e.op("GreaterOrEqual", above, most), most, above)

    return formula(n, write, n[0])


@op("LeakyRelu")
def leaky_relu(n):
    return elementwise(n, "LeakyRelu", n[0], alpha=float(n.attr("alpha", 0.2)))


@op("ClipByValue")
def clip_by_value(n):
    """At a bound the gradient passes."""
    def write(x, a, b):
        x = n.e.op("Where", n.e.op("Less", x, a), a, x)
        return n.e.op("Where", n.e.op("Greater", x, b), b, x)

    return formula(n, write, *n.inputs)


@op("IsFinite")
def is_finite(n):
    return formula(n, lambda x: n.e.op("Not", n.e.op("Or", n.e.op("IsInf", x), n.e.op("IsNaN", x))), n[0])


@op("Maximum", "Minimum")
def extreme(n):
    """The first of two equal elements has the gradient."""
    if not n.dtype.is_floating:
        return elementwise(n, "Max" if n.op.type == "Maximum" else "Min", *n.inputs)
    how = "GreaterOrEqual" if n.op.type == "Maximum" else "LessOrEqual"
    return formula(n, lambda a, b: n.e.op("Where", n.e.op(how, a, b), a, b), *n.inputs)


@op("FloorMod", "FloorDiv", "Mod", "TruncateMod")
def modulo(n):
    if n.op.type == "TruncateMod" or n.op.type == "Mod":
        return elementwise(n, "Mod", *n.inputs, fmod=1)
    if n.op.type == "FloorMod" and not n.dtype.is_floating:
        return elementwise(n, "Mod", *n.inputs)
    if n.dtype.is_floating:
        def floored(a, b):
            q = n.e.op("Floor", n.e.op("Div", a, b))
            return q if n.op.type == "FloorDiv" else n.e.op("Sub", a, n.e.op("Mul", q, b))

        return formula(n, floored, *n.inputs)
    # (a - a mod b) / b without a remainder
    return formula(n, lambda a, b: n.e.op("Div", n.e.op("Sub", a, n.e.op("Mod", a, b)), b), *n.inputs)


@op("DivNoNan")
def div_no_nan(n):
    def write(a, b):
        zero = n.e.op("Equal", b, n.number(0))
        safe = n.e.op("Where", zero, n.number(1), b)
        return n.e.op("Where", zero, n.number(0), n.e.op("Div", a, safe))

    return formula(n, write, *n.inputs)


@op("MulNoNan")
def mul_no_nan(n):
    def write(a, b):
        return n.e.op("Where", n.e.op("Equal", b, n.number(0)), n.number(0), n.e.op("Mul", a, b))

    return formula(n, write, *n.inputs)


@op("Xlogy", "Xdivy", "Xlog1py")
def xlogy(n):
    def write(x, y):
        zero = n.e.op("Equal", x, n.number(0))
        y = n.e.op("Add", y, n.number(1)) if n.op.type == "Xlog1py" else y
        safe = n.e.op("Where", zero, n.number(1), y)
        rest = n.e.op("Div", x, safe) if n.op.type == "Xdivy" else n.e.op("Mul", x, n.e.op("Log", safe))
        return n.e.op("Where", zero, n.number(0), rest)

    return formula(n, write, *n.inputs)


@op("BiasAdd", "BiasAddV1")
def bias_add(n):
    x, b = n.inputs
    if n.attr("data_format", "NHWC") == "NHWC":
        return elementwise(n, "Add", x, b)
    shape = [-1, *[1] * (n.rank() - 2)]
    return n.e.op("Add", n.plain(0), n.e.op("Reshape", n.plain(1), n.e.ints(shape)))


@op("Select", "SelectV2")
def select(n):
    c, a, b = n.inputs
    if n.op.type == "Select" and c.rank == 1 and a.rank is not None and a.rank > 1:
        # the condition of Select chooses along the first axis
        shape = n.e.ints([-1, *[1] * (a.rank - 1)])
        return n.e.op("Where", n.e.op("Reshape", n.plain(0), shape), n.plain(1), n.plain(2))
    return elementwise(n, "Where", c, a, b)


@op("Cast")
def cast(n):
    if n[0].dtype == n.dtype:
        return n[0].copy()
    made = elementwise(n, "Cast", n[0], to=n.onnx_dtype(n.dtype))
    if n.dtype == tf.int32 and n[0].dtype == tf.int64:
        made.wide = n.plain(0)
    return made


@op("MatMul")
def matmul(n):
    a, b = n.plain(0), n.plain(1)
    ta, tb = n.attr("transpose_a"), n.attr("transpose_b")
    if ta or tb:
        return n.e.op("Gemm", a, b, transA=int(bool(ta)) or None, transB=int(bool(tb)) or None)
    return n.e.op("MatMul", a, b)


@op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(n):
    sides = []
    for k, key in enumerate(("adj_x", "adj_y")):
        rank = n.rank(k)
        perm = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(n.e.op("Transpose", n.plain(k), perm=perm) if n.attr(key) else n.plain(k))
    return n.e.op("MatMul", *sides)


@op("Einsum")
def einsum(n):
    return n.e.node("Einsum", [n.plain(k) for k in range(len(n.inputs))], equation=n.attr("equation"))[0]


@op("L2Loss")
def l2_loss(n):
    total = n.e.op("ReduceSumSquare", n.plain(0), keepdims=0)
    return n.e.op("Mul", total, n.number(0.5))


@op("ZerosLike", "OnesLike")
def like(n):
    number = 0 if n.op.type == "ZerosLike" else 1
    s = n[0]
    if s.resource is not None:
        raise Unsupported("it makes a list like another one")
    sizes = n.e.op("Shape", n.plain(0))
    return n.e.op("ConstantOfShape", sizes, value=np.full(1, number, n.dtype.as_numpy_dtype))


@op("Atan2")
def atan2(n):
    """By the quotient, with the quadrant of the point."""
    def write(y, x):
        zero, pi = n.number(0), n.number(np.pi)
        on_axis = n.e.op("Equal", x, zero)
        base = n.e.op("Atan", n.e.op("Div", y, n.e.op("Where", on_axis, n.number(1), x)))
        shift = n.e.op("Where", n.e.op("Less", y, zero), n.e.op("Neg", pi), pi)
        turned = n.e.op("Where", n.e.op("Less", x, zero), n.e.op("Add", base, shift), base)
        return n.e.op("Where", on_axis, n.e.op("Mul", n.e.op("Sign", y), n.number(np.pi / 2)), turned)

    return formula(n, write, *n.inputs)
