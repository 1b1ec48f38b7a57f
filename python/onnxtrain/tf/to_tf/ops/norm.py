"""Normalisations. BatchNormalization in training form gives the new statistics as the operator defines them."""

import tensorflow as tf

from ..layout import Value, order_of
from .shape import vector
from .table import dims, op, positive, rank_of


def _computed_in(x):
    """16-bit numbers are summed in float32."""
    return tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x


def _moments(x, axes, keep=False):
    mean = tf.reduce_mean(x, axes, True)
    var = tf.reduce_mean(tf.square(x - mean), axes, keep)
    return (mean if keep else tf.squeeze(mean, axes)), var


def _training_mode(n):
    if n.version >= 14:
        return bool(n.get("training_mode", 0))
    return not n.get("is_test", 0) if n.version < 7 else any(n.wants(k) for k in range(1, len(n.node.outputs)))


@op("BatchNormalization", values=True)
def batch_norm(n, x, scale, bias, mean, var):
    order = order_of(x)
    t = order.take(x)
    wide = _computed_in(t)
    eps = n.get("epsilon", 1e-5)
    scale, bias, mean, var = (v.plain for v in (scale, bias, mean, var))
    training = _training_mode(n)
    axes = [a for a in range(order.rank) if a != order.channel]
    m, v = _moments(wide, axes) if training else (tf.cast(mean, wide.dtype), tf.cast(var, wide.dtype))
    factor = tf.math.rsqrt(v + eps) * tf.cast(scale, wide.dtype)
    shift = tf.cast(bias, wide.dtype)
    y = (wide - order.per_channel(m)) * order.per_channel(factor) + order.per_channel(shift)
    y = order.wrap(tf.cast(y, t.dtype))
    if not training or len(n.node.outputs) == 1:
        return y
    momentum = n.get("momentum", 0.9)
    m, v = (tf.cast(tf.stop_gradient(s), mean.dtype) for s in (m, v))
    return y, mean * momentum + m * (1 - momentum), var * momentum + v * (1 - momentum), m, v


@op("LayerNormalization")
def layer_norm(n, x, scale, bias=None):
    axes = list(range(positive(n.get("axis", -1), rank_of(x)), rank_of(x)))
    wide = _computed_in(x)
    mean, var = _moments(wide, axes, True)
    inverse = tf.math.rsqrt(var + n.get("epsilon", 1e-5))
    y = tf.cast((wide - mean) * inverse, x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@op("RMSNormalization")
def rms_norm(n, x, scale):
    axes = list(range(positive(n.get("axis", -1), rank_of(x)), rank_of(x)))
    wide = _computed_in(x)
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axes, True) + n.get("epsilon", 1e-5))
    return tf.cast(wide * inverse, x.dtype) * scale


@op("InstanceNormalization", values=True)
def instance_norm(n, x, scale, bias):
    order = order_of(x)
    t = order.take(x)
    mean, var = _moments(_computed_in(t), order.spatial, True)
    y = tf.cast((_computed_in(t) - mean) * tf.math.rsqrt(var + n.get("epsilon", 1e-5)), t.dtype)
    return order.wrap(y * order.per_channel(scale.plain) + order.per_channel(bias.plain))


@op("GroupNormalization", values=True)
def group_norm(n, x, scale, bias):
    groups, order = n.get("num_groups"), order_of(x)
    t = order.take(x)
    sizes, channels = dims(t), x.dims()[1]
    parts = [groups, channels // groups]
    if order.is_last:
        wide, axes = tf.reshape(_computed_in(t), vector([*sizes[:-1], *parts])), [*order.spatial, order.rank]
    else:
        wide = tf.reshape(_computed_in(t), vector([sizes[0], *parts, *sizes[2:]]))
        axes = list(range(2, order.rank + 1))
    mean, var = _moments(wide, axes, True)
    y = tf.cast((wide - mean) * tf.math.rsqrt(var + n.get("epsilon", 1e-5)), t.dtype)
    scale, bias = scale.plain, bias.plain
    if n.version < 21 and scale.shape[0] != channels:  # opset 18: one scale per group
        scale, bias = (tf.repeat(v, channels // groups) for v in (scale, bias))
    y = tf.reshape(y, vector(sizes))
    return order.wrap(y * order.per_channel(scale) + order.per_channel(bias))


@op("LRN", values=True)
def lrn(n, x):
    alpha, beta, bias, size = n.get("alpha", 1e-4), n.get("beta", 0.75), n.get("bias", 1.0), n.get("size")
    t = x.last
    low = (size - 1) // 2
    pads = [(0, 0)] * (x.rank - 1) + [(low, size - 1 - low)]
    squares, channels = tf.pad(t * t, pads), dims(t)[-1]
    total = tf.add_n([squares[..., k:k + channels] for k in range(size)])
    return Value(last=t / (bias + alpha / size * total) ** beta)


@op("MeanVarianceNormalization", values=True)
def mean_variance(n, x):
    order = order_of(x)
    t = order.take(x)
    mean, var = _moments(t, sorted(order.axis(a) for a in n.get("axes", [0, 2, 3])), True)
    return order.wrap((t - mean) / (tf.sqrt(var) + 1e-9))
