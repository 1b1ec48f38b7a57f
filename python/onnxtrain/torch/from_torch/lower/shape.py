"""Operators that move, cut, join or repeat; nothing is computed."""

import torch

from .base import Unsupported, Value, lower, static

END = 2**63 - 1


def axis_of(dim, rank):
    return dim % rank if rank else 0


# ---- the same tensor
@lower("aten.alias", "aten.clone", "aten.contiguous", "aten.lift_fresh_copy", "aten.lift_fresh", "aten.lift",
       "aten.positive", "aten.resolve_conj", "aten.resolve_neg", "aten.view_copy", "aten._conj", "aten.conj",
       "aten.real", "aten.requires_grad_")
def same(c, a):
    return a.self if a.self is not None else a.positional[0]


@lower("aten.detach", "aten.detach_", "aten.detach_copy")
def detach(c, a):
    return c.detach(a.self)


@lower("aten._to_copy", "aten.to", "aten.type_as", "aten.float", "aten.double", "aten.int", "aten.long", "aten.bool")
def convert(c, a):
    return c.tensor(a.self, c.dtype)


@lower("aten._assert_tensor_metadata", "aten._assert_async", "aten._assert_scalar", "aten.sym_constrain_range",
       "aten.sym_constrain_range_for_size", "aten._functional_assert_async")
def nothing(c, a):
    return None


# ---- shape
@lower("aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_alias", "aten._reshape_copy")
def view(c, a):
    if a.size is None and a.shape is None:
        raise Unsupported("view as another element type")
    return _to_val(c, a.self, a.size if a.size is not None else a.shape)


def _to_val(c, x, sizes=None):
    """Reshape to torch's result shape; numbers where they are known, else the Values given in `sizes`."""
    want = c.shape
    known = [static(s) for s in want]
    if sizes is not None and len(sizes) == len(want):
        merged = [k if k is not None else s for k, s in zip(known, sizes)]
        if sum(isinstance(s, int) and s == -1 for s in merged) <= 1:
            return c.reshape(x, merged)
    if sum(k is None for k in known) <= 1 and 0 not in known:
        return c.reshape(x, [-1 if k is None else k for k in known])
    if list(map(str, want)) == list(map(str, x.shape)):
        return x
    raise Unsupported("a shape with several open sizes")


@lower("aten.flatten", "aten.unflatten", "aten.squeeze", "aten.unsqueeze", "aten.view_as", "aten.squeeze_copy",
       "aten.unsqueeze_copy", "aten.reshape_as", "aten.atleast_1d", "aten.atleast_2d", "aten.ravel")
def reshape_like_result(c, a):
    x = a.self
    want, have = c.shape, list(x.shape)
    name = c.operator
    if name.endswith("unsqueeze"):
        return c.unsqueeze(x, [a.dim % len(want)])
    if name.endswith("squeeze"):
        dims = range(len(have)) if a.dim is None else a.dim if isinstance(a.dim, (list, tuple)) else [a.dim]
        gone = [d % len(have) for d in dims if have and static(have[d]) == 1]
        return c.squeeze(x, gone) if gone else x
    if name.endswith("flatten") and a.start_dim is not None and have:
        start, end = a.start_dim % len(have), a.end_dim % len(have)
        if start == end:
            return x
        sizes = [c.dim(x, k) for k in range(start)] + [-1] + [c.dim(x, k) for k in range(end + 1, len(have))]
        merged = [static(want[k]) if static(want[k]) is not None else s for k, s in enumerate(sizes)]
        return c.reshape(x, merged)
    if name.endswith("unflatten"):
        dim = a.dim % len(have)
        sizes = [c.dim(x, k) for k in range(dim)] + list(a.sizes) + [c.dim(x, k) for k in range(dim + 1, len(have))]
        merged = [static(want[k]) if static(want[k]) is not None else s for k, s in enumerate(sizes)]
        return c.reshape(x, merged)
    if a.other is not None:
        return c.op("Reshape", x, c.op("Shape", a.other))
    return _to_val(c, x)


