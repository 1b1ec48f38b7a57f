"""Operators of training: the standard's optimizers, and Detach of our own domain."""

import tensorflow as tf

from ....graph import OWN, TRAINING
from .table import op


@op("Detach", domain=OWN)
def detach(n, x):
    return tf.stop_gradient(x)


def _groups(args, state):
    """R, T, then all X, all G, all state."""
    rate, counter, *rest = args
    count = len(rest) // (2 + state)
    return rate, counter, list(zip(*(rest[k * count:(k + 1) * count] for k in range(2 + state))))


def _join(results):
    return tuple(v for column in zip(*results) for v in column)


@op("Momentum", domain=TRAINING)
def momentum(n, *args):
    alpha, beta, norm = n.get("alpha"), n.get("beta"), n.get("norm_coefficient")
    rate, t, columns = _groups(args, 1)
    out = []
    for x, g, v in columns:
        g = norm * x + g
        v1 = alpha * v + tf.cast(tf.where(t > 0, beta, 1.0), x.dtype) * g
        step = g + alpha * v1 if n.get("mode") == "nesterov" else v1
        out.append((x - tf.cast(rate, x.dtype) * step, v1))
    return _join(out)


@op("Adagrad", domain=TRAINING)
def adagrad(n, *args):
    decay, eps, norm = n.get("decay_factor", 0.0), n.get("epsilon", 0.0), n.get("norm_coefficient", 0.0)
    rate, t, columns = _groups(args, 1)
    now = rate / (1 + tf.cast(t, rate.dtype) * decay)
    out = []
    for x, g, h in columns:
        g = norm * x + g
        h1 = h + g * g
        out.append((x - tf.cast(now, x.dtype) * g / (tf.sqrt(h1) + eps), h1))
    return _join(out)


@op("Adam", domain=TRAINING)
def adam(n, *args):
    alpha, beta, eps = n.get("alpha", 0.9), n.get("beta", 0.999), n.get("epsilon", 0.0)
    norm, post = n.get("norm_coefficient", 0.0), n.get("norm_coefficient_post", 0.0)
    rate, t, columns = _groups(args, 2)
    power = tf.cast(t, tf.float64)
    fix = tf.where(t > 0, tf.sqrt(1 - beta ** power) / (1 - alpha ** tf.maximum(power, 1)), 1.0)
    now = tf.cast(rate, tf.float64) * fix
    out = []
    for x, g, v, h in columns:
        g = norm * x + g
        v1, h1 = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        x1 = x - tf.cast(now, x.dtype) * v1 / (tf.sqrt(h1) + eps)
        out.append(((1 - post) * x1, v1, h1))
    return _join(out)
