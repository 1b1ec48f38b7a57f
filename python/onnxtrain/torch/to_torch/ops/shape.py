"""Operators that arrange elements: shapes, joins, cuts, padding, fills."""

import torch
import torch.nn.functional as F

from .table import Unsupported, normal_axes, op, torch_dtype


@op("Shape", on_host=True)
def shape(n):
    start, end = n.get("start", 0), n.get("end")
    return lambda x: torch.tensor(x.shape[slice(start, end)], dtype=torch.int64)


@op("Size", on_host=True)
def size(n):
    return lambda x: torch.tensor(x.numel(), dtype=torch.int64)


@op("Reshape", host=(1,))
def reshape(n):
    fixed, allow_zero = n.get("shape"), n.get("allowzero", 0)

    def run(x, to=None):
        to = fixed if to is None else to
        if not allow_zero:
            to = [x.shape[k] if d == 0 else d for k, d in enumerate(to)]
        if -1 in to and x.numel() == 0:
            known = 1
            for d in to:
                known *= 1 if d == -1 else d
            to = [0 if d == -1 and known else 1 if d == -1 else d for d in to]
        return x.reshape(to)

    return run


@op("Flatten")
def flatten(n):
    axis = n.get("axis", 1)

    def run(x):
        a = axis + x.dim() if axis < 0 else axis
        rows = 1
        for d in x.shape[:a]:
            rows *= d
        columns = 1
        for d in x.shape[a:]:
            columns *= d
        return x.reshape(rows, columns)

    return run


@op("Squeeze", host=(1,))
def squeeze(n):
    fixed = n.get("axes")

    def run(x, axes=None):
        axes = fixed if axes is None else axes
        return x.squeeze() if axes is None else x.squeeze(tuple(normal_axes(axes, x.dim())))

    return run


@op("Unsqueeze", host=(1,))
def unsqueeze(n):
    fixed = n.get("axes")

    def run(x, axes=None):
        axes = fixed if axes is None else axes if isinstance(axes, list) else [axes]
        for a in sorted(normal_axes(axes, x.dim() + len(axes))):
            x = x.unsqueeze(a)
        return x

    return run


@op("Transpose")
def transpose(n):
    perm = n.get("perm")
    return lambda x: x.permute(perm if perm is not None else list(range(x.dim()))[::-1])


@op("Concat")
def concat(n):
    axis = n.get("axis", 1)
    return lambda *xs: torch.cat(xs, axis)


