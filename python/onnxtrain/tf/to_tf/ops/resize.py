"""Resize and Upsample: TensorFlow's own bilinear kernels where they say the same, otherwise neighbours and weights."""

import math

import tensorflow as tf

from ..layout import Order, order_of
from .table import Unsupported, dims, op, positive, rank_of, set_axis_shape


@op("Upsample", values=True, settings=(1,))
def upsample(n, x, scales=None):
    given = n.get("scales") if scales is None else n.list_of(1, "scales")
    return _Resize(n, n.get("mode", "nearest"), "asymmetric", "floor")(x, given, None, None)


@op("Resize", values=True, settings=(1, 2, 3))
def resize(n, x, *rest):
    old = n.version == 10
    s = _Resize(n, n.get("mode", "nearest"),
                n.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel"),
                n.get("nearest_mode", "floor" if old else "round_prefer_floor"))
    if old:
        return s(x, n.list_of(1, "scales"), None, None)
    roi = n.list_of(1, "roi") if n.has(1) and s.crops else None
    scales = n.list_of(2, "scales") if n.has(2) else None
    return s(x, scales or None, _sizes(n) if n.has(3) else None, roi)


def _sizes(n):
    """Numbers, and scalar tensors where they depend on the data."""
    known = n.numbers(3)
    if known is not None:
        return [int(v) for v in known]
    t = n._values[3].plain
    partial = tf.get_static_value(t, partial=True)
    if t.shape.rank != 1 or t.shape[0] is None:
        raise Unsupported("the number of its sizes is not known")
    return [t[k] if partial is None or partial[k] is None else int(partial[k]) for k in range(t.shape[0])]


