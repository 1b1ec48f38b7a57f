"""Functions of the backend that have no operation of the same name in keras.ops: random numbers, and arrays whose size
is open."""

from types import SimpleNamespace

import numpy as np

from ...shared import versions
from ..values import Traced
from .loops import mapped
from .table import OPERATIONS

BACKEND_CALLS = {}


def call(part, *names):
    def add(f):
        for n in names:
            BACKEND_CALLS[part, n] = f
        return f

    return add


# ---- arrays
@call("numpy", "zeros", "empty")
def zeros(t, shape, dtype=None):
    return t.zeros(shape, dtype or versions.floatx())


@call("numpy", "ones")
def ones(t, shape, dtype=None):
    dtype = dtype or versions.floatx()
    name = t.e.op("ConstantOfShape", t.shape_vector(shape), value=np.ones([1], versions.numpy_dtype(dtype)))
    return Traced(name, shape, dtype)


@call("numpy", "array")
def array(t, x, dtype=None):
    return t.value(x, dtype)


# ---- operations that older versions of Keras send to the backend without asking for symbolic tensors
@call("numpy", "arange")
def arange(t, start, stop=None, step=None, dtype=None):
    return OPERATIONS["Arange"](t, SimpleNamespace(dtype=dtype), start, stop, step, dtype)


@call("numpy", "full")
def full(t, shape, fill_value, dtype=None):
    return OPERATIONS["Full"](t, SimpleNamespace(shape=shape, dtype=dtype), fill_value)


@call("core", "while_loop")
def while_loop(t, cond, body, loop_vars, maximum_iterations=None):
    return OPERATIONS["WhileLoop"](t, SimpleNamespace(cond=cond, body=body, maximum_iterations=maximum_iterations),
                                   loop_vars)


@call("core", "vectorized_map")
def vectorized_map(t, function, elements):
    return mapped(t, function, elements, "keras.ops.vectorized_map")


@call("numpy", "eye")
def eye(t, N, M=None, k=0, dtype=None):
    """Also of a size that is open."""
    from keras import ops

    M = N if M is None else M
    rows, columns = ops.expand_dims(ops.arange(N), 1), ops.expand_dims(ops.arange(M), 0)
    return ops.cast(ops.equal(columns - rows, k), dtype or versions.floatx())


@call("numpy", "identity")
def identity(t, n, dtype=None):
    return eye(t, n, dtype=dtype)


@call("core", "convert_to_tensor")
def convert_to_tensor(t, x, dtype=None, sparse=None, ragged=None):
    return t.value(x, dtype) if dtype is not None else t.value(x)


@call("core", "cast")
def cast(t, x, dtype):
    import keras

    return keras.ops.cast(x, dtype)


@call("core", "stop_gradient")
def stop_gradient(t, x):
    import keras

    return keras.ops.stop_gradient(x)


# ---- random numbers: they follow the trainer's seed
def _like(t, shape, dtype):
    return t.zeros(_sizes(t, shape), dtype)


def _sizes(t, shape):
    if isinstance(shape, Traced):
        t.refuse("random numbers whose shape is a tensor")
    return tuple(shape)


@call("random", "uniform")
def uniform(t, shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    dtype = dtype or versions.floatx()
    zero = _like(t, shape, dtype)
    unit = zero.like(t.e.op("RandomUniformLike", zero.onnx, low=0.0, high=1.0))
    return _scaled(t, unit, minval, maxval)


def _scaled(t, unit, low, high):
    import keras

    if all(not t.is_symbolic(v) for v in (low, high)):
        low, high = (versions.to_numpy(v) for v in (low, high))
        if low.ndim == 0 and high.ndim == 0 and (low, high) == (0, 1):
            return unit
        spread = high - low
    else:
        spread = keras.ops.subtract(high, low)
    return unit * keras.ops.cast(spread, unit.dtype) + keras.ops.cast(low, unit.dtype)


@call("random", "normal")
def normal(t, shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    zero = _like(t, shape, dtype or versions.floatx())
    unit = zero.like(t.e.op("RandomNormalLike", zero.onnx, mean=0.0, scale=1.0))
    return unit * stddev + mean


@call("random", "randint")
def randint(t, shape, minval, maxval, dtype="int32", seed=None):
    import keras

    unit = uniform(t, shape)
    return keras.ops.cast(keras.ops.floor(_scaled(t, unit, minval, maxval)), dtype)


@call("random", "dropout")
def dropout(t, inputs, rate, noise_shape=None, seed=None):
    x = t.value(inputs)
    ratio = t.e.const(np.array(rate, np.float32))
    on = t.e.const(np.array(True))
    if noise_shape is None or all(n is None or n == d for n, d in zip(noise_shape, x.shape)):
        return x.like(t.e.op("Dropout", x.onnx, ratio, on))
    shape = [d if n is None else n for n, d in zip(noise_shape, t.shape_of(x))]
    kept = Traced(t.e.op("Dropout", ones(t, shape, x.dtype).onnx, ratio, on), shape, x.dtype)
    return x * kept


@call("random", "shuffle")
def shuffle(t, x, axis=0, seed=None):
    import keras

    x = t.value(x)
    order = keras.ops.argsort(uniform(t, (t.shape_of(x)[axis],)), axis=0)
    return keras.ops.take(x, order, axis=axis)


@call("random", "categorical")
def categorical(t, logits, num_samples, dtype="int32", seed=None):
    """The largest of the scores plus Gumbel noise has the right probabilities."""
    import keras

    scores = t.value(logits)
    rows, classes = t.shape_of(scores)
    unit = uniform(t, (rows, num_samples, classes), dtype=scores.dtype)
    tiny = float(np.finfo(scores.dtype).tiny)
    noise = -keras.ops.log(-keras.ops.log(keras.ops.maximum(unit, tiny)))
    return keras.ops.cast(keras.ops.argmax(keras.ops.expand_dims(scores, 1) + noise, axis=-1), dtype)


@call("random", "gamma", "beta", "binomial", "truncated_normal")
def unsupported(t, *_, **__):
    return t.refuse("random numbers of this distribution have no form in ONNX", fix="keras.random.normal or uniform")
