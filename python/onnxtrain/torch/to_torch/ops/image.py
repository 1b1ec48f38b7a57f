"""Resize, GridSample, AffineGrid, RoiAlign."""

import torch
import torch.nn.functional as F

from .table import Unsupported, normal_axes, op


@op("GridSample")
def grid_sample(n):
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = n.get("mode", "linear")
    mode, padding, align = names.get(mode, mode), n.get("padding_mode", "zeros"), bool(n.get("align_corners", 0))
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align)


@op("AffineGrid", host=(1,))
def affine_grid(n):
    align = bool(n.get("align_corners", 0))
    return lambda theta, size: F.affine_grid(theta, size, align)


@op("Upsample", host=(1,))
def upsample(n):
    mode, fixed = n.get("mode", "nearest"), n.get("scales")
    setting = _Resize(mode, "asymmetric", "floor")
    return lambda x, scales=None: setting(x, fixed if scales is None else scales, None)


@op("Resize", host=(1, 2, 3))
def resize(n):
    s = _Resize(
        n.get("mode", "nearest"),
        n.get("coordinate_transformation_mode", "half_pixel" if n.version > 10 else "asymmetric"),
        n.get("nearest_mode", "round_prefer_floor" if n.version > 10 else "floor"),
    )
    s.cubic, s.exclude, s.fill = (
        n.get("cubic_coeff_a", -0.75),
        n.get("exclude_outside", 0),
        n.get("extrapolation_value", 0.0),
    )
    s.antialias, s.axes, s.policy = n.get("antialias", 0), n.get("axes"), n.get("keep_aspect_ratio_policy", "stretch")
    if n.version == 10:
        return lambda x, scales: s(x, scales, None)
    return lambda x, roi=None, scales=None, sizes=None: s(x, scales or None, sizes, roi)