class _Resize:
    def __init__(self, n, mode, transform, nearest):
        self.mode, self.transform, self.nearest = mode, transform, nearest
        self.cubic, self.exclude = n.get("cubic_coeff_a", -0.75), n.get("exclude_outside", 0)
        self.fill, self.antialias = n.get("extrapolation_value", 0.0), n.get("antialias", 0)
        self.axes, self.policy = n.get("axes"), n.get("keep_aspect_ratio_policy", "stretch")
        self.crops = transform == "tf_crop_and_resize"

    def __call__(self, x, scales, sizes, roi):
        rank, have = rank_of(x.any), x.dims()
        axes = list(range(rank)) if self.axes is None else [positive(a, rank) for a in self.axes]
        if sizes is not None:
            sizes, scales = self._scales(sizes, [have[a] for a in axes])
        elif scales is None:
            raise Unsupported("it has neither scales nor sizes")
        else:
            sizes = [self._size(have[a], scales[k], k, len(axes), roi) for k, a in enumerate(axes)]
        plan = [(a, sizes[k], scales[k], k) for k, a in enumerate(axes)
                if self.crops or not _same(a, have[a], sizes[k], scales[k])]
        order = Order(rank, rank > 2) if all(a > 1 for a, *_ in plan) else order_of(x)
        t = order.take(x)
        native = self._native(t, order, plan)
        if native is not None:
            return order.wrap(native)
        keep = t.dtype
        for a, size, scale, k in plan:
            window = None if roi is None else (roi[k], roi[k + len(axes)])
            t = self._along(t, order.axis(a), size, scale, window)
        return order.wrap(t if t.dtype == keep else tf.cast(tf.round(t), keep))

    def _scales(self, sizes, have):
        if self.policy == "stretch":
            return sizes, [_ratio(s, h) for s, h in zip(sizes, have)]
        if not all(isinstance(v, int) for v in [*sizes, *have]):
            raise Unsupported("keep_aspect_ratio_policy over open sizes")
        scale = (min if self.policy == "not_larger" else max)(s / h for s, h in zip(sizes, have))
        return [int(scale * h + 0.5) for h in have], [scale] * len(sizes)

    def _size(self, have, scale, k, count, roi):
        part = (roi[k + count] - roi[k]) if self.crops and roi else 1
        if isinstance(have, int):
            return int(math.floor(part * have * scale))
        if part * scale == 1:
            return have
        return tf.cast(tf.floor(part * scale * tf.cast(have, tf.float64)), tf.int32)

    def _native(self, t, order, plan):
        """TensorFlow's bilinear kernel over both axes of an image."""
        if (self.mode != "linear" or self.antialias or self.exclude or t.dtype != tf.float32 or not order.is_last
                or [p[0] for p in plan] != [2, 3]):
            return None
        sizes, have = [p[1] for p in plan], dims(t)[1:3]
        if not all(isinstance(v, int) for v in [*sizes, *have]) or any(p[2] != p[1] / h for p, h in zip(plan, have)):
            return None
        known = self.transform in ("half_pixel", "align_corners", "asymmetric")
        if not known and not (self.transform == "pytorch_half_pixel" and 1 not in sizes):
            return None
        return tf.raw_ops.ResizeBilinear(images=t, size=sizes, align_corners=self.transform == "align_corners",
                                         half_pixel_centers="half_pixel" in self.transform)

    def _coordinates(self, have, size, scale, window):
        have, size, scale = (_double(v) for v in (have, size, scale))
        at = tf.range(size, dtype=tf.float64)
        t = self.transform
        if t == "asymmetric":
            return at / scale
        half = (at + 0.5) / scale - 0.5
        if t == "half_pixel":
            return half
        if t == "pytorch_half_pixel":
            return tf.where(have * scale == 1, tf.fill(tf.shape(at), tf.constant(-0.5, tf.float64)), half)
        if t == "half_pixel_symmetric":
            return half + have / 2 * (1 - size / (have * scale))
        if t == "align_corners":
            width = scale * have
            return tf.math.divide_no_nan(at * (have - 1), width - 1)
        if t == "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        if self.crops:
            start, end = window or (0.0, 1.0)
            several = start * (have - 1) + tf.math.divide_no_nan(at * (end - start) * (have - 1), size - 1)
            return tf.where(size > 1, several, tf.zeros_like(at) + 0.5 * (start + end) * (have - 1))
        raise Unsupported(f"there is no transformation '{t}'")

    def _along(self, t, axis, size, scale, window):
        have, rank = dims(t)[axis], t.shape.rank
        at = self._coordinates(have, size, scale, window)
        y = self._nearest(t, axis, at, have) if self.mode == "nearest" else self._weighted(t, axis, at, have, scale)
        if self.crops:
            outside = (at < 0) | (at > tf.cast(have - 1, tf.float64))
            outside = tf.reshape(outside, set_axis_shape(rank, axis, -1))
            y = tf.where(outside, tf.cast(self.fill, y.dtype), y)
        if isinstance(size, int):
            y.set_shape([size if k == axis else d for k, d in enumerate(y.shape.as_list())])
        return y

    def _nearest(self, t, axis, at, have):
        rounded = {"floor": tf.floor, "ceil": tf.math.ceil, "round_prefer_floor": lambda v: tf.math.ceil(v - 0.5),
                   "round_prefer_ceil": lambda v: tf.floor(v + 0.5)}.get(self.nearest)
        if rounded is None:
            raise Unsupported(f"there is no rounding '{self.nearest}'")
        return tf.gather(t, tf.clip_by_value(tf.cast(rounded(at), tf.int32), 0, have - 1), axis=axis)

    def _weighted(self, t, axis, at, have, scale):
        """The neighbours of every place, each with its weight."""
        reach = {"linear": 1, "cubic": 2}.get(self.mode)
        if reach is None:
            raise Unsupported(f"there is no mode '{self.mode}'")
        shrink = 1.0
        if self.antialias:
            if not isinstance(scale, float):
                raise Unsupported("antialias over an open size")
            shrink = min(scale, 1.0)
        span = math.ceil(reach / shrink) if shrink < 1 else reach
        base, places, weights = tf.floor(at), [], []
        for k in range(-span + 1, span + 1):
            where = base + k
            weight = self._kernel(tf.abs(where - at) * shrink)
            if self.exclude:
                inside = (where >= 0) & (where <= tf.cast(have - 1, tf.float64))
                weight = tf.where(inside, weight, tf.zeros_like(weight))
            places.append(tf.clip_by_value(tf.cast(where, tf.int32), 0, have - 1))
            weights.append(weight)
        total = tf.add_n(weights)
        wide = t if t.dtype.is_floating else tf.cast(t, tf.float64)
        shape = set_axis_shape(t.shape.rank, axis, -1)
        return tf.add_n([tf.gather(wide, p, axis=axis) * tf.reshape(tf.cast(w / total, wide.dtype), shape)
                         for p, w in zip(places, weights)])

    def _kernel(self, d):
        if self.mode == "linear":
            return tf.maximum(1 - d, 0)
        a = self.cubic
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return tf.where(d <= 1, near, tf.where(d < 2, far, tf.zeros_like(d)))


def _double(v):
    """In float64; a number of Python must not pass through float32."""
    return tf.cast(v, tf.float64) if isinstance(v, tf.Tensor) else tf.constant(v, tf.float64)


def _ratio(size, have):
    if isinstance(size, int) and isinstance(have, int):
        return size / have
    return tf.cast(size, tf.float64) / tf.cast(have, tf.float64)


def _same(axis, have, size, scale):
    """Nothing happens along this axis. An open batch or channel size must stay what it is, which the run checks."""
    if isinstance(have, int) and isinstance(size, int):
        return have == size and (not isinstance(scale, float) or scale == 1)
    if isinstance(scale, float):
        return scale == 1
    if axis > 1:
        return False
    tf.debugging.assert_equal(tf.cast(have, tf.int64), tf.cast(size, tf.int64), "Resize of an open batch size")
    return True
