"""Borders around a tensor, and what in-place assignment to a part becomes."""

import torch

from .base import Value, lower, static
from .shape import END


# ---- borders
@lower("aten.constant_pad_nd")
def constant_pad(c, a):
    return pad_nd(c, a.self, a.pad, "constant", a.value)


def _pad_kind(mode, *names):
    @lower(*[f"aten.{n}" for n in names])
    def f(c, a):
        return pad_nd(c, a.self, a.padding, mode)

    return f


_pad_kind("reflect", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
_pad_kind("edge", "replication_pad1d", "replication_pad2d", "replication_pad3d")


@lower("aten.pad")
def pad(c, a):
    mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[a.mode or "constant"]
    return pad_nd(c, a.self, a.pad, mode, a.value)


def pad_nd(c, x, pads, mode, value=None):
    rank, pairs = len(x.shape), [pads[k:k + 2] for k in range(0, len(pads), 2)]
    before, after = [0] * rank, [0] * rank
    for k, (left, right) in enumerate(pairs):
        before[rank - 1 - k], after[rank - 1 - k] = left, right
    if all(isinstance(v, int) and v == 0 for v in before + after):
        return x
    fill = c.tensor(value or 0, x.dtype) if mode == "constant" else None
    if x.dtype == torch.bool:
        y = pad_nd(c, c.tensor(x, torch.int64), pads, mode, int(value or 0))
        return c.tensor(y, torch.bool)
    return c.op("Pad", x, c.ints(before + after), fill, mode=mode)


# ---- writing into a part (what in-place assignment becomes)
@lower("aten.select_scatter")
def select_scatter(c, a):
    axis = a.dim % len(a.self.shape)
    part = c.unsqueeze(c.tensor(a.src, a.self.dtype), [axis])
    index = a.index
    end = END if index == -1 else index + 1 if isinstance(index, int) else c.op("Add", index, c.e.const(1))
    return _write(c, a.self, part, axis, index, end, 1)


@lower("aten.slice_scatter")
def slice_scatter(c, a):
    axis = (a.dim or 0) % len(a.self.shape)
    start, end = 0 if a.start is None else a.start, END if a.end is None else a.end
    src = c.tensor(a.src, a.self.dtype)
    if isinstance(start, int) and start == 0 and a.step == 1 and isinstance(end, int):
        size = static(a.self.shape[axis])
        if end >= END or (size is not None and end >= size):
            return src
    return _write(c, a.self, src, axis, start, end, a.step)


def _write(c, x, part, axis, start, end, step):
    if step == 1:  # before, part, behind
        pieces = [] if isinstance(start, int) and start == 0 else [c.slice(x, axis, 0, start)]
        pieces.append(part)
        size = static(x.shape[axis])
        if not (isinstance(end, int) and (end >= END or (size is not None and end >= size))):
            pieces.append(c.slice(x, axis, end, END))
        return pieces[0] if len(pieces) == 1 else c.op("Concat", *pieces, axis=axis)
    size = c.dim(x, axis)
    rows = c.slice(c.op("Range", c.e.const(0), c.tensor(size, torch.int64), c.e.const(1)), 0, start, end, step)
    rank = len(x.shape)
    rows = c.reshape(rows, [-1 if k == axis else 1 for k in range(rank)])
    return c.op("ScatterElements", x, c.op("Expand", rows, c.op("Shape", part)), part, axis=axis)


@lower("aten.copy", "aten.fill")
def copy(c, a):
    new = a.src if a.src is not None else a.value
    value = c.tensor(new, c.dtype)
    if isinstance(new, Value) and new.shape is not None and list(map(str, new.shape)) == list(map(str, c.shape)):
        return value
    return c.op("Expand", value, c.ints(c.dims(a.self)))
