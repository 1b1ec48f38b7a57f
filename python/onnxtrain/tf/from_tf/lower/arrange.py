"""Operations that arrange elements: shapes, joins, cuts, padding, fills."""

import numpy as np
import tensorflow as tf

from ..values import Sym, to_first, to_last
from .images import dilated
from .table import Unsupported, op

_END = np.iinfo(np.int64).max


def _sized(n, name, k=0):
    """A result of sizes: int64 in ONNX, what TensorFlow says beside it."""
    if n.dtype == tf.int64:
        return n.out(name, k)
    made = n.out(n.e.cast(name, n.dtype.as_numpy_dtype), k)
    made.wide = name
    return made


@op("Shape")
def shape(n):
    return _sized(n, n.e.op("Shape", n.plain(0)))


@op("ShapeN")
def shape_n(n):
    return [_sized(n, n.e.op("Shape", n.plain(k)), k) for k in range(len(n.inputs))]


@op("Size")
def size(n):
    return _sized(n, n.e.op("Size", n.plain(0)))


@op("Rank")
def rank(n):
    return Sym(dtype=n.dtype, shape=[], static=np.array(n.rank(), np.int32))


@op("Reshape")
def reshape(n):
    wanted = n[1].static
    repeated = _repeat(n)
    if repeated is not None:
        return repeated
    if wanted is not None:
        return n.e.op("Reshape", n.plain(0), n.e.ints(wanted), allowzero=1 if 0 in np.asarray(wanted) else None)
    return n.e.op("Reshape", n.plain(0), n.w.int64(n[1]), allowzero=1)


def _repeat(n):
    """tf.repeat of an image along a spatial axis (ExpandDims, Tile, Reshape): a Resize; None otherwise."""
    tile = n.op.inputs[0].op
    inner = tile.inputs[0].op if tile.type == "Tile" else None
    if inner is None or inner.type != "ExpandDims":
        return None
    x, axis, counts = (n.sym_of(t) for t in (inner.inputs[0], inner.inputs[1], tile.inputs[1]))
    if x is None or not x.made_first or axis is None or axis.static is None or counts is None or counts.static is None:
        return None
    new, times = int(axis.static), [int(v) for v in counts.static]
    new = new + x.rank + 1 if new < 0 else new
    several = [k for k, v in enumerate(times) if v != 1]
    at = new - 1
    if several != [new] or not 0 < at < x.rank - 1 or not x.dtype.is_floating or x.shape[at] is None:
        return None
    wanted = [x.shape[k] * times[new] if k == at else d for k, d in enumerate(x.shape.as_list())]
    if n.shape.rank != x.rank or any(a is not None and a != b for a, b in zip(wanted, n.shape.as_list())):
        return None
    scales = [1.0] * x.rank
    scales[at + 1] = float(times[new])
    name = n.e.op("Resize", n.w.first(x), None, n.e.const(np.array(scales, np.float32)), nearest_mode="floor",
                  coordinate_transformation_mode="asymmetric")
    return n.w.sym(name, n.dtype, n.shape, True)


@op("Squeeze")
def squeeze(n):
    axes = [int(a) for a in n.attr("squeeze_dims") or []]
    if not axes:
        if None in n[0].shape.as_list():
            raise Unsupported("it drops every axis of size 1 of an open shape")
        axes = [k for k, d in enumerate(n[0].shape) if d == 1]
    s, rank = n[0], n.rank()
    axes = [a + rank if a < 0 else a for a in axes]
    if s.made_first and 0 not in axes and rank - 1 not in axes and rank - len(axes) >= 2:
        order = n.w.order(s)
        name = n.e.op("Squeeze", order.take(s), n.e.ints([order.axis(a) for a in axes]))
        # [batch, channel] is the same in both orders
        return n.w.sym(name, n.dtype, n.shape, rank - len(axes) > 2)
    return n.e.op("Squeeze", n.plain(0), n.e.ints(axes)) if axes else s.copy()


