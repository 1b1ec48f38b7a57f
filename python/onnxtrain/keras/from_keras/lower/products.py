"""Matrix products and sums of products."""

from ..values import Traced
from .elementwise import operands, spec
from .shape import reshaped
from .table import operation


@operation("Matmul")
def matmul(t, op, x1, x2):
    out = spec(op, x1, x2)
    a, b = (t.logical(v) for v in operands(t, (x1, x2), out.dtype))
    return Traced(t.e.op("MatMul", a.onnx, b.onnx), out.shape, out.dtype)


@operation("Dot")
def dot(t, op, x1, x2):
    out = spec(op, x1, x2)
    a, b = (t.logical(v) for v in operands(t, (x1, x2), out.dtype))
    if a.rank == 0 or b.rank == 0:
        return Traced(t.e.op("Mul", a.onnx, b.onnx), out.shape, out.dtype)
    if b.rank > 2:
        return t.refuse("keras.ops.dot with a second argument of more than two axes", fix="keras.ops.tensordot")
    return Traced(t.e.op("MatMul", a.onnx, b.onnx), out.shape, out.dtype)


@operation("Einsum")
def einsum(t, op, *xs):
    out = spec(op, *xs)
    values = [t.logical(v) for v in operands(t, xs, out.dtype)]
    return Traced(t.e.op("Einsum", *[v.onnx for v in values], equation=op.subscripts), out.shape, out.dtype)


@operation("Tensordot")
def tensordot(t, op, x1, x2):
    out = spec(op, x1, x2)
    a, b = (t.logical(v) for v in operands(t, (x1, x2), out.dtype))
    if isinstance(op.axes, int):
        left, right = list(range(a.rank - op.axes, a.rank)), list(range(op.axes))
    else:
        left, right = ([v] if isinstance(v, int) else list(v) for v in op.axes)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in range(a.rank)]
    second = [next(letters) for _ in range(b.rank)]
    for i, j in zip(left, right):
        second[j % b.rank] = first[i % a.rank]
    kept = [c for c in first if c not in second] + [c for c in second if c not in first]
    equation = f"{''.join(first)},{''.join(second)}->{''.join(kept)}"
    return Traced(t.e.op("Einsum", a.onnx, b.onnx, equation=equation), out.shape, out.dtype)


@operation("Inner")
def inner(t, op, x1, x2):
    import keras

    return keras.ops.tensordot(x1, x2, axes=[[len(x1.shape) - 1], [len(x2.shape) - 1]])


@operation("Outer")
def outer(t, op, x1, x2):
    out = spec(op, x1, x2)
    a, b = operands(t, (x1, x2), out.dtype)
    a, b = reshaped(t, a, (-1, 1), (None, 1)), reshaped(t, b, (1, -1), (1, None))
    return Traced(t.e.op("Mul", a.onnx, b.onnx), out.shape, out.dtype)


@operation("Det", "Inv")
def matrix(t, op, x):
    return t.refuse(f"keras.ops.{type(op).__name__.lower()} has no gradient here")
