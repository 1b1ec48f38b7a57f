"""Convolutions, pooling, batch normalization, resizing: with the channels first in the file."""

import numpy as np

from .table import Unsupported, op


def _layout(n):
    """Whether TensorFlow has the channels last here."""
    return not n.attr("data_format", "NHWC").startswith("NC")


def _take(n, k=0):
    return n.w.first(n[k]) if _layout(n) else n.plain(k)


def _give(n, name, k=0):
    return n.w.sym(name, n.op.outputs[k].dtype, n.shapes[k], _layout(n))


def _spatial(n, key, default=1):
    """The spatial numbers of an attribute that has one per axis."""
    values = n.attr(key)
    if not values:
        return None
    values = [int(v) for v in values]
    inner = values[1:-1] if _layout(n) else values[2:]
    outer = [v for v in values if v != 1]
    if [v for v in inner if v != 1] != outer:
        raise Unsupported(f"its {key} {values} touch the batch or the channels")
    return None if all(v == default for v in inner) else inner


def _padding(n):
    """Attributes of ONNX for TensorFlow's padding."""
    how = n.attr("padding")
    if how == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if how == "VALID":
        return {}
    given = [int(v) for v in n.attr("explicit_paddings")]
    pairs = [given[2 * k:2 * k + 2] for k in range(len(given) // 2)]
    inner = pairs[1:-1] if _layout(n) else pairs[2:]
    return {"pads": [a for a, _ in inner] + [b for _, b in inner]}


@op("Conv2D", "Conv3D", "Conv")
def conv(n):
    name = _conv(n, n, _take(n), _spatial(n, "dilations"), **_padding(n))
    return _give(n, name)


def _conv(n, of, x, dilations, **padding):
    """A convolution of a value with the channels first; of: the View of TensorFlow's operation."""
    rank = of.rank(1)
    if of.op.type == "DepthwiseConv2dNative":
        h, w, channels, times = of[1].shape.as_list()
        if None in (channels, times):
            raise Unsupported("the shape of its weight is not known")
        kernel = n.e.op("Transpose", n.w.plain(of[1]), perm=[2, 3, 0, 1])
        kernel, groups = n.e.op("Reshape", kernel, n.e.ints([channels * times, 1, h, w])), channels
    else:
        kernel = n.e.op("Transpose", n.w.plain(of[1]), perm=[rank - 1, rank - 2, *range(rank - 2)])
        channels, per_group = of[0].shape[-1 if _layout(of) else 1], of[1].shape[-2]
        several = channels is not None and per_group and channels != per_group
        groups = channels // per_group if several else None
    return n.e.op("Conv", x, kernel, strides=_spatial(of, "strides"), dilations=dilations, group=groups, **padding)


@op("DepthwiseConv2dNative")
def depthwise(n):
    return _give(n, _conv(n, n, _take(n), _spatial(n, "dilations"), **_padding(n)))


_CONVOLUTIONS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative")


def dilated(n):
    """A BatchToSpaceND behind a convolution behind a SpaceToBatchND: a convolution with dilations; None otherwise."""
    steps, t = [], n.op.inputs[0]
    while t.op.type in ("Squeeze", "ExpandDims", *_CONVOLUTIONS):
        steps.append(t.op)
        t = t.op.inputs[0]
    found = [o for o in steps if o.type in _CONVOLUTIONS]
    if t.op.type != "SpaceToBatchND" or len(found) != 1 or n.sym_of(t.op.inputs[0]) is None:
        return None
    before, block, crops = (n.sym_of(v) for v in (t.op.inputs[2], t.op.inputs[1], n.op.inputs[2]))
    of = n.again(found[0])
    if before is None or before.static is None or crops.static is None or not _layout(of):
        return None
    if block.static.tolist() != n[1].static.tolist() or of.attr("padding") != "VALID" or _spatial(of, "strides"):
        return None
    pads = np.asarray(before.static) - np.asarray(crops.static)
    if (pads < 0).any() or _spatial(of, "dilations"):
        return None
    return _write_dilated(n, of, n.sym_of(t.op.inputs[0]), [int(b) for b in block.static], pads.T.tolist())


def _write_dilated(n, of, x, block, pads):
    more = of.rank(0) - x.rank  # one-dimensional ones are two-dimensional in TensorFlow
    name = n.w.first(x)
    if more:
        name = n.e.op("Unsqueeze", name, n.e.ints([2]))
        block, pads = [1, *block], [[0, *p] for p in pads]
    name = _conv(n, of, name, block, pads=[*pads[0], *pads[1]])
    if more:
        name = n.e.op("Squeeze", name, n.e.ints([2]))
    return n.w.sym(name, n.dtype, n.shape, True)


@op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_transpose(n):
    """The transposed convolution of (sizes, kernel, values). The full result is cut or padded to TensorFlow's sizes."""
    rank = n.rank(1)
    kernel = n.e.op("Transpose", n.plain(1), perm=[rank - 1, rank - 2, *range(rank - 2)])
    strides, dilations = _spatial(n, "strides"), _spatial(n, "dilations")
    x = n.w.first(n[2]) if _layout(n) else n.plain(2)
    axes = range(1, rank - 1) if _layout(n) else range(2, rank)
    wanted = [n.shape[a] for a in axes]
    have = [n[2].shape[a] for a in axes]
    steps, spread = strides or [1] * len(wanted), dilations or [1] * len(wanted)
    reach = [(k - 1) * d + 1 for k, d in zip(n[1].shape.as_list()[:rank - 2], spread)]
    if n.attr("padding") == "EXPLICIT":
        pads = _padding(n)["pads"]
        low, high = pads[:len(steps)], pads[len(steps):]
    elif None in wanted or None in have:
        if n.attr("padding") == "VALID":
            low = high = [0] * len(steps)
        else:  # TensorFlow's layers: output = size x stride
            total = [max(r - s, 0) for r, s in zip(reach, steps)]
            low = [t // 2 for t in total]
            high = [t - a for t, a in zip(total, low)]
    elif n.attr("padding") == "SAME":
        total = [max((h - 1) * s + r - w, 0) for h, s, r, w in zip(have, steps, reach, wanted)]
        low = [t // 2 for t in total]
        high = [t - a for t, a in zip(total, low)]
    else:
        low = high = [0] * len(steps)
    extra = [0] * len(steps)
    for k, (w, h) in enumerate(zip(wanted, have)):
        if w is not None and h is not None:
            extra[k] = w - ((h - 1) * steps[k] + reach[k] - low[k] - high[k])
        elif n.attr("padding") == "SAME":
            extra[k] = max(steps[k] - reach[k], 0)
    name = n.e.op("ConvTranspose", x, kernel, strides=strides, dilations=dilations,
                  pads=[*low, *high] if any(low) or any(high) else None)
    if any(extra):
        name = n.e.op("Pad", name, n.e.ints([0] * rank + [0, 0, *extra]))
    return _give(n, name)


@op("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D")
def pool(n):
    ranks = n.rank() - 2
    kernel = _spatial(n, "ksize") or [1] * ranks
    kind = "MaxPool" if n.op.type.startswith("Max") else "AveragePool"
    return _give(n, n.e.op(kind, _take(n), kernel_shape=kernel, strides=_spatial(n, "strides"), **_padding(n)))


@op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(n):
    eps, training = float(n.attr("epsilon", 1e-4)), bool(n.attr("is_training", True))
    x = _take(n)
    scale, bias = n.plain(1), n.plain(2)
    if not training:
        mean, var = n.plain(3), n.plain(4)
        name = n.e.op("BatchNormalization", x, scale, bias, mean, var, epsilon=eps)
        return [_give(n, name), n.out(mean, 1), n.out(var, 2), *_reserve(n, mean, var)]
    zero = n.e.op("Mul", scale, n.w.number(0, n[1]))
    name, mean, var = n.e.node("BatchNormalization", [x, scale, bias, zero, zero], 3, epsilon=eps, momentum=0.0,
                               training_mode=1)
    # TensorFlow gives the unbiased variance
    size = n.e.cast(n.e.op("Div", n.e.op("Size", x), n.e.op("Size", scale)), n.op.outputs[2].dtype.as_numpy_dtype)
    one = n.w.number(1, n[1])
    factor = n.e.op("Div", size, n.e.op("Max", n.e.op("Sub", size, one), one))
    factor_now = float(n.attr("exponential_avg_factor", 1.0))
    var = n.e.op("Mul", var, factor)
    if factor_now != 1.0:
        mean, var = (_mixed(n, old, new, factor_now) for old, new in ((n.plain(3), mean), (n.plain(4), var)))
    return [_give(n, name), n.out(mean, 1), n.out(var, 2), *_reserve(n, mean, var)]


def _mixed(n, old, new, factor):
    kept = n.e.op("Mul", old, n.w.number(1 - factor, n[1]))
    return n.e.op("Add", kept, n.e.op("Mul", new, n.w.number(factor, n[1])))


def _reserve(n, mean, var):
    """Results that only TensorFlow's own gradient reads."""
    made = [n.out(mean, 3), n.out(var, 4)]
    if len(n.op.outputs) > 5:
        made.append(n.out(mean, 5))
    return made[:len(n.op.outputs) - 3]


@op("LRN")
def lrn(n):
    radius = int(n.attr("depth_radius", 5))
    size = 2 * radius + 1
    name = n.e.op("LRN", n.w.first(n[0]), size=size, alpha=float(n.attr("alpha", 1.0)) * size,
                  beta=float(n.attr("beta", 0.5)), bias=float(n.attr("bias", 1.0)))
    return n.w.sym(name, n.dtype, n.shape, True)


@op("ResizeBilinear", "ResizeNearestNeighbor")
def resize(n):
    half, corners = bool(n.attr("half_pixel_centers", False)), bool(n.attr("align_corners", False))
    x = n.w.first(n[0])
    sizes = n.e.node("Concat", [n.e.op("Shape", x, end=2), n.w.int64(n[1])], axis=0)[0]
    how = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    attrs = {"coordinate_transformation_mode": how}
    if n.op.type == "ResizeNearestNeighbor":
        attrs["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
        if half:  # TensorFlow takes the pixel under the centre
            attrs["coordinate_transformation_mode"] = "tf_half_pixel_for_nn"
    else:
        attrs["mode"] = "linear"
    name = n.e.op("Resize", x if n[0].dtype.is_floating else n.e.cast(x, "float32"), None, None, sizes, **attrs)
    if n.op.type != "ResizeNearestNeighbor" and n.dtype.as_numpy_dtype != np.float32:
        name = n.e.cast(name, n.dtype.as_numpy_dtype)
    return n.w.sym(name, n.dtype, n.shape, True)


@op("ResizeBicubic")
def resize_cubic(n):
    raise Unsupported("TensorFlow rounds the weights of its cubic resizing to a table, which ONNX does not")


@op("AdjustContrastv2")
def adjust_contrast(n):
    """About the mean of each channel of each image."""
    x = n.w.first(n[0])
    mean = n.e.op("ReduceMean", x, n.e.ints([2, 3]), keepdims=1)
    name = n.e.op("Add", n.e.op("Mul", n.e.op("Sub", x, mean), n.plain(1)), mean)
    return n.w.sym(name, n.dtype, n.shape, True)


@op("ExtractImagePatches")
def extract_patches(n):
    """A convolution whose weights are 0 and 1; the last axis of the result counts rows, columns, channels."""
    channels = n[0].shape[-1]
    if channels is None or not n.dtype.is_floating:
        raise Unsupported("the number of channels is open, or its numbers are integers")
    h, w = (int(v) for v in n.attr("ksizes")[1:3])
    count = h * w * channels
    kernel = np.eye(count, dtype=n.dtype.as_numpy_dtype).reshape(count, h, w, channels).transpose(0, 3, 1, 2)
    name = n.e.op("Conv", n.w.first(n[0]), n.e.const(np.ascontiguousarray(kernel)), strides=_spatial(n, "strides"),
                  dilations=_spatial(n, "rates"), **_padding(n))
    return n.w.sym(name, n.dtype, n.shape, True)
