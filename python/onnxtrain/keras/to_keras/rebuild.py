"""The way back of a file that came from Keras: the model from its stored config, or the live original; weights,
optimizer state and iterations by the recorded order."""

import keras
import numpy as np

from ...converters.metadata import read_info
from ...errors import ModelError, UsageError
from ...graph import read_graphs
from ...model import as_model
from ...values import from_native
from ..from_keras.reference import everything
from ..from_keras.training import optimizer_variables
from ..shared import trusted, versions
from ..shared.metadata import KEY
from .proof import same_outputs

_LIVE = "give the live model: ot.to_keras(file, into=model)"


def to_keras(model_or_trainer, into=None, data_format="channels_last"):
    """See onnxtrain.to_keras."""
    versions.check_version()
    source = _model(model_or_trainer)
    info = stored_info(source)
    if into is not None:
        return _write_into(into, source, info)
    if info is None:
        from .generic import build

        return build(source, data_format)
    return _from_config(source, info)


def keras_weights(model_or_trainer):
    """The weights as arrays in the order of `model.weights`, for `set_weights`."""
    source = _model(model_or_trainer)
    info = stored_info(source)
    if info is None:
        raise UsageError("the file did not come from Keras: the order of its weights is not known", "OT1715",
                         "ot.to_keras(model).get_weights()")
    return [array_of(source, e) for e in info["weights"]]


def _model(x):
    return x.model() if hasattr(x, "step_count") else as_model(x)


def stored_info(source):
    """What from_keras wrote down, or None."""
    info = read_info(read_graphs(source), KEY)
    if info is not None and not all(isinstance(info.get(k), t) for k, t in (("weights", list), ("model", dict))):
        raise ModelError(f"the metadata '{KEY}' is damaged", "OT1714", "convert the model again")
    return info


def array_of(source, entry):
    """A stored tensor in Keras' order of axes."""
    try:
        array = np.asarray(from_native(source._m.initializer(entry["name"])))
    except Exception as e:  # noqa: BLE001 - the library's own error, or a damaged entry
        raise ModelError(f"the file has no tensor {entry}, which its metadata names", "OT1714",
                         "convert the model again") from e
    layout = entry.get("layout")
    if layout is None:
        return array
    if sorted(layout) != list(range(array.ndim)):
        raise ModelError(f"the recorded order of axes of '{entry['name']}' does not fit it", "OT1714")
    return np.ascontiguousarray(array.transpose(np.argsort(layout)))


def weights_of(model):
    """model.weights, each once."""
    return list({id(v): v for v in model.weights}.values())


def _from_config(source, info):
    config, name = info["model"].get("object"), info["model"].get("class", "")
    if config is None:
        raise UsageError(f"the file holds no config of {name or 'the model'} (its class has none, or it carries code)",
                         "OT1715", "make the model as you did and " + _LIVE)
    model = _deserialize(config, f"the model's class {name}")
    if not model.built:
        raise UsageError(f"the config of {name} does not build the model", "OT1715",
                         "make and build the model and " + _LIVE)
    _set_lora_scale(model, config)
    _set(weights_of(model), source, info["weights"])
    versions.refresh(model)
    same_outputs(model, source, info)
    if info.get("optimizer"):
        _compile(model, source, info)
    return model


def _deserialize(config, what):
    try:
        trusted.check(config)
        return keras.saving.deserialize_keras_object(config, safe_mode=True)
    except trusted.Untrusted as e:
        if e.kind == "code":
            raise ModelError(f"{what} holds {e.what}", "OT1716", _LIVE) from e
        raise _no_way_back(what, f"it needs {e.what}" if e.kind == "class" else e.what) from e
    except Exception as e:  # noqa: BLE001 - Keras raises whatever an own class raises
        raise _no_way_back(what, trusted.reason(e)) from e


def _no_way_back(what, why):
    return UsageError(f"{what} cannot be made again: {why}", "OT1715",
                      "register own classes (@keras.saving.register_keras_serializable()), or " + _LIVE)


