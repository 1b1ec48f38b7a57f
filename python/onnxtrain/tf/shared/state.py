"""From variables back to the file they came from."""

import numpy as np

from ...model import load
from ...trainer import Trainer


def with_state(model, variables):
    """A new ot.Model with the values of {name: tf.Variable}."""
    trainer = Trainer(model) if model.trainable else None
    known = set(trainer.state) if trainer else set()
    for name in known & set(variables):
        trainer.state[name] = _like(variables[name].numpy(), trainer.state[name])
    out = trainer.model() if trainer else load(model.proto())
    for name in set(out.parameters) & set(variables) - known:
        out.parameters[name] = _like(variables[name].numpy(), out.parameters[name])
    return out


def _like(array, old):
    return np.asarray(array).astype(old.dtype, copy=False).reshape(old.shape)
