"""What a file says about the Keras training that it came from (docs/decisions/0095): the model's config, how it was
compiled, names and order of all variables. Everything is JSON; code is never stored."""

import inspect
import json

import keras

from . import versions
from .trusted import holds_code

_LOSSES = {"MeanSquaredError": "mse", "mean_squared_error": "mse", "mse": "mse", "MeanAbsoluteError": "l1", "mae": "l1",
           "mean_absolute_error": "l1", "Huber": "huber", "huber": "huber",
           "SparseCategoricalCrossentropy": "cross_entropy", "sparse_categorical_crossentropy": "cross_entropy",
           "CategoricalCrossentropy": "cross_entropy", "categorical_crossentropy": "cross_entropy",
           "BinaryCrossentropy": "bce", "binary_crossentropy": "bce", "KLDivergence": "kl", "kl_divergence": "kl",
           "kld": "kl", "Hinge": "hinge", "hinge": "hinge"}


def plain(value):
    """Keras' serialized form of an object, or None when there is none that holds no code."""
    try:
        made = json.loads(json.dumps(keras.saving.serialize_keras_object(value)))
    except Exception:  # noqa: BLE001 - own classes without get_config raise whatever they like
        return None
    return None if holds_code(made) else made


def plain_loss(loss):
    """The same of losses. Some of Keras' classes leave arguments out of their config (Huber's delta): they are put in,
    and a config that does not give the same loss back is none."""
    if isinstance(loss, dict):
        parts = {k: plain_loss(v) for k, v in loss.items()}
        return None if any(parts[k] is None and loss[k] is not None for k in loss) else parts
    if isinstance(loss, (list, tuple)):
        parts = [plain_loss(v) for v in loss]
        if any(p is None and v is not None for p, v in zip(parts, loss)):
            return None
        return parts if isinstance(loss, list) else {"class_name": "__tuple__", "items": parts}
    made, arguments = plain(loss), getattr(loss, "_fn_kwargs", None)
    if made is None or not arguments or not isinstance(made.get("config"), dict):
        return made
    known = inspect.signature(type(loss).__init__).parameters
    missing = {k: v for k, v in arguments.items() if k in known and k not in made["config"] and k != "fn"}
    made["config"].update(plain(missing) or {})
    try:
        again = keras.saving.deserialize_keras_object(made, safe_mode=True)
    except Exception:  # noqa: BLE001 - an own class that is not registered: said when it is wanted back
        return made
    return made if getattr(again, "_fn_kwargs", None) == arguments else None


def describe(request, call, state, training, outputs):
    model = request.model
    info = {
        "keras": keras.__version__, "backend": versions.backend_name(), "semantics": request.semantics,
        "floatx": keras.config.floatx(), "image_data_format": keras.config.image_data_format(),
        "model": _model(model), "inputs": [s.name for s in call.inputs], "outputs": outputs,
        "targets": [s.name for s in call.targets], "sample_weights": [s.name for s in call.weights],
        "weights": [_entry(e) for e in state.weights],
    }
    if training is not None:
        loss = model._compile_loss._user_loss if versions.compile_loss(model) is not None else None
        info["compile"] = _compile(model, loss)
        info["optimizer"] = {"object": plain(training.optimizer), "class": type(training.optimizer).__name__,
                             "variables": [_entry(e) for e in training.entries],
                             "excluded_from_decay": _excluded(training.optimizer, state),
                             "scheduled": training.rate is not None}
        info["loss_name"] = _LOSSES.get(_name(loss), "custom")
        if info["loss_name"] == "bce" and getattr(loss, "from_logits", False) or getattr(
                loss, "_fn_kwargs", {}).get("from_logits") and info["loss_name"] == "bce":
            info["loss_name"] = "bce_logits"
        info["checked"] = request.check
    return info


def _model(model):
    made = plain(model)
    if made is not None:
        made.pop("compile_config", None)
    return {"name": model.name, "class": f"{type(model).__module__}.{type(model).__qualname__}", "object": made}


def _entry(e):
    return {"name": e.name, "path": e.variable.path, "layout": list(e.layout) if e.layout else None,
            "trainable": e.trainable}


def _excluded(optimizer, state):
    """Names of weights without decay: no config of Keras has them."""
    if getattr(optimizer, "weight_decay", None) is None:
        return []
    tf = versions.backend_name() == "tensorflow"
    return [state.by_id[id(v)].name for v in optimizer._trainable_variables
            if not optimizer._use_weight_decay(v._value if tf else v)]


def _compile(model, loss):
    own = versions.compile_loss(model)
    metrics = getattr(model, "_compile_metrics", None)
    return {"loss": plain_loss(loss), "loss_weights": None if own is None else _numbers(own._user_loss_weights),
            "metrics": plain(getattr(metrics, "_user_metrics", None)),
            "weighted_metrics": plain(getattr(metrics, "_user_weighted_metrics", None)),
            "metrics_names": [m.name for m in getattr(metrics, "metrics", [])] if getattr(metrics, "built", False)
            else [_name(m) for m in keras.tree.flatten(getattr(metrics, "_user_metrics", None) or [])],
            "jit_compile": None, "run_eagerly": bool(model.run_eagerly)}


def _numbers(weights):
    return None if weights is None else keras.tree.map_structure(float, weights)


def _name(loss):
    """Of the loss; of several outputs only where all have the same."""
    if isinstance(loss, (list, tuple, dict)):
        each = {_name(v) for v in (loss.values() if isinstance(loss, dict) else loss)}
        return each.pop() if len(each) == 1 else ""
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
