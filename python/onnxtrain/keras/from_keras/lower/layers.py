"""Layers that are more than what their `call` does in keras.ops: ONNX has an operator for them."""

import numpy as np

from ....converters.table import entered_in
from ...shared import versions
from ..values import Traced, is_open
from . import recurrent
from .loops import mapped
from .table import exact

LAYERS = {}


layer = entered_in(LAYERS)


def handler_of(layer):
    """The handler of Keras' own class whose `call` this layer runs, or None."""
    for cls in type(layer).__mro__:
        if "call" in vars(cls):
            return LAYERS.get(cls.__name__) if (cls.__module__ or "").startswith("keras.") else None
    return None


@layer("BatchNormalization")
def batch_normalization(t, layer, inputs, training=None, mask=None):
    if getattr(layer, "renorm", False):
        return t.refuse(f"BatchNormalization '{layer.name}' with renorm=True", t.value(inputs), "renorm=False")
    if not (training and layer.trainable) or mask is not None:
        return NotImplemented
    x = t.cast(t.value(inputs), versions.result_type(t.value(inputs), np.float32(0)))
    if not exact(x, layer.epsilon, layer.momentum):
        return NotImplemented
    axis = layer.axis % x.rank
    layout = (0, axis, *[a for a in range(1, x.rank) if a != axis])
    x = t.physical(x, layout)
    one, zero = (t.e.const(np.full([x.shape[axis]], v, versions.numpy_dtype(x.dtype))) for v in (1, 0))
    gamma = t.value(layer.gamma).onnx if layer.scale else one
    beta = t.value(layer.beta).onnx if layer.center else zero
    mean, variance = t.value(layer.moving_mean), t.value(layer.moving_variance)
    y, new_mean, new_variance = t.e.node(
        "BatchNormalization", [x.onnx, gamma, beta, mean.onnx, variance.onnx], 3, epsilon=float(layer.epsilon),
        momentum=float(layer.momentum), training_mode=1)
    t.assign(layer.moving_mean, mean.like(new_mean))
    t.assign(layer.moving_variance, variance.like(new_variance))
    return Traced(y, x.shape, x.dtype, layout)


@layer("LSTM", "GRU", "SimpleRNN", "RNN")
def rnn(t, layer, sequences, initial_state=None, mask=None, training=False):
    if layer.stateful:
        t.refuse(f"{type(layer).__name__} '{layer.name}' is stateful: rows of one batch follow on those of the last",
                 t.value(sequences), "stateful=False")
    if mask is not None or not recurrent.is_plain(layer, training):
        return NotImplemented
    return recurrent.fused(t, layer, t.value(sequences), initial_state)


LAYERS["RNN"] = lambda t, layer, *a, **k: rnn(t, layer, *a, **k) if layer.stateful else NotImplemented


@layer("ConvLSTM", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def conv_lstm(t, layer, sequences, *a, **k):
    return LAYERS["RNN"](t, layer, sequences, *a, **k)


@layer("CategoryEncoding")
def category_encoding(t, layer, inputs, count_weights=None):
    """TensorFlow counts with a function of its own, with the same result."""
    import keras

    if layer.output_mode == "one_hot" or layer.sparse:
        return NotImplemented
    x = t.value(inputs)
    dtype = layer.dtype if count_weights is None else t.value(count_weights).dtype
    hot = keras.ops.one_hot(x, layer.num_tokens, dtype=dtype)
    axis = 1 if x.rank > 1 else 0
    if layer.output_mode == "multi_hot":
        return keras.ops.max(hot, axis=axis)
    return keras.ops.sum(hot if count_weights is None else hot * keras.ops.expand_dims(count_weights, -1), axis=axis)


@layer("TimeDistributed")
def time_distributed(t, layer, inputs, training=None, mask=None):
    """An open number of steps: Keras counts the rows of the batch there, so that its own code cannot be followed."""
    import keras

    x, inner = t.value(inputs), layer.layer
    if not is_open(x.shape[1]):
        return NotImplemented
    rows = [keras.ops.swapaxes(v, 0, 1) for v in (x, mask) if v is not None]

    def step(values):
        given = {"mask": values[1]} if len(values) > 1 and inner._call_has_mask_arg else {}
        if inner._call_has_training_arg:
            given["training"] = training
        return inner.call(values[0], **given)

    made = mapped(t, step, rows, "TimeDistributed over an open number of steps")
    return keras.ops.swapaxes(made, 0, 1)
