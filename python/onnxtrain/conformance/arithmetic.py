"""The arithmetic that expected values are computed with: numpy in float64 with derivatives of its own, nothing of the
library.

`Value` is an array that remembers how it was made; `gradients` goes back over it. Inside `rounding(unit)` the result of
every operation, forward and backward, is wrong by a random relative error of up to `unit`: how far the end of a
calculation moves then is what an implementation in that precision may differ by. Complex arrays work too, so that
derivatives can be checked, and differentiated once more, by a complex step."""

import contextlib
import itertools

import numpy as np

_noise = None  # (unit, generator) inside `rounding`
_serial = itertools.count()


@contextlib.contextmanager
def rounding(unit, seed):
    global _noise
    before, _noise = _noise, (unit, np.random.default_rng(seed)) if unit else None
    try:
        yield
    finally:
        _noise = before


def _rounded(a):
    if _noise is None:
        return a
    unit, random = _noise
    return a * (1 + random.uniform(-unit, unit, np.shape(a)))


class Value:
    __slots__ = ("a", "back", "serial")
    __array_ufunc__ = None  # numpy leaves the operators to this class

    def __init__(self, a, back=()):
        a = np.asarray(a)
        self.a = a if a.dtype.kind in "fc" and a.dtype.itemsize >= 8 else a.astype(np.float64)
        self.back, self.serial = back, next(_serial)

    shape = property(lambda self: self.a.shape)
    T = property(lambda self: transpose(self))
    __add__ = lambda x, y: add(x, y)
    __radd__ = lambda x, y: add(y, x)
    __sub__ = lambda x, y: add(x, -value(y))
    __rsub__ = lambda x, y: add(y, -x)
    __mul__ = lambda x, y: mul(x, y)
    __rmul__ = lambda x, y: mul(y, x)
    __truediv__ = lambda x, y: div(x, y)
    __rtruediv__ = lambda x, y: div(y, x)
    __matmul__ = lambda x, y: matmul(x, y)
    __neg__ = lambda x: Value(-x.a, ((x, lambda g: -g),))
    __getitem__ = lambda x, key: take(x, key)

    def sum(self, axis=None, keepdims=False):
        return total(self, axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        s = total(self, axis, keepdims)
        return s / (self.a.size / max(s.a.size, 1))

    def reshape(self, *shape):
        return Value(self.a.reshape(*shape), ((self, lambda g: g.reshape(self.a.shape)),))


def value(x):
    return x if isinstance(x, Value) else Value(x)


def constant(x):
    """The same number, through which no gradient flows."""
    return Value(value(x).a)


def _like(g, shape):
    """The sum of a gradient over the axes that broadcasting added."""
    while g.ndim > len(shape):
        g = g.sum(0)
    for axis, n in enumerate(shape):
        if n == 1 and g.shape[axis] != 1:
            g = g.sum(axis, keepdims=True)
    return g


def _made(a, *back):
    return Value(_rounded(a), back)


def add(x, y):
    x, y = value(x), value(y)
    return _made(x.a + y.a, (x, lambda g: _like(g, x.shape)), (y, lambda g: _like(g, y.shape)))


def mul(x, y):
    x, y = value(x), value(y)
    return _made(x.a * y.a, (x, lambda g: _like(g * y.a, x.shape)), (y, lambda g: _like(g * x.a, y.shape)))


def div(x, y):
    x, y = value(x), value(y)
    return _made(
        x.a / y.a, (x, lambda g: _like(g / y.a, x.shape)), (y, lambda g: _like(-g * x.a / (y.a * y.a), y.shape))
    )


def matmul(x, y):
    return _made(
        x.a @ y.a,
        (x, lambda g: _like(g @ np.swapaxes(y.a, -1, -2), x.shape)),
        (y, lambda g: _like(np.swapaxes(x.a, -1, -2) @ g, y.shape)),
    )


def transpose(x, order=None):
    order = order or tuple(range(x.a.ndim))[::-1]
    return Value(x.a.transpose(order), ((x, lambda g: g.transpose(np.argsort(order))),))


def total(x, axis=None, keepdims=False):
    def back(g):
        if axis is not None and not keepdims:
            g = np.expand_dims(g, axis)
        return np.broadcast_to(g, x.shape)

    return _made(x.a.sum(axis=axis, keepdims=keepdims), (x, back))


def take(x, key):
    def back(g):
        out = np.zeros(x.shape, g.dtype)
        np.add.at(out, key, g)
        return out

    return Value(x.a[key], ((x, back),))


def pad(x, amounts):
    inside = tuple(slice(b, b + n) for (b, _), n in zip(amounts, x.shape))
    return Value(np.pad(x.a, amounts), ((x, lambda g: g[inside]),))


def concat(parts, axis):
    ends = np.cumsum([p.shape[axis] for p in parts])

    def part(k):
        def back(g):
            return np.take(g, range(ends[k] - parts[k].shape[axis], ends[k]), axis)

        return back

    return Value(np.concatenate([p.a for p in parts], axis), tuple((p, part(k)) for k, p in enumerate(parts)))


def _function(forward, derivative):
    """An elementwise function; `derivative(x, y)` of argument and result."""

    def f(x):
        x = value(x)
        y = forward(x.a)
        return _made(y, (x, lambda g: g * derivative(x.a, y)))

    return f


exp = _function(np.exp, lambda x, y: y)
log = _function(np.log, lambda x, y: 1 / x)
sqrt = _function(np.sqrt, lambda x, y: 0.5 / y)
tanh = _function(np.tanh, lambda x, y: 1 - y * y)
sin = _function(np.sin, lambda x, y: np.cos(x))
cos = _function(np.cos, lambda x, y: -np.sin(x))
sigmoid = _function(lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y))
relu = _function(lambda x: np.where(x.real > 0, x, 0), lambda x, y: np.where(x.real > 0, 1.0, 0.0))
absolute = _function(lambda x: np.where(x.real < 0, -x, x), lambda x, y: np.sign(x.real))
square = _function(lambda x: x * x, lambda x, y: 2 * x)


