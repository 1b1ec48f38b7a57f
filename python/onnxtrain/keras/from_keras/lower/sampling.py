"""Images read at computed places: affine transforms of the augmentation layers, map_coordinates.

Every neighbour is a Gather from the image as a list of pixels. Places outside follow the fill mode index by index, as
Keras' own code for JAX, PyTorch and numpy has it. TensorFlow's kernel differs in `wrap`, where it moves the coordinate
first, and in its gradient, which it takes from the inverse transform.
"""

import numpy as np

from ...shared import versions
from ..values import Dim, Traced
from .nn import format_of
from .table import operation


def _range(t, size):
    """0, 1, ... as int64, [size]."""
    if not isinstance(size, Dim):
        return t.e.const(np.arange(size, dtype=np.int64))
    return t.e.op("Range", t.e.const(0, np.int64), size.onnx, t.e.const(1, np.int64))


def _number(t, size, dtype):
    """A size as a scalar of this element type."""
    if isinstance(size, Dim):
        return t.e.cast(size.onnx, dtype)
    return t.e.const(np.array(size, versions.numpy_dtype(dtype)))


def _neighbours(t, c, nearest):
    """[(index as float32, weight or None)] of a coordinate."""
    if nearest:  # half away from zero, as TensorFlow and JAX round
        half = t.e.const(np.array(0.5, np.float32))
        rounded = t.e.op("Floor", t.e.op("Add", t.e.op("Abs", c), half))
        return [(t.e.op("Mul", t.e.op("Sign", c), rounded), None)]
    low, one = t.e.op("Floor", c), t.e.const(np.array(1, np.float32))
    above = t.e.op("Sub", c, low)
    return [(low, t.e.op("Sub", one, above)), (t.e.op("Add", low, one), above)]


def _inside(t, index, size, mode):
    """(int64 index within the image, where it was inside already or None when the mode leaves no gap)."""
    e, zero = t.e, t.e.const(np.array(0, np.float32))
    n, last = _number(t, size, "float32"), None
    last = e.op("Sub", n, e.const(np.array(1, np.float32)))
    valid = None
    if mode == "constant":
        valid = e.op("And", e.op("GreaterOrEqual", index, zero), e.op("Less", index, n))
    elif mode == "wrap":
        index = e.op("Mod", index, n, fmod=1)
        index = e.op("Where", e.op("Less", index, zero), e.op("Add", index, n), index)
    elif mode == "reflect":  # d c b a | a b c d | d c b a
        index = _folded(t, index, e.op("Mul", n, e.const(np.array(2, np.float32))), 1)
    elif mode == "mirror":  # d c b | a b c d | c b a
        period = e.op("Max", e.op("Mul", last, e.const(np.array(2, np.float32))), e.const(np.array(1, np.float32)))
        index = _folded(t, index, period, 0)
    index = e.op("Min", e.op("Max", index, zero), last)
    return e.cast(index, "int64"), valid


def _folded(t, index, period, twice):
    """The index modulo a period whose second half runs backwards; `twice`: the pixel at an edge counts twice."""
    e, zero = t.e, t.e.const(np.array(0, np.float32))
    index = e.op("Mod", index, period, fmod=1)
    index = e.op("Where", e.op("Less", index, zero), e.op("Add", index, period), index)
    back = e.op("Sub", e.op("Sub", period, e.const(np.array(twice, np.float32))), index)
    return e.op("Min", index, back)


def sampled(t, flat, offset, places, sizes, nearest, mode, fill, dtype):
    """Values at these places. flat: name of [pixels, channels]; offset: int64 that is added to every position, or None;
    places: names of float32 coordinates, one per axis; sizes: of these axes."""
    e = t.e
    axes = [[(*_inside(t, i, n, mode), w) for i, w in _neighbours(t, c, nearest)] for c, n in zip(places, sizes)]
    total = None
    for corner in _corners(axes):
        position, valid, weight = None, None, None
        for (index, ok, w), size in zip(corner, sizes):
            position = index if position is None else e.op("Add", e.op("Mul", position, _number(t, size, "int64")),
                                                           index)
            valid = ok if valid is None else e.op("And", valid, ok)
            weight = w if weight is None else e.op("Mul", weight, w)
        position = position if offset is None else e.op("Add", position, offset)
        value = e.op("Gather", flat, position, axis=0)
        last = e.ints([-1])
        if valid is not None:
            filler = e.const(np.array(fill, versions.numpy_dtype(dtype)))
            value = e.op("Where", e.op("Unsqueeze", valid, last), value, filler)
        if weight is not None:
            value = e.op("Mul", e.cast(e.op("Unsqueeze", weight, last), dtype) if dtype != "float32"
                         else e.op("Unsqueeze", weight, last), value)
        total = value if total is None else e.op("Add", total, value)
    return total


def _corners(axes):
    found = [[]]
    for nodes in axes:
        found = [[*f, n] for f in found for n in nodes]
    return found