@lower("aten.transpose", "aten.swapaxes", "aten.swapdims")
def transpose(c, a):
    rank = len(a.self.shape)
    if rank == 0:
        return a.self
    d0, d1 = [axis_of(d, rank) for d in a.positional[1:3]]
    perm = list(range(rank))
    perm[d0], perm[d1] = perm[d1], perm[d0]
    return c.transpose(a.self, perm)


@lower("aten.t", "aten.numpy_T", "aten.mT", "aten.matrix_H", "aten.adjoint")
def t(c, a):
    rank = len(a.self.shape)
    if rank < 2:
        return a.self
    perm = list(range(rank))
    if c.operator.endswith("numpy_T"):
        perm.reverse()
    else:
        perm[-1], perm[-2] = perm[-2], perm[-1]
    return c.transpose(a.self, perm)


@lower("aten.permute", "aten.permute_copy")
def permute(c, a):
    return c.transpose(a.self, [axis_of(d, len(a.dims)) for d in a.dims])


@lower("aten.movedim", "aten.moveaxis")
def movedim(c, a):
    rank = len(a.self.shape)
    one = lambda v: [v] if isinstance(v, int) else list(v)
    source, to = [d % rank for d in one(a.source)], [d % rank for d in one(a.destination)]
    perm = [None] * rank
    for s, d in zip(source, to):
        perm[d] = s
    rest = iter(k for k in range(rank) if k not in source)
    return c.transpose(a.self, [next(rest) if p is None else p for p in perm])


@lower("aten.expand", "aten.broadcast_to", "aten.expand_copy")
def expand(c, a):
    sizes = list(a.size)
    x = a.self
    lead = len(sizes) - len(x.shape)
    if all(isinstance(s, int) and s == -1 or (isinstance(s, int) and k >= lead and static(x.shape[k - lead]) == s)
           for k, s in enumerate(sizes)) and lead == 0:
        return x
    return c.op("Expand", x, c.ints([1 if isinstance(s, int) and s == -1 else s for s in sizes]))


@lower("aten.expand_as")
def expand_as(c, a):
    return c.op("Expand", a.self, c.op("Shape", a.other))


@lower("aten.repeat", "aten.tile")
def repeat(c, a):
    times = list(a.repeats if a.repeats is not None else a.dims)
    x, rank = a.self, len(a.self.shape)
    if len(times) > rank:
        x = c.unsqueeze(x, list(range(len(times) - rank)))
    elif len(times) < rank:
        times = [1] * (rank - len(times)) + times
    return c.op("Tile", x, c.ints(times))


@lower("aten.repeat_interleave")
def repeat_interleave(c, a):
    if not isinstance(a.repeats, int) or a.self is None:
        raise Unsupported("repeat_interleave with a tensor of counts gives a shape that depends on data")
    x, n = a.self, a.repeats
    if a.dim is None:
        x, axis = c.reshape(x, [-1]), 0
    else:
        axis = a.dim % len(x.shape)
    sizes = [c.dim(x, k) for k in range(len(x.shape))] if a.dim is not None else [-1]
    rank = len(sizes)
    wide = c.op("Expand", c.unsqueeze(x, [axis + 1]), c.ints([1] * (axis + 1) + [n] + [1] * (rank - axis - 1)))
    if a.dim is None:
        return c.reshape(wide, [-1])
    size = sizes[axis]
    sizes[axis] = size * n if isinstance(size, int) else c.op("Mul", size, c.e.const(n))
    return c.reshape(wide, sizes)


# ---- join and cut
@lower("aten.cat", "aten.concat", "aten.concatenate")
def cat(c, a):
    parts = [c.tensor(x, c.dtype) for x in a.tensors]
    parts = [p for p in parts if not (p.shape is not None and len(p.shape) == 1 and static(p.shape[0]) == 0)] or parts[
        :1
    ]
    return parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=axis_of(a.dim, len(c.shape)))


