"""The last word about a difference: model and file once more in float64, where rounding is no excuse.

Deep networks with batch statistics over few numbers amplify float32's rounding until two right computations have
nothing in common. In float64 the same nodes must agree with Keras to float64's own tolerance; otherwise the difference
is none of rounding. What Keras computes in float64 then tells how far its float32 results are off.
"""

import copy

import keras
import numpy as np

from ...converters.obstacles import Obstacles
from ...converters.onnx_file import remove_dead
from ...errors import ConversionError
from ..shared.float64 import in_float64
from .build import build

_TYPES = {"Cast", "CastLike", "Constant", "Identity"}  # nodes that element types alone decide on


def proven(request, call, built, compare):
    """{(kind, name): array} of Keras in float64, or raises ConversionError: the same nodes differ from it there too.
    compare: (call, Built) -> None, raises where the file differs."""
    with in_float64(request.model):
        wide_call, wide_request = widened(call), copy.copy(request)
        wide_request.optimizer = keras.optimizers.SGD(0.5) if request.training else None
        wide = build(wide_request, wide_call, Obstacles())
        if _operators(wide.file) != _operators(built.file):
            raise ConversionError("the model has another form in float64", "OT1605")
        compare(wide_call, wide)
        return wide.reference.arrays()


def widened(call):
    """The examples in float64."""
    made = copy.copy(call)
    made.step = None
    for part in ("inputs", "targets", "weights"):
        setattr(made, part, [_wide(s) for s in getattr(call, part)])
    return made


def _wide(slot):
    if slot.dtype != "float32":
        return slot
    made = copy.copy(slot)
    made.dtype, made.example = "float64", np.asarray(slot.example, np.float64)
    return made


def _operators(file):
    """Operators of outputs and loss in their order, without those that element types decide on."""
    model = file.model
    nodes, wanted = model.graph.nodes, {o.name for o in model.graph.outputs}
    if model.training:
        nodes = [*nodes, *model.training[0].algorithm.nodes]
        wanted.add(file.loss)
    return [n.op for n in remove_dead(nodes, wanted) if n.op not in _TYPES]
