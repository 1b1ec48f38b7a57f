"""Reading and writing at positions that are data: indexing, gather, scatter, embeddings."""

import math

import torch

from .base import Unsupported, Value, lower, static


@lower("aten.embedding")
def embedding(c, a):
    w, index = a.weight, a.indices
    if a.scale_grad_by_freq and c.training:
        raise Unsupported("scale_grad_by_freq changes gradients by how often an index stands in the batch")
    y = c.op("Gather", w, index, axis=0)
    pad = a.padding_idx
    if pad is None or pad < 0 or not c.training:
        return y
    # the padding row is read but never trained
    row = c.detach(c.op("Gather", w, c.e.const(pad), axis=0))
    return c.where(c.unsqueeze(c.op("Equal", index, c.tensor(pad, index.dtype)), [-1]), row, y)


@lower("aten.embedding_renorm")
def embedding_renorm(c, a):
    raise Unsupported(
        "max_norm changes the weight during forward; limit it after the step instead, or leave max_norm out"
    )


@lower("aten.index_select")
def index_select(c, a):
    if len(a.index.shape) == 0:
        return c.op("Gather", a.self, c.unsqueeze(a.index, [0]), axis=a.dim % len(a.self.shape))
    return c.op("Gather", a.self, a.index, axis=a.dim % len(a.self.shape))


@lower("aten.gather")
def gather(c, a):
    return c.op("GatherElements", a.self, a.index, axis=a.dim % max(len(a.self.shape), 1))


@lower("aten.take_along_dim")
def take_along_dim(c, a):
    if a.dim is None:
        raise Unsupported("take_along_dim without dim")
    return c.op("GatherElements", a.self, a.indices, axis=a.dim % len(a.self.shape))


def _index_plan(c, indices):
    """Axes with an index, and their int64 Values. A mask stands for the positions where it is true, one index for each
    of its axes."""
    axes, values, axis = [], [], 0
    for i in indices:
        if i is not None and i.dtype in (torch.bool, torch.uint8):
            axes += range(axis, axis + len(i.shape))
            values += true_places(c, i)
            axis += len(i.shape)
            continue
        if i is not None:
            axes.append(axis)
            values.append(c.tensor(i, torch.int64))
        axis += 1
    return axes, values


def true_places(c, mask):
    """One row of positions for each axis of a mask; how many there are depends on its values."""
    found = c.op("NonZero", c.tensor(mask, torch.bool))
    return [
        Value(c.op("Gather", found, c.e.const(k), axis=0).name, torch.int64, [None]) for k in range(len(mask.shape))
    ]


def _wrapped(c, x, axis, index):
    """Negative positions counted from the end (GatherND and ScatterND leave that open for some runtimes)."""
    size = c.tensor(c.dim(x, axis), torch.int64)
    return c.where(c.op("Less", index, c.e.const(0)), c.op("Add", index, size), index)


@lower("aten.index", "aten._unsafe_index")
def index(c, a):
    x = a.self
    axes, values = _index_plan(c, a.indices)
    if len(axes) == 1:
        return c.op("Gather", x, values[0], axis=axes[0])
    rank = len(x.shape)
    rest = [k for k in range(rank) if k not in axes]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    moved = c.transpose(x, axes + rest)
    shape, joined = _join(c, x, axes, values)
    y = c.op("GatherND", moved, joined)
    where = axes[0] if together else 0
    if where == 0:
        return y
    n = len(shape)
    perm = list(range(n, n + where)) + list(range(n)) + list(range(n + where, n + len(rest)))
    return c.transpose(Value(y.name, y.dtype, [None] * len(perm)), perm)


def _join(c, x, axes, values):
    """Broadcast index tensors to one shape and put them side by side: [..., number of axes]."""
    rank = max(len(v.shape) for v in values)
    total = values[0]
    for v in values[1:]:
        total = c.op("Add", total, v)
    shape = c.op("Shape", total)
    parts = [c.unsqueeze(c.op("Expand", _wrapped(c, x, k, v), shape), [-1]) for k, v in zip(axes, values)]
    return [None] * rank, c.op("Concat", *parts, axis=-1)