@operation("AffineTransform")
def affine_transform(t, op, images, transform):
    import keras

    x, matrix = t.logical(t.value(images)), t.logical(t.cast(t.value(transform), "float32"))
    if not x.dtype.startswith("float"):
        return t.refuse("an affine transform of whole numbers", fix="keras.ops.cast(images, 'float32')")
    _check_gradient(t, x)
    single, last = x.rank == 3, format_of(op.data_format) == "channels_last"
    if single:
        x = t.logical(keras.ops.expand_dims(x, 0))
    if not last:
        x = t.logical(keras.ops.transpose(x, (0, 2, 3, 1)))
    if matrix.rank == 1:
        matrix = t.logical(keras.ops.expand_dims(matrix, 0))
    e, (batch, height, width, channels) = t.e, t.shape_of(x)
    xs, ys = _places(t, matrix, height, width)
    mode = op.fill_mode
    if mode == "wrap" and t.semantics == "tensorflow":
        xs, ys, mode = _wrapped(t, xs, width), _wrapped(t, ys, height), "nearest"
    flat = e.op("Reshape", x.onnx, t.shape_vector([-1, channels]))
    pixels = e.op("Mul", _number(t, height, "int64"), _number(t, width, "int64"))
    offset = e.op("Reshape", e.op("Mul", _range(t, batch), pixels), e.ints([-1, 1, 1]))
    name = sampled(t, flat, offset, [ys, xs], [height, width], op.interpolation == "nearest", mode,
                   float(op.fill_value), x.dtype)
    made = Traced(name, x.shape, x.dtype)
    if not last:
        made = keras.ops.transpose(made, (0, 3, 1, 2))
    return keras.ops.squeeze(made, 0) if single else made


def _places(t, matrix, height, width):
    """Where the pixels of the result are read: x and y, [batch, height, width]."""
    e = t.e
    a = [e.op("Reshape", e.op("Gather", matrix.onnx, e.const(k, np.int64), axis=1), e.ints([-1, 1, 1]))
         for k in range(8)]
    columns = e.op("Reshape", e.cast(_range(t, width), "float32"), e.ints([1, 1, -1]))
    rows = e.op("Reshape", e.cast(_range(t, height), "float32"), e.ints([1, -1, 1]))

    def line(p, q, r):
        return e.op("Add", e.op("Add", e.op("Mul", a[p], columns), e.op("Mul", a[q], rows)), a[r])

    xs, ys = line(0, 1, 2), line(3, 4, 5)
    if not _is_affine(t):
        if t.semantics != "tensorflow":
            t.refuse("keras.ops.image.affine_transform whose last two numbers are not known to be 0: backends differ "
                     "in them", fix="a layer of Keras (RandomRotation, RandomZoom, ...)")
        one = e.const(np.array(1, np.float32))
        by = e.op("Add", e.op("Add", e.op("Mul", a[6], columns), e.op("Mul", a[7], rows)), one)
        xs, ys = e.op("Div", xs, by), e.op("Div", ys, by)
    return xs, ys


def _is_affine(t):
    """Whether Keras' own augmentation layers made the transform: their last two numbers are 0."""
    layer = t.layers[-1] if t.layers else None
    return layer is not None and type(layer).__module__.startswith("keras.")


def _wrapped(t, c, size):
    """As TensorFlow's kernel moves a coordinate into the image, odd as it is; a clip follows."""
    e, zero, one = t.e, t.e.const(np.array(0, np.float32)), t.e.const(np.array(1, np.float32))
    n = _number(t, size, "float32")
    last = e.op("Sub", n, one)
    steps = e.op("Div", c, e.op("Max", last, one))
    below = e.op("Add", c, e.op("Mul", n, e.op("Add", e.op("Floor", e.op("Neg", steps)), one)))
    above = e.op("Sub", c, e.op("Mul", n, e.op("Floor", steps)))
    c = e.op("Where", e.op("Less", c, zero), below, e.op("Where", e.op("Greater", c, last), above, c))
    return e.op("Min", e.op("Max", c, zero), last)


def _check_gradient(t, x):
    """TensorFlow differentiates its kernel by the inverse transform, which is another function."""
    if t.semantics != "tensorflow" or not t.training or not t.trains(x.onnx):
        return
    t.refuse("a random affine transform behind trained weights: TensorFlow's gradient of it is that of the inverse "
             "transform, not the derivative", fix="put the augmentation in front of what is trained")


@operation("MapCoordinates")
def map_coordinates(t, op, inputs, coordinates):
    x, where = t.logical(t.value(inputs)), t.logical(t.value(coordinates))
    if not x.dtype.startswith("float") or op.order > 1:
        return t.refuse("keras.ops.image.map_coordinates of whole numbers, or of an order above 1")
    if t.semantics == "tensorflow" and op.fill_mode in ("reflect", "mirror"):
        return t.refuse(f"keras.ops.image.map_coordinates with fill_mode '{op.fill_mode}': Keras' code for TensorFlow "
                        "reads other pixels than for the other backends", fix="fill_mode 'nearest', 'constant', 'wrap'")
    sizes = t.shape_of(x)
    flat = t.e.op("Reshape", x.onnx, t.e.ints([-1, 1]))
    where = t.cast(where, "float32") if where.dtype != "float32" else where
    places = [t.e.op("Gather", where.onnx, t.e.const(k, np.int64), axis=0) for k in range(x.rank)]
    name = sampled(t, flat, None, places, sizes, op.order == 0, op.fill_mode, float(op.fill_value), x.dtype)
    return Traced(t.e.op("Squeeze", name, t.e.ints([-1])), where.shape[1:], x.dtype)
