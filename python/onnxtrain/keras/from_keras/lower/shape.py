"""Shapes: reshaping, joining, splitting, padding, turning axes."""

import numpy as np

from ...shared import versions
from ..tracer import transposed_layout
from ..values import Dim, Traced, is_open
from .elementwise import number, spec
from .table import axes_of, operation


@operation("Reshape", "Ravel")
def reshape(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    wanted = list(getattr(op, "newshape", (-1,)))
    made = Traced(t.e.op("Reshape", x.onnx, target(t, x, wanted)), out.shape, x.dtype)
    if x.rank == 1 and out.shape.count(1) >= len(out.shape) - 1 and x.shape[0] in out.shape:
        t.vectors[made.onnx] = (x.onnx, len(out.shape) - 1 - out.shape[::-1].index(x.shape[0]))
    return made


def target(t, x, wanted):
    """The sizes of a reshape: open ones are computed unless only one is to be inferred."""
    wanted = [None if d is None else d if isinstance(d, Dim) else int(d) for d in wanted]
    if sum(d is None or d == -1 for d in wanted) > 1:
        sizes = list(t.shape_of(x))
        wanted = [sizes[k] if d is None and k < len(sizes) else d for k, d in enumerate(wanted)]
    if -1 in wanted and None not in wanted and any(isinstance(d, Dim) for d in wanted):
        return t.shape_vector(wanted)
    return t.shape_vector(wanted, infer=True)


def reshaped(t, x, shape, out):
    x = t.logical(x)
    return Traced(t.e.op("Reshape", x.onnx, target(t, x, shape)), out, x.dtype)


@operation("Transpose")
def transpose(t, op, x):
    out, x = spec(op, x), t.value(x)
    axes = list(range(x.rank))[::-1] if op.axes is None else [a % x.rank for a in op.axes]
    return Traced(x.onnx, out.shape, x.dtype, transposed_layout(x.layout, x.rank, axes))


@operation("Swapaxes")
def swapaxes(t, op, x):
    out, x = spec(op, x), t.value(x)
    axes = list(range(x.rank))
    a, b = op.axis1 % x.rank, op.axis2 % x.rank
    axes[a], axes[b] = axes[b], axes[a]
    return Traced(x.onnx, out.shape, x.dtype, transposed_layout(x.layout, x.rank, axes))


@operation("Moveaxis")
def moveaxis(t, op, x):
    out, x = spec(op, x), t.value(x)
    source, destination = ([a % x.rank for a in np.atleast_1d(v)] for v in (op.source, op.destination))
    axes = [a for a in range(x.rank) if a not in source]
    for d, s in sorted(zip(destination, source)):
        axes.insert(d, s)
    return Traced(x.onnx, out.shape, x.dtype, transposed_layout(x.layout, x.rank, axes))


@operation("ExpandDims")
def expand_dims(t, op, x):
    out, x = spec(op, x), t.value(x)
    axes = axes_of(op.axis, len(out.shape))
    if x.layout is not None and axes[-1] == len(out.shape) - 1 and len(axes) == 1:
        made = t.e.op("Unsqueeze", x.onnx, t.e.ints([x.rank]))
        return Traced(made, out.shape, x.dtype, (*x.layout, x.rank))
    x = t.logical(x)
    return Traced(t.e.op("Unsqueeze", x.onnx, t.e.ints(axes)), out.shape, x.dtype)


@operation("Squeeze")
def squeeze(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    axes = [k for k, d in enumerate(x.shape) if d == 1] if op.axis is None else axes_of(op.axis, x.rank)
    if not axes:
        return x
    return Traced(t.e.op("Squeeze", x.onnx, t.e.ints(axes)), out.shape, x.dtype)


def joined(t, values, axis, out):
    values, layout = t.aligned(values)
    place = layout.index(axis) if layout else axis
    return Traced(t.e.op("Concat", *[v.onnx for v in values], axis=place), out.shape, out.dtype, layout)


@operation("Concatenate", "Append", "Hstack", "Vstack")
def concatenate(t, op, *xs):
    out = spec(op, *xs)
    xs = xs[0] if len(xs) == 1 else xs
    values = [t.cast(t.value(x), out.dtype) for x in xs]
    kind = type(op).__name__
    if kind == "Append" and op.axis is None or kind == "Vstack" and values[0].rank < 2:
        return t.refuse(f"keras.ops.{kind.lower()} of flat tensors", fix="keras.ops.concatenate(..., axis=...)")
    axis = {"Hstack": min(1, values[0].rank - 1), "Vstack": 0}.get(kind, getattr(op, "axis", 0))
    return joined(t, values, axis % len(out.shape), out)


@operation("Diff")
def diff(t, op, a):
    import keras

    x = t.value(a)
    axis = op.axis % x.rank
    for _ in range(op.n):
        keys = [[slice(None)] * x.rank for _ in range(2)]
        keys[0][axis], keys[1][axis] = slice(1, None), slice(None, -1)
        x = keras.ops.subtract(x[tuple(keys[0])], x[tuple(keys[1])])
    return x


@operation("Stack")
def stack(t, op, x):
    out = spec(op, x)
    values = [t.logical(t.cast(t.value(v), out.dtype)) for v in x]
    axis = op.axis % len(out.shape)
    rows = [t.e.op("Unsqueeze", v.onnx, t.e.ints([axis])) for v in values]
    return Traced(t.e.op("Concat", *rows, axis=axis), out.shape, out.dtype)


@operation("Split")
def split(t, op, x):
    out, x = spec(op, x), t.value(x)
    axis = op.axis % x.rank
    place = x.layout.index(axis) if x.layout else axis
    if len(out) == 1:
        return [x]
    sizes = [o.shape[axis] for o in out]
    if any(is_open(s) for s in sizes):
        return t.refuse("a split along an axis of open size")
    made = t.e.node("Split", [x.onnx, t.e.ints(sizes)], len(out), axis=place)
    return [Traced(m, o.shape, x.dtype, x.layout) for m, o in zip(made, out)]


@operation("Unstack")
def unstack(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    axis = op.axis % x.rank
    return [Traced(t.e.op("Gather", x.onnx, t.e.const(k, np.int64), axis=axis), o.shape, x.dtype)
            for k, o in enumerate(out)]


@operation("Pad")
def pad(t, op, x, constant_values=None):
    out, x = spec(op, x), t.value(x)
    width = list(op.pad_width)
    width = [tuple(int(v) for v in w) for w in (width * x.rank if len(width) == 1 else width)]
    have = x.layout or tuple(range(x.rank))
    pads = [width[a][0] for a in have] + [width[a][1] for a in have]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}.get(op.mode)
    if mode is None:
        return t.refuse(f"keras.ops.pad with mode '{op.mode}'")
    value = number(t, versions.to_numpy(constant_values), x) if constant_values is not None else None
    return Traced(t.e.op("Pad", x.onnx, t.e.ints(pads), value, mode=mode), out.shape, x.dtype, x.layout)


@operation("Tile")
def tile(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    repeats = [op.repeats] if isinstance(op.repeats, int) else list(op.repeats)
    rank = max(len(repeats), x.rank)
    repeats = [1] * (rank - len(repeats)) + repeats
    if x.rank < rank:
        x = Traced(t.e.op("Unsqueeze", x.onnx, t.e.ints(range(rank - x.rank))), (1,) * (rank - x.rank) + x.shape,
                   x.dtype)
    return Traced(t.e.op("Tile", x.onnx, t.shape_vector(repeats)), out.shape, x.dtype)


@operation("Repeat")
def repeat(t, op, x):
    out, x = spec(op, x), t.value(x)
    if not isinstance(op.repeats, (int, np.integer)) or op.axis is None:
        return t.refuse("keras.ops.repeat with a number for each element, or without an axis")
    axis, times = op.axis % x.rank, int(op.repeats)
    place = x.layout.index(axis) if x.layout else axis
    wide = t.e.op("Unsqueeze", x.onnx, t.e.ints([place + 1]))
    tiled = t.e.op("Tile", wide, t.e.ints([times if k == place + 1 else 1 for k in range(x.rank + 1)]))
    have = x.layout or tuple(range(x.rank))
    shape = [0] * x.rank
    shape[place] = -1
    if sum(is_open(d) for d in x.shape) > 1 or is_open(x.shape[axis]):
        sizes = [x.shape[a] for a in have]
        if not is_open(x.shape[axis]):
            sizes[place] = x.shape[axis] * times
        # a 0 copies the size of the same place, which is right before the repeated axis only
        shape = t.shape_vector([t.dim(x, a) if is_open(x.shape[a]) and a != axis else
                                (-1 if a == axis else x.shape[a]) for a in have])
        return Traced(t.e.op("Reshape", tiled, shape), out.shape, x.dtype, x.layout)
    sizes = [x.shape[a] * (times if a == axis else 1) if not is_open(x.shape[a]) else -1 for a in have]
    return Traced(t.e.op("Reshape", tiled, t.e.ints(sizes)), out.shape, x.dtype, x.layout)


@operation("BroadcastTo")
def broadcast_to(t, op, x):
    out, x = spec(op, x), t.logical(t.value(x))
    return Traced(t.e.op("Expand", x.onnx, t.shape_vector(op.shape)), out.shape, x.dtype)


@operation("Flip")
def flip(t, op, x):
    x = t.value(x)
    axes = axes_of(op.axis, x.rank)
    have = x.layout or tuple(range(x.rank))
    n = len(axes)
    low = np.iinfo(np.int64).min + 1
    made = t.e.op("Slice", x.onnx, t.e.ints([-1] * n), t.e.ints([low] * n), t.e.ints([have.index(a) for a in axes]),
                  t.e.ints([-1] * n))
    return x.like(made)


@operation("Roll")
def roll(t, op, x):
    x = t.value(x)
    if op.axis is None:
        return t.refuse("keras.ops.roll without an axis")
    pairs = [(op.shift, op.axis)] if isinstance(op.axis, int) else list(zip(np.broadcast_to(op.shift, len(op.axis)),
                                                                            op.axis))
    for shift, axis in pairs:
        axis %= x.rank
        place = x.layout.index(axis) if x.layout else axis
        size = x.shape[axis]
        if is_open(size):
            return t.refuse("keras.ops.roll along an axis of open size")
        shift = int(shift) % size
        if shift:
            ends = t.e.ints([size - shift]), t.e.ints([size])
            tail = t.e.op("Slice", x.onnx, ends[0], ends[1], t.e.ints([place]))
            head = t.e.op("Slice", x.onnx, t.e.ints([0]), ends[0], t.e.ints([place]))
            x = x.like(t.e.op("Concat", tail, head, axis=place))
    return x


@operation("OnesLike", "ZerosLike", "FullLike", "EmptyLike")
def like(t, op, x, fill_value=None, **_):
    out, x = op.compute_output_spec(x) if fill_value is None else op.compute_output_spec(x, fill_value), t.value(x)
    value = {"OnesLike": 1, "ZerosLike": 0, "EmptyLike": 0}.get(type(op).__name__, fill_value)
    if t.is_symbolic(value):
        value = t.value(value, out.dtype)
        return x.like(t.e.op("Expand", value.onnx, t.e.op("Shape", x.onnx)), dtype=out.dtype)
    filled = np.full([1], versions.to_numpy(value), versions.numpy_dtype(out.dtype))
    return x.like(t.e.op("ConstantOfShape", t.e.op("Shape", x.onnx), value=filled), dtype=out.dtype)


@operation("Full")
def full(t, op, fill_value):
    value = t.value(fill_value, op.dtype) if op.dtype else t.value(fill_value)
    return Traced(t.e.op("Expand", value.onnx, t.shape_vector(op.shape)), op.shape, value.dtype)


@operation("Arange")
def arange(t, op, start, stop=None, step=1, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    dtype = op.dtype or dtype or versions.result_type(*[int if isinstance(v, Dim) else v for v in (start, stop, step)])
    wide = "int64" if dtype.startswith("int") else dtype
    names = [t.value(v, wide).onnx for v in (start, stop, step)]
    return t.cast(Traced(t.e.op("Range", *names), [None], wide), dtype)


@operation("Tril", "Triu")
def triangle(t, op, x):
    x = t.logical(t.value(x))
    return x.like(t.e.op("Trilu", x.onnx, t.e.const(op.k, np.int64), upper=int(type(op).__name__ == "Triu")))


@operation("Diagonal", "Diag", "Trace", "Meshgrid")
def unsupported(t, op, *xs):
    return t.refuse(f"keras.ops.{type(op).__name__.lower()} has no form here")


@operation("Ndim")
def ndim(t, op, x):
    """A number that is known: code asks for it in conditions."""
    return t.value(x).rank


@operation("Size")
def size(t, op, x):
    x = t.value(x)
    return t.cast(Traced(t.e.op("Size", x.onnx), (), "int64"), "int32")
