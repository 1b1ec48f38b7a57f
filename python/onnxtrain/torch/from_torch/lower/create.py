"""Tensors out of nothing: constants, ranges, random numbers."""

import torch

from .base import TO_ONNX, Unsupported, Value, lower, static


def filled(c, sizes, value, dtype):
    if isinstance(value, Value):
        return c.op("Expand", c.tensor(value, dtype), c.ints(sizes))
    if all(isinstance(s, int) for s in sizes):
        count = 1
        for s in sizes:
            count *= s
        if count == 1 or count == 0:
            return c.e.const(torch.full(list(sizes), value, dtype=dtype))
    return c.op("Expand", c.tensor(value, dtype), c.ints(sizes))


def _sizes(c, a):
    """The result's sizes: from the argument, or from the tensor it is to resemble."""
    if a.size is not None:
        given = list(a.size)
    elif a.self is not None:
        given = c.dims(a.self)
    else:
        given = [static(s) for s in c.shape]
    return [static(w) if static(w) is not None else g for w, g in zip(c.shape, given)]


def _fill(value, *names):
    @lower(*[f"aten.{n}" for n in names])
    def f(c, a):
        return filled(c, _sizes(c, a), value, c.dtype)

    return f


_fill(0, "zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided",
      "zero")
_fill(1, "ones", "ones_like", "new_ones")


@lower("aten.full", "aten.full_like", "aten.new_full")
def full(c, a):
    return filled(c, _sizes(c, a), a.fill_value, c.dtype)


@lower("aten.scalar_tensor")
def scalar_tensor(c, a):
    return c.tensor(a.s, c.dtype)


@lower("aten.arange")
def arange(c, a):
    start, step = a.start if a.start is not None else 0, a.step if a.step is not None else 1
    numbers = [start, a.end, step]
    if all(isinstance(n, (int, float)) for n in numbers):
        return c.e.const(torch.arange(start, a.end, step, dtype=c.dtype))
    dtype = c.dtype if c.dtype.is_floating_point else torch.int64
    y = c.op("Range", *[c.tensor(n, dtype) for n in numbers])
    return c.tensor(y, c.dtype)


@lower("aten.linspace")
def linspace(c, a):
    if not all(isinstance(n, (int, float)) for n in (a.start, a.end, a.steps)):
        raise Unsupported("linspace with sizes that are open")
    return c.e.const(torch.linspace(a.start, a.end, a.steps, dtype=c.dtype))


@lower("aten.eye")
def eye(c, a):
    sizes = [static(s) for s in c.shape]
    if None in sizes:
        n = c.tensor(a.n, torch.int64)
        rows = c.op("Range", c.e.const(0), n, c.e.const(1))
        same = c.op("Equal", c.unsqueeze(rows, [1]), c.unsqueeze(rows, [0]))
        return c.tensor(same, c.dtype)
    return c.e.const(torch.eye(*sizes, dtype=c.dtype))


@lower("aten.tril_indices", "aten.triu_indices")
def tri_indices(c, a):
    f = torch.tril_indices if "tril" in c.operator else torch.triu_indices
    return c.e.const(f(a.row, a.col, a.offset or 0, dtype=c.dtype))


@lower("aten.one_hot")
def one_hot(c, a):
    n = a.num_classes if isinstance(a.num_classes, int) and a.num_classes > 0 else static(c.shape[-1])
    if n is None:
        raise Unsupported("one_hot without num_classes gives a shape that depends on data")
    return c.op("OneHot", a.self, c.e.const(n), c.e.const(torch.tensor([0, 1])), axis=-1)


# ---- random numbers: drawn anew in every step from the run's seed
@lower("aten.dropout", "aten.native_dropout")
def dropout(c, a):
    x = a.input if a.input is not None else a.self
    train = a.train
    many = c.operator.endswith("native_dropout")
    if not train or a.p == 0:
        return (x, c.e.const(True)) if many else x
    y = live_dropout(c, x, a.p)
    return (y, None) if many else y


