"""Sums, extrema, statistics, softmax, running sums, sorting."""

import math

import torch

from .base import Unsupported, Value, lower, static


def axes_of(c, x, dim):
    """Axes as a list; None for all."""
    if dim is None or (isinstance(dim, (list, tuple)) and len(dim) == 0):
        return None
    rank = max(len(x.shape), 1)
    return [d % rank for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def _reduce(kind, *names):
    @lower(*[f"aten.{n}" for n in names])
    def f(c, a):
        x = c.tensor(a.self, c.dtype)
        if len(x.shape or a.self.shape) == 0:
            return x
        return c.reduce(kind, x, axes_of(c, a.self, a.dim), a.keepdim)

    return f


_reduce("Sum", "sum")
_reduce("Mean", "mean")
_reduce("Prod", "prod")
_reduce("Max", "amax")
_reduce("Min", "amin")


def count_of(c, x, axes):
    """How many elements a reduction joins, as a scalar of x's type."""
    axes = range(len(x.shape)) if axes is None else axes
    sizes = [c.dim(x, k) for k in axes]
    total = 1
    for s in sizes:
        if isinstance(s, int):
            total *= s
    y = None
    for s in sizes:
        if not isinstance(s, int):
            y = s if y is None else c.op("Mul", y, s)
    if y is None:
        return c.num(float(total), x)
    return c.tensor(c.op("Mul", y, c.e.const(total)) if total != 1 else y, x.dtype)


@lower("aten.max", "aten.min")
def extreme(c, a):
    kind = "Max" if c.operator.endswith("max") else "Min"
    if a.other is not None:
        x, y = c.common(a.self, a.other)
        return c.op(kind, x, y)
    x = a.self
    if a.dim is None:
        return c.reduce(kind, x, None, False) if len(x.shape) else x
    axis = a.dim % max(len(x.shape), 1)
    # the element that the index names, so that only it gets the gradient
    index = c.op("Arg" + kind, x, axis=axis, keepdims=1)
    value = c.op("GatherElements", x, index, axis=axis)
    if not a.keepdim:
        index, value = c.squeeze(index, [axis]), c.squeeze(value, [axis])
    return value, index


@lower("aten.argmax", "aten.argmin")
def argmax(c, a):
    op = "ArgMax" if "argmax" in c.operator else "ArgMin"
    x = a.self
    if x.dtype == torch.bool:
        x = c.tensor(x, torch.int32)
    if a.dim is None:
        return c.op(op, c.reshape(x, [-1]), axis=0, keepdims=0)
    return c.op(op, x, axis=a.dim % max(len(a.self.shape), 1), keepdims=int(bool(a.keepdim)))


@lower("aten.all", "aten.any")
def all_any(c, a):
    kind = "Min" if c.operator.endswith("all") else "Max"
    x = c.tensor(c.tensor(a.self, torch.bool), torch.int32)
    if len(a.self.shape) == 0:
        return c.tensor(x, torch.bool)
    return c.tensor(c.reduce(kind, x, axes_of(c, a.self, a.dim), a.keepdim), torch.bool)


@lower("aten.count_nonzero")
def count_nonzero(c, a):
    x = c.tensor(c.tensor(a.self, torch.bool), torch.int64)
    return c.reduce("Sum", x, axes_of(c, a.self, a.dim), False)


def _moments(c, a):
    x, axes = a.self, axes_of(c, a.self, a.dim)
    mean = c.reduce("Mean", x, axes, True)
    off = c.op("Sub", x, mean)
    square = c.op("Mul", off, off)
    correction = a.correction if a.correction is not None else 1
    if a.unbiased is not None and a.correction is None:
        correction = int(a.unbiased)
    if correction == 0:
        return mean, c.reduce("Mean", square, axes, bool(a.keepdim)), axes
    n = c.op("Max", c.op("Sub", count_of(c, x, axes), c.num(float(correction), x)), c.num(0.0, x))
    return mean, c.op("Div", c.reduce("Sum", square, axes, bool(a.keepdim)), n), axes


@lower("aten.var", "aten.std")
def var(c, a):
    _, v, _ = _moments(c, a)
    return v if c.operator.endswith("var") else c.op("Sqrt", v)


@lower("aten.var_mean", "aten.std_mean")
def var_mean(c, a):
    _, v, axes = _moments(c, a)
    if "std" in c.operator:
        v = c.op("Sqrt", v)
    return v, c.reduce("Mean", a.self, axes, bool(a.keepdim))


@lower("aten.linalg_vector_norm", "aten.norm", "aten.linalg_norm", "aten.frobenius_norm")
def norm(c, a):
    order = a.ord if a.ord is not None else a.p if a.p is not None else 2
    x, axes, keep = c.tensor(a.self, c.dtype), axes_of(c, a.self, a.dim), bool(a.keepdim)
    if isinstance(order, str):
        raise Unsupported(f"the norm '{order}'")
    if order == float("inf"):
        return c.reduce("Max", c.op("Abs", x), axes, keep)
    if order == -float("inf"):
        return c.reduce("Min", c.op("Abs", x), axes, keep)
    if order == 0:
        return c.reduce("Sum", c.tensor(c.tensor(x, torch.bool), x.dtype), axes, keep)
    if order == 1:
        return c.reduce("L1", x, axes, keep)
    if order == 2:
        return c.reduce("L2", x, axes, keep)
    total = c.reduce("Sum", c.op("Pow", c.op("Abs", x), c.num(float(order), x)), axes, keep)
    return c.op("Pow", total, c.num(1.0 / order, x))


@lower("aten.logsumexp")
def logsumexp(c, a):
    return c.reduce("LogSumExp", c.tensor(a.self, c.dtype), axes_of(c, a.self, a.dim), a.keepdim)


@lower("aten.softmax", "aten._softmax", "aten._safe_softmax", "aten.special_softmax")
def softmax(c, a):
    return c.op("Softmax", c.tensor(a.self, c.dtype), axis=a.dim % max(len(a.self.shape), 1))


@lower("aten.log_softmax", "aten._log_softmax", "aten.special_log_softmax")
def log_softmax(c, a):
    return c.op("LogSoftmax", c.tensor(a.self, c.dtype), axis=a.dim % max(len(a.self.shape), 1))


@lower("aten.cumsum")
def cumsum(c, a):
    return c.op("CumSum", c.tensor(a.self, c.dtype), c.e.const(a.dim % max(len(a.self.shape), 1)))


def _pieces(c, a, what):
    """(axis, the slices along it): axes of few elements only."""
    axis, n = a.dim % len(a.self.shape), static(a.self.shape[a.dim])
    if n is None or n > 64:
        raise Unsupported(f"{what} along an open or long axis")
    x = c.tensor(a.self, c.dtype)
    return axis, list(c.node_n("Split", [x], n, axis=axis, num_outputs=n)) if n > 1 else [x]


def _joined(c, parts, axis):
    return c.op("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


@lower("aten.cumprod")
def cumprod(c, a):
    axis, parts = _pieces(c, a, "cumprod")
    for k in range(1, len(parts)):
        parts[k] = c.op("Mul", parts[k - 1], parts[k])
    return _joined(c, parts, axis)


@lower("aten.logcumsumexp")
def logcumsumexp(c, a):
    axis, parts = _pieces(c, a, "logcumsumexp")
    for k in range(1, len(parts)):
        x, y = parts[k - 1], parts[k]
        low = c.op("Neg", c.op("Abs", c.op("Sub", x, y)))
        parts[k] = c.op("Add", c.op("Max", x, y), c.op("Softplus", low))
    return _joined(c, parts, axis)


@lower("aten.cummax", "aten.cummin")
def cummax(c, a):
    """Among equals the last one counts, as in torch."""
    compare = "GreaterOrEqual" if c.operator.endswith("cummax") else "LessOrEqual"
    axis, parts = _pieces(c, a, "cummax and cummin")
    places = [c.op("Expand", c.e.const(0), c.op("Shape", parts[0]))]
    for k in range(1, len(parts)):
        here = c.op(compare, parts[k], parts[k - 1])
        places.append(c.op("Where", here, c.e.const(k), places[-1]))
        parts[k] = c.op("Where", here, parts[k], parts[k - 1])
    return _joined(c, parts, axis), Value(_joined(c, places, axis).name, torch.int64)


@lower("aten.topk")
def topk(c, a):
    values, index = c.node_n("TopK", [a.self, c.ints([a.k])], 2, axis=a.dim % len(a.self.shape), largest=int(a.largest),
                             sorted=int(a.sorted))
    return values, Value(index.name, torch.int64)


def _kth(c, x, k, axis, keep):
    """(value, position) of the k-th smallest along an axis; k counts from 1 and may be a Value."""
    values, index = c.node_n("TopK", [x, c.ints([k])], 2, axis=axis, largest=0, sorted=1)
    last = [
        c.op("Gather", v, c.e.const(-1 if not keep else [-1]), axis=axis)
        for v in (values, Value(index.name, torch.int64))
    ]
    return last[0], Value(last[1].name, torch.int64)


@lower("aten.kthvalue")
def kthvalue(c, a):
    if not a.self.shape:
        return a.self, c.e.const(0)
    return _kth(c, a.self, a.k, a.dim % len(a.self.shape), a.keepdim)


@lower("aten.median")
def median(c, a):
    x, axis = a.self, a.dim
    if not x.shape:
        return x if axis is None else (x, c.e.const(0))
    if axis is None:
        x, axis = c.reshape(x, [-1]), 0
        n = static(math.prod(a.self.shape))
    else:
        axis %= len(x.shape)
        n = static(x.shape[axis])
    if n is None:
        raise Unsupported("the median over an open size")
    value, index = _kth(c, x, (n - 1) // 2 + 1, axis, bool(a.keepdim))
    return value if a.dim is None else (value, index)


@lower("aten.sort", "aten.argsort")
def sort(c, a):
    x, axis = a.self, a.dim % max(len(a.self.shape), 1)
    if x.dtype == torch.bool:
        raise Unsupported("sorting truth values")
    values, index = c.node_n(
        "TopK", [x, c.ints([c.dim(x, axis)])], 2, axis=axis, largest=int(bool(a.descending)), sorted=1
    )
    index = Value(index.name, torch.int64)
    return index if "argsort" in c.operator else (values, index)
