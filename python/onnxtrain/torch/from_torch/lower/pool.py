"""Pooling."""

import math

import torch

from .base import Unsupported, Value, lower, static
from .resample import along


def _wide(v, n, default=None):
    v = [] if v is None else [v] if isinstance(v, int) else list(v)
    if not v:
        return default
    return v * n if len(v) == 1 else v


def _batched(c, x, spatial, make):
    if len(x.shape) == spatial + 1:
        return tuple(c.squeeze(y, [0]) for y in make(c.unsqueeze(x, [0])))
    return make(x)


def _max_pool(c, a, spatial, indices):
    kernel = _wide(a.kernel_size, spatial)
    stride, pad = _wide(a.stride, spatial, kernel), _wide(a.padding, spatial, [0] * spatial)
    attrs = dict(kernel_shape=kernel, strides=stride, pads=pad * 2, dilations=_wide(a.dilation, spatial, [1] * spatial),
                 ceil_mode=int(bool(a.ceil_mode)))

    def make(x):
        if not indices:
            return (c.op("MaxPool", x, **attrs),)
        y, index = c.node_n("MaxPool", [x], 2, **attrs)
        # ONNX counts positions over the whole tensor, PyTorch within a channel
        area = 1
        for s in x.shape[-spatial:]:
            if static(s) is None:
                raise Unsupported("max pooling with indices over open sizes")
            area *= static(s)
        return y, c.op("Mod", Value(index.name, torch.int64), c.e.const(area))

    result = _batched(c, a.self, spatial, make)
    return result if indices else result[0]


for _n in (1, 2, 3):
    lower(f"aten.max_pool{_n}d")(lambda c, a, n=_n: _max_pool(c, a, n, False))
    lower(f"aten.max_pool{_n}d_with_indices")(lambda c, a, n=_n: _max_pool(c, a, n, True))


def _avg_pool(c, a, spatial):
    kernel = _wide(a.kernel_size, spatial)
    stride, pad = _wide(a.stride, spatial, kernel), _wide(a.padding, spatial, [0] * spatial)
    inside = a.count_include_pad is None or bool(a.count_include_pad)

    def make(x):
        y = c.op("AveragePool", x, kernel_shape=kernel, strides=stride, pads=pad * 2, ceil_mode=int(bool(a.ceil_mode)),
                 count_include_pad=int(inside or a.divisor_override is not None))
        if a.divisor_override is not None:
            area = 1
            for k in kernel:
                area *= k
            y = c.op("Mul", y, c.num(area / a.divisor_override, y))
        return (y,)

    return _batched(c, a.self, spatial, make)[0]


for _n in (1, 2, 3):
    lower(f"aten.avg_pool{_n}d")(lambda c, a, n=_n: _avg_pool(c, a, n))


def _windows(c, x, axes):
    """Adaptive max pooling window by window. axes: (axis, size, number of windows) that are still to be cut."""
    if not axes:
        return c.op("GlobalMaxPool", x)
    (axis, have, want), *rest = axes
    if math.prod(w for *_, w in axes) > 1024:
        raise Unsupported("adaptive max pooling with more than 1024 windows of different size")
    parts = [_windows(c, c.slice(x, axis, j * have // want, -(-(j + 1) * have // want)), rest) for j in range(want)]
    return parts[0] if want == 1 else c.op("Concat", *parts, axis=axis)


def _adaptive(c, a, spatial, kind):
    want = _wide(a.output_size, spatial)
    have = [static(s) for s in a.self.shape[-spatial:]]
    axes = list(range(len(a.self.shape) - spatial, len(a.self.shape)))
    with_indices = kind == "max" and isinstance(c.vals, (tuple, list))
    if all(w == 1 for w in want) and not with_indices:
        return c.reduce("Mean" if kind == "avg" else "Max", a.self, axes, True)
    want = [h if w is None else w for h, w in zip(have, want)]
    if None in have or any(not isinstance(w, int) for w in want):
        raise Unsupported("adaptive pooling over open sizes")
    if kind == "max" and any(h % w for h, w in zip(have, want)):
        if with_indices and any(len(u.users) for u in c.node.users if u.args[1] == 1):
            raise Unsupported("positions of adaptive max pooling whose windows differ in size")
        y = _batched(c, a.self, spatial, lambda x: (_windows(c, x, list(zip(range(2, 2 + spatial), have, want))),))[0]
        return (y, None) if with_indices else y
    if all(h % w == 0 for h, w in zip(have, want)):
        kernel = [h // w for h, w in zip(have, want)]
        if with_indices:
            a.kernel_size, a.stride, a.padding = kernel, kernel, [0] * spatial
            return _max_pool(c, a, spatial, True)
        op = "AveragePool" if kind == "avg" else "MaxPool"
        return _batched(c, a.self, spatial, lambda x: (c.op(op, x, kernel_shape=kernel, strides=kernel),))[0]
    x = a.self  # one axis after the other: a product with a matrix of window weights
    for axis, h, w in zip(axes, have, want):
        if h == w:
            continue
        m = torch.zeros(h, w, dtype=x.dtype)
        for j in range(w):
            first, last = j * h // w, -(-(j + 1) * h // w)
            m[first:last, j] = 1 / (last - first)
        x = along(c, x, axis, m)
    return x


for _n in (1, 2, 3):
    for _name in (f"aten.adaptive_avg_pool{_n}d", f"aten._adaptive_avg_pool{_n}d"):
        lower(_name)(lambda c, a, n=_n: _adaptive(c, a, n, "avg"))
    lower(f"aten.adaptive_max_pool{_n}d")(lambda c, a, n=_n: _adaptive(c, a, n, "max"))