@lower("aten.index_put", "aten._unsafe_index_put", "aten._index_put_impl")
def index_put(c, a):
    x, values = a.self, c.tensor(a.values, a.self.dtype)
    indices = list(a.indices)
    chosen = _through_mask(c, x, indices, values, a.accumulate)
    if chosen is not None:
        return chosen
    axes, given = _index_plan(c, indices)
    rank = len(x.shape)
    rest = [k for k in range(rank) if k not in axes]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    perm = axes + rest
    moved = c.transpose(x, perm)
    shape, joined = _join(c, x, axes, given)
    tail = [c.dim(x, k) for k in rest]
    lead = c.slice(c.op("Shape", joined), 0, 0, -1)
    full = c.op("Concat", lead, c.ints(tail), axis=0) if tail else lead
    if axes[0] != 0 and together and len(values.shape):  # values come as [before, indices, behind]
        n, before = len(shape), axes[0]
        missing = n + len(rest) - len(values.shape)
        if missing:
            values = Value(
                c.unsqueeze(values, list(range(missing))).name, values.dtype, [1] * missing + list(values.shape)
            )
        values = c.transpose(
            values, list(range(before, before + n)) + list(range(before)) + list(range(before + n, n + len(rest)))
        )
    updates = c.op("Expand", values, full)
    y = c.op("ScatterND", moved, joined, updates, reduction="add" if a.accumulate else None)
    back = [perm.index(k) for k in range(rank)]
    return c.transpose(Value(y.name, y.dtype, [None] * rank), back)


def _through_mask(c, x, indices, values, accumulate):
    """Assignment through one mask of what is the same at every place of it: a choice. None for any other assignment."""
    given = [(k, i) for k, i in enumerate(indices) if i is not None]
    if len(given) != 1 or given[0][1].dtype not in (torch.bool, torch.uint8):
        return None
    before, mask = given[0]
    behind = len(x.shape) - before - len(mask.shape)
    if len(values.shape) > behind and not (len(values.shape) == behind + 1 and static(values.shape[0]) == 1):
        return None
    if len(values.shape) > behind:
        values = c.squeeze(values, [0])
    mask = c.tensor(mask, torch.bool)
    if behind:
        mask = c.unsqueeze(mask, list(range(-behind, 0)))
    return c.where(mask, c.op("Add", x, values) if accumulate else values, x)


def _updates(c, a):
    src = a.src if a.src is not None else a.value
    value = c.tensor(src, a.self.dtype)
    if isinstance(src, Value) and len(src.shape) == len(a.index.shape):
        if list(map(str, src.shape)) == list(map(str, a.index.shape)):
            return value
        for k in range(len(src.shape)):  # only the corner that the index covers is read
            value = c.slice(value, k, 0, c.dim(a.index, k))
        return value
    return c.op("Expand", value, c.op("Shape", a.index))


_REDUCTIONS = {None: None, "add": "add", "sum": "add", "mean": "add", "multiply": "mul", "prod": "mul", "amax": "max",
               "amin": "min"}
_NEUTRAL = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}


@lower("aten.scatter", "aten.scatter_add", "aten.scatter_reduce")
def scatter(c, a):
    name = c.operator
    return _scatter(
        c,
        a.self,
        a.index,
        _updates(c, a),
        a.dim % max(len(a.self.shape), 1),
        "add" if name.endswith("scatter_add") else a.reduce,
        a.include_self is not False,
    )


