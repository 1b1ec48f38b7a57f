"""Convolutions, pooling, normalizations, softmax, attention."""

import numpy as np

from ...shared import versions
from ..values import Traced, is_open
from .elementwise import number, spec
from .near_maxima import spread
from .reduce import moments, reduced
from .table import axes_of, exact, operation


def channels_first(rank, data_format):
    """The order of axes in the file: batch, channels, space."""
    if data_format == "channels_first":
        return tuple(range(rank))
    return (0, rank - 1, *range(1, rank - 1))


def as_tuple(v, n):
    return (int(v),) * n if isinstance(v, (int, np.integer)) else tuple(int(x) for x in v)


def format_of(data_format):
    import keras

    return data_format or keras.config.image_data_format()


def padding_of(padding, sizes, kernel, strides, dilations):
    """Attributes of ONNX: explicit numbers where the sizes are known; the larger half goes to the end."""
    if padding == "valid":
        return {}
    if any(is_open(s) for s in sizes):
        if any(s > 1 for s in strides) or not all(d == 1 for d in dilations):
            return {"auto_pad": "SAME_UPPER"}
        sizes = [1 << 20 if is_open(s) else s for s in sizes]  # stride 1: the same for all sizes
    before, after = [], []
    for n, k, s, d in zip(sizes, kernel, strides, dilations):
        wide = (k - 1) * d + 1
        total = max((-(-n // s) - 1) * s + wide - n, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return {"pads": before + after} if any(before + after) else {}


def spatial(x, layout):
    return [x.shape[a] for a in layout[2:]]


@operation("Conv")
def conv(t, op, inputs, kernel):
    x, k = t.value(inputs), t.value(kernel)
    n = x.rank - 2
    layout = channels_first(x.rank, format_of(op.data_format))
    x, k = t.physical(x, layout), t.physical(k, (n + 1, n, *range(n)))
    size, strides, dilations = k.shape[:n], as_tuple(op.strides, n), as_tuple(op.dilation_rate, n)
    shape = versions.conv_output_shape(x.shape, k.shape[n + 1], size, strides, op.padding, format_of(op.data_format),
                                       dilations)
    groups = x.shape[layout[1]] // k.shape[n]
    pads = padding_of(op.padding, spatial(x, layout), size, strides, dilations)
    name = t.e.op("Conv", x.onnx, k.onnx, kernel_shape=list(size), strides=list(strides), dilations=list(dilations),
                  group=groups, **pads)
    return Traced(name, shape, x.dtype, layout)


@operation("DepthwiseConv")
def depthwise_conv(t, op, inputs, kernel):
    out, x, k = spec(op, inputs, kernel), t.value(inputs), t.value(kernel)
    n = x.rank - 2
    layout = channels_first(x.rank, format_of(op.data_format))
    x, k = t.physical(x, layout), t.physical(k, (n, n + 1, *range(n)))
    size, channels, times = k.shape[:n], k.shape[n], k.shape[n + 1]
    strides, dilations = as_tuple(op.strides, n), as_tuple(op.dilation_rate, n)
    strides = strides * n if len(strides) == 1 else strides
    weights = t.e.op("Reshape", k.onnx, t.e.ints([channels * times, 1, *size]))
    pads = padding_of(op.padding, spatial(x, layout), size, strides, dilations)
    name = t.e.op("Conv", x.onnx, weights, kernel_shape=list(size), strides=list(strides), dilations=list(dilations),
                  group=channels, **pads)
    return Traced(name, out.shape, out.dtype, layout)


@operation("SeparableConv")
def separable_conv(t, op, inputs, depthwise_kernel, pointwise_kernel):
    import keras

    deep = keras.ops.depthwise_conv(inputs, depthwise_kernel, op.strides, op.padding, op.data_format, op.dilation_rate)
    return keras.ops.conv(deep, pointwise_kernel, strides=1, padding="valid", data_format=op.data_format)


@operation("ConvTranspose")
def conv_transpose(t, op, inputs, kernel):
    out, x, k = spec(op, inputs, kernel), t.value(inputs), t.value(kernel)
    n = x.rank - 2
    layout = channels_first(x.rank, format_of(op.data_format))
    x, k = t.physical(x, layout), t.physical(k, (n + 1, n, *range(n)))
    size, strides, dilations = k.shape[:n], as_tuple(op.strides, n), as_tuple(op.dilation_rate, n)
    grown = _grown(op, x, k, layout)
    before, after, extra = [], [], []
    for i, (w, s, d) in enumerate(zip(size, strides, dilations)):
        wide = (w - 1) * d + 1
        rest = wide - s - grown[i]  # of the full size over what Keras gives
        begin = max(rest, 0) // 2 if op.padding == "same" else 0
        before.append(begin)
        after.append(max(rest - begin, 0))
        extra.append(max(begin - rest, 0))
    name = t.e.op("ConvTranspose", x.onnx, k.onnx, kernel_shape=list(size), strides=list(strides),
                  dilations=list(dilations), pads=before + after, output_padding=extra if any(extra) else None)
    return Traced(name, out.shape, out.dtype, layout)


def _grown(op, x, k, layout):
    """Size of the result over size times stride, by axis: the same for all sizes."""
    import keras

    n = x.rank - 2
    sizes = [50 if is_open(d) else d for d in x.shape]
    probe = op.compute_output_spec(keras.KerasTensor(sizes, x.dtype), keras.KerasTensor(k.shape, k.dtype))
    strides = as_tuple(op.strides, n)
    return [probe.shape[a] - sizes[a] * s for a, s in zip(layout[2:], strides)]


@operation("MaxPool", "AveragePool")
def pool(t, op, inputs):
    out, x = spec(op, inputs), t.value(inputs)
    n = x.rank - 2
    layout = channels_first(x.rank, format_of(op.data_format))
    x = t.physical(x, layout)
    size = as_tuple(op.pool_size, n)
    strides = size if op.strides is None else as_tuple(op.strides, n)
    pads = padding_of(op.padding, spatial(x, layout), size, strides, (1,) * n)
    name = "MaxPool" if type(op).__name__ == "MaxPool" else "AveragePool"
    made = t.e.op(name, x.onnx, kernel_shape=list(size), strides=list(strides), **pads)
    made = Traced(made, out.shape, out.dtype, layout)
    if name == "MaxPool" and n == 3 and t.near_maxima:
        return spread(t, x, made, size, strides, pads)
    return made


@operation("Softmax", "LogSoftmax")
def softmax(t, op, x):
    out, given = spec(op, x), x
    x = t.cast(t.value(x), out.dtype)
    name = type(op).__name__
    if op.axis is None:
        return t.refuse(f"{name.lower()} over all axes", fix="flatten first and give axis=-1")
    axes = axes_of(op.axis, x.rank)
    if len(axes) > 1:
        return _softmax_over(t, x, axes, name)
    place = x.layout.index(axes[0]) if x.layout else axes[0]
    made = x.like(t.e.op(name, x.onnx, axis=place))
    if name == "Softmax" and axes[0] == x.rank - 1:
        t.logits[made.onnx] = ("Softmax", t.value(given))
    return made


def _softmax_over(t, x, axes, name):
    top = reduced(t, "ReduceMax", x, axes, True)
    far = x.like(t.e.op("Sub", x.onnx, top.onnx))
    power = x.like(t.e.op("Exp", far.onnx))
    total = reduced(t, "ReduceSum", power, axes, True)
    if name == "Softmax":
        return x.like(t.e.op("Div", power.onnx, total.onnx))
    return x.like(t.e.op("Sub", far.onnx, t.e.op("Log", total.onnx)))


@operation("Sparsemax")
def sparsemax(t, op, x):
    """As Keras' backends write it."""
    from keras import ops

    axis = op.axis % len(x.shape)
    largest = ops.flip(ops.sort(x, axis=axis), axis=axis)
    total = ops.cumsum(largest, axis=axis)
    place = ops.cumsum(ops.ones_like(largest), axis=axis)
    held = largest - (total - 1) / place > 0
    count = ops.sum(ops.cast(held, x.dtype), axis=axis, keepdims=True)
    limit = (ops.sum(ops.where(held, total, ops.zeros_like(total)), axis=axis, keepdims=True) - 1) / count
    return ops.maximum(x - limit, ops.zeros_like(x))


@operation("BatchNorm")
def batch_norm(t, op, x, mean, variance, offset=None, scale=None):
    x = t.value(x)
    axis = op.axis % x.rank
    layout = (0, axis, *[a for a in range(1, x.rank) if a != axis]) if axis else None
    if layout is None:
        return t.refuse("normalization of the axis of the batch")
    x = t.physical(x, layout)
    one, zero = (t.e.const(np.full([x.shape[axis]], v, versions.numpy_dtype(x.dtype))) for v in (1, 0))
    gamma = one if scale is None else t.value(scale, x.dtype).onnx
    beta = zero if offset is None else t.value(offset, x.dtype).onnx
    mean, variance = (t.value(v, x.dtype).onnx for v in (mean, variance))
    if not exact(x, op.epsilon):  # what the attribute leaves out
        rest = float(op.epsilon) - float(np.float32(op.epsilon))
        variance = t.e.op("Add", variance, t.e.const(np.float64(rest)))
    name = t.e.op("BatchNormalization", x.onnx, gamma, beta, mean, variance, epsilon=float(op.epsilon))
    return Traced(name, x.shape, x.dtype, layout)


@operation("LayerNorm")
def layer_norm(t, op, x, gamma=None, beta=None):
    import keras

    x = t.value(x)
    axes = axes_of(op.axis, x.rank)
    epsilon = keras.config.epsilon() if op.epsilon is None else op.epsilon
    if op.rms_scaling:
        return keras.src.ops.nn._layer_normalization(x, gamma, beta, op.axis, epsilon, True)
    values = [None if v is None else t.value(v, x.dtype) for v in (gamma, beta)]
    shape = [x.shape[a] for a in axes]
    whole = axes == list(range(axes[0], x.rank)) and not any(is_open(d) for d in shape)
    if whole and exact(x, epsilon):
        x = t.logical(x)
        ones = np.ones(shape, versions.numpy_dtype(x.dtype))
        scale = t.e.const(ones) if values[0] is None else _as(t, values[0], shape)
        bias = None if values[1] is None else _as(t, values[1], shape)
        return x.like(t.e.op("LayerNormalization", x.onnx, scale, bias, axis=axes[0], epsilon=float(epsilon)))
    mean, variance = moments(t, x, axes, True)
    shape = [x.shape[a] if a in axes else 1 for a in range(x.rank)]
    gamma, beta = (None if v is None else v.like(_as(t, v, shape), shape) for v in values)
    inverse = keras.ops.rsqrt(variance + epsilon)
    inverse = inverse if gamma is None else inverse * gamma
    rest = -mean * inverse
    return x * inverse + (rest if beta is None else rest + beta)


def _as(t, v, shape):
    v = t.logical(v)
    return v.onnx if list(v.shape) == list(shape) else t.e.op("Reshape", v.onnx, t.e.ints(shape))


@operation("DotProductAttention")
def attention(t, op, query, key, value, bias=None, mask=None, scale=None, **_):
    """[batch, time, heads, size] each."""
    import keras

    o = keras.ops
    query, key, value = (t.value(v) for v in (query, key, value))
    scale = 1 / np.sqrt(key.shape[-1]) if scale is None else scale
    scores = o.einsum("btnh,bsnh->bnts", query, key) * scale
    if getattr(op, "attn_logits_soft_cap", None):
        scores = o.tanh(scores / op.attn_logits_soft_cap) * op.attn_logits_soft_cap
    if bias is not None:
        scores = scores + bias
    if op.is_causal:
        size = t.shape_of(scores)
        rows, columns = o.arange(size[-2]), o.arange(size[-1])
        causal = o.expand_dims(rows, 1) >= o.expand_dims(columns, 0)
        mask = causal if mask is None else o.logical_and(mask, causal)
    if mask is not None:
        lowest = float(np.finfo(versions.numpy_dtype(scores.dtype)).min)
        if t.semantics == "tensorflow":
            lowest *= 0.7
        scores = o.where(o.cast(mask, "bool"), scores, number_of(t, lowest, scores))
    return o.einsum("bnts,bsnh->btnh", o.softmax(scores, axis=-1), value)


def number_of(t, v, like):
    return Traced(number(t, v, like), (), like.dtype)