def where(mask, x, y):
    x, y = value(x), value(y)
    return Value(
        np.where(mask, x.a, y.a),
        ((x, lambda g: _like(np.where(mask, g, 0), x.shape)), (y, lambda g: _like(np.where(mask, 0, g), y.shape))),
    )


def maximum(x, y):
    """The first wins where both are equal."""
    x, y = value(x), value(y)
    return where(x.a.real >= y.a.real, x, y)


def minimum(x, y):
    x, y = value(x), value(y)
    return where(x.a.real <= y.a.real, x, y)


def log_softmax(x, axis=1):
    x = x - constant(x.a.real.max(axis=axis, keepdims=True))
    return x - log(exp(x).sum(axis, True))


def softmax(x, axis=-1):
    return exp(log_softmax(x, axis))


def conv2d(x, w, b=None, pads=0, stride=1):
    """Convolution as the sum over the kernel's positions."""
    x = pad(x, ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    n, c, h, wide = x.shape
    kh, kw = w.shape[2:]
    oh, ow = (h - kh) // stride + 1, (wide - kw) // stride + 1
    out = 0
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i : i + stride * (oh - 1) + 1 : stride, j : j + stride * (ow - 1) + 1 : stride]
            flat = transpose(part, (0, 2, 3, 1)).reshape(n * oh * ow, c)
            out = out + flat @ w[:, :, i, j].T
    out = transpose(out.reshape(n, oh, ow, w.shape[0]), (0, 3, 1, 2))
    return out if b is None else out + b.reshape(1, -1, 1, 1)


def max_pool2(x):
    """Windows of 2 x 2; the first of equal elements in row order takes the gradient."""
    best = x[:, :, 0::2, 0::2]
    for i, j in ((0, 1), (1, 0), (1, 1)):
        best = maximum(best, x[:, :, i::2, j::2])
    return best


def gradients(y, xs, seed=None):
    """Of y (summed over its elements) by each of xs, as arrays."""
    found = {y.serial: y}
    open_ = [y]
    while open_:
        for parent, _ in open_.pop().back:
            if parent.serial not in found:
                found[parent.serial] = parent
                open_.append(parent)
    grads = {y.serial: np.ones(y.shape) if seed is None else seed}
    for serial in sorted(found, reverse=True):
        g = grads.get(serial)
        if g is None:
            continue
        for parent, rule in found[serial].back:
            part = _rounded(rule(g))
            grads[parent.serial] = grads[parent.serial] + part if parent.serial in grads else part
    return [np.broadcast_to(grads.get(x.serial, np.zeros(x.shape)), x.shape) for x in xs]