@lower("aten.stack")
def stack(c, a):
    axis = axis_of(a.dim, len(c.shape))
    parts = [c.unsqueeze(c.tensor(x, c.dtype), [axis]) for x in a.tensors]
    return parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=axis)


@lower("aten.split", "aten.split_with_sizes", "aten.chunk", "aten.tensor_split", "aten.unsafe_chunk",
       "aten.unsafe_split", "aten.split_copy", "aten.split_with_sizes_copy", "aten.unsafe_split_with_sizes")
def split(c, a):
    axis = (a.dim or 0) % len(a.self.shape)
    sizes = [static(v.shape[axis]) for v in c.vals]
    if None in sizes:
        given = a.split_size if isinstance(a.split_size, (list, tuple)) else a.split_sizes
        if given is None:
            raise Unsupported("a split into pieces of open size")
        sizes = list(given)
    if len(sizes) == 1:
        return [a.self]
    return c.node_n("Split", [a.self, c.ints(sizes)], len(sizes), axis=axis)


@lower("aten.unbind", "aten.unbind_copy")
def unbind(c, a):
    axis = (a.dim or 0) % len(a.self.shape)
    n = len(c.vals)
    if n == 1:
        return [c.squeeze(a.self, [axis])]
    parts = c.node_n("Split", [a.self], n, axis=axis, num_outputs=n)
    return [c.squeeze(p, [axis]) for p in parts]


@lower("aten.select", "aten.select_copy")
def select(c, a):
    return c.op("Gather", a.self, c.tensor(a.index, torch.int64), axis=a.dim % len(a.self.shape))


@lower("aten.slice", "aten.slice_copy")
def slice_(c, a):
    x, axis = a.self, (a.dim or 0) % len(a.self.shape)
    start, end = 0 if a.start is None else a.start, END if a.end is None else a.end
    size = static(x.shape[axis])
    if isinstance(start, int) and isinstance(end, int) and start == 0 and a.step == 1:
        if end >= END or (size is not None and end >= size):
            return x
    return c.slice(x, axis, start, end, a.step)


@lower("aten.narrow", "aten.narrow_copy")
def narrow(c, a):
    end = a.start + a.length if isinstance(a.start, int) and isinstance(a.length, int) else \
        c.op("Add", c.tensor(a.start, torch.int64), c.tensor(a.length, torch.int64))
    return c.slice(a.self, a.dim % len(a.self.shape), a.start, end)


@lower("aten.flip")
def flip(c, a):
    dims = [d % len(a.self.shape) for d in a.dims]
    n = len(dims)
    return c.op("Slice", a.self, c.e.ints([-1] * n), c.e.ints([-END] * n), c.e.ints(dims), c.e.ints([-1] * n))


@lower("aten.roll")
def roll(c, a):
    x = a.self
    if not a.dims:
        flat = c.reshape(x, [-1])
        flat = _roll(c, flat, a.shifts[0] if isinstance(a.shifts, (list, tuple)) else a.shifts, 0)
        return c.reshape(flat, c.dims(x))
    for shift, dim in zip(a.shifts, a.dims):
        x = _roll(c, x, shift, dim % len(c.shape))
    return x


def _roll(c, x, shift, axis):
    if not isinstance(shift, int):
        raise Unsupported("roll by a number that depends on a size")
    if shift == 0:
        return x
    return c.op("Concat", c.slice(x, axis, -shift, END), c.slice(x, axis, 0, -shift), axis=axis)


