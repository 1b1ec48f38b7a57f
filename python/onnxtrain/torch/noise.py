"""When results differ: is it noise?

A ReLU whose input is 0 in exact arithmetic, or batch statistics over few elements, make float32 gradients of deep networks
differ visibly between any two implementations, and between PyTorch and itself. So PyTorch computes once more with every
parameter changed in its last bit; a difference of the file is accepted when it is no larger than a few times what that
changes in this very tensor, or in the most sensitive one of its kind. Tensors that are little but rounding (the gradient of a
bias in front of a BatchNorm) are judged by themselves alone and say nothing about the others. What is not explained is looked at
with other, larger changes: which ReLU turns over is chance. The last look is at PyTorch in float64: a result that is as near to that as
the self-check demands of it is right, and PyTorch's own in float32 is the one that is off.
"""

import math

import numpy as np

from .emit import to_numpy
from .reference import Reference
from .shelf import give_back

SPREAD, LIMIT = 8.0, 0.03
_PIECE = 1 << 20  # elements
CHANGES = (1, 2, 4)  # units in the last place of a parameter


class Sensitivity:
    def __init__(self, conversion, reference):
        self.conversion, self.plain = conversion, reference
        self.spread, self.changes, self.left, self.exact = {}, {}, list(CHANGES), None
        if conversion.state.captured:  # the loss reads parameters by itself: a copy of the module is not all of the training
            self.left, self.exact = [], {}

    def explains(self, key, got, tolerance):
        """Whether the difference of `key` ((kind, name)) is noise."""
        want = value_of(self.plain, key)
        while True:
            if relative(got, want) <= SPREAD * self.spread.get(key[0], 0.0) or distance(got, want) <= SPREAD * self.changes.get(key, 0.0):
                return True
            if not self.left:
                return self._is_right(key, got, tolerance)
            self._look(self.left.pop(0))

    def _is_right(self, key, got, tolerance):
        if self.exact is None:
            try:
                again = Reference(self.conversion, exact=True)
                self.exact = {k: value_of(again, k) for k in keys(again)}
            except Exception:  # noqa: BLE001 - not every module runs in float64
                self.exact = {}
        want = self.exact.get(key)
        return want is not None and want.shape == got.shape and bool(np.abs(got - want).max() <= tolerance)

    def _look(self, units):
        give_back()
        again = Reference(self.conversion, jitter=units)
        give_back()
        known = set(keys(again))
        for key in keys(self.plain):
            value = value_of(self.plain, key)
            if key not in known or value.dtype.kind != "f":
                continue
            other = value_of(again, key)
            self.changes[key] = max(self.changes.get(key, 0.0), distance(other, value))
            if relative(other, value) <= LIMIT:
                self.spread[key[0]] = max(self.spread.get(key[0], 0.0), relative(other, value))


def keys(ref):
    """(kind, name) of everything that a reference computed."""
    found = [("output", n) for n in ref.outputs]
    if ref.loss is not None:
        found += [("loss", ""), *[("train", n) for n, _ in ref.train_outputs], *[("gradient", n) for n in ref.gradients]]
        found += [("buffer", n) for n, t in ref.buffers.items() if t.dtype.is_floating_point]
    return found


def value_of(ref, key):
    kind, name = key
    tensors = {"output": ref.outputs, "gradient": ref.gradients, "buffer": ref.buffers, "loss": {"": ref.loss}}
    return to_numpy(dict(ref.train_outputs)[name] if kind == "train" else tensors[kind][name])


def distance(a, b):
    """Of two tensors in the Euclidean norm, in float64, some elements at a time."""
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    parts = (a[k:k + _PIECE].astype(np.float64) - b[k:k + _PIECE] for k in range(0, a.size, _PIECE))
    return math.sqrt(sum(float(np.dot(d, d)) for d in parts))


def relative(a, b):
    """Their distance over the size of the second."""
    size = distance(b, np.broadcast_to(np.zeros((), b.dtype), b.shape))
    return distance(a, b) / size if size else distance(a, b)