class _Resize:
    def __init__(self, mode, transform, nearest):
        self.mode, self.transform, self.nearest = mode, transform, nearest
        self.cubic, self.exclude, self.fill, self.antialias = -0.75, 0, 0.0, 0
        self.axes, self.policy = None, "stretch"

    def __call__(self, x, scales, sizes, roi=None):
        axes = list(range(x.dim())) if self.axes is None else normal_axes(self.axes, x.dim())
        if sizes is not None:
            sizes = list(sizes)
            if self.policy != "stretch":
                pick = min if self.policy == "not_larger" else max
                scale = pick(sizes[k] / x.shape[a] for k, a in enumerate(axes))
                sizes = [int(scale * x.shape[a] + 0.5) for a in axes]
                scales = [scale] * len(axes)
            else:
                scales = [sizes[k] / x.shape[a] for k, a in enumerate(axes)]
            exact = None
        else:
            if scales is None:
                raise Unsupported("Resize has neither scales nor sizes")
            sizes = [self._size(x.shape[a], scales[k], k, len(axes), roi) for k, a in enumerate(axes)]
            exact = scales
        plan = [(a, sizes[k], scales[k], k) for k, a in enumerate(axes) if scales[k] != 1 or sizes[k] != x.shape[a] or
                self.transform == "tf_crop_and_resize"]
        native = self._native(x, plan, exact)
        if native is not None:
            return native
        for a, size, scale, k in plan:
            window = None if roi is None or self.transform != "tf_crop_and_resize" else (roi[k], roi[k + len(axes)])
            x = self._along(x, a, size, scale, window)
        return x

    def _size(self, have, scale, k, count, roi):
        if self.transform == "tf_crop_and_resize" and roi:
            return int((roi[k + count] - roi[k]) * have * scale)
        return int(have * scale)

    def _native(self, x, plan, exact):
        """torch's interpolate for the common settings over all spatial axes."""
        rank = x.dim() - 2
        if (
            not plan
            or rank not in (1, 2, 3)
            or [p[0] for p in plan] != list(range(2, x.dim()))
            or not x.dtype.is_floating_point
        ):
            return None
        if self.antialias or self.exclude:
            return None
        sizes = [p[1] for p in plan]
        factors = None if exact is None else [float(p[2]) for p in plan]
        whole = all(p[2] == p[1] / x.shape[p[0]] for p in plan)
        keep = (
            {"size": sizes} if whole or factors is None else {"scale_factor": factors, "recompute_scale_factor": False}
        )
        if self.mode == "nearest" and self.transform == "asymmetric" and self.nearest == "floor" and whole:
            return F.interpolate(x, size=sizes, mode="nearest")
        linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]
        if self.transform == "align_corners" and not whole:
            return None
        if self.mode == "linear" and self.transform in ("half_pixel", "pytorch_half_pixel", "align_corners"):
            if self.transform == "pytorch_half_pixel" and 1 in sizes:
                return None
            return F.interpolate(x, mode=linear, align_corners=self.transform == "align_corners", **keep)
        if (
            self.mode == "cubic"
            and rank == 2
            and self.cubic == -0.75
            and self.transform in ("half_pixel", "align_corners")
        ):
            return F.interpolate(x, mode="bicubic", align_corners=self.transform == "align_corners", **keep)
        return None

    def _coordinates(self, have, size, scale, window, device):
        at = torch.arange(size, dtype=torch.float64, device=device)
        t = self.transform
        if t == "asymmetric":
            return at / scale
        if t == "half_pixel" or (t == "pytorch_half_pixel" and size > 1):
            return (at + 0.5) / scale - 0.5
        if t == "pytorch_half_pixel":
            return torch.full_like(at, -0.5)
        if t == "half_pixel_symmetric":
            length = have * scale
            center = have / 2 * (1 - int(length) / length if length else 0)
            return center + (at + 0.5) / scale - 0.5
        if t == "align_corners":
            width = scale * have
            return at * (have - 1) / (width - 1) if width != 1 else torch.zeros_like(at)
        if t == "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        if t == "tf_crop_and_resize":
            start, end = window or (0.0, 1.0)
            if size > 1:
                return start * (have - 1) + at * (end - start) * (have - 1) / (size - 1)
            return torch.full_like(at, 0.5 * (start + end) * (have - 1))
        raise Unsupported(f"Resize has no transformation '{t}'")

    def _along(self, x, axis, size, scale, window):
        have = x.shape[axis]
        at = self._coordinates(have, size, scale, window, x.device)
        if self.mode == "nearest":
            y = x.index_select(axis, self._nearest(at).clamp(0, have - 1).to(torch.int64))
        else:
            y = self._weighted(x, axis, at, scale)
        if self.transform == "tf_crop_and_resize":
            outside = ((at < 0) | (at > have - 1)).reshape([-1 if k == axis else 1 for k in range(x.dim())])
            y = torch.where(outside, torch.full((), self.fill, dtype=x.dtype, device=x.device), y)
        return y

    def _nearest(self, at):
        if self.nearest == "floor":
            return torch.floor(at)
        if self.nearest == "ceil":
            return torch.ceil(at)
        down = torch.ceil(at - 0.5)
        return down if self.nearest == "round_prefer_floor" else torch.floor(at + 0.5)

    def _weighted(self, x, axis, at, scale):
        """Weights of the neighbours, rows of a matrix [size, have]."""
        have = x.shape[axis]
        reach = 1 if self.mode == "linear" else 2
        shrink = min(scale, 1.0) if self.antialias else 1.0
        span = int(-(-reach // shrink)) if shrink < 1 else reach
        base = torch.floor(at)
        matrix = torch.zeros(at.numel(), have, dtype=torch.float64, device=x.device)
        total = torch.zeros(at.numel(), 1, dtype=torch.float64, device=x.device)
        for k in range(-span + 1, span + 1):
            where = base + k
            weight = self._kernel((where - at).abs() * shrink)
            inside = (where >= 0) & (where <= have - 1)
            if self.exclude:
                weight = torch.where(inside, weight, torch.zeros_like(weight))
            total += weight.unsqueeze(1)
            matrix.scatter_add_(1, where.clamp(0, have - 1).to(torch.int64).unsqueeze(1), weight.unsqueeze(1))
        matrix = (matrix / total).to(x.dtype if x.dtype.is_floating_point else torch.float64)
        y = torch.tensordot(x.to(matrix.dtype), matrix, ([axis], [1])).movedim(-1, axis)
        return y if x.dtype.is_floating_point else y.round().to(x.dtype)

    def _kernel(self, d):
        zero = torch.zeros_like(d)
        if self.mode == "linear":
            return torch.clamp(1 - d, min=0)
        a = self.cubic
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return torch.where(d <= 1, near, torch.where(d < 2, far, zero))


@op("RoiAlign")
def roi_align(n):
    mode, oh, ow = n.get("mode", "avg"), n.get("output_height", 1), n.get("output_width", 1)
    ratio, scale = n.get("sampling_ratio", 0), n.get("spatial_scale", 1.0)
    offset = 0.5 if n.version >= 16 and n.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0

    def run(x, rois, batch):
        out = []
        for box, b in zip(rois, batch.tolist()):
            x1, y1, x2, y2 = (box * scale - offset).tolist()
            h, w = y2 - y1, x2 - x1
            if offset == 0:
                h, w = max(h, 1.0), max(w, 1.0)
            rows, columns = ratio or max(-int(-h // oh), 1), ratio or max(-int(-w // ow), 1)
            ys = y1 + (torch.arange(oh * rows, device=x.device, dtype=x.dtype) + 0.5) * h / (oh * rows)
            xs = x1 + (torch.arange(ow * columns, device=x.device, dtype=x.dtype) + 0.5) * w / (ow * columns)
            out.append(_pooled(_bilinear(x[b], ys, xs, mode), oh, rows, ow, columns, mode))
        return torch.stack(out) if out else x.new_zeros(0, x.shape[1], oh, ow)

    return run


def _bilinear(image, ys, xs, mode):
    """The four weighted corners of every sample, [4, C, ys, xs]; zero outside."""
    h, w = image.shape[1:]
    inside = ((ys >= -1) & (ys <= h)).unsqueeze(1) & ((xs >= -1) & (xs <= w))
    ys, xs = ys.clamp(0, h - 1), xs.clamp(0, w - 1)
    y0, x0 = ys.floor().to(torch.int64), xs.floor().to(torch.int64)
    y1, x1 = (y0 + 1).clamp(max=h - 1), (x0 + 1).clamp(max=w - 1)
    fy, fx = (ys - y0).unsqueeze(1), xs - x0
    corners = [(y0, x0, (1 - fy) * (1 - fx)), (y0, x1, (1 - fy) * fx), (y1, x0, fy * (1 - fx)), (y1, x1, fy * fx)]
    return torch.stack([image[:, r][:, :, c] * (weight * inside) for r, c, weight in corners])


def _pooled(corners, oh, rows, ow, columns, mode):
    if mode == "avg":
        return corners.sum(0).reshape(-1, oh, rows, ow, columns).mean((2, 4))
    return corners.amax(0).reshape(-1, oh, rows, ow, columns).amax((2, 4))
