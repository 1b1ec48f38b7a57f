"""Reductions, arg-reductions, top k."""

import tensorflow as tf

from ..layout import Order, Value, order_of
from .table import dims, elementwise, op, positive, rank_of, through_wide


def _norm(x, axes, keep):
    """The gradient of the norm of nothing but zeros is 0."""
    total = tf.reduce_sum(x * x, axes, keep)
    empty = total == 0
    return tf.where(empty, tf.zeros_like(total), tf.sqrt(tf.where(empty, tf.ones_like(total), total)))


def _mean(x, axes, keep):
    if x.dtype.is_floating:
        return tf.reduce_mean(x, axes, keep)
    count = 1
    for a in axes:
        count = count * tf.cast(dims(x)[a], x.dtype)
    return tf.cast(tf.truncatediv(tf.reduce_sum(x, axes, keep), count), x.dtype)


def _in_float(f):
    def run(x, axes, keep):
        return f(x, axes, keep) if x.dtype.is_floating else tf.cast(f(tf.cast(x, tf.float64), axes, keep), x.dtype)

    return run


def _bool(f, whole):
    def run(x, axes, keep):
        if x.dtype == tf.bool:
            return whole(x, axes, keep)
        return through_wide(lambda t: f(t, axes, keep))(x)

    return run


_REDUCE = {
    "ReduceSum": lambda x, a, k: through_wide(lambda t: tf.reduce_sum(t, a, k))(x), "ReduceMean": _mean,
    "ReduceMax": _bool(tf.reduce_max, tf.reduce_any), "ReduceMin": _bool(tf.reduce_min, tf.reduce_all),
    "ReduceProd": tf.reduce_prod, "ReduceL1": lambda x, a, k: tf.reduce_sum(tf.abs(x), a, k),
    "ReduceL2": _in_float(_norm), "ReduceSumSquare": lambda x, a, k: tf.reduce_sum(x * x, a, k),
    "ReduceLogSum": _in_float(lambda x, a, k: tf.math.log(tf.reduce_sum(x, a, k))),
    "ReduceLogSumExp": _in_float(tf.reduce_logsumexp),
}
_ONE = {"ReduceL1": tf.abs, "ReduceL2": tf.abs, "ReduceSumSquare": tf.square, "ReduceLogSum": tf.math.log}


@op(*_REDUCE, values=True, settings=(1,))
def reduce(n, x, axes=None):
    given = n.get("axes") if axes is None else n.list_of(1, "axes")
    rank = rank_of(x.any)
    if not given:
        if n.get("noop_with_empty_axes", 0) or rank == 0:
            return elementwise(_ONE.get(n.op, lambda v: v), x)  # what the operator does to one element
        given = range(rank)
    given, keep = {positive(int(a), rank) for a in given}, bool(n.get("keepdims", 1))
    order = order_of(x)
    if order.is_last and not keep and 0 in given and 1 not in given:
        order = Order(rank, False)  # without the batch the channels would not come second
    y = _REDUCE[n.op](order.take(x), sorted(order.axis(a) for a in given), keep)
    return Value(y) if not keep and 1 in given else order.wrap(y)


@op("ArgMax", "ArgMin")
def arg(n, x):
    f = tf.argmax if n.op == "ArgMax" else tf.argmin
    axis = positive(n.get("axis", 0), rank_of(x))
    if n.get("select_last_index", 0):
        y = tf.cast(dims(x)[axis], tf.int64) - 1 - f(tf.reverse(x, [axis]), axis)
    else:
        y = f(x, axis)
    return tf.expand_dims(y, axis) if n.get("keepdims", 1) else y


@op("TopK", settings=(1,))
def top_k(n, x, k=None):
    axis, rank = positive(n.get("axis", -1), rank_of(x)), rank_of(x)
    known = n.numbers(1) if k is not None else None
    count = n.get("k") if k is None else int(known.reshape(-1)[0]) if known is not None else None
    count = tf.cast(tf.reshape(k, []), tf.int32) if count is None else count
    direction = "DESCENDING" if n.get("largest", 1) else "ASCENDING"
    at = tf.argsort(x, axis, direction, stable=True)  # equal values: the lower index first
    at = at[tuple(slice(count) if a == axis else slice(None) for a in range(rank))]
    last = [a for a in range(rank) if a != axis] + [axis]
    back = sorted(range(rank), key=last.__getitem__)
    y = tf.gather(tf.transpose(x, last), tf.transpose(at, last), batch_dims=rank - 1, axis=rank - 1)
    return tf.transpose(y, back), tf.cast(at, tf.int64)


@op("LpNormalization")
def lp_normalization(n, x):
    axis = [positive(n.get("axis", -1), rank_of(x))]
    norm = _norm(x, axis, True) if n.get("p", 2) == 2 else tf.reduce_sum(tf.abs(x), axis, True)
    return tf.math.divide_no_nan(x, norm)
