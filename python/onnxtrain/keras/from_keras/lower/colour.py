"""Colours and filters of images, as Keras' augmentation layers use them."""

import numpy as np

from ...shared import versions
from .nn import format_of
from .table import operation


@operation("RGBToGrayscale")
def rgb_to_grayscale(t, op, images):
    import keras

    x = t.value(images)
    axis = -1 if format_of(op.data_format) == "channels_last" else -3
    shape = [1] * x.rank
    shape[axis] = 3
    weights = np.array([0.2989, 0.5870, 0.1140], versions.numpy_dtype(x.dtype)).reshape(shape)
    return keras.ops.sum(x * weights, axis=axis, keepdims=True)


def _planes(op, x):
    from keras import ops

    axis = -1 if format_of(op.data_format) == "channels_last" else -3
    return [ops.squeeze(p, axis) for p in ops.split(x, 3, axis)], axis


@operation("RGBToHSV")
def rgb_to_hsv(t, op, images):
    from keras import ops

    x = t.value(images)
    if t.semantics != "tensorflow":  # Keras' code for the other backends
        x = ops.where(ops.absolute(x) < float(np.finfo(x.dtype).eps), 0.0, x)
    (r, g, b), axis = _planes(op, x)
    value = ops.maximum(ops.maximum(r, g), b)
    spread = value - ops.minimum(ops.minimum(r, g), b)
    some, wide = value > 0, spread > 0
    saturation = ops.where(some, spread / ops.where(some, value, 1.0), 0.0)
    norm = 1.0 / (6.0 * ops.where(wide, spread, 1.0))
    hue = ops.where(ops.equal(value, g), norm * (b - r) + 2.0 / 6.0, norm * (r - g) + 4.0 / 6.0)
    hue = ops.where(ops.equal(value, r), norm * (g - b), hue)
    hue = ops.where(wide, hue, 0.0) + ops.cast(hue < 0.0, x.dtype)
    return ops.stack([hue, saturation, value], axis=axis)


@operation("HSVToRGB")
def hsv_to_rgb(t, op, images):
    from keras import ops

    (hue, saturation, value), axis = _planes(op, t.value(images))
    six = ops.mod(hue, 1.0) * 6.0
    parts = [ops.clip(ops.absolute(six - 3.0) - 1.0, 0.0, 1.0), ops.clip(2.0 - ops.absolute(six - 2.0), 0.0, 1.0),
             ops.clip(2.0 - ops.absolute(six - 4.0), 0.0, 1.0)]
    return ops.stack([value * ((1.0 - saturation) + saturation * p) for p in parts], axis=axis)


@operation("GaussianBlur")
def gaussian_blur(t, op, images):
    from keras import ops

    x = t.value(images)
    single, last = x.rank == 3, format_of(op.data_format) == "channels_last"
    if single:
        x = ops.expand_dims(x, 0)
    if not last:
        x = ops.transpose(x, (0, 2, 3, 1))
    size = tuple(int(k) for k in versions.to_numpy(op.kernel_size))
    sigma = t.value(op.sigma, x.dtype)
    lines = []
    for k, n in enumerate(size):
        at = np.arange(n, dtype=versions.numpy_dtype(x.dtype)) - (n - 1) / 2
        line = ops.exp(-0.5 * ops.square(ops.divide(at.astype(x.dtype), sigma[k])))
        lines.append(line / ops.sum(line))
    kernel = ops.matmul(ops.reshape(lines[1], (-1, 1)), ops.reshape(lines[0], (1, -1)))
    kernel = ops.tile(ops.reshape(kernel, (*size, 1, 1)), [1, 1, x.shape[-1], 1])
    made = ops.depthwise_conv(x, kernel, strides=1, padding="same", data_format="channels_last")
    if not last:
        made = ops.transpose(made, (0, 3, 1, 2))
    return ops.squeeze(made, 0) if single else made