@lower("aten.unfold")
def unfold(c, a):
    x, axis = a.self, a.dimension % max(len(a.self.shape), 1)
    count = static(c.shape[axis])
    if count is None:
        raise Unsupported("unfold along an open size")
    index = torch.arange(count)[:, None] * a.step + torch.arange(a.size)[None, :]
    y = c.op("Gather", x, c.e.const(index), axis=axis)
    rank = len(x.shape)
    perm = list(range(axis + 1)) + list(range(axis + 2, rank + 1)) + [axis + 1]
    return c.transpose(y, perm)


@lower("aten.pixel_shuffle")
def pixel_shuffle(c, a):
    return c.op("DepthToSpace", a.self, blocksize=a.upscale_factor, mode="CRD")


@lower("aten.pixel_unshuffle")
def pixel_unshuffle(c, a):
    x, r = a.self, a.downscale_factor
    n, ch, h, w = c.dims(x)
    if not all(isinstance(v, int) for v in (ch, h, w)):
        raise Unsupported("pixel_unshuffle of open sizes")
    y = c.reshape(x, [n, ch, h // r, r, w // r, r])
    y = c.transpose(Value(y.name, y.dtype, [None] * 6), [0, 1, 3, 5, 2, 4])
    return c.reshape(y, [n, ch * r * r, h // r, w // r])


@lower("aten.diagonal", "aten.diagonal_copy")
def diagonal(c, a):
    x, rank = a.self, len(a.self.shape)
    d1, d2 = (a.dim1 or 0) % rank, (1 if a.dim2 is None else a.dim2) % rank
    rows, cols = static(x.shape[d1]), static(x.shape[d2])
    if rows is None or cols is None:
        raise Unsupported("a diagonal of open sizes")
    offset = a.offset or 0
    index = [(i, i + offset) for i in range(rows) if 0 <= i + offset < cols]
    rest = [k for k in range(rank) if k not in (d1, d2)]
    moved = c.transpose(x, [d1, d2] + rest)
    y = c.op("GatherND", moved, c.e.const(torch.tensor(index, dtype=torch.int64).reshape(-1, 2)))
    return c.transpose(Value(y.name, y.dtype, [None] * (rank - 1)), list(range(1, rank - 1)) + [0])


@lower("aten.tril", "aten.triu")
def trilu(c, a):
    upper = int(c.operator.endswith("triu"))
    x = a.self
    as_bool = x.dtype == torch.bool
    x = c.tensor(x, torch.int64) if as_bool else x
    y = c.op("Trilu", x, c.tensor(a.diagonal, torch.int64), upper=upper)
    return c.tensor(y, torch.bool) if as_bool else y


@lower("aten.diag_embed")
def diag_embed(c, a):
    n = static(a.self.shape[-1])
    if n is None or a.offset or (a.dim1, a.dim2) not in ((-2, -1), (len(c.shape) - 2, len(c.shape) - 1)):
        raise Unsupported("diag_embed away from the main diagonal")
    return c.op("Mul", c.unsqueeze(a.self, [-1]), c.e.const(torch.eye(n, dtype=a.self.dtype)))


@lower("aten.broadcast_tensors")
def broadcast_tensors(c, a):
    shape = [static(s) for s in c.shape]
    if None not in shape:
        target = c.ints(shape)
    else:
        total = c.tensor(a.tensors[0], torch.float32)
        for x in a.tensors[1:]:
            total = c.op("Add", total, c.tensor(x, torch.float32))
        target = c.op("Shape", total)
    return [x if list(map(str, x.shape)) == list(map(str, c.shape)) else c.op("Expand", x, target) for x in a.tensors]


@lower("aten.meshgrid")
def meshgrid(c, a):
    parts, rank = [], len(a.tensors)
    order = list(range(rank))
    if a.indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    sizes = [None] * rank
    for k, x in zip(order, a.tensors):
        sizes[k] = c.dim(x, 0) if len(x.shape) else 1
    for k, x in zip(order, a.tensors):
        row = c.reshape(x, [-1 if d == k else 1 for d in range(rank)])
        parts.append(c.op("Expand", row, c.ints(sizes)))
    return parts
