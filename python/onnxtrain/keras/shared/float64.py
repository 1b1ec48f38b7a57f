"""A model in float64 for a while. Nothing of the user's changes: weights, element types and numbers are put back.

Numbers that layers keep (epsilon, slopes, momentum) are rounded to float32 meanwhile: ONNX's attributes are float32, so
that the file and Keras compute with the same ones.
"""

import contextlib

import numpy as np

from . import versions


@contextlib.contextmanager
def in_float64(model):
    import keras

    undo, floatx, policy = [], keras.config.floatx(), keras.config.dtype_policy()
    with _wide_backend():
        try:
            keras.config.set_floatx("float64")
            keras.config.set_dtype_policy("float64")
            for layer in _layers(model):
                _widen_layer(layer, undo)
            for v in {id(v): v for v in [*model.variables, *model.weights]}.values():
                _widen_variable(v, undo)
            for loss in keras.tree.flatten(getattr(versions.compile_loss(model), "_user_loss", None)):
                if isinstance(loss, keras.losses.Loss):
                    _put(loss, "_dtype_policy", keras.DTypePolicy("float64"), undo)
                    _put(loss, "_dtype", "float64", undo)
            yield
        finally:
            for owner, name, value in reversed(undo):
                vars(owner)[name] = value
            keras.config.set_floatx(floatx)
            keras.config.set_dtype_policy(policy)


@contextlib.contextmanager
def _wide_backend():
    """JAX makes float32 of float64 unless it is told otherwise."""
    if versions.backend_name() != "jax":
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def _layers(model):
    found = list(model._flatten_layers(include_self=True, recursive=True))
    return found + [f for layer in found if (f := getattr(layer, "_functional", None)) is not None]


def _put(owner, name, value, undo):
    if name in vars(owner):
        undo.append((owner, name, vars(owner)[name]))
        vars(owner)[name] = value


def _widen_layer(layer, undo):
    import keras

    if layer.compute_dtype == "float32":
        _put(layer, "_dtype_policy", keras.DTypePolicy("float64"), undo)
        if "_functional" in vars(layer) or "_inputs" in vars(layer):
            for x in vars(layer).get("_inputs") or []:
                if x.dtype == "float32":
                    _put(x, "_dtype", "float64", undo)
    for name, value in list(vars(layer).items()):
        if type(value) is float:
            _put(layer, name, float(np.float32(value)), undo)


def _widen_variable(v, undo):
    if versions.standardize_dtype(v._dtype) != "float32":
        return
    array = versions.variable_array(v).astype(np.float64)
    _put(v, "_value", _stored(v, array), undo)
    _put(v, "_dtype", "float64", undo)


def _stored(v, array):
    """What a variable of this backend holds."""
    backend = versions.backend_name()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.Variable(array, trainable=v.trainable)
    if backend == "torch":
        import torch

        return torch.nn.Parameter(torch.from_numpy(array), requires_grad=v.trainable)
    return v._convert_to_tensor(array, dtype="float64")
