"""Losses over classes, and Dropout."""

import tensorflow as tf

from ..layout import order_of
from .random import uniform
from .table import elementwise, op, rank_of


@op("SoftmaxCrossEntropyLoss", values=True)
def softmax_cross_entropy(n, scores, labels, weights=None):
    order = order_of(scores)
    logs = tf.nn.log_softmax(order.take(scores), order.channel)
    loss = _class_loss(n, order, logs, labels.plain, None if weights is None else weights.plain)
    return (loss, order.wrap(logs)) if n.wants(1) else loss


@op("NegativeLogLikelihoodLoss", values=True)
def nll(n, logs, labels, weights=None):
    order = order_of(logs)
    return _class_loss(n, order, order.take(logs), labels.plain, None if weights is None else weights.plain)


def _class_loss(n, order, logs, labels, weights):
    """Everything ignored: 0, and no gradient."""
    rank = rank_of(logs)
    if not order.is_last and rank > 2:
        logs = tf.transpose(logs, [0, *range(2, rank), 1])
    ignore, reduction = n.get("ignore_index"), n.get("reduction", "mean")
    labels = tf.cast(labels, tf.int64)
    counted = tf.ones_like(labels, tf.bool) if ignore is None else labels != ignore
    safe = tf.where(counted, labels, tf.zeros_like(labels))
    picked = -tf.gather(logs, safe, batch_dims=rank - 1)
    factor = tf.cast(counted, logs.dtype)
    if weights is not None:
        factor *= tf.gather(weights, safe)
    loss = tf.where(counted, picked, tf.zeros_like(picked)) * factor
    if reduction == "none":
        return loss
    total = tf.reduce_sum(loss)
    if reduction == "sum":
        return total
    if weights is None and ignore is None:
        return tf.reduce_mean(loss)
    return tf.math.divide_no_nan(total, tf.reduce_sum(factor))


@op("Dropout", values=True, settings=(1, 2), pure=False)
def dropout(n, x, ratio=None, training=None):
    order = order_of(x)
    t = order.take(x)
    if n.version < 12:
        p, live = n.get("ratio", 0.5), n.version < 7 and not n.get("is_test", 0)
    else:
        known = n.numbers(1) if ratio is not None else None
        p = 0.5 if ratio is None else float(known.reshape(-1)[0]) if known is not None else tf.reshape(ratio.plain, [])
        known = n.numbers(2) if training is not None else None
        live = False if training is None else known
        live = tf.reshape(training.plain, []) if training is not None and known is None else bool(live)
    if live is False or isinstance(p, float) and p == 0:
        return (x, elementwise(lambda a: tf.ones_like(a, tf.bool), x)) if n.wants(1) else x
    mask = uniform(n, tf.shape(t)) >= tf.cast(p, tf.float32)
    factor = tf.cast(1, t.dtype) / tf.cast(1 - p, t.dtype) if not isinstance(p, float) or p < 1 else 1.0
    if live is not True:
        mask, factor = mask | ~live, tf.where(live, tf.cast(factor, t.dtype), tf.ones([], t.dtype))
    y = order.wrap(tf.where(mask, t * tf.cast(factor, t.dtype), tf.zeros_like(t)))
    return (y, order.wrap(mask)) if n.wants(1) else y