def live_dropout(c, x, p):
    ratio, on = c.e.const(float(p), torch.float32), c.e.const(True)
    name = c.e.node("Dropout", [x, ratio, on])[0]
    return Value(name, x.dtype, x.shape)


@lower("aten.feature_dropout")
def feature_dropout(c, a):
    x = a.input
    if not a.train or a.p == 0:
        return x
    sizes = c.dims(x)[:2] + [1] * (len(x.shape) - 2)
    return c.op("Mul", x, live_dropout(c, filled(c, sizes, 1, x.dtype), a.p))


@lower("aten.alpha_dropout", "aten.feature_alpha_dropout")
def alpha_dropout(c, a):
    x, p = a.input, a.p
    if not a.train or p == 0:
        return x
    low = -1.7580993408473766
    keep = 1 - p
    scale = (keep + low * low * keep * p) ** -0.5
    sizes = c.dims(x)
    if c.operator.endswith("feature_alpha_dropout"):
        sizes = sizes[:2] + [1] * (len(sizes) - 2)
    # 1 where kept, 0 where dropped
    kept = c.op("Mul", live_dropout(c, filled(c, sizes, 1, x.dtype), p), c.num(keep, x))
    chosen = c.op("Add", c.op("Mul", x, kept), c.op("Mul", c.op("Sub", c.num(1.0, x), kept), c.num(low, x)))
    return c.op("Add", c.op("Mul", chosen, c.num(scale, x)), c.num(-scale * low * p, x))


@lower("aten.bernoulli")
def bernoulli(c, a):
    x = a.self
    p = x if a.p is None else filled(c, _sizes(c, a), float(a.p), x.dtype)
    return Value(c.e.node("Bernoulli", [p])[0], x.dtype, c.shape)


def _random(c, a, op, **attrs):
    like = filled(c, _sizes(c, a), 0, c.dtype)
    return Value(c.e.node(op, [like], dtype=TO_ONNX[c.dtype], **attrs)[0], c.dtype, c.shape)


@lower("aten.rand", "aten.rand_like")
def rand(c, a):
    return _random(c, a, "RandomUniformLike", low=0.0, high=1.0)


@lower("aten.uniform")
def uniform(c, a):
    low, high = (v if isinstance(v, (int, float)) else d for v, d in ((a.dim_, 0.0), (a.to, 1.0)))
    return _random(c, a, "RandomUniformLike", low=float(low), high=float(high))


@lower("aten.randn", "aten.randn_like")
def randn(c, a):
    return _random(c, a, "RandomNormalLike", mean=0.0, scale=1.0)


@lower("aten.normal", "aten.normal_functional")
def normal(c, a):
    mean, std = a.mean, a.std
    if a.overload is not None and "Tensor" in a.overload:
        like = mean if isinstance(mean, Value) else std
        z = Value(c.e.node("RandomNormalLike", [like], mean=0.0, scale=1.0)[0], like.dtype, like.shape)
        return c.op("Add", c.tensor(mean, z.dtype), c.op("Mul", c.tensor(std, z.dtype), z))
    return _random(c, a, "RandomNormalLike", mean=float(mean or 0.0), scale=float(1.0 if std is None else std))


@lower("aten.exponential")
def exponential(c, a):
    u = _random(c, a, "RandomUniformLike", low=0.0, high=1.0)
    rest = c.op("Max", c.op("Sub", c.num(1.0, u), u), c.num(torch.finfo(u.dtype).tiny, u))
    return c.op("Div", c.op("Neg", c.op("Log", rest)), c.num(float(a.lambd or 1.0), u))


@lower("aten.randint", "aten.randint_like")
def randint(c, a):
    low, high = a.low or 0, a.high
    like = filled(c, _sizes(c, a), 0, torch.float32)
    u = Value(c.e.node("RandomUniformLike", [like], low=float(low), high=float(high))[0], torch.float32, c.shape)
    return c.tensor(c.op("Min", c.op("Floor", u), c.num(float(high - 1), u)), c.dtype)
