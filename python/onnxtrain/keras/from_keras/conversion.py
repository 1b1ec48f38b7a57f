"""from_keras: a live Keras training as an ONNX file that carries its own training.

    check      the model and how it was compiled -> what stands against the conversion     refusals.py, call.py
    build      the parts below in their order                                              build.py
    trace      Keras' own code on symbolic tensors, once per mode -> nodes                 trace.py, tracer.py, lower/
    reference  what Keras computes on the examples                                         reference.py
    training   gradient; the optimizer's own code on the gradients' values -> nodes        training.py
    file       graphs, state, metadata                                                     assemble.py
    self-check the file against the reference                                              self_check.py, exact.py
"""

from dataclasses import dataclass

import keras

from ...converters.obstacles import Obstacles
from ...errors import UsageError
from ..shared import versions
from . import refusals, self_check
from .build import build
from .call import Call


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
    return self_check.check(request, call, build(request, call, obstacles))


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
            self.changes["train_function"] = None  # of the compiled optimizer
        if loss is not None:
            compiled = versions.compile_loss(model)
            weights = compiled._user_loss_weights if compiled is not None else None
            names = getattr(model, "output_names", None)
            self.changes["_compile_loss"] = CompileLoss(loss, weights, output_names=names)
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
