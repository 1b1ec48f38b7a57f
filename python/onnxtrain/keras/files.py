"""`.keras` and `.h5` files with their training: read on any backend, TensorFlow or not.

A file is looked at before Keras reads it: sizes, links out of the file, code (Lambda layers), classes of other modules.
Nothing in a file is ever run.
"""

import json
import os
import zipfile

import numpy as np

from ..errors import ModelError, UsageError
from .shared import trusted, versions

_MOST, _TEXT = 1 << 36, 1 << 27  # bytes of tensors, of a config
_RATIO = 1 << 12  # of what is packed
_LARGE, _LARGE_RATIO = 1 << 26, 100  # more than 64 MiB must not come from less than a hundredth


def use_some_backend():
    """Where nothing was said: TensorFlow when it is there, otherwise numpy, which reads files too."""
    import importlib.util
    import sys

    if "keras" not in sys.modules and "KERAS_BACKEND" not in os.environ:
        found = [n for n in ("tensorflow", "jax", "torch") if importlib.util.find_spec(n)]
        os.environ["KERAS_BACKEND"] = found[0] if found else "numpy"


def damaged(path, why):
    return ModelError(f"'{path}' cannot be read: {why}", "OT1717", "save the model again: model.save('model.keras')")


def load(path):
    """A compiled keras.Model with its optimizer's state."""
    use_some_backend()
    path = os.fspath(path)
    return _load_zip(path) if path.endswith(".keras") else _load_h5(path)


def save(model, path):
    """Whole or not at all."""
    part = os.path.join(os.path.dirname(os.path.abspath(path)), ".part-" + os.path.basename(path))
    try:
        model.save(part)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


# ---- .keras
def _load_zip(path):
    import keras

    try:
        with zipfile.ZipFile(path) as z:
            for m in z.infolist():
                if m.filename.startswith(("/", "\\")) or ".." in m.filename.split("/"):
                    raise damaged(path, f"it names '{m.filename}', outside of itself")
                if m.file_size > _MOST or m.file_size > _RATIO * max(m.compress_size, 1 << 10) \
                        or m.file_size > max(_LARGE, _LARGE_RATIO * m.compress_size):
                    raise damaged(path, f"'{m.filename}' would be {m.file_size} bytes, packed {m.compress_size}")
            names = set(z.namelist())
            if "config.json" not in names or "model.weights.h5" not in names:
                raise damaged(path, "it has no config.json or no model.weights.h5")
            if z.getinfo("config.json").file_size > _TEXT:
                raise damaged(path, "its config is too large")
            bad = z.testzip()
            if bad:
                raise damaged(path, f"'{bad}' is damaged")
            config = json.loads(z.read("config.json"))
            _check_writer(z, path)
            with z.open("model.weights.h5") as f:
                stored = _check_h5(f, path)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as e:
        raise e if isinstance(e, (FileNotFoundError, UsageError)) else damaged(path, _first(e)) from e
    check_config(config, path)
    _check_size(config, stored, path)
    try:
        model = keras.saving.load_model(path, safe_mode=True)
    except Exception as e:  # noqa: BLE001 - Keras raises whatever it likes
        raise _unknown(e, path) from e
    return model


def _check_writer(z, path):
    """A .keras file of Keras 2 has the same parts and another form."""
    try:
        version = str(json.loads(z.read("metadata.json")).get("keras_version", ""))
    except (KeyError, ValueError, AttributeError):
        return
    if version.startswith("2."):
        raise old_file(path, version)


def old_file(path, version):
    return UsageError(f"'{path}' was written by Keras {version} (tf_keras), whose training Keras 3 does not take over",
                      "OT1715", "in tf_keras: model.export('folder'); then ot.from_tf('folder')")


def _first(e):
    return (str(e).strip().split("\n")[0] or type(e).__name__)[:300]


def _unknown(e, path):
    return UsageError(f"Keras cannot make the model in '{path}': {trusted.reason(e)}", "OT1715",
                      "load it in Python with your classes (keras.saving.load_model(path, custom_objects=...)), then "
                      "ot.from_keras(model).save('model.train.onnx')")


def check_config(config, path):
    """Refuses code, and classes that are neither Keras' nor registered."""
    if not isinstance(config, dict):
        raise damaged(path, "its config describes no model")
    try:
        trusted.check(config)
    except trusted.Untrusted as e:
        if e.kind == "depth":
            raise damaged(path, e.what) from e
        if e.kind == "code":
            raise ModelError(f"'{path}' has {e.what}", "OT1716",
                             "write the layer as a class, or convert the live model: ot.from_keras(model)") from e
        raise UsageError(f"'{path}' needs {e.what}", "OT1715",
                         "convert the live model in Python: ot.from_keras(model)") from e


