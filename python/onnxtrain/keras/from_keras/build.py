"""State, file, training and reference of one conversion."""

import random
from dataclasses import dataclass

import keras
import numpy as np

from ...converters.emitter import Emitter
from ...errors import ModelError, UsageError
from ..shared import versions
from . import reference as references
from . import refusals
from .assemble import File, assemble
from .reference import Reference
from .state import State, all_layers
from .trace import add_gradients, trace_forward
from .training import Training, add_training, built_optimizer


@dataclass
class Built:
    state: State
    file: File
    training: Training | None
    reference: Reference


def build(request, call, obstacles):
    """A Built: the model as it is now, traced and computed."""
    model, emitter = request.model, Emitter()
    for slot in call.fed():
        emitter.claim(slot.name)
    state = State(model, emitter)
    state.layers = all_layers(model)
    emitter.reserve(["loss", "T", "learning_rate"])
    inference = _traced(model, call, emitter, state, obstacles, request, False)
    emitter.reserve([*inference.outputs, *[n + "_train" for n in inference.outputs]])
    reference = _reference(request, call)
    if not request.training:
        return Built(state, assemble(request, call, state, emitter, inference, None, None), None, reference)
    emitter.part = emitter.algorithm
    step = _traced(model, call, emitter, state, obstacles, request, True)
    gradients = add_gradients(emitter, step, state, call.fed(), _without_gradient(state, reference))
    if not gradients.dense and not gradients.rows:
        raise UsageError("nothing is trained: no trainable weight reaches the loss", "OT1609",
                         "layer.trainable = True, then compile() again")
    optimizer = built_optimizer(request.optimizer, model.trainable_variables)
    refusals.check_unchanged(model, optimizer)
    training = add_training(model, optimizer, emitter, state, step, gradients, obstacles, request.semantics)
    if reference.gradients is None:  # finite differences do not see where gradients are stopped
        stops = any(n.op == "Detach" for n in [*emitter.main, *emitter.algorithm])
        slopes = "" if stops else "finite differences of the loss, "
        request.check = f"outputs, loss, statistics, {slopes}the optimizer's rule"
    if gradients.rows and versions.backend_name() != "tensorflow":
        request.check += " (but for embeddings: this backend has no rows of gradients)"
    return Built(state, assemble(request, call, state, emitter, inference, step, training), training, reference)


def _traced(model, call, emitter, state, obstacles, request, training):
    drawn = _drawn()
    try:
        made = trace_forward(model, call, emitter, state, obstacles, request.semantics, training, training)
        if _drawn() != drawn:
            obstacles.add("the model's code draws random numbers of Python or numpy: in a file they would be drawn "
                          "once for all steps", fix="keras.random, or a layer of Keras")
            obstacles.raise_()
        return made
    except (ModelError, UsageError):
        raise
    except Exception as e:  # noqa: BLE001 - whatever the user's code raises on symbolic tensors
        line = _line_of(e)
        obstacles.add(f"the model's code cannot be traced: {_short(e)}", line,
                      "write it with keras.ops; tf.* and numpy do not take symbolic tensors (ot.from_tf does)")
        obstacles.raise_()


def _drawn():
    """Where Python's and numpy's own random numbers stand."""
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tobytes(), rest


def _short(e):
    text = str(e).strip().split("\n")
    return f"{type(e).__name__}: {text[0][:300] if text else ''}"


def _line_of(e):
    frames, tb = [], e.__traceback__
    while tb is not None:
        frames.append((tb.tb_frame, tb.tb_lineno))
        tb = tb.tb_next
    names = {id(f.f_locals.get("self")): getattr(f.f_locals.get("self"), "name", "") for f, _ in frames
             if isinstance(f.f_locals.get("self"), keras.Layer)}
    return refusals._USER.place(frames[1:], names)


def _reference(request, call):
    try:
        reference = references.compute(request.model, call, request.training)
    except Exception as e:  # noqa: BLE001 - whatever Keras raises
        raise UsageError(f"Keras does not run on the examples: {_short(e)}", "OT1606",
                         "give inputs= and targets= as fit takes them") from e
    if reference.loss is not None and not np.isfinite(reference.loss).all():
        raise ModelError(f"Keras' loss on the examples is {float(reference.loss):g}: there is nothing to compare the "
                         "file with", "OT1606", "look for numbers that are not finite in the weights and the examples")
    return reference


def _without_gradient(state, reference):
    if reference.gradients is None:
        return set()
    trained = [e for e in state.weights if e.trainable]
    return {e.name for k, e in enumerate(trained) if reference.gradients.get(k) is None}
