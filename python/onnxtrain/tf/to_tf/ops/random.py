"""Random numbers: TensorFlow's stateless generator with a seed of the node and a counter that every call moves on."""

import zlib

import tensorflow as tf

from .table import op, tf_dtype


def _seed(n):
    own = n.get("seed")
    text = (n.node.name or n.node.outputs[0]) if own is None else repr(own)
    first = (zlib.crc32(text.encode()) ^ n.run.seed) & 0x7FFFFFFF
    return tf.stack([tf.constant(first, tf.int64), n.run.counter()])


def uniform(n, shape, dtype=tf.float32):
    return tf.random.stateless_uniform(shape, _seed(n), dtype=dtype)


def _normal(n, shape, dtype):
    return n.get("mean", 0.0) + n.get("scale", 1.0) * tf.random.stateless_normal(shape, _seed(n), dtype=dtype)


def _uniform(n, shape, dtype):
    low, high = n.get("low", 0.0), n.get("high", 1.0)
    return low + (high - low) * uniform(n, shape, dtype)


@op("RandomNormal", "RandomUniform", pure=False)
def random(n):
    draw = _normal if n.op == "RandomNormal" else _uniform
    return draw(n, n.get("shape"), tf_dtype(n.get("dtype", 1)))


@op("RandomNormalLike", "RandomUniformLike", pure=False)
def random_like(n, x):
    draw = _normal if n.op == "RandomNormalLike" else _uniform
    return draw(n, tf.shape(x), x.dtype if n.get("dtype") is None else tf_dtype(n.get("dtype")))


@op("Bernoulli", pure=False)
def bernoulli(n, x):
    drawn = uniform(n, tf.shape(x)) < tf.cast(x, tf.float32)
    return tf.cast(drawn, x.dtype if n.get("dtype") is None else tf_dtype(n.get("dtype")))


@op("Multinomial", pure=False)
def multinomial(n, x):
    drawn = tf.random.stateless_categorical(tf.cast(x, tf.float32), n.get("sample_size", 1), _seed(n))
    return tf.cast(drawn, tf_dtype(n.get("dtype", 6)))