@op("ExpandDims")
def expand_dims(n):
    axis, s = int(n.known(1, "axis").reshape(())), n[0]
    if s.made_first:
        axis = axis + s.rank + 1 if axis < 0 else axis
        if 0 < axis < s.rank:  # between batch and channels
            return n.w.sym(n.e.op("Unsqueeze", n.w.first(s), n.e.ints([axis + 1])), n.dtype, n.shape, True)
    return n.e.op("Unsqueeze", n.plain(0), n.e.ints([axis]))


@op("Transpose")
def transpose(n):
    perm, s = n.ints(1, "permutation"), n[0]
    rank = len(perm)
    if rank > 2 and s.made_first and perm == to_first(rank):
        return n.out(n.w.first(s))
    if rank > 2 and not s.made_first and perm == to_last(rank):
        return n.w.sym(n.plain(0), n.dtype, n.shape, True)
    return s.copy() if perm == list(range(rank)) else n.e.op("Transpose", n.plain(0), perm=perm)


@op("ConcatV2")
def concat(n):
    *parts, axis = n.inputs
    axis = int(n.known(len(parts), "axis").reshape(()))
    parts = [p for p in parts if p.rank is None or 0 not in p.shape.as_list()] or parts
    if len(parts) == 1:
        return parts[0].copy()
    order = n.w.order(*parts)
    if order.is_first and any(p.rank != order.rank for p in parts):
        raise Unsupported("its inputs differ in rank")
    place = order.axis(axis) if order.rank is not None else axis
    return n.out(n.e.node("Concat", [order.take(p) for p in parts], axis=place)[0], order=order)


@op("Pack")
def pack(n):
    axis = int(n.attr("axis", 0))
    axis = axis + n.rank() + 1 if axis < 0 else axis
    parts = [n.e.op("Unsqueeze", n.plain(k), n.e.ints([axis])) for k in range(len(n.inputs))]
    return parts[0] if len(parts) == 1 else n.e.node("Concat", parts, axis=axis)[0]


@op("Unpack")
def unpack(n):
    axis = int(n.attr("axis", 0))
    names = [n.e.op("Gather", n.plain(0), n.e.const(np.array(k)), axis=axis) for k in range(len(n.op.outputs))]
    return [n.out(name, k) for k, name in enumerate(names)]


@op("Split", "SplitV")
def split(n):
    count = len(n.op.outputs)
    value, at = (n[1], 0) if n.op.type == "Split" else (n[0], 2)
    order = n.w.order(value)
    axis = order.axis(int(n.known(at, "axis").reshape(())))
    if count == 1:
        return value.copy()
    if n.op.type == "Split":
        names = n.e.node("Split", [order.take(value)], count, axis=axis, num_outputs=count)
    else:
        sizes = n[1].static
        if sizes is not None and -1 in sizes:
            have = value.shape[int(n.known(2, "axis"))]
            if have is None:
                raise Unsupported("it cuts an open size")
            rest = have - sum(int(v) for v in sizes if v != -1)
            sizes = [rest if v == -1 else int(v) for v in sizes]
        given = n.e.ints(sizes) if sizes is not None else n.w.int64(n[1])
        names = n.e.node("Split", [order.take(value), given], count, axis=axis)
    return [n.out(name, k, order) for k, name in enumerate(names)]


@op("Slice")
def cut(n):
    begin, size, rank = n.w.int64(n[1]), n.w.int64(n[2]), n.rank()
    axes = n.e.ints(range(rank))
    if n[1].static is not None and n[2].static is not None:
        starts = [int(v) for v in n[1].static]
        ends = [_END if int(s) == -1 else b + int(s) for b, s in zip(starts, n[2].static)]
        return n.e.op("Slice", n.plain(0), n.e.ints(starts), n.e.ints(ends), axes)
    to_end = n.e.op("Equal", size, n.e.const(np.array(-1)))
    ends = n.e.op("Where", to_end, n.e.const(np.array(_END)), n.e.op("Add", begin, size))
    return n.e.op("Slice", n.plain(0), begin, ends, axes)