def _set(variables, source, entries, what="weights"):
    """Writes stored arrays into variables, all or none."""
    if len(variables) != len(entries):
        raise UsageError(f"the model has {len(variables)} {what}, the file {len(entries)}", "OT1715",
                         "the model must be made and compiled as it was when it was converted")
    arrays = [array_of(source, e) for e in entries]
    for v, e, a in zip(variables, entries, arrays):
        if tuple(v.shape) != a.shape:
            raise UsageError(f"'{v.path}' has shape {list(v.shape)}, '{e['name']}' in the file {list(a.shape)}",
                             "OT1715", "the model must be made and compiled as it was when it was converted")
    for v, a in zip(variables, arrays):
        v.assign(a.astype(versions.numpy_dtype(v.dtype)))


def _compile(model, source, info):
    weights = weights_of(model)
    now = {id(v) for v in model.trainable_weights}
    for v, e in zip(weights, info["weights"]):  # flags of single variables, which no config has
        if (id(v) in now) != bool(e["trainable"]):
            v.trainable = bool(e["trainable"])
    stored, said = info["optimizer"], info.get("compile") or {}
    if stored.get("object") is None:
        raise UsageError(f"the file holds no config of the optimizer {stored.get('class')}", "OT1715", _LIVE)
    optimizer = _deserialize(stored["object"], f"the optimizer {stored.get('class')}")
    if said.get("loss") is None and info.get("targets"):
        raise UsageError("the file holds no config of the loss (a function of your own)", "OT1715",
                         "register it (@keras.saving.register_keras_serializable()) before converting, or " + _LIVE)
    parts = {k: _deserialize(said[k], f"the {k}") for k in ("loss", "metrics", "weighted_metrics")
             if said.get(k) is not None}
    model.compile(optimizer=optimizer, loss_weights=said.get("loss_weights"), **parts)
    names = {e["name"]: v for v, e in zip(weights, info["weights"])}
    excluded = [names[n] for n in stored.get("excluded_from_decay", []) if n in names]
    if excluded:
        model.optimizer.exclude_from_weight_decay(var_list=excluded)
    _set_optimizer(model, source, stored)


def _set_optimizer(model, source, stored):
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    _set(optimizer_variables(model.optimizer), source, stored["variables"], "variables of the optimizer")


def _write_into(model, source, info):
    """Weights, optimizer state and iterations into the live original; nothing is written when something differs."""
    if info is None:
        raise UsageError("the file did not come from Keras: it has no record of a Keras model", "OT1715",
                         "ot.to_keras(file) makes a model of its graph")
    if not isinstance(model, keras.Model) or not model.built:
        raise UsageError("into= takes a built keras.Model", "OT1715")
    stored, optimizer = info.get("optimizer"), getattr(model, "optimizer", None)
    if stored and optimizer is not None and type(optimizer).__name__ != stored["class"]:
        raise UsageError(f"the model is compiled with {type(optimizer).__name__}, the file was trained with "
                         f"{stored['class']}", "OT1715", f"compile the model with {stored['class']}")
    before = [(v, versions.variable_array(v)) for v in everything(model)]
    try:
        _set(weights_of(model), source, info["weights"])
        versions.refresh(model)
        if stored and optimizer is not None:
            _set_optimizer(model, source, stored)
    except Exception:
        for v, a in before:
            v.assign(a)
        versions.refresh(model)
        raise
    return model


def _set_lora_scale(model, config):
    """`lora_alpha` of layers as their configs have it: Keras reads it and forgets it when the layer is built."""
    found = {}

    def look(part):
        for v in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            look(v)
        if isinstance(part, dict) and part.get("lora_alpha") is not None:
            found[part.get("name")] = part["lora_alpha"]

    look(config)
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False) and layer.name in found:
            layer.lora_alpha = found[layer.name]
