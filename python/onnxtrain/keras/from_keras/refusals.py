"""What stands against a conversion before anything is traced, and the user's line for what is found while tracing."""

import sys

import keras

from ...converters.obstacles import UserCode
from ...errors import UsageError
from ..shared import versions
from .state import all_layers

_USER = UserCode(keras)
_TEXT = {"TextVectorization", "StringLookup", "IntegerLookup", "HashedCrossing", "Hashing", "FeatureSpace"}
_AUGMENTATIONS = {
    "RandomErasing": "compares tensors of the backend itself, which cannot be traced",
    "AugMix": "picks its layers with Python's random numbers, once for all steps of a file",
    "MixUp": "draws from a beta distribution, which ONNX does not have",
    "RandAugment": "runs all of its layers, of which RandomPosterization has no form here",
    "CutMix": "draws from a beta distribution, which ONNX does not have",
}
_OPTIMIZERS = "SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl, Lion, Lamb, Adafactor, Muon"


def user_line():
    """"file:line in function: text" of the innermost line of the user's code."""
    frames, f = [], sys._getframe(1)
    while f is not None:
        frames.append((f, f.f_lineno))
        f = f.f_back
    inner = []
    for frame, line in frames:  # innermost first; what called the converter is not looked at
        if frame.f_code.co_filename.endswith(("from_keras/conversion.py", "from_keras\\conversion.py")):
            break
        inner.append((frame, line))
    return _USER.place(inner[::-1])


def check_model(model, obstacles, training):
    for layer in all_layers(model):
        _check_layer(layer, obstacles)
    if not training:
        return
    for layer in all_layers(model):
        if type(layer).__name__ in _AUGMENTATIONS and type(layer).__module__.startswith("keras."):
            obstacles.add(f"{type(layer).__name__} {_AUGMENTATIONS[type(layer).__name__]}", f"layer '{layer.name}'",
                          "augment the data before it is fed")
    own = [m for m in ("train_step", "compute_loss", "_compute_loss") if _is_own(type(model), m)]
    for method in own:
        obstacles.add(f"{type(model).__name__} has its own {method}, whose Python code a file cannot carry",
                      _definition(type(model), method), "use compile(loss=...), add_loss, or ot.prepare")
    known = {"float32", "float64", "int32", "int64", "bool", "uint32", "uint8"}
    half = sorted({versions.standardize_dtype(v._dtype) for v in model.weights} - known)
    if half:
        obstacles.add(f"weights of type {', '.join(half)}", fix="keras.config.set_dtype_policy('float32')")


def _check_layer(layer, obstacles):
    at = f"layer '{layer.name}' ({type(layer).__name__})"
    name = next((c.__name__ for c in type(layer).__mro__ if c.__name__ in _TEXT
                 and (c.__module__ or "").startswith("keras.")), None)
    if name:
        obstacles.add(f"{name} works on text, hashes or tables of words and numbers", at,
                      "apply it to the data before it is fed")
    policy = getattr(getattr(layer, "dtype_policy", None), "name", "")
    if policy.startswith("mixed_"):
        obstacles.add(f"the dtype policy '{policy}'", at, "keras.config.set_dtype_policy('float32')")
    if getattr(layer, "quantization_mode", None):
        obstacles.add(f"quantized to {layer.quantization_mode}", at, "convert the model before quantize()")
    if getattr(layer, "stateful", False) and hasattr(layer, "cell"):
        obstacles.add("a stateful recurrent layer: rows of one batch follow on those of the last", at, "stateful=False")
    if getattr(layer, "renorm", False):
        obstacles.add("BatchNormalization with renorm=True", at, "renorm=False")


def _is_own(cls, method):
    for c in cls.__mro__:
        if method in vars(c):
            return not (c.__module__ or "").startswith("keras.")
    return False


def _definition(cls, method):
    for c in cls.__mro__:
        if method in vars(c):
            code = getattr(vars(c)[method], "__code__", None)
            return f"{code.co_filename}:{code.co_firstlineno}" if code else ""
    return ""


def check_inputs(tensors, obstacles):
    for x in tensors:
        if getattr(x, "sparse", False) or getattr(x, "ragged", False):
            kind = "sparse" if getattr(x, "sparse", False) else "ragged"
            obstacles.add(f"the {kind} input '{x.name}'", fix="give dense, padded arrays with a mask")


def check_optimizer(optimizer, obstacles):
    cls = type(optimizer)
    if cls.__name__ == "LossScaleOptimizer":
        obstacles.add("LossScaleOptimizer changes its factor by what it has seen",
                      fix=f"train in float32 with {type(optimizer.inner_optimizer).__name__} alone")
        return
    if cls.__name__ == "ScheduleFreeAdamW" and cls.__module__.startswith("keras."):
        obstacles.add("ScheduleFreeAdamW reads a variable after it has written it: what it computes depends on the "
                      "backend of Keras", fix=f"one of {_OPTIMIZERS}")
    if any(_is_own(cls, m) for m in ("update_step", "apply", "_backend_update_step", "apply_gradients")):
        method = next(m for m in ("update_step", "apply", "_backend_update_step", "apply_gradients") if _is_own(cls, m))
        obstacles.add(f"the optimizer {cls.__module__}.{cls.__qualname__} has a rule of its own",
                      _definition(cls, method), f"one of {_OPTIMIZERS}; or give ot.prepare a graph of the rule")
    rate = optimizer._learning_rate
    schedules = keras.optimizers.schedules.LearningRateSchedule
    if isinstance(rate, schedules):
        if _is_own(type(rate), "__call__"):
            obstacles.add(f"the learning rate schedule {type(rate).__qualname__} is Python code",
                          _definition(type(rate), "__call__"), "one of keras.optimizers.schedules")
    elif callable(rate) and not versions.is_variable(rate):
        obstacles.add("the learning rate is a function", fix="a number, or one of keras.optimizers.schedules")


def check_unchanged(model, optimizer):
    """Weights that were frozen, thawed or added since Keras built its optimizer and its step: what a file would train
    must be what `fit` trains."""
    now, known = model.trainable_variables, optimizer._trainable_variables
    there, here = {id(v) for v in known}, {id(v) for v in now}
    foreign = [v for v in known if id(v) not in {id(w) for w in model.weights}]
    if foreign:
        raise UsageError(f"the optimizer was built for weights that the model does not have: '{foreign[0].path}'",
                         "OT1606", "one optimizer for each model; compile() again")
    new = [v.path for v in now if id(v) not in there]
    if new:
        raise UsageError(f"the model was changed after compile(): the optimizer does not know '{new[0]}'", "OT1606",
                         "model.compile(...) again, with a new optimizer, after changing `trainable`")
    frozen = [v.path for v in known if id(v) not in here]
    if frozen and versions.keeps_its_step(model):
        jax = versions.backend_name() == "jax"
        why = "the optimizer was built with it and takes no step without" if jax else \
            "the step that Keras has compiled trains it"
        raise UsageError(f"the model was changed after compile(): '{frozen[0]}' is frozen now, but {why}", "OT1606",
                         "model.compile(...) again" + ", with a new optimizer," * jax + " after changing `trainable`")
