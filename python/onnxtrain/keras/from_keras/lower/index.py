"""Elements by position: slices, gathers, scatters, one-hot."""

import numpy as np

from ...shared import versions
from ..values import Dim, Traced, is_open
from .elementwise import spec
from .table import operation

_END = np.iinfo(np.int64).max


@operation("GetItem")
def get_item(t, op, x, key):
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, slice) and any(isinstance(v, Traced) for v in (k.start, k.stop)) for k in keys):
        return _computed_slices(t, t.value(x), keys)
    if any(t.is_symbolic(k) and not isinstance(k, Dim) or isinstance(k, (list, np.ndarray)) for k in keys):
        return _fancy(t, t.logical(t.value(x)), keys)
    out, x = spec(op, x, key), t.value(x)
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        given = sum(k is not None and k is not Ellipsis for k in keys)
        keys[at:at + 1] = [slice(None)] * (x.rank - given)
    plain = all(isinstance(k, slice) for k in keys)
    if not plain:
        x = t.logical(x)
    starts, ends, axes, steps, dropped, added, axis = [], [], [], [], [], [], 0
    for k in keys:
        if k is None:
            added.append(len(added) + axis - len(dropped))
            continue
        if isinstance(k, slice):
            if k != slice(None):
                step = 1 if k.step is None else int(k.step)
                start = k.start if k.start is not None else (0 if step > 0 else -1)
                low = -_END
                stop = k.stop if k.stop is not None else (_END if step > 0 else low)
                starts, ends, steps = [*starts, start], [*ends, stop], [*steps, step]
                axes.append(axis)
        else:
            k = k if isinstance(k, Dim) else int(k)
            starts, steps = [*starts, k], [*steps, 1]
            ends.append(_END if k == -1 else k + 1)
            axes.append(axis)
            dropped.append(axis)
        axis += 1
    name = x.onnx
    if axes:
        places = [x.layout.index(a) if x.layout else a for a in axes]
        name = t.e.op("Slice", name, t.shape_vector(starts), t.shape_vector(ends), t.e.ints(places), t.e.ints(steps))
    if dropped:
        name = t.e.op("Squeeze", name, t.e.ints(dropped))
    if added:
        name = t.e.op("Unsqueeze", name, t.e.ints(added))
    return Traced(name, out.shape, x.dtype, x.layout if plain else None)


def _computed_slices(t, x, keys):
    """Slices whose ends are computed (RandomCrop): their sizes are open."""
    if not all(isinstance(k, slice) and k.step in (None, 1) for k in keys):
        return t.refuse("a slice with computed ends beside other kinds of positions", fix="one slice after the other")
    x, starts, ends, axes, shape = t.logical(x), [], [], [], list(x.shape)
    for axis, k in enumerate(keys):
        if k == slice(None):
            continue
        starts.append(_end(t, 0 if k.start is None else k.start))
        ends.append(_end(t, _END if k.stop is None else k.stop))
        axes.append(axis)
        shape[axis] = None
    joined = [v[0] if len(v) == 1 else t.e.op("Concat", *v, axis=0) for v in (starts, ends)]
    return Traced(t.e.op("Slice", x.onnx, *joined, t.e.ints(axes)), shape, x.dtype)


def _end(t, v):
    """A position as an int64 vector of one element."""
    if not isinstance(v, (Traced, Dim)):
        return t.e.ints([int(v)])
    return t.e.op("Reshape", t.cast(t.value(v), "int64").onnx, t.e.ints([1]))


def _fancy(t, x, keys):
    """One tensor of positions, along the first axis or behind full slices."""
    places = [k for k, v in enumerate(keys) if not (isinstance(v, slice) and v == slice(None))]
    if len(places) != 1 or any(k is None or k is Ellipsis for k in keys):
        return t.refuse("indexing with several tensors", fix="keras.ops.take or keras.ops.take_along_axis")
    indices = t.value(keys[places[0]])
    if indices.dtype == "bool":
        return t.refuse("indexing with a mask gives a number of rows that is open", fix="keras.ops.where")
    at, indices = places[0], t.logical(indices)
    shape = (*x.shape[:at], *indices.shape, *x.shape[at + 1:])
    return Traced(t.e.op("Gather", x.onnx, t.cast(indices, "int64").onnx, axis=at), shape, x.dtype)


@operation("Take")
def take(t, op, x, indices):
    out = spec(op, x, indices)
    rows = versions.is_variable(x) and id(x) in t.state.by_id and op.axis in (0, None) and len(x.shape) > 1
    source = t.logical(t.variable(x, row_use=True) if rows else t.value(x))
    places = t.cast(t.logical(t.value(indices)), "int64")
    if op.axis is None:
        source = source.like(t.e.op("Reshape", source.onnx, t.e.ints([-1])), [None])
        rows = False
    name = t.e.op("Gather", source.onnx, places.onnx, axis=op.axis or 0)
    if rows:
        entry = t.rows.setdefault(id(x), [])
        if (name, places.onnx) not in entry:
            entry.append((name, places.onnx))
    return Traced(name, out.shape, source.dtype)


