"""Optimizers that take the sign of a number (Lion): a number that float32 cannot tell from 0 has no sign.

Rule, instead of a wider tolerance: wherever the round trip and Keras take different signs, the number itself is
computed in float64 on the same trajectory. The step may differ only where that number is no larger than 8 times what
float32 has made of the numbers of its tensor; then Keras is given the round trip's decision and goes on. With the same
decisions everything must agree as in any other round trip. A sign that differs where float64 knows it is an error.
"""

import keras
import numpy as np

from onnxtrain.keras.from_keras import reference as references
from onnxtrain.keras.from_keras.call import Call
from onnxtrain.keras.from_keras.exact import widened
from onnxtrain.keras.shared.float64 import in_float64

SPREAD = 8
OPTIMIZERS = {"lion"}


class Decided(Exception):
    """A sign differs although float64 knows it."""


class Follower:
    """Keras' own training that takes the decisions of another one where there is nothing to decide."""

    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y
        self.call = Call(model, x, y, None, True)
        self.exact = [np.zeros(tuple(v.shape)) for v in model.trainable_weights]  # momentum in float64
        self.stored = [np.zeros(tuple(v.shape)) for v in model.trainable_weights]  # as float32 computes it
        self.undecided = 0

    def step(self, train, there):
        """One step of Keras; `there`: the trained weights of the other training after its step."""
        optimizer = self.model.optimizer
        rate, first, second = (float(keras.ops.convert_to_numpy(optimizer.learning_rate)), optimizer.beta_1,
                               optimizer.beta_2)
        narrow = references.compute(self.model, self.call, True).gradients
        with in_float64(self.model):
            exact = references.compute(self.model, widened(self.call), True).gradients
        loss = train(self.model, self.x, self.y, 1)[0]
        for k, v in enumerate(self.model.trainable_weights):
            g32, g64 = (np.zeros(self.exact[k].shape) if g[k] is None else g[k].astype(np.float64)
                        for g in (narrow, exact))
            c32, c64 = (first * m + (1 - first) * g for m, g in ((self.stored[k], g32), (self.exact[k], g64)))
            self._judge(v, there[k], c32, c64, rate)
            self.stored[k] = second * self.stored[k] + (1 - second) * g32
            self.exact[k] = second * self.exact[k] + (1 - second) * g64
        return loss

    def noise(self):
        """(momentum variable, by how much float32 is off from float64 in it)."""
        return [(v, np.abs(a - b).max()) for v, a, b in zip(self.model.optimizer._momentums, self.stored, self.exact)]

    def _judge(self, v, there, c32, c64, rate):
        now = np.array(keras.ops.convert_to_numpy(v))
        other = np.abs(now - there) > 0.5 * rate
        if not other.any():
            return
        known = np.abs(c64) > SPREAD * np.abs(c32 - c64).max()
        if (other & known).any():
            at = tuple(int(i) for i in np.argwhere(other & known)[0])
            raise Decided(f"{v.path}{list(at)}: {there[at]:.6g} instead of {now[at]:.6g}; the number is {c64[at]:.3g} "
                          f"in float64, float32 is off by {np.abs(c32 - c64).max():.3g}")
        self.undecided += int(other.sum())
        v.assign(np.where(other, there, now))
