"""When results differ: is it noise?

A ReLU whose input is 0 in exact arithmetic, or batch statistics over few elements, make float32 gradients of deep networks
differ visibly between any two implementations, and between PyTorch and itself. So PyTorch computes once more with every
parameter changed in its last bit; a difference of the file is accepted when it is no larger than a few times what that
changes in this very tensor, or in the most sensitive one of its kind. Tensors that are little but rounding (the gradient of a
bias in front of a BatchNorm) are judged by themselves alone and say nothing about the others. What is not explained is looked at
with other, larger changes: which ReLU turns over is chance.
"""

import numpy as np

from .emit import to_numpy
from .reference import Reference

SPREAD, LIMIT = 8.0, 0.03
CHANGES = (1, 2, 4)  # units in the last place of a parameter


class Sensitivity:
    def __init__(self, conversion, reference):
        self.conversion, self.plain = conversion, reference
        self.spread, self.changes, self.left = {}, {}, list(CHANGES)

    def explains(self, key, got):
        """Whether the difference of `key` ((kind, name)) is noise."""
        want = value_of(self.plain, key)
        while True:
            if relative(got, want) <= SPREAD * self.spread.get(key[0], 0.0) or distance(got, want) <= SPREAD * self.changes.get(key, 0.0):
                return True
            if not self.left:
                return False
            self._look(self.left.pop(0))

    def _look(self, units):
        again = Reference(self.conversion, jitter=units)
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
    """Of two tensors in the Euclidean norm."""
    return float(np.linalg.norm(np.asarray(a, np.float64) - np.asarray(b, np.float64)))


def relative(a, b):
    """Their distance over the size of the second."""
    size = float(np.linalg.norm(np.asarray(b, np.float64)))
    return distance(a, b) / size if size else distance(a, b)