@operation("TakeAlongAxis")
def take_along_axis(t, op, x, indices):
    out, x = spec(op, x, indices), t.logical(t.value(x))
    places = t.cast(t.logical(t.value(indices)), "int64")
    axis = op.axis
    if axis is None:
        return t.refuse("keras.ops.take_along_axis without an axis")
    axis %= x.rank
    # sizes of the other axes broadcast
    want = [d for d in out.shape]
    if any(a != b for k, (a, b) in enumerate(zip(places.shape, want)) if k != axis and not is_open(b)):
        places = places.like(t.e.op("Expand", places.onnx, t.shape_vector(
            [t.dim(x, k) if is_open(d) else d for k, d in enumerate(want)])), out.shape)
    return Traced(t.e.op("GatherElements", x.onnx, places.onnx, axis=axis), out.shape, x.dtype)


@operation("OneHot")
def one_hot(t, op, x):
    out = spec(op, x)
    places = t.logical(t.value(x))
    values = t.e.const(np.array([0, 1], versions.numpy_dtype(out.dtype)))
    places = t.cast(places, "int64")
    # negative positions and those beyond the end have no 1
    kept = t.e.op("Less", places.onnx, t.e.const(0, np.int64))
    safe = t.e.op("Where", kept, t.e.const(op.num_classes, np.int64), places.onnx)
    name = t.e.op("OneHot", safe, t.e.const(op.num_classes, np.int64), values, axis=op.axis)
    return Traced(name, out.shape, out.dtype)


@operation("MultiHot")
def multi_hot(t, op, inputs):
    import keras

    hot = keras.ops.one_hot(inputs, op.num_classes, dtype=op.dtype)
    return keras.ops.max(hot, axis=1 if len(inputs.shape) > 1 else 0)


@operation("Slice")
def slice_(t, op, inputs, start_indices):
    out, x = spec(op, inputs, start_indices), t.logical(t.value(inputs))
    starts = [v for v in (start_indices if isinstance(start_indices, (tuple, list)) else
                          versions.to_numpy(start_indices))]
    if any(t.is_symbolic(v) and not isinstance(v, Dim) for v in starts):
        return t.refuse("keras.ops.slice at a position that is computed")
    ends = [s + d for s, d in zip(starts, op.shape)]
    name = t.e.op("Slice", x.onnx, t.shape_vector(starts), t.shape_vector(ends), t.e.ints(range(x.rank)))
    return Traced(name, out.shape, x.dtype)


@operation("ScatterUpdate")
def scatter_update(t, op, inputs, indices, updates):
    x = t.logical(t.value(inputs))
    places, new = t.cast(t.logical(t.value(indices)), "int64"), t.logical(t.value(updates, x.dtype))
    reduction = {None: "none", "add": "add", "max": "max", "min": "min", "mul": "mul"}[getattr(op, "reduction", None)]
    return x.like(t.e.op("ScatterND", x.onnx, places.onnx, new.onnx, reduction=reduction))


@operation("Scatter")
def scatter(t, op, indices, values):
    new = t.logical(t.value(values))
    places = t.cast(t.logical(t.value(indices)), "int64")
    zero = t.zeros(op.shape, new.dtype)
    return zero.like(t.e.op("ScatterND", zero.onnx, places.onnx, new.onnx, reduction="add"))


@operation("SegmentSum")
def segment_sum(t, op, data, segment_ids):
    """Rows whose number lies outside of the segments count nowhere."""
    if op.num_segments is None:
        return t.refuse("keras.ops.segment_sum without num_segments: the size of its result is open")
    out, x, n = spec(op, data, segment_ids), t.logical(t.value(data)), op.num_segments
    ids, e = t.cast(t.logical(t.value(segment_ids)), "int64"), t.e
    outside = e.op("Or", e.op("Less", ids.onnx, e.const(0, np.int64)),
                   e.op("GreaterOrEqual", ids.onnx, e.const(n, np.int64)))
    rows = e.op("Unsqueeze", e.op("Where", outside, e.const(n, np.int64), ids.onnx), e.ints([-1]))
    zero = t.zeros([n + 1, *t.shape_of(x)[1:]], x.dtype)
    summed = e.op("ScatterND", zero.onnx, rows, x.onnx, reduction="add")
    return Traced(e.op("Slice", summed, e.ints([0]), e.ints([n]), e.ints([0])), out.shape, x.dtype)


@operation("Digitize", "SearchSorted")
def digitize(t, op, x, bins=None):
    """Bins of numbers: how many boundaries lie at or below each one."""
    if type(op).__name__ == "SearchSorted":
        return t.refuse("keras.ops.searchsorted has no form here")
    bounds = bins if bins is not None else op.bins
    x = t.logical(t.value(x))
    wide = t.e.op("Unsqueeze", x.onnx, t.e.ints([-1]))
    edges = t.e.const(np.asarray(versions.to_numpy(bounds), versions.numpy_dtype(x.dtype)))
    above = t.e.op("GreaterOrEqual", wide, edges)
    count = t.e.op("ReduceSum", t.e.cast(above, "int32"), t.e.ints([-1]), keepdims=0)
    return Traced(count, x.shape, "int32")
