"""Pooling, channels last."""

import math

import tensorflow as tf

from ..layout import Value, order_of
from .conv import padded, settings, window_pads
from .table import Unsupported, dims, op

_MAX = {2: tf.nn.max_pool2d, 3: tf.nn.max_pool3d}
_AVERAGE = {2: tf.nn.avg_pool2d, 3: tf.nn.avg_pool3d}


def _frame(n, x, kernel):
    """(strides, dilations, pads, what ceil_mode adds at the end)."""
    rank = len(kernel)
    strides, dilations = settings(n, rank)
    sizes = x.dims()[2:]
    pads = window_pads(n, sizes, kernel, strides, dilations)
    extra = [0] * rank
    if n.get("ceil_mode", 0):
        for k in range(rank):
            if not isinstance(sizes[k], int):
                raise Unsupported("ceil_mode over an open size")
            room = sizes[k] + sum(pads[k]) - dilations[k] * (kernel[k] - 1) - 1
            count = -(-room // strides[k]) + 1
            if (count - 1) * strides[k] >= sizes[k] + pads[k][0]:  # a window that begins beyond the data
                count -= 1
            extra[k] = max((count - 1) * strides[k] - room, 0)
    return strides, dilations, pads, extra


def _pool(functions, kind, t, kernel, strides, dilations):
    """A pool without padding over 1, 2 or 3 dimensions."""
    rank = len(kernel)
    if rank == 1:
        return _pool(functions, kind, t[:, None], [1, *kernel], [1, *strides], [1, *dilations])[:, 0]
    if rank not in functions:
        raise Unsupported(f"TensorFlow has no pooling over {rank} dimensions")
    if all(d == 1 for d in dilations):
        return functions[rank](t, kernel, strides, "VALID")
    y = tf.nn.pool(t, kernel, kind, padding="VALID", dilations=dilations)
    return y[(slice(None), *(slice(None, None, s) for s in strides))]


@op("MaxPool", values=True)
def max_pool(n, x):
    if n.wants(1):
        raise Unsupported("TensorFlow does not give the positions of the maxima as ONNX counts them")
    kernel = n.get("kernel_shape")
    strides, dilations, pads, extra = _frame(n, x, kernel)
    t = x.last
    keep = t.dtype
    t = t if keep.is_floating else tf.cast(t, tf.float32)
    t = padded(t, [(a, b + e) for (a, b), e in zip(pads, extra)], tf.cast(-math.inf, t.dtype))
    return Value(last=tf.cast(_pool(_MAX, "MAX", t, kernel, strides, dilations), keep))


def _sum(t, kernel, strides, dilations):
    return _pool(_AVERAGE, "AVG", t, kernel, strides, dilations) * math.prod(kernel)


@op("AveragePool", values=True)
def average_pool(n, x):
    kernel = n.get("kernel_shape")
    strides, dilations, pads, extra = _frame(n, x, kernel)
    if not any(extra) and not any(map(any, pads)):
        return Value(last=_pool(_AVERAGE, "AVG", x.last, kernel, strides, dilations))
    t = x.last
    ones = tf.ones_like(t[:1, ..., :1])
    if n.get("count_include_pad", 0):  # pads count, the overhang of ceil_mode does not
        t, ones, grow = padded(t, pads), padded(ones, pads, tf.ones([], t.dtype)), [(0, e) for e in extra]
    else:
        grow = [(a, b + e) for (a, b), e in zip(pads, extra)]
    total = _sum(padded(t, grow), kernel, strides, dilations)
    return Value(last=total / _sum(padded(ones, grow), kernel, strides, dilations))


@op("LpPool", values=True)
def lp_pool(n, x):
    kernel, p = n.get("kernel_shape"), n.get("p", 2)
    strides, dilations, pads, extra = _frame(n, x, kernel)
    t = padded(tf.abs(x.last) ** p, [(a, b + e) for (a, b), e in zip(pads, extra)])
    return Value(last=_sum(t, kernel, strides, dilations) ** (1 / p))


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", values=True)
def global_pool(n, x):
    order = order_of(x)
    t, axes = order.take(x), order.spatial
    if n.op == "GlobalAveragePool":
        return order.wrap(tf.reduce_mean(t, axes, True))
    if n.op == "GlobalLpPool":
        p = n.get("p", 2)
        return order.wrap(tf.reduce_sum(tf.abs(t) ** p, axes, True) ** (1 / p))
    return order.wrap(_one_winner(t, order))


def _one_winner(t, order):
    """One maximum takes the whole gradient, as in a pool."""
    sizes = dims(t)
    if order.is_last:
        flat = tf.reshape(t, [sizes[0], -1, sizes[-1]])
        at = tf.argmax(tf.stop_gradient(flat), 1)
        y = tf.gather(tf.transpose(flat, [0, 2, 1]), at[..., None], batch_dims=2, axis=2)
        return tf.reshape(y, [sizes[0], *[1] * len(order.spatial), sizes[-1]])
    flat = tf.reshape(t, [sizes[0], sizes[1], -1])
    y = tf.gather(flat, tf.argmax(tf.stop_gradient(flat), 2)[..., None], batch_dims=2, axis=2)
    return tf.reshape(y, [sizes[0], sizes[1], *[1] * len(order.spatial)])
