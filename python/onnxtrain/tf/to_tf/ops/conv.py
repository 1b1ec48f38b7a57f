"""Convolutions, channels last. Windows that TensorFlow's own padding cannot say are padded or cut beside it."""

import tensorflow as tf

from ..layout import Value
from .shape import constant_pad, vector
from .table import Unsupported, dims, op

_CONV = {2: tf.nn.conv2d, 3: tf.nn.conv3d}


def window_pads(n, sizes, kernel, strides, dilations):
    """Pads before and after each spatial axis by `pads` or `auto_pad`."""
    rank, auto = len(kernel), n.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return [(0, 0)] * rank
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for size, k, s, d in zip(sizes, kernel, strides, dilations):
            reach = (k - 1) * d + 1
            if not isinstance(size, int):
                if s != 1:
                    raise Unsupported("auto_pad with strides over an open size")
                total = reach - 1
            else:
                total = max((-(-size // s) - 1) * s + reach - size, 0)
            low = total // 2 if auto == "SAME_UPPER" else total - total // 2
            pairs.append((low, total - low))
        return pairs
    given = list(n.get("pads") or [0] * (2 * rank))
    return list(zip(given[:rank], given[rank:]))


def padded(t, pairs, number=0):
    """A channels-last tensor with pads on its spatial axes."""
    return constant_pad(t, [(0, 0), *pairs, (0, 0)], number)


def settings(n, rank):
    return list(n.get("strides") or [1] * rank), list(n.get("dilations") or [1] * rank)


def spread(kernel, dilations):
    """A dilated kernel [..., in, out]: zeros between its elements."""
    for a, d in enumerate(dilations):
        if d == 1:
            continue
        sizes = dims(kernel)
        wide = tf.stack([kernel] + [tf.zeros_like(kernel)] * (d - 1), a + 1)
        wide = tf.reshape(wide, vector([*sizes[:a], sizes[a] * d, *sizes[a + 1:]]))
        kernel = wide[tuple(slice(None) if k != a else slice((sizes[a] - 1) * d + 1) for k in range(len(sizes)))]
    return kernel


def _sizes(w):
    kernel = w.shape.as_list()
    if None in kernel:
        raise Unsupported("the shape of its weight is not known")
    return kernel


@op("Conv", values=True)
def conv(n, x, w, b=None):
    shape = _sizes(w.plain)
    rank, groups = len(shape) - 2, n.get("group", 1)
    strides, dilations = settings(n, rank)
    t = padded(x.last, window_pads(n, x.dims()[2:], shape[2:], strides, dilations))
    kernel = tf.transpose(w.plain, [*range(2, rank + 2), 1, 0])
    if rank == 1:  # TensorFlow computes it over two dimensions itself
        t, kernel, strides, dilations = t[:, None], kernel[None], [1, *strides], [1, *dilations]
    if rank > 3:
        raise Unsupported(f"TensorFlow has no convolution over {rank} dimensions")
    y = _grouped(t, kernel, strides, dilations, groups, shape)
    y = y[:, 0] if rank == 1 else y
    return Value(last=y if b is None else y + b.plain)


def _grouped(t, kernel, strides, dilations, groups, shape):
    if groups == 1:
        return _plain(t, kernel, strides, dilations)
    if shape[1] == 1 and len(strides) == 2:
        return _depthwise(t, kernel, strides, dilations, groups, shape[0])
    parts = zip(tf.split(t, groups, -1), tf.split(kernel, groups, -1))
    return tf.concat([_plain(a, k, strides, dilations) for a, k in parts], -1)


def _plain(t, kernel, strides, dilations):
    if any(d != 1 for d in dilations):
        kernel = spread(kernel, dilations)
    return _CONV[len(strides)](t, kernel, [1, *strides, 1], "VALID")


def _depthwise(t, kernel, strides, dilations, groups, outputs):
    """kernel: [h, w, 1, groups * multiplier] -> TensorFlow's [h, w, groups, multiplier]."""
    h, w = dims(kernel)[:2]
    kernel = spread(tf.reshape(kernel, vector([h, w, groups, outputs // groups])), dilations)
    if strides[0] == strides[1]:
        return tf.nn.depthwise_conv2d(t, kernel, [1, *strides, 1], "VALID")
    y = tf.nn.depthwise_conv2d(t, kernel, [1, 1, 1, 1], "VALID")
    return y[:, ::strides[0], ::strides[1]]


@op("ConvTranspose", values=True)
def conv_transpose(n, x, w, b=None):
    shape = _sizes(w.plain)
    rank, groups = len(shape) - 2, n.get("group", 1)
    if rank > 3:
        raise Unsupported(f"TensorFlow has no transposed convolution over {rank} dimensions")
    strides, dilations = settings(n, rank)
    natural = [(size - 1) * s + (k - 1) * d + 1 for size, s, k, d in zip(x.dims()[2:], strides, shape[2:], dilations)]
    pairs = _cuts(n, x.dims()[2:], natural, strides, shape[2:], dilations)
    kernel = spread(tf.transpose(w.plain, [*range(2, rank + 2), 1, 0]), dilations)
    t, batch = x.last, x.dims()[0]
    if rank == 1:
        t, kernel, strides, natural = t[:, None], kernel[None], [1, *strides], [1, *natural]
    call = tf.nn.conv2d_transpose if len(strides) == 2 else tf.nn.conv3d_transpose
    parts = []
    for a, k in zip(tf.split(t, groups, -1), tf.split(kernel, groups, -1)):
        made = tf.cast(vector([batch, *natural, shape[1]]), tf.int32)
        parts.append(call(a, k, made, [1, *strides, 1], "VALID"))
    y = parts[0] if groups == 1 else tf.concat(parts, -1)
    y = padded(y[:, 0] if rank == 1 else y, pairs)
    return Value(last=y if b is None else y + b.plain)


def _cuts(n, sizes, natural, strides, kernel, dilations):
    """What is added to (negative: cut from) both ends of the full result."""
    rank, auto, want = len(natural), n.get("auto_pad", "NOTSET"), n.get("output_shape")
    extra = list(n.get("output_padding") or [0] * rank)
    if want is None and auto not in ("SAME_UPPER", "SAME_LOWER"):
        pads = window_pads(n, sizes, kernel, strides, dilations)
        return [(-low, e - high) for (low, high), e in zip(pads, extra)]
    if not all(isinstance(s, int) for s in natural):
        raise Unsupported("output_shape or auto_pad over an open size")
    sizes = list(want)[-rank:] if want is not None else [size * s for size, s in zip(sizes, strides)]
    pairs = []
    for full, e, size in zip(natural, extra, sizes):
        total = max(full + e - size, 0)
        low = total - total // 2 if auto == "SAME_LOWER" else total // 2
        pairs.append((-low, size - full + low))
    return pairs