@op("StridedSlice")
def strided_slice(n):
    spec = _Spec(n)
    order = n.w.order(n[0])
    if order.is_first and (spec.squeezed or spec.added):
        order.is_first = False
    name = order.take(n[0])
    if spec.axes:
        name = spec.write(name, order)
    if spec.squeezed:
        name = n.e.op("Squeeze", name, n.e.ints(spec.squeezed))
    if spec.added:
        name = n.e.op("Unsqueeze", name, n.e.ints(spec.added))
    return n.out(name, order=order)


class _Spec:
    """begin, end, strides and masks of a StridedSlice, axis by axis."""

    def __init__(self, n):
        self.n, rank = n, n.rank()
        strides = n.ints(3, "strides")
        masks = {k: int(n.attr(k + "_mask", 0)) for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
        count = len(strides)
        if not masks["ellipsis"]:
            masks["ellipsis"], strides = 1 << count, [*strides, 1]
            count += 1
        used = sum(1 for i in range(count) if not (masks["new_axis"] | masks["ellipsis"]) >> i & 1)
        self.starts, self.ends, self.steps, self.axes, self.squeezed, self.added = [], [], [], [], [], []
        axis = out = 0
        for i in range(count):
            if masks["ellipsis"] >> i & 1:
                axis, out = axis + rank - used, out + rank - used
            elif masks["new_axis"] >> i & 1:
                self.added.append(out)
                out += 1
            else:
                out += self._one(i, axis, strides[i], masks)
                axis += 1

    def _one(self, i, axis, step, masks):
        """Adds the bounds of one axis; how many axes it leaves."""
        start, end = self._bound(1, i), self._bound(2, i)
        if masks["shrink_axis"] >> i & 1:
            self.axes.append(axis)
            self.starts.append(start)
            self.ends.append(_END if start == -1 else start + 1 if isinstance(start, int) else ("next", start))
            self.steps.append(1)
            self.squeezed.append(axis)
            return 0
        start = (0 if step > 0 else _END) if masks["begin"] >> i & 1 else start
        end = (_END if step > 0 else -_END) if masks["end"] >> i & 1 else end
        if (start, end, step) != (0, _END, 1):
            self.axes.append(axis)
            self.starts.append(start)
            self.ends.append(end)
            self.steps.append(step)
        return 1

    def _bound(self, k, i):
        s = self.n[k]
        if s.static is not None:
            return int(s.static[i]) if i < len(s.static) else 0
        return ("item", k, i)

    def _names(self, bounds):
        n = self.n
        if all(isinstance(b, int) for b in bounds):
            return n.e.ints(bounds)
        names = [self._name(b) for b in bounds]
        return n.e.node("Concat", names, axis=0)[0] if len(names) > 1 else names[0]

    def _name(self, b):
        n = self.n
        if isinstance(b, int):
            return n.e.ints([b])
        if b[0] == "next":  # behind -1 comes the end
            at = self._name(b[1])
            after = n.e.op("Add", at, n.e.ints([1]))
            return n.e.op("Where", n.e.op("Equal", at, n.e.ints([-1])), n.e.ints([_END]), after)
        return n.e.op("Slice", n.w.int64(n[b[1]]), n.e.ints([b[2]]), n.e.ints([b[2] + 1]), n.e.ints([0]))

    def write(self, name, order):
        n = self.n
        axes = [order.axis(a) for a in self.axes]
        return n.e.op("Slice", name, self._names(self.starts), self._names(self.ends), n.e.ints(axes),
                      n.e.ints(self.steps))


@op("Tile")
def tile(n):
    return n.e.op("Tile", n.plain(0), n.w.int64(n[1]))


@op("BroadcastTo")
def broadcast_to(n):
    return n.e.op("Expand", n.plain(0), n.w.int64(n[1]))


@op("BroadcastArgs")
def broadcast_args(n):
    """The shape that two shapes broadcast to, by trying it."""
    sides = [n.e.op("ConstantOfShape", n.w.int64(s)) for s in n.inputs]
    return _sized(n, n.e.op("Shape", n.e.op("Add", *sides)))


@op("Fill")
def fill(n):
    return n.e.op("Expand", n.plain(1), n.w.int64(n[0]))


@op("Range")
def number_range(n):
    return n.e.op("Range", *(n.plain(k) for k in range(3)))


@op("LinSpace")
def linspace(n):
    start, stop = n.plain(0), n.plain(1)
    count = n.e.cast(n.plain(2), n.dtype.as_numpy_dtype)
    one, zero = n.number(1), n.number(0)
    steps = n.e.op("Max", n.e.op("Sub", count, one), one)
    step = n.e.op("Div", n.e.op("Sub", stop, start), steps)
    return n.e.op("Add", start, n.e.op("Mul", n.e.op("Range", zero, count, one), step))


@op("Pad", "PadV2", "MirrorPad")
def pad(n):
    mode = n.attr("mode", "") if n.op.type == "MirrorPad" else ""
    if mode == "SYMMETRIC":
        return _mirror(n)
    value = n.plain(2) if n.op.type == "PadV2" else None
    order = n.w.order(n[0])
    if n[1].static is None:
        pads = n.e.op("Reshape", n.e.op("Transpose", n.w.int64(n[1]), perm=[1, 0]), n.e.ints([-1]))
        order.is_first = False
    else:
        pairs = np.asarray(n[1].static).tolist()
        place = sorted(range(len(pairs)), key=order.axis)
        pads = n.e.ints([pairs[a][0] for a in place] + [pairs[a][1] for a in place])
    return n.out(n.e.op("Pad", order.take(n[0]), pads, value, mode="reflect" if mode else None), order=order)


def _mirror(n):
    """A mirror that repeats the edge, which Pad does not have: the ends backwards, put to both sides."""
    order = n.w.order(n[0])
    name = order.take(n[0])
    for axis, (before, behind) in enumerate(n.known(1, "padding").tolist()):
        at = n.e.ints([order.axis(axis)])

        def ends(first, last, name=name, at=at):
            return n.e.op("Slice", name, n.e.ints([first]), n.e.ints([last]), at, n.e.ints([-1]))

        parts = [ends(before - 1, -_END)] if before else []
        parts += [name] + ([ends(-1, -behind - 1)] if behind else [])
        if len(parts) > 1:
            name = n.e.node("Concat", parts, axis=order.axis(axis))[0]
    return n.out(name, order=order)


@op("ReverseV2")
def reverse(n):
    """Backwards along every axis: a Slice with step -1."""
    order = n.w.order(n[0])
    axes = [order.axis(a) for a in n.ints(1, "axes")]
    name = order.take(n[0])
    if axes:
        count = len(axes)
        name = n.e.op("Slice", name, n.e.ints([-1] * count), n.e.ints([-_END] * count), n.e.ints(axes),
                      n.e.ints([-1] * count))
    return n.out(name, order=order)


@op("Roll")
def roll(n):
    """The end in front of the rest, along one axis after the other."""
    order = n.w.order(n[0])
    shifts, axes = n.ints(1, "shift"), n.ints(2, "axis")
    name = order.take(n[0])
    for shift, axis in zip(shifts, axes):
        at = n.e.ints([order.axis(axis)])
        size = n.e.op("Gather", n.e.op("Shape", name), at, axis=0)
        cut = n.e.op("Sub", size, n.e.op("Mod", n.e.ints([shift]), size))
        parts = [n.e.op("Slice", name, cut, n.e.ints([_END]), at), n.e.op("Slice", name, n.e.ints([0]), cut, at)]
        name = n.e.node("Concat", parts, axis=order.axis(axis))[0]
    return n.out(name, order=order)


@op("ReverseSequence")
def reverse_sequence(n):
    time, batch = int(n.attr("seq_dim")), int(n.attr("batch_dim", 0))
    if {time, batch} != {0, 1}:
        raise Unsupported("ONNX reverses sequences along the first two axes only")
    return n.e.op("ReverseSequence", n.plain(0), n.w.int64(n[1]), time_axis=time, batch_axis=batch)


@op("MatrixBandPart")
def band_part(n):
    low, high = (int(n.known(k, "bounds").reshape(())) for k in (1, 2))
    name = n.plain(0)
    if low >= 0:
        name = n.e.op("Trilu", name, n.e.const(np.array(-low)), upper=1)
    if high >= 0:
        name = n.e.op("Trilu", name, n.e.const(np.array(high)), upper=0)
    return name


@op("DepthToSpace", "SpaceToDepth")
def depth_to_space(n):
    if n.attr("data_format", "NHWC") != "NHWC":
        raise Unsupported("it has the channels first")
    name = n.e.op(n.op.type, n.w.first(n[0]), blocksize=int(n.attr("block_size")))
    return n.w.sym(name, n.dtype, n.shape, True)


@op("SpaceToBatchND", "BatchToSpaceND")
def space_to_batch(n):
    """Reshape, Transpose, Reshape, with padding before or a cut behind."""
    block, pairs = n.ints(1, "block shape"), n.known(2, "pads").tolist()
    whole = dilated(n) if n.op.type == "BatchToSpaceND" else None
    if whole is not None:
        return whole
    count, rank = len(block), n.rank()
    rest = list(range(count + 1, rank))
    name, e = n.plain(0), n.e
    if n.op.type == "SpaceToBatchND":
        before, after = [0] * rank, [0] * rank
        for k, (a, b) in enumerate(pairs):
            before[k + 1], after[k + 1] = a, b
        name = e.op("Pad", name, e.ints(before + after))
        parts = [_size(n, name, 0)]
        for k, b in enumerate(block):
            parts += [e.op("Div", _size(n, name, k + 1), e.ints([b])), e.ints([b])]
        parts += [_size(n, name, a) for a in rest]
        wide = e.op("Reshape", name, e.node("Concat", parts, axis=0)[0])
        order = [2 * k + 2 for k in range(count)] + [0] + [2 * k + 1 for k in range(count)]
        order += [2 * count + 1 + k for k in range(len(rest))]
        moved = e.op("Transpose", wide, perm=order)
        sizes = [e.op("Mul", _size(n, name, 0), e.ints([int(np.prod(block))]))]
        sizes += [e.op("Div", _size(n, name, k + 1), e.ints([b])) for k, b in enumerate(block)]
        return e.op("Reshape", moved, e.node("Concat", [*sizes, *(_size(n, name, a) for a in rest)], axis=0)[0])
    inner = e.op("Div", _size(n, name, 0), e.ints([int(np.prod(block))]))
    parts = [e.ints([b]) for b in block] + [inner] + [_size(n, name, a) for a in range(1, rank)]
    wide = e.op("Reshape", name, e.node("Concat", parts, axis=0)[0])
    order = [count]
    for k in range(count):
        order += [count + 1 + k, k]
    order += [count + a for a in rest]
    moved = e.op("Transpose", wide, perm=order)
    sizes = [inner] + [e.op("Mul", _size(n, name, k + 1), e.ints([b])) for k, b in enumerate(block)]
    name = e.op("Reshape", moved, e.node("Concat", [*sizes, *(_size(n, name, a) for a in rest)], axis=0)[0])
    if not any(map(any, pairs)):
        return name
    ends = [-b if b else _END for _, b in pairs]
    return e.op("Slice", name, e.ints([a for a, _ in pairs]), e.ints(ends), e.ints(range(1, count + 1)))


def _size(n, name, axis):
    return n.e.op("Shape", name, start=axis, end=axis + 1)
