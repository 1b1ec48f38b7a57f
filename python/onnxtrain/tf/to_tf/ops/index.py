"""Gathers, scatters, and what finds positions."""

import tensorflow as tf

from .shape import vector
from .table import Unsupported, dims, op, positive, rank_of, set_axis_shape, wide


def _positive(index, size):
    return tf.where(index < 0, index + tf.cast(size, index.dtype), index)


def _index(n, k, index, size):
    """Indices of input k, counted from the beginning."""
    known = n.numbers(k)
    index = index if index.dtype in (tf.int32, tf.int64) else tf.cast(index, tf.int64)
    return index if known is not None and known.size and (known >= 0).all() else _positive(index, size)


@op("Gather")
def gather(n, x, index):
    axis = positive(n.get("axis", 0), rank_of(x))
    return tf.gather(x, _index(n, 1, index, dims(x)[axis]), axis=axis)


def _grid(x_rank, index, axis):
    """Indices [..., rank] of every element of `index`, with `index` itself along `axis`."""
    sizes = dims(index)
    parts = []
    for k in range(x_rank):
        at = index if k == axis else tf.reshape(tf.range(tf.cast(sizes[k], index.dtype), dtype=index.dtype),
                                                set_axis_shape(x_rank, k, -1))
        parts.append(tf.broadcast_to(at, vector(sizes)))
    return tf.stack(parts, -1)


@op("GatherElements")
def gather_elements(n, x, index):
    axis = positive(n.get("axis", 0), rank_of(x))
    return tf.gather_nd(x, _grid(x.shape.rank, _index(n, 1, index, dims(x)[axis]), axis))


def _nd(n, k, x, index, batch=0):
    """Indices of GatherND and ScatterND, counted from the beginning."""
    depth = index.shape[-1]
    if depth is None:
        raise Unsupported("the depth of its indices is open")
    known = n.numbers(k)
    if known is not None and known.size and (known >= 0).all():
        return index
    sizes = tf.stack([tf.cast(d, index.dtype) for d in dims(x)[batch:batch + depth]])
    return tf.where(index < 0, index + sizes, index)


@op("GatherND")
def gather_nd(n, x, index):
    batch = n.get("batch_dims", 0)
    return tf.gather_nd(x, _nd(n, 1, x, index, batch), batch_dims=batch)


def _scatter(how, x, at, updates):
    if how == "none":
        return tf.tensor_scatter_nd_update(x, at, updates)
    if how == "add":
        return tf.tensor_scatter_nd_add(x, at, updates)
    if how == "max":
        return tf.tensor_scatter_nd_max(x, at, updates)
    if how == "min":
        return tf.tensor_scatter_nd_min(x, at, updates)
    raise Unsupported(f"TensorFlow has no scatter with reduction '{how}'")


@op("ScatterElements", "Scatter")
def scatter_elements(n, x, index, updates):
    axis = positive(n.get("axis", 0), rank_of(x))
    at = _grid(x.shape.rank, _index(n, 1, index, dims(x)[axis]), axis)
    rank = x.shape.rank
    return _scatter(n.get("reduction", "none"), x, tf.reshape(at, [-1, rank]), tf.reshape(updates, [-1]))


@op("ScatterND")
def scatter_nd(n, x, index, updates):
    return _scatter(n.get("reduction", "none"), x, _nd(n, 1, x, index), updates)


@op("NonZero")
def non_zero(n, x):
    return tf.transpose(tf.where(tf.not_equal(x, tf.zeros([], x.dtype)) if x.dtype != tf.bool else x))


@op("Compress")
def compress(n, x, condition):
    axis = n.get("axis")
    at = tf.reshape(tf.where(condition), [-1])
    if axis is None:
        return tf.gather(tf.reshape(x, [-1]), at)
    return tf.gather(x, at, axis=positive(axis, rank_of(x)))


@op("OneHot", settings=(1,))
def one_hot(n, index, depth, values):
    axis = n.get("axis", -1)
    rank = rank_of(index) + 1
    axis = positive(axis, rank)
    index = tf.cast(wide(index), tf.int64)
    known = n.numbers(1)
    depth = tf.cast(tf.reshape(depth, []), tf.int64) if known is None else int(known.reshape(-1)[0])
    at = tf.reshape(tf.range(tf.cast(depth, tf.int64), dtype=tf.int64), set_axis_shape(rank, axis, -1))
    return tf.where(tf.expand_dims(_positive(index, depth), axis) == at, values[1], values[0])


@op("Unique")
def unique(n, x):
    if n.get("axis") is not None:
        raise Unsupported("TensorFlow finds no unique slices in sorted order")
    flat = tf.reshape(x, [-1])
    y, inverse, counts = tf.unique_with_counts(flat, tf.int64)
    first = tf.math.unsorted_segment_min(tf.range(tf.size(flat, tf.int64), dtype=tf.int64), inverse, tf.size(y))
    if n.get("sorted", 1):
        order = tf.argsort(y, stable=True)
        inverse = tf.gather(tf.cast(tf.argsort(order), tf.int64), inverse)
        y, first, counts = tf.gather(y, order), tf.gather(first, order), tf.gather(counts, order)
    return y, first, inverse, counts
