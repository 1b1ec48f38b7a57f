"""The self-check of a conversion: what the file computes against what the framework computes, tensor by tensor.

Any two implementations differ by rounding. A difference above the tolerance is an error of the conversion, unless it
is noise: a ReLU whose input is 0 in exact arithmetic, or batch statistics over few elements, make float32 gradients of
deep networks differ visibly between any two implementations, and between the framework and itself. So the framework
computes once more with every parameter changed in its last bit; a difference of the file is accepted when it is no
larger than a few times what that changes in this very tensor, or in the most sensitive one of its kind. Tensors that
are little but rounding (the gradient of a bias in front of a BatchNorm) are judged by themselves alone and say nothing
about the others. What is not explained is looked at with other, larger changes: which ReLU turns over is a matter of
luck. The last look is at the framework in float64: a result that is as near to that as the self-check demands of it is
right, and the framework's own in float32 is the one that is off.
"""

import math

import numpy as np

from ..errors import ConversionError

SPREAD, LIMIT = 8.0, 0.03
LOST = 0.5  # relative error of a float32 result that has no right digit
CHANGES = (1, 2, 4)  # units in the last place of a parameter
_PIECE = 1 << 20  # elements


class Comparison:
    """Compares arrays; raises a ConversionError (OT1605) that names the first one that differs."""

    def __init__(self, framework, sensitivity):
        """sensitivity: () -> Sensitivity; called when a difference must be explained."""
        self.framework, self._sensitivity, self._made = framework, sensitivity, None

    @property
    def lost(self):
        """Keys of results that float32 says nothing about."""
        return [] if self._made is None else self._made.lost

    def same(self, what, got, want, key=None, factor=1.0, floor=0.0):
        """got: of the file; key: (kind, name) under which the framework's results have `want`, None where noise is no
        excuse. The tolerance is `factor` times a thousand units in the last place of the largest element, or of
        `floor`."""
        got = np.asarray(got)
        if got.shape != want.shape or got.dtype != want.dtype:
            there = f"{want.dtype} {list(want.shape)}"
            self.differs(what, f"is {got.dtype} {list(got.shape)}, {self.framework} gives {there}")
        if want.size == 0:
            return
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                self.differs(what, f"differs in {int((got != want).sum())} of {want.size} elements")
            return
        error, scale = largest_difference(got, want)
        info = np.finfo(want.dtype)
        tolerance = factor * 1e3 * float(info.eps) * max(scale, floor, 1e-30) + float(info.tiny)
        if error <= tolerance or key is not None and self._is_noise(key, got, tolerance):
            return
        self.differs(what, f"differs by {error:.3g} (largest element {scale:.3g}, tolerance {tolerance:.2g})")

    def _is_noise(self, key, got, tolerance):
        if self._made is None:
            self._made = self._sensitivity()
        return self._made.explains(key, got, tolerance)

    def differs(self, what, how):
        raise ConversionError(f"the file does not compute what {self.framework} computes: {what} {how}", "OT1605",
                         "no file was written; please report the module with this message")


class Sensitivity:
    """How far the framework's own results move with the last bits of the parameters.

    plain: {(kind, name): array} of the framework; changed(units) the same with parameters that differ by up to so many
    units in the last place; exact() the same in float64. changed None: neither can be computed. proves: exact() has
    also compared the file's own nodes with the framework in float64, and raises where they differ. Then a result that
    is as near to float64's as the framework's own is right; and where not one digit of the framework's own is right,
    float32 has nothing to say about either, and the proof in float64 stands (`lost` names these).
    """

    def __init__(self, plain, changed=None, exact=None, proves=False):
        self.plain, self._changed, self._exact, self.proves = plain, changed, exact, proves
        self.spread, self.changes, self.left = {}, {}, list(CHANGES) if changed else []
        self.exact = None if changed else {}
        self.lost = []  # what the framework's own float32 result says nothing about

    def explains(self, key, got, tolerance):
        """Whether the difference of `key` is noise."""
        want = self.plain[key]
        while True:
            if relative(got, want) <= SPREAD * self.spread.get(key[0], 0.0):
                return True
            if distance(got, want) <= SPREAD * self.changes.get(key, 0.0):
                return True
            if not self.left:
                return self._is_right(key, got, tolerance)
            self._look(self._changed(self.left.pop(0)))

    def _is_right(self, key, got, tolerance):
        if self.exact is None:
            if self._exact is None:
                return False
            try:
                self.exact = dict(self._exact())
            except Exception:  # noqa: BLE001 - not every module runs in float64
                self.exact = {}
        want = self.exact.get(key)
        if want is None or want.shape != got.shape:
            return False
        if bool(np.abs(got - want).max() <= tolerance):
            return True
        return self.proves and self._is_as_near(key, got, want)

    def _is_as_near(self, key, got, want):
        off = relative(self.plain[key], want)
        if off > LOST:
            self.lost.append(key)
        return off > LOST or relative(got, want) <= SPREAD * off

    def _look(self, again):
        for key in self.plain:
            value = self.plain[key]
            if key not in again or value.dtype.kind != "f":
                continue
            other = again[key]
            self.changes[key] = max(self.changes.get(key, 0.0), distance(other, value))
            if relative(other, value) <= LIMIT:
                self.spread[key[0]] = max(self.spread.get(key[0], 0.0), relative(other, value))


def largest_difference(a, b):
    """Largest difference of finite elements, and the largest finite element of b; infinite where kinds differ."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = a - b
    low, high = float(difference.min()), float(difference.max())
    if not math.isfinite(high - low):  # something is not finite
        fa, fb = np.isfinite(a), np.isfinite(b)
        if not np.array_equal(fa, fb) or not np.array_equal(a[~fb], b[~fb], equal_nan=True):
            return float("inf"), 0.0
        a, b = a[fb], b[fb]
        if not b.size:
            return 0.0, 0.0
        difference = a - b
        low, high = float(difference.min()), float(difference.max())
    return max(-low, high), max(-float(b.min()), float(b.max()))


def distance(a, b):
    """Of two tensors in the Euclidean norm, in float64, some elements at a time."""
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    parts = (a[k:k + _PIECE].astype(np.float64) - b[k:k + _PIECE] for k in range(0, a.size, _PIECE))
    return math.sqrt(sum(float(np.dot(d, d)) for d in parts))


def relative(a, b):
    """Their distance over the size of the second."""
    size = distance(b, np.broadcast_to(np.zeros((), b.dtype), b.shape))
    return distance(a, b) / size if size else distance(a, b)
