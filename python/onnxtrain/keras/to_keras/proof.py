"""A model that was made from its config computes what the file computes: configs of Keras do not hold everything (the
vocabulary of a lookup layer that was adapted, attributes of own classes)."""

import functools

import keras
import numpy as np

from ...converters.compare import Comparison, Sensitivity
from ...errors import ModelError, UsageError
from ...session import Session
from ..from_keras import reference as references
from ..from_keras.call import Call


def same_outputs(model, source, info):
    """Raises UsageError (OT1715) when the inference forms differ on random inputs."""
    try:
        call = Call(model, None, None, None, False)
    except UsageError:  # a class of the user's: its inputs are not known
        return
    feeds = {n: s.example for n, s in zip(info["inputs"], call.inputs) if n in source.inputs}
    got, want = Session(source).run(feeds), references.compute(model, call, False)
    compare = Comparison("Keras", functools.partial(_sensitivity, model, call, want))
    try:
        for k, name in enumerate(info["outputs"]):
            compare.same(f"output '{name}'", np.asarray(got[name]), want.outputs[k], ("output", k))
    except ModelError as e:
        raise UsageError(f"the model that Keras {keras.__version__} makes from its config does not compute what the "
                         f"file computes: {e.message.split(': ', 1)[-1]}", "OT1715",
                         "make the model as you did and give it: ot.to_keras(file, into=model)") from e


def _sensitivity(model, call, want):
    return Sensitivity(want.arrays(), lambda units: references.compute(model, call, False, units).arrays(), dict)
