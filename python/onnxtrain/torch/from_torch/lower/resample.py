"""Interpolation to another size, and samples at given positions."""

import math

import torch

from .base import Unsupported, Value, lower, static


def along(c, x, axis, m):
    """x times the matrix m [size now, size wanted] along one axis."""
    perm = [k for k in range(len(x.shape)) if k != axis] + [axis]
    shape = [*x.shape[:axis], m.shape[1], *x.shape[axis + 1:]]
    y = c.op("MatMul", c.transpose(x, perm), c.e.const(m))
    y = c.transpose(Value(y.name, x.dtype, [shape[k] for k in perm]), [perm.index(k) for k in range(len(perm))])
    return Value(y.name, x.dtype, shape)


class _Request:
    """What an interpolation asks for: sizes (None where open), and the factors that decide the positions in their
    place."""

    def __init__(self, c, a, spatial):
        self.x = a.input if a.input is not None else a.self
        self.now, self.out = [static(s) for s in self.x.shape[2:]], [static(s) for s in c.shape[2:]]
        factors = (
            a.scale_factors
            if a.scale_factors is not None
            else [f for f in (a.scales_d, a.scales_h, a.scales_w, a.scales) if f]
        )
        self.factors = [float(f) for f in factors] if len(factors) == spatial and not a.align_corners else None
        self.open = None in self.now or None in self.out
        exact = self.factors is not None and not self.open and all(
            o == int(k * f) and abs(k * f - o) < 1e-9 for o, k, f in zip(self.out, self.now, self.factors))
        if exact:
            self.factors = None

    def emit(self, c, **attrs):
        x = self.x
        if self.factors is not None:
            return c.op("Resize", x, None, c.e.const(torch.tensor([1.0, 1.0, *self.factors])), **attrs)
        if None in self.out:
            raise Unsupported("interpolation to open sizes")
        return c.op("Resize", x, None, None, c.ints([c.dim(x, 0), c.dim(x, 1), *self.out]), **attrs)


def _smooth(mode, spatial):
    """Linear and cubic."""
    def lowered(c, a):
        attrs = {
            "mode": mode,
            "coordinate_transformation_mode": "align_corners" if a.align_corners else "pytorch_half_pixel",
        }
        if mode == "cubic":
            attrs["cubic_coeff_a"] = -0.75
        return _Request(c, a, spatial).emit(c, **attrs)

    return lowered


def _nearest(spatial):
    """Where a position falls between two elements torch's rounding decides: then each axis is read at torch's own
    positions."""
    def lowered(c, a):
        r, exact = _Request(c, a, spatial), "exact" in c.operator
        attrs = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"} if exact else {
            "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if r.open:
            return r.emit(c, mode="nearest", **attrs)
        wanted = [_positions(r, k, exact) for k in range(spatial)]
        if all(w == said for k, w in enumerate(wanted) for said in _said(r, k, exact)):
            return r.emit(c, mode="nearest", **attrs)
        y = r.x
        for k, w in enumerate(wanted):
            if w != list(range(r.now[k])):
                y = c.op("Gather", y, c.e.ints(w), axis=2 + k)
        return y

    return lowered


def _positions(r, k, exact):
    """What torch reads along axis k."""
    row = torch.arange(r.now[k], dtype=r.x.dtype).reshape(1, 1, -1)
    kernel = torch.ops.aten._upsample_nearest_exact1d if exact else torch.ops.aten.upsample_nearest1d
    return [int(v) for v in kernel(row, [r.out[k]], r.factors[k] if r.factors is not None else None).flatten()]


def _said(r, k, exact):
    """What ONNX's formula reads, its scale in single and in double precision."""
    scale = r.factors[k] if r.factors is not None else r.out[k] / r.now[k]
    half, last = 0.5 if exact else 0.0, r.now[k] - 1
    for s in (scale, float(torch.tensor(scale, dtype=torch.float32))):
        yield [min(max(math.floor((j + half) / s), 0), last) for j in range(r.out[k])]


def _antialiased(c, a):
    """Each axis by torch's own weights: every element of the result is a sum of some elements of that row or column."""
    r = _Request(c, a, 2)
    if r.open:
        raise Unsupported("interpolation to open sizes")
    y, kernel = r.x, getattr(torch.ops.aten, c.operator.removeprefix("aten::")).default
    for k, (now, out) in enumerate(zip(r.now, r.out)):
        factor = r.factors[k] if r.factors is not None else None
        m = kernel(torch.eye(now, dtype=y.dtype)[None, None], [out, now], bool(a.align_corners), factor, None)[
            0, 0
        ].T.contiguous()
        if now != out or not torch.equal(m, torch.eye(now, dtype=y.dtype)):
            y = along(c, y, 2 + k, m)
    return y


for _n, _names in (
    (1, ("upsample_nearest1d", "_upsample_nearest_exact1d")),
    (2, ("upsample_nearest2d", "_upsample_nearest_exact2d")),
    (3, ("upsample_nearest3d", "_upsample_nearest_exact3d")),
):
    lower(*[f"aten.{_name}" for _name in _names])(_nearest(_n))
lower("aten.upsample_linear1d")(_smooth("linear", 1))
lower("aten.upsample_bilinear2d")(_smooth("linear", 2))
lower("aten.upsample_trilinear3d")(_smooth("linear", 3))
lower("aten.upsample_bicubic2d")(_smooth("cubic", 2))
lower("aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa")(_antialiased)


@lower("aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def grid_sampler(c, a):
    modes = {0: "linear", 1: "nearest", 2: "cubic"}
    return c.op(
        "GridSample",
        a.input,
        a.grid,
        mode=modes[a.interpolation_mode],
        padding_mode={0: "zeros", 1: "border", 2: "reflection"}[a.padding_mode],
        align_corners=int(bool(a.align_corners)),
    )


@lower("aten.affine_grid_generator")
def affine_grid(c, a):
    """Places of the result, each with a 1 behind it, times the matrix of every element of the batch."""
    sizes = [static(s) for s in a.size[2:]]
    if None in sizes:
        raise Unsupported("a grid of open size")
    lines = []
    for n in sizes:
        line = torch.linspace(-1, 1, n, dtype=c.dtype) if n > 1 else torch.zeros(1, dtype=c.dtype)
        lines.append(line if a.align_corners else line * ((n - 1) / n))
    places = torch.stack(
        [m.flatten() for m in reversed(torch.meshgrid(*lines, indexing="ij"))]
        + [torch.ones(math.prod(sizes), dtype=c.dtype)],
        -1,
    )
    y = c.op("MatMul", c.e.const(places), c.transpose(a.theta, [0, 2, 1]))
    return c.reshape(y, [-1, *sizes, len(sizes)])
