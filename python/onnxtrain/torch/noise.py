"""When float32 results differ: is it noise?

A ReLU whose input is 0 in exact arithmetic, or batch statistics over few elements, make float32 gradients of deep networks
differ visibly between any two implementations, and between PyTorch and itself. So PyTorch computes once more with every
parameter changed in its last bit; a difference of the file is accepted when it is no larger than a few times what that
changes in the most sensitive tensor of its kind, and small in itself.
"""

import numpy as np

from .emit import to_numpy
from .reference import Reference

SPREAD, LIMIT = 8.0, 0.25


class Sensitivity:
    def __init__(self, conversion, reference):
        self.plain = results(reference)
        again = results(Reference(conversion, jitter=True))
        self.spread = {}
        for key, value in self.plain.items():
            if key in again and value.dtype.kind == "f":
                self.spread[key[0]] = max(self.spread.get(key[0], 0.0), relative(again[key], value))

    def explains(self, key, got):
        """Whether the difference of `key` ((kind, name)) is noise."""
        return relative(got, self.plain[key]) <= min(LIMIT, SPREAD * self.spread.get(key[0], 0.0))


def results(ref):
    """Everything that a reference computed, by (kind, name)."""
    found = {("output", n): to_numpy(t) for n, t in ref.outputs.items()}
    if ref.loss is not None:
        found["loss", ""] = to_numpy(ref.loss)
        found |= {("train", n): to_numpy(t) for n, t in ref.train_outputs}
        found |= {("gradient", n): to_numpy(t) for n, t in ref.gradients.items()}
        found |= {("buffer", n): to_numpy(t) for n, t in ref.buffers.items() if t.dtype.is_floating_point}
    return found


def relative(a, b):
    """Distance of two tensors over the size of the second, in the Euclidean norm."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(a - b)) / size if size else float(np.linalg.norm(a))