@op("Split", host=(1,))
def split(n):
    axis, fixed, parts = n.get("axis", 0), n.get("split"), n.get("num_outputs", n.outputs)

    def run(x, sizes=None):
        sizes = fixed if sizes is None else sizes
        if sizes is None:
            each = -(-x.shape[axis] // parts)
            sizes = [each] * (parts - 1) + [x.shape[axis] - each * (parts - 1)]
            if sizes[-1] < 0:
                sizes = [min(each, max(0, x.shape[axis] - k * each)) for k in range(parts)]
        return tuple(torch.split(x, list(sizes), axis))

    return run


@op("Slice", host=(1, 2, 3, 4))
def cut(n):
    given = (n.get("starts"), n.get("ends"), n.get("axes"), None)

    def run(x, *lists):
        starts, ends, axes, steps = (a if a is not None else b for a, b in zip((*lists, None, None, None, None), given))
        axes = range(len(starts)) if axes is None else normal_axes(axes, x.dim())
        for k, a in enumerate(axes):
            start, end, step = starts[k], ends[k], 1 if steps is None else steps[k]
            if step > 0:
                s = slice(start, end, step).indices(x.shape[a])
                x = x.narrow(a, s[0], max(s[1] - s[0], 0)) if step == 1 else x[(slice(None),) * a + (slice(*s),)]
            else:
                # torch has no negative steps
                index = range(x.shape[a])[start:end if end >= -x.shape[a] else None:step]
                x = x.index_select(a, torch.tensor(list(index), dtype=torch.int64, device=x.device))
        return x

    return run


@op("Expand", host=(1,))
def expand(n):
    return lambda x, to: x.expand(torch.broadcast_shapes(x.shape, to))


@op("Tile", host=(1,))
def tile(n):
    return lambda x, repeats: x.repeat(repeats)


@op("ConstantOfShape", host=(0,), device=True)
def constant_of_shape(n):
    value = n.get("value")
    number, dtype = (0.0, torch.float32) if value is None else (value.reshape(-1)[0].item(), value.dtype)
    if dtype == torch.int64:  # part of a computation with sizes

        def sizes(to):
            return torch.full(to, number, dtype=dtype)

        sizes.on_host = True
        return sizes
    return lambda device, to: torch.full(to, number, dtype=dtype, device=device)


@op("Range")
def number_range(n):
    def run(start, limit, delta):
        a, b, d = start.item(), limit.item(), delta.item()
        count = max(-(-(b - a) // d), 0)
        return (start + torch.arange(int(count), dtype=start.dtype, device=start.device) * delta).to(start.dtype)

    return run


@op("Pad", host=(1, 3))
def pad(n):
    mode, fixed, number = n.get("mode", "constant"), n.get("pads", n.get("paddings")), n.get("value", 0.0)

    def run(x, pads=None, value=None, axes=None):
        pads = fixed if pads is None else pads
        axes = range(x.dim()) if axes is None else normal_axes(axes, x.dim())
        low, high = [0] * x.dim(), [0] * x.dim()
        for k, a in enumerate(axes):
            low[a], high[a] = pads[k], pads[k + len(axes)]
        if mode == "constant":
            # a value of rank 1 is written by some exporters
            return _constant_pad(x, low, high, number if value is None else value.reshape(-1)[0].item())
        return _index_pad(x, low, high, mode)

    return run


def _constant_pad(x, low, high, value):
    flat = [p for a in reversed(range(x.dim())) for p in (low[a], high[a])]
    if x.dtype == torch.bool:
        return F.pad(x.to(torch.uint8), flat, value=int(value)).to(torch.bool)
    return F.pad(x, flat, value=value)


def _index_pad(x, low, high, mode):
    """reflect, edge, wrap: gather along each axis; negative pads cut."""
    for a in range(x.dim()):
        if not low[a] and not high[a]:
            continue
        size = x.shape[a]
        at = torch.arange(-low[a], size + high[a], device=x.device)
        if mode == "edge":
            at = at.clamp(0, size - 1)
        elif mode == "wrap":
            at = at % size
        elif mode == "reflect":
            period = max(2 * (size - 1), 1)
            at = at % period
            at = torch.where(at >= size, period - at, at)
        else:
            raise Unsupported(f"Pad has no mode '{mode}'")
        x = x.index_select(a, at)
    return x


@op("DepthToSpace")
def depth_to_space(n):
    b, dcr = n.get("blocksize"), n.get("mode", "DCR") == "DCR"

    def run(x):
        s, c, h, w = x.shape
        if dcr:
            y = x.reshape(s, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
        else:
            y = x.reshape(s, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3)
        return y.reshape(s, c // (b * b), h * b, w * b)

    return run


@op("SpaceToDepth")
def space_to_depth(n):
    b, order = n.get("blocksize"), (0, 3, 5, 1, 2, 4) if n.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)

    def run(x):
        s, c, h, w = x.shape
        return x.reshape(s, c, h // b, b, w // b, b).permute(order).reshape(s, c * b * b, h // b, w // b)

    return run


@op("EyeLike")
def eye_like(n):
    k, to = n.get("k", 0), n.get("dtype")
    dtype = None if to is None else torch_dtype(to)

    def run(x):
        rows = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
        return (rows + k == torch.arange(x.shape[1], device=x.device)).to(dtype or x.dtype)

    return run


@op("Trilu", host=(1,))
def trilu(n):
    upper = n.get("upper", 1)

    def run(x, k=None):
        at = 0 if k is None else k[0] if isinstance(k, list) else k
        return torch.triu(x, at) if upper else torch.tril(x, at)

    return run


@op("ReverseSequence")
def reverse_sequence(n):
    batch, time = n.get("batch_axis", 1), n.get("time_axis", 0)

    def run(x, lengths):
        y = x.movedim((batch, time), (0, 1))
        at = torch.arange(y.shape[1], device=x.device).unsqueeze(0)
        ends = lengths.unsqueeze(1)
        at = torch.where(at < ends, ends - 1 - at, at)
        at = at.reshape(*at.shape, *[1] * (y.dim() - 2)).expand(y.shape)
        return torch.gather(y, 1, at).movedim((0, 1), (batch, time))

    return run


@op("CenterCropPad", host=(1,))
def center_crop_pad(n):
    fixed = n.get("axes")

    def run(x, to):
        for k, a in enumerate(range(x.dim()) if fixed is None else normal_axes(fixed, x.dim())):
            have, want = x.shape[a], to[k]
            if want < have:
                x = x.narrow(a, (have - want) // 2, want)
            elif want > have:
                low, high = [0] * x.dim(), [0] * x.dim()
                low[a] = (want - have) // 2
                high[a] = want - have - low[a]
                x = _constant_pad(x, low, high, 0)
        return x

    return run
