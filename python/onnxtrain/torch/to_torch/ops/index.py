"""Gathers, scatters, and what finds positions."""

import torch
import torch.nn.functional as F

from .table import op, wide


def _positive(index, size):
    return torch.where(index < 0, index + size, index)


@op("Gather")
def gather(n):
    axis = n.get("axis", 0)
    fixed = n.constant(1)
    never_negative = fixed is not None and bool((fixed >= 0).all())
    number = fixed.item() if fixed is not None and fixed.dim() == 0 else None

    def run(x, index):
        a = axis + x.dim() if axis < 0 else axis
        if number is not None:
            return x.select(a, number)
        index = index.to(torch.int64)
        if not never_negative:
            index = _positive(index, x.shape[a])
        if a == 0 and x.dim() == 2 and x.dtype.is_floating_point:
            return F.embedding(index, x)
        y = x.index_select(a, index.reshape(-1))
        return y.reshape(*x.shape[:a], *index.shape, *x.shape[a + 1:])

    return run


@op("GatherElements")
def gather_elements(n):
    axis = n.get("axis", 0)
    return lambda x, index: torch.gather(x, axis, _positive(index.to(torch.int64), x.shape[axis]))


def _nd_parts(x, index, batch):
    """The index tuple that picks x[batch..., index[..., :]]."""
    index, depth = index.to(torch.int64), index.shape[-1]
    parts = []
    for b in range(batch):
        view = [1] * (index.dim() - 1)
        view[b] = x.shape[b]
        parts.append(torch.arange(x.shape[b], device=x.device).reshape(view))
    for k in range(depth):
        parts.append(_positive(index[..., k], x.shape[batch + k]))
    return tuple(parts)


@op("GatherND")
def gather_nd(n):
    batch = n.get("batch_dims", 0)
    return lambda x, index: x[_nd_parts(x, index, batch)]


_SCATTER = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def scatter_elements(n):
    axis, how = n.get("axis", 0), n.get("reduction", "none")

    def run(x, index, updates):
        index = _positive(index.to(torch.int64), x.shape[axis])
        if how == "none":
            return x.scatter(axis, index, updates)
        return x.scatter_reduce(axis, index, updates, _SCATTER[how], include_self=True)

    return run


@op("ScatterND")
def scatter_nd(n):
    how = n.get("reduction", "none")

    def run(x, index, updates):
        parts = _nd_parts(x, index, 0)
        if how in ("none", "add"):
            return x.index_put(parts, updates, accumulate=how == "add")
        # one flat row per indexed block
        depth = index.shape[-1]
        rows = torch.zeros((), dtype=torch.int64, device=x.device)
        for k in range(depth):
            rows = rows * x.shape[k] + parts[k]
        inner = 1
        for d in x.shape[depth:]:
            inner *= d
        flat = x.reshape(-1, inner)
        at = rows.reshape(-1, 1).expand(-1, inner)
        return flat.scatter_reduce(0, at, updates.reshape(-1, inner), _SCATTER[how], include_self=True).reshape(x.shape)

    return run


@op("TensorScatter")
def tensor_scatter(n):
    axis, circular = n.get("axis", -2), n.get("mode", "linear") == "circular"

    def run(past, update, start=None):
        a = axis + past.dim() if axis < 0 else axis
        steps = torch.arange(update.shape[a], device=past.device)
        first = (
            torch.zeros(past.shape[0], dtype=torch.int64, device=past.device)
            if start is None
            else start.to(torch.int64)
        )
        at = first.unsqueeze(1) + steps
        at = at % past.shape[a] if circular else at
        view = [1] * past.dim()
        view[0], view[a] = at.shape
        return past.scatter(a, at.reshape(view).expand(update.shape), update)

    return run


@op("NonZero")
def non_zero(n):
    return lambda x: torch.nonzero(x).t()


@op("Compress")
def compress(n):
    axis = n.get("axis")

    def run(x, condition):
        if axis is None:
            flat = x.reshape(-1)
            return flat[: condition.numel()][condition]
        return x.index_select(axis, torch.nonzero(condition).reshape(-1))

    return run


@op("OneHot", host=(1,))
def one_hot(n):
    axis = n.get("axis", -1)

    def run(index, depth, values):
        depth = int(depth[0] if isinstance(depth, list) else depth)
        index = wide(index).to(torch.int64).unsqueeze(axis)
        view = [1] * index.dim()
        view[axis] = depth
        at = torch.arange(depth, device=index.device).reshape(view)
        return torch.where(_positive(index, depth) == at, values[1], values[0])

    return run


@op("Unique")
def unique(n):
    axis, ordered = n.get("axis"), n.get("sorted", 1)

    def run(x):
        y, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=axis)
        inverse = inverse.reshape(-1)
        at = torch.arange(inverse.numel(), device=x.device)
        first = torch.full((counts.numel(),), inverse.numel(), dtype=torch.int64, device=x.device)
        first = first.scatter_reduce(0, inverse, at, "amin")
        if not ordered:
            order = torch.argsort(first)
            y = y.index_select(axis or 0, order)
            inverse = torch.argsort(order)[inverse]
            first, counts = first[order], counts[order]
        return y, first, inverse, counts

    return run


@op("Col2Im", host=(1, 2))
def col2im(n):
    dilations, pads, strides = n.get("dilations"), n.get("pads"), n.get("strides")

    def run(x, image, block):
        rank = len(image)
        d, s, p = dilations or [1] * rank, strides or [1] * rank, pads or [0] * 2 * rank
        if rank == 2 and p[:2] == p[2:]:
            return F.fold(x, image, block, dilation=d, padding=p[:2], stride=s)
        return _fold_any(x, image, block, d, s, p)

    return run


def _fold_any(x, image, block, d, s, p):
    """Sums the columns into the padded image, any rank."""
    rank, batch = len(image), x.shape[0]
    cells = 1
    for b in block:
        cells *= b
    full = [image[k] + p[k] + p[k + rank] for k in range(rank)]
    steps = [(full[k] - d[k] * (block[k] - 1) - 1) // s[k] + 1 for k in range(rank)]
    at = torch.zeros((), dtype=torch.int64, device=x.device)
    for k in range(rank):
        position = torch.arange(block[k]).unsqueeze(1) * d[k] + torch.arange(steps[k]) * s[k]
        view = [1] * (2 * rank)
        view[k], view[rank + k] = block[k], steps[k]
        at = at * full[k] + position.reshape(view).to(x.device)
    total = 1
    for f in full:
        total *= f
    channels = x.shape[1] // cells
    y = torch.zeros(batch, channels, total, dtype=x.dtype, device=x.device)
    y = y.index_add(2, at.reshape(-1), x.reshape(batch, channels, -1)).reshape(batch, channels, *full)
    return y[(slice(None), slice(None), *(slice(p[k], p[k] + image[k]) for k in range(rank)))]