def _scatter(c, x, index, src, axis, reduction, include_self=True):
    """Where a mean is wanted, or what x holds does not count, the hits of every place are counted first."""
    if reduction not in _REDUCTIONS:
        raise Unsupported(f"scatter with reduction '{reduction}'")
    kind = _REDUCTIONS[reduction]
    if include_self and reduction != "mean":
        return c.op("ScatterElements", x, index, src, axis=axis, reduction=kind)
    if reduction == "mean" and not x.dtype.is_floating_point:
        raise Unsupported("the mean of integers")
    one = c.e.const(1)
    hits = c.op("Expand", c.e.const(0), c.op("Shape", x))
    hits = c.op("ScatterElements", hits, index, c.op("Expand", one, c.op("Shape", index)), axis=axis, reduction="add")
    if not include_self:
        x = c.where(c.op("Greater", hits, c.e.const(0)), c.num(_NEUTRAL[kind], x), x)
    y = c.op("ScatterElements", x, index, src, axis=axis, reduction=kind)
    if reduction != "mean":
        return y
    count = c.op("Add", hits, one) if include_self else c.op("Max", hits, one)
    return c.op("Div", y, c.tensor(count, x.dtype))


@lower("aten.index_reduce")
def index_reduce(c, a):
    axis = a.dim % len(a.self.shape)
    return _scatter(c, a.self, _rows(c, a.index, a.source, axis), a.source, axis, a.reduce, a.include_self is not False)


def _rows(c, index, src, axis):
    """An index along one axis, repeated over the others."""
    rows = c.reshape(index, [-1 if k == axis else 1 for k in range(len(src.shape))])
    return c.op("Expand", rows, c.op("Shape", src))


@lower("aten.index_add", "aten.index_copy")
def index_add(c, a):
    x, axis = a.self, a.dim % len(a.self.shape)
    src = c.tensor(a.source, x.dtype)
    if a.alpha not in (None, 1):
        src = c.op("Mul", src, c.num(a.alpha, x))
    add = c.operator.endswith("index_add")
    src.shape = a.source.shape
    return c.op("ScatterElements", x, _rows(c, a.index, src, axis), src, axis=axis, reduction="add" if add else None)


@lower("aten.index_fill")
def index_fill(c, a):
    x, axis = a.self, a.dim % len(a.self.shape)
    sizes = c.dims(x)
    sizes[axis] = c.dim(a.index, 0)
    rows = c.reshape(a.index, [-1 if k == axis else 1 for k in range(len(x.shape))])
    shape = c.ints(sizes)
    return c.op(
        "ScatterElements", x, c.op("Expand", rows, shape), c.op("Expand", c.tensor(a.value, x.dtype), shape), axis=axis
    )


@lower("aten.bucketize", "aten.searchsorted")
def bucketize(c, a):
    edges, x = (a.boundaries, a.self) if a.boundaries is not None else (a.sorted_sequence, a.self)
    if len(edges.shape) != 1:
        raise Unsupported("searchsorted in several sequences")
    x, edges = c.common(x, edges)
    op = "LessOrEqual" if a.right or a.side == "right" else "Less"
    below = c.op(op, edges, c.unsqueeze(x, [-1]))
    return c.tensor(c.reduce("Sum", c.tensor(below, torch.int64), [-1], False), c.dtype)


@lower("aten.nonzero")
def nonzero(c, a):
    if not a.self.shape:
        raise Unsupported("positions in a single number")
    return c.op("Transpose", c.op("NonZero", a.self), perm=[1, 0])


@lower("aten.nonzero_numpy")
def nonzero_numpy(c, a):
    return tuple(true_places(c, a.self))


@lower("aten.masked_select")
def masked_select(c, a):
    rank = max(len(a.self.shape), len(a.mask.shape))
    x, mask = (
        Value(c.op("Expand", v, c.op("Shape", o)).name, v.dtype, [None] * rank)
        for v, o in ((a.self, a.mask), (a.mask, a.self))
    )
    return c.op("GatherND", x, c.op("Transpose", c.op("NonZero", mask), perm=[1, 0]))


@lower("aten.item", "aten._local_scalar_dense", "aten.unique_consecutive", "aten._unique2", "aten.nonzero_static")
def depends_on_data(c, a):
    raise Unsupported("its result's shape or value leads out of the graph")
