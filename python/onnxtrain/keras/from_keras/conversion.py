"""from_keras: a live Keras training as an ONNX file that carries its own training.

    check      the model and how it was compiled -> what stands against the conversion     refusals.py, call.py
    trace      Keras' own code on symbolic tensors, once per mode -> nodes                 trace.py, tracer.py, lower/
    reference  what Keras computes on the examples                                         reference.py
    training   gradient; the optimizer's own code on the gradients' values -> nodes        training.py
    file       graphs, state, metadata                                                     assemble.py
    self-check the file against the reference                                              self_check.py
"""

from dataclasses import dataclass

import keras
import numpy as np

from ...converters.emitter import Emitter
from ...converters.obstacles import Obstacles
from ...errors import ModelError, UsageError
from ..shared import versions
from . import reference as references
from . import refusals, self_check
from .assemble import assemble
from .call import Call
from .state import State, all_layers
from .trace import add_gradients, trace_forward
from .training import add_training, built_optimizer


@dataclass
class Request:
    model: keras.Model
    optimizer: object
    semantics: str
    check: str = "outputs, loss, statistics, gradients, one step"

    @property
    def training(self):
        return self.optimizer is not None


def convert(model, inputs=None, targets=None, sample_weight=None, loss=None, optimizer=None, semantics="auto"):
    """See onnxtrain.from_keras."""
    versions.check_version()
    model = _model(model)
    with _compiled_as(model, loss, optimizer):
        return _convert(model, inputs, targets, sample_weight, semantics)


def _convert(model, inputs, targets, sample_weight, semantics):
    request = _request(model, semantics)
    obstacles = Obstacles()
    refusals.check_model(model, obstacles, request.training)
    refusals.check_inputs(getattr(model, "inputs", None) or [], obstacles)
    if request.training:
        refusals.check_optimizer(request.optimizer, obstacles)
    if obstacles:
        obstacles.raise_()
    call = Call(model, inputs, targets, sample_weight, request.training)
    emitter = Emitter()
    for slot in call.fed():
        emitter.claim(slot.name)
    state = State(model, emitter)
    state.layers = all_layers(model)
    emitter.reserve(["loss", "T", "learning_rate"])
    inference = _traced(model, call, emitter, state, obstacles, request, False)
    emitter.reserve([*inference.outputs, *[n + "_train" for n in inference.outputs]])
    reference = _reference(request, call)
    if not request.training:
        file = assemble(request, call, state, emitter, inference, None, None)
        return self_check.check(request, call, state, file, None, reference)
    emitter.part = emitter.algorithm
    step = _traced(model, call, emitter, state, obstacles, request, True)
    without = _without_gradient(state, reference)
    gradients = add_gradients(emitter, step, state, call.fed(), without)
    if not gradients.dense and not gradients.rows:
        raise UsageError("nothing is trained: no trainable weight reaches the loss", "OT1609",
                         "layer.trainable = True, then compile() again")
    optimizer = built_optimizer(request.optimizer, model.trainable_variables)
    _same_variables(model, optimizer)
    training = add_training(model, optimizer, emitter, state, step, gradients, obstacles, request.semantics)
    if reference.gradients is None:  # finite differences do not see where gradients are stopped
        stops = any(n.op == "Detach" for n in [*emitter.main, *emitter.algorithm])
        slopes = "" if stops else "finite differences of the loss, "
        request.check = f"outputs, loss, statistics, {slopes}the optimizer's rule"
    if gradients.rows and versions.backend_name() != "tensorflow":
        request.check += " (but for embeddings: this backend has no rows of gradients)"
    file = assemble(request, call, state, emitter, inference, step, training)
    return self_check.check(request, call, state, file, training, reference)


def _model(model):
    if not isinstance(model, keras.Model):
        raise UsageError(f"from_keras takes a keras.Model, got {type(model).__name__}", "OT1606")
    if not model.built:
        raise UsageError(f"the model '{model.name}' was never built: it has no weights yet", "OT1606",
                         "call it on an example, or add keras.Input(shape=...)")
    return model


class _compiled_as:
    """The model compiled with another loss or optimizer for the time of the conversion."""

    def __init__(self, model, loss, optimizer):
        self.model, self.changes = model, {}
        if loss is None and optimizer is None:
            return
        from keras.src.trainers.compile_utils import CompileLoss

        if optimizer is not None:
            self.changes["optimizer"] = keras.optimizers.get(optimizer)
        if loss is not None:
            self.changes["_compile_loss"] = CompileLoss(loss, None, output_names=getattr(model, "output_names", None))
        if getattr(model, "optimizer", None) is None and optimizer is None:
            raise UsageError("a loss without an optimizer", "OT1606", "give optimizer=keras.optimizers.Adam()")
        if not getattr(model, "compiled", False):
            self.changes["compiled"] = True
            self.changes.setdefault("_compile_loss", None)

    def __enter__(self):
        own = vars(self.model)
        self.before = {k: (k in own, own.get(k)) for k in self.changes}
        own.update(self.changes)

    def __exit__(self, *_):
        own = vars(self.model)
        for key, (had, value) in self.before.items():
            if had:
                own[key] = value
            else:
                own.pop(key, None)


def _request(model, semantics):
    if semantics not in ("auto", "tensorflow", "dense"):
        raise UsageError(f"semantics='{semantics}' is none of auto, tensorflow, dense", "OT1606")
    if semantics == "auto":
        semantics = "tensorflow" if versions.backend_name() == "tensorflow" else "dense"
    optimizer = getattr(model, "optimizer", None) if getattr(model, "compiled", False) else None
    if optimizer is not None and versions.compile_loss(model) is None and not _has_own_loss(model):
        optimizer = None
    return Request(model, optimizer, semantics)


def _has_own_loss(model):
    """add_loss or regularizers alone can be trained too."""
    return any(v.regularizer is not None for v in model.trainable_weights) or bool(model.losses)


def _traced(model, call, emitter, state, obstacles, request, training):
    try:
        return trace_forward(model, call, emitter, state, obstacles, request.semantics, training, training)
    except (ModelError, UsageError):
        raise
    except Exception as e:  # noqa: BLE001 - whatever the user's code raises on symbolic tensors
        line = _line_of(e)
        obstacles.add(f"the model's code cannot be traced: {_short(e)}", line,
                      "write it with keras.ops; tf.* and numpy do not take symbolic tensors (ot.from_tf does)")
        obstacles.raise_()


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


def _same_variables(model, optimizer):
    now, known = {id(v) for v in model.trainable_variables}, {id(v) for v in optimizer._trainable_variables}
    if now - known:
        names = [v.path for v in model.trainable_variables if id(v) not in known]
        raise UsageError(f"the model was changed after compile(): the optimizer does not know '{names[0]}'", "OT1606",
                         "model.compile(...) again after changing `trainable`")
