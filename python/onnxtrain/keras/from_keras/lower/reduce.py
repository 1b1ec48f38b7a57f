"""Sums, means, extremes and positions along axes."""

import numpy as np

from ..values import Traced
from . import kinks
from .elementwise import number, spec
from .table import axes_of, operation

_KINDS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd",
          "Amax": "ReduceMax", "Amin": "ReduceMin"}


def reduced(t, name, x, axis, keepdims, dtype=None, shape=None):
    """One of ONNX's reductions along Keras' axes, in any order of axes."""
    axes = axes_of(axis, x.rank)
    if not axes and x.rank == 0 or axis is not None and not axes:
        return x
    have = x.layout or tuple(range(x.rank))
    places = sorted(have.index(a) for a in axes)
    made = t.e.op(name, x.onnx, t.e.ints(places), keepdims=int(keepdims))
    if keepdims:
        layout = x.layout
        out = [1 if a in axes else d for a, d in enumerate(x.shape)]
    else:
        left = [a for a in have if a not in axes]
        layout = tuple(sorted(left).index(a) for a in left)
        out = [d for a, d in enumerate(x.shape) if a not in axes]
    return Traced(made, out if shape is None else shape, dtype or x.dtype, layout)


@operation(*_KINDS)
def reduce(t, op, x):
    if getattr(op, "initial", None) is not None:
        return t.refuse(f"keras.ops.{type(op).__name__.lower()} with `initial`")
    dtype = getattr(op, "dtype", None) or spec(op, x).dtype
    x = t.value(x)
    if x.dtype == "bool" and dtype == "bool":
        x = t.cast(x, "int32")
        return t.cast(reduced(t, _KINDS[type(op).__name__], x, op.axis, op.keepdims), "bool")
    return reduced(t, _KINDS[type(op).__name__], t.cast(x, dtype), op.axis, op.keepdims)


@operation("All", "Any")
def all_any(t, op, x):
    x = t.cast(t.cast(t.value(x), "bool"), "int32")
    name = "ReduceMin" if type(op).__name__ == "All" else "ReduceMax"
    return t.cast(reduced(t, name, x, op.axis, op.keepdims), "bool")


def moments(t, x, axes, keepdims):
    """(mean, biased variance)."""
    mean = reduced(t, "ReduceMean", x, axes, True)
    centred = x.like(t.e.op("Sub", x.onnx, mean.onnx))
    square = x.like(t.e.op("Mul", centred.onnx, centred.onnx))
    return reduced(t, "ReduceMean", x, axes, keepdims), reduced(t, "ReduceMean", square, axes, keepdims)


@operation("Moments")
def moments_(t, op, x):
    return moments(t, t.value(x), op.axes, op.keepdims)


@operation("Var", "Std")
def variance(t, op, x):
    x = t.cast(t.value(x), spec(op, x).dtype)
    made = moments(t, x, op.axis, op.keepdims)[1]
    return made if type(op).__name__ == "Var" else made.like(kinks.root(t, made))


@operation("Logsumexp")
def logsumexp(t, op, x):
    return reduced(t, "ReduceLogSumExp", t.value(x), op.axis, op.keepdims)


@operation("CountNonzero")
def count_nonzero(t, op, x):
    x = t.cast(t.cast(t.value(x), "bool"), "int32")
    return reduced(t, "ReduceSum", x, op.axis, False)


@operation("Average")
def average(t, op, x, weights=None):
    import keras

    if weights is None:
        return keras.ops.mean(x, axis=op.axis)
    return keras.ops.sum(x * weights, axis=op.axis) / keras.ops.sum(weights, axis=op.axis)


@operation("Argmax", "Argmin")
def arg(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    name, axis = "ArgMax" if type(op).__name__ == "Argmax" else "ArgMin", op.axis
    if x.dtype == "bool":
        x = t.cast(x, "int32")
    if axis is None:
        x, axis = Traced(t.e.op("Reshape", x.onnx, t.e.ints([-1])), [None], x.dtype), 0
    made = t.e.op(name, x.onnx, axis=axis % x.rank, keepdims=int(op.keepdims))
    return t.cast(Traced(made, out.shape, "int64"), out.dtype)


@operation("Cumsum", "Cumprod")
def cumulate(t, op, x):
    if type(op).__name__ == "Cumprod":
        return t.refuse("keras.ops.cumprod has no form in ONNX")
    out = spec(op, x)
    x = t.cast(t.logical(t.value(x)), out.dtype)
    axis = op.axis
    if axis is None:
        x, axis = Traced(t.e.op("Reshape", x.onnx, t.e.ints([-1])), out.shape, x.dtype), 0
    return x.like(t.e.op("CumSum", x.onnx, t.e.const(axis % x.rank, np.int64)))


@operation("Norm")
def norm(t, op, x):
    x = t.cast(t.value(x), spec(op, x).dtype)
    order = op.ord
    if isinstance(op.axis, (tuple, list)) and len(op.axis) == 2 and order not in (None, "fro"):
        return t.refuse("the norm of a matrix other than Frobenius'")
    if order in (None, 2, "fro", 2.0):
        return reduced(t, "ReduceL2", x, op.axis, op.keepdims)
    if order == 1:
        return reduced(t, "ReduceL1", x, op.axis, op.keepdims)
    size = x.like(t.e.op("Abs", x.onnx))
    if order in (np.inf, -np.inf):
        return reduced(t, "ReduceMax" if order > 0 else "ReduceMin", size, op.axis, op.keepdims)
    if isinstance(order, (int, float)) and order:
        power = size.like(t.e.op("Pow", size.onnx, number(t, order, x)))
        total = reduced(t, "ReduceSum", power, op.axis, op.keepdims)
        return total.like(t.e.op("Pow", total.onnx, number(t, 1 / order, x)))
    return t.refuse(f"a norm of order {order}")


@operation("TopK")
def top_k(t, op, x):
    values, indices = spec(op, x)
    x = t.logical(t.value(x))
    got = t.e.node("TopK", [x.onnx, t.e.ints([op.k])], 2, axis=-1, largest=1, sorted=1)
    return (Traced(got[0], values.shape, x.dtype),
            t.cast(Traced(got[1], indices.shape, "int64"), indices.dtype))


@operation("Sort", "Argsort")
def sort(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    axis = op.axis % x.rank
    size = t.e.op("Unsqueeze", t.value(t.shape_of(x)[axis], "int64").onnx, t.e.ints([0]))
    values, places = t.e.node("TopK", [x.onnx, size], 2, axis=axis, largest=0, sorted=1)
    if type(op).__name__ == "Sort":
        return x.like(values)
    return t.cast(Traced(places, out.shape, "int64"), out.dtype)