# ---- HDF5
def _check_h5(f, path):
    """No links to other files, no data outside, no sizes that the file does not hold. Returns the bytes of its data."""
    import h5py

    total, seen = 0, set()

    def look(group, depth):
        nonlocal total
        if group.id in seen:  # several links may lead to one group
            return
        seen.add(group.id)
        if depth > 100:
            raise damaged(path, "its groups are nested too deeply")
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise damaged(path, f"'{name}' is a link")
            item = group.get(name)
            if isinstance(item, h5py.Group):
                look(item, depth + 1)
            elif isinstance(item, h5py.Dataset):
                if item.external or item.is_virtual:
                    raise damaged(path, f"the data of '{name}' lies in another file")
                size = int(np.prod(item.shape, dtype=np.float64)) * item.dtype.itemsize if item.shape else 0
                total += size
                if total > _MOST or size > _RATIO * max(item.id.get_storage_size(), 1 << 10):
                    raise damaged(path, f"'{name}' claims {size} bytes")

    with h5py.File(f, "r") as h:
        look(h, 0)
    return total


def _check_size(config, stored, path):
    """A config that asks for more weights than the file holds: Keras would allocate them before it looks."""
    wanted = versions.weights_of_config({k: v for k, v in config.items() if k != "compile_config"})
    if wanted > 2 * stored + _LARGE:
        raise damaged(path, f"its config asks for {wanted} bytes of weights, the file holds {stored}")


def _load_h5(path):
    import h5py
    import keras

    try:
        with open(path, "rb") as f:
            stored = _check_h5(f, path)
        with h5py.File(path, "r") as h:
            text = {k: _text(h.attrs.get(k)) for k in ("model_config", "training_config", "keras_version")}
            state = _optimizer_state(h)
    except (OSError, ValueError, RuntimeError, KeyError) as e:
        raise e if isinstance(e, FileNotFoundError) else damaged(path, _first(e)) from e
    if not text["model_config"]:
        raise damaged(path, "it holds weights without a model" if text["keras_version"] else "it is no model of Keras")
    config = _json(text["model_config"], path)
    check_config(config, path)
    _check_size(config, stored, path)
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as e:  # noqa: BLE001 - Keras raises whatever it likes
        version = text["keras_version"] or "?"
        raise _unknown(e, f"{path} (written by Keras {version})") from e
    if text["training_config"] and str(text["keras_version"]).startswith("2."):
        raise old_file(path, text["keras_version"])
    if text["training_config"]:
        _resume(model, _json(text["training_config"], path), state, path)
    return model


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _json(text, path):
    if len(text) > _TEXT:
        raise damaged(path, "its config is too large")
    try:
        return json.loads(text)
    except ValueError as e:
        raise damaged(path, f"its config is no JSON: {_first(e)}") from e


def _optimizer_state(h):
    """Arrays in the optimizer's order, or None."""
    if "optimizer_weights" not in h:
        return None
    group = h["optimizer_weights"]
    names = [n.decode() if isinstance(n, bytes) else n for n in group.attrs.get("weight_names", [])]
    return [np.asarray(group[n]) for n in names]


def _resume(model, config, state, path):
    """What Keras itself no longer resumes from HDF5: the loss by its name, the optimizer with its state."""
    import keras

    check_config(config, path)
    stored = config.get("optimizer_config") or config.get("optimizer")
    try:
        optimizer = keras.optimizers.deserialize(stored)
        loss = _loss(config.get("loss"))
        model.compile(optimizer=optimizer, loss=loss, loss_weights=config.get("loss_weights"))
    except Exception as e:  # noqa: BLE001 - Keras raises whatever it likes
        raise UsageError(f"the training in '{path}' cannot be resumed: {_first(e)}", "OT1715",
                         "compile the model in Python, then ot.from_keras(model)") from e
    if not state:
        return
    from .from_keras.training import optimizer_variables

    optimizer.build(model.trainable_variables)
    variables = optimizer_variables(optimizer)
    if len(variables) != len(state) or any(tuple(v.shape) != a.shape for v, a in zip(variables, state)):
        raise UsageError(f"the optimizer's state in '{path}' does not fit {type(optimizer).__name__} of Keras "
                         f"{keras.__version__}: {len(state)} arrays for {len(variables)} variables", "OT1715",
                         "train a step with this Keras and save as .keras")
    for v, a in zip(variables, state):
        v.assign(a.astype(np.dtype(keras.backend.standardize_dtype(v.dtype))))


def _loss(loss):
    import keras

    if isinstance(loss, dict) and "class_name" in loss:
        return keras.losses.deserialize(loss)
    if isinstance(loss, dict):
        return {k: _loss(v) for k, v in loss.items()}
    return [_loss(v) for v in loss] if isinstance(loss, list) else loss
