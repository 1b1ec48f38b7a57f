"""Trains ONNX models: an ONNX file can carry its own training, and onnxtrain obeys it."""

try:
    from ._native import version as _version
except ModuleNotFoundError as e:  # a checkout in which only the command line tool was built
    if e.name != "onnxtrain._native":
        raise
    if "ONNXTRAIN_STARTED_BY_TOOL" in __import__("os").environ:  # a process of the command line tool
        import sys

        print("error[OT1731]: the compiled module of the Python package is not built for this Python, and the command "
              "needs it\n  help: in the checkout: make build   or name another interpreter in ONNXTRAIN_PYTHON",
              file=sys.stderr)
        sys.exit(1)
    raise ImportError("onnxtrain's compiled module is not built for this Python; in the checkout: make build") from e
from . import callbacks
from .errors import CheckpointError, DataError, DivergedError, Error, ModelError, UsageError
from .foreign import fallback, register_op
from .history import History
from .model import Model, check, load, parse
from .networks import new as new
from .recipe import OPTIMIZERS as _OPTIMIZERS
from .recipe import OnnxAdagrad, OnnxAdam, OnnxMomentum, Schedule, losses
from .session import Session, gradients
from .steps import export_step, export_whole
from .torch.from_torch import from_torch
from .trainer import StepResult, Trainer, prepare, resume

__version__ = _version()
globals().update(_OPTIMIZERS)  # SGD, Adam, AdamW, ...: as many as the library has


def __getattr__(name):
    """The estimators and the parts for Keras and Flower, imported when they are asked for: a start without them is
    shorter."""
    if name in ("keras", "flower"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name in ("OnnxClassifier", "OnnxRegressor"):
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _side(framework, module, name):
    """A function of a converter, imported when it is called: frameworks are optional extras."""
    import importlib

    try:
        return getattr(importlib.import_module(f".{framework}.{module}", __name__), name)
    except ImportError as e:
        fix = f"pip install 'onnxtrain[{framework}]'"
        raise UsageError(f"this needs the package '{e.name}'", "OT1733", fix) from None


def to_torch(model_or_trainer):
    """A model or a running Trainer as a PyTorch module, loss, optimizer and scheduler (needs `onnxtrain[torch]`)."""
    return _side("torch", "to_torch", "to_torch")(model_or_trainer)


def torch_state_dict(model_or_trainer):
    """The weights as a state_dict that the original PyTorch class loads with strict=True (needs `onnxtrain[torch]`)."""
    return _side("torch", "to_torch", "torch_state_dict")(model_or_trainer)


def _sklearn_side(name):
    """A function of onnxtrain.sklearn, imported when it is called: scikit-learn is an optional extra."""
    import importlib

    try:
        importlib.import_module("sklearn")
        return getattr(importlib.import_module(f".sklearn.{name}", __name__), name)
    except ImportError as e:
        raise UsageError(f"this needs the package '{e.name}'", "OT1733", "pip install 'onnxtrain[sklearn]'") from None


def from_sklearn(estimator, *, sample_weight=False, optimizer=None, X=None, loss_curve=8192):
    """A fitted estimator or pipeline as a training model (needs `onnxtrain[sklearn]`); docs/sklearn.md.

    One step of n rows is one `partial_fit` of these rows in order. sample_weight: the step reads weights of its rows
    too. optimizer: for estimators whose solver leaves no state (LogisticRegression, Ridge, ...). X: rows for the
    self-check, where the estimator does not take random ones. loss_curve: how many losses of an MLP's steps the file
    keeps for `loss_curve_`.
    """
    return _sklearn_side("from_sklearn")(estimator, sample_weight=sample_weight, optimizer=optimizer, X=X,
                                         loss_curve=loss_curve)


def to_sklearn(model_or_trainer):
    """The estimator from which a model came, with the current weights and state (needs `onnxtrain[sklearn]`)."""
    return _sklearn_side("to_sklearn")(model_or_trainer)


def to_tf(model_or_trainer, seed=0):
    """A model or a running Trainer as a tf.Module that infers, trains and saves as a SavedModel (`onnxtrain[tf]`).

    seed: of Dropout and random numbers. docs/tensorflow.md."""
    return _side("tf", "to_tf", "to_tf")(model_or_trainer, seed)


def from_tf(source, signature=None, inputs=None, *, loss=None, optimizer=None, checkpoint=None, check=True, **recipe):
    """A function of TensorFlow as a Model (needs `onnxtrain[tf]`).

    source: a SavedModel folder, a tf.Module, a tf.function or a concrete function; signature: which of several
    functions; inputs: examples of its arguments, where no input_signature says them; checkpoint: whose values are taken
    instead of the variables' own. loss, optimizer and everything else that `prepare` takes make it a training file;
    loss may be an output of the function. check=False leaves out the comparison with TensorFlow. docs/tensorflow.md."""
    make = _side("tf", "from_tf", "from_tf")
    return make(source, signature, inputs, loss=loss, optimizer=optimizer, checkpoint=checkpoint, check=check, **recipe)


def from_keras(model, inputs=None, targets=None, *, sample_weight=None, loss=None, optimizer=None, semantics="auto"):
    """A compiled Keras model, with its loss, optimizer, state and schedule as they stand now, as an ot.Model (needs
    `onnxtrain[keras]`). inputs, targets: examples as `fit` takes them, random where the model knows their shapes;
    sample_weight: an example, or True, adds that input to the step; loss, optimizer: in the place of the compiled ones;
    semantics: "tensorflow", "dense" (JAX, PyTorch), "auto" for the backend in use. The file is compared with Keras
    before it is returned; nothing of the model changes."""
    function = _side("keras", "from_keras.conversion", "convert")
    return function(model, inputs, targets, sample_weight, loss, optimizer, semantics)


def to_keras(model_or_trainer, into=None, data_format="channels_last"):
    """A compiled keras.Model with weights, optimizer state and iterations (needs `onnxtrain[keras]`): rebuilt from the
    stored config when the file came from Keras, otherwise a model over the file's graph whose images are in
    `data_format`. into: the live original, which gets them."""
    return _side("keras", "to_keras", "to_keras")(model_or_trainer, into, data_format)


def keras_weights(model_or_trainer):
    """The weights in the order of the Keras model's `weights`, for `set_weights` (needs `onnxtrain[keras]`)."""
    return _side("keras", "to_keras", "keras_weights")(model_or_trainer)


__all__ = [
    *_OPTIMIZERS, "CheckpointError", "DataError", "DivergedError", "Error", "History", "Model", "ModelError",
    "OnnxAdagrad", "OnnxAdam", "OnnxClassifier", "OnnxMomentum", "OnnxRegressor", "Schedule", "Session", "StepResult",
    "Trainer", "UsageError", "callbacks", "check", "export_step", "export_whole", "fallback", "from_keras",
    "from_sklearn", "from_tf", "from_torch", "gradients", "keras_weights", "load", "losses", "parse", "prepare",
    "register_op", "resume", "to_keras", "to_sklearn", "to_tf", "to_torch", "torch_state_dict",
]
