"""The gradient of MaxPooling3D as TensorFlow computes it eagerly, and in graphs without oneDNN: every value of a window
that is within 1e-5 of the largest gets the whole gradient. Its other kernels, JAX and PyTorch choose one value."""

import functools

import numpy as np

from ...shared import versions
from ..values import is_open

NEAR = 1e-5  # of TensorFlow's kernel


def near_maxima(model):
    """Whether TensorFlow does so when fit runs this model."""
    if versions.backend_name() != "tensorflow":
        return False
    return _asked(bool(getattr(model, "run_eagerly", False)), bool(getattr(model, "jit_compile", False)))


@functools.cache
def _asked(eagerly, jit_compile):
    import tensorflow as tf

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.max_pool3d(x, (2, 2, 2), (2, 2, 2), "VALID")
        return tape.gradient(y, x)

    run = gradient if eagerly else tf.function(gradient, autograph=False, jit_compile=jit_compile)
    x = tf.reshape(tf.constant([NEAR / 2, *[0.0] * 7]), (1, 2, 2, 2, 1))
    return bool(np.count_nonzero(run(x).numpy()) > 1)


def spread(t, x, top, size, strides, pads):
    """top, the largest values of the windows of x, plus one place of all windows after the other: 0 in value, and the
    gradient of what lies there."""
    e, kind, out = t.e, versions.numpy_dtype(x.dtype), [top.shape[a] for a in (top.layout or range(5))[2:]]
    if any(is_open(d) for d in [*top.shape[1:], *x.shape[1:]]):
        return t.refuse("MaxPooling3D over open sizes, run eagerly", fix="compile(..., run_eagerly=False)")
    whole = x.onnx
    if pads:
        around = [0, 0, *pads["pads"][:3], 0, 0, *pads["pads"][3:]]
        whole = e.op("Pad", whole, e.ints(around), e.const(np.finfo(kind).min, kind))
    near, zero = e.const(NEAR, kind), e.const(0, kind)
    total = fixed = e.op("Detach", top.onnx, domain="ai.onnxtrain")
    for place in np.ndindex(*size):
        last = [p + (d - 1) * s + 1 for p, d, s in zip(place, out, strides)]
        part = e.op("Slice", whole, e.ints(place), e.ints(last), e.ints([2, 3, 4]), e.ints(strides))
        value = e.op("Detach", part, domain="ai.onnxtrain")
        chosen = e.op("Less", e.op("Abs", e.op("Sub", value, fixed)), near)
        total = e.op("Add", total, e.op("Where", chosen, e.op("Sub", part, value), zero))
    return top.like(total)
