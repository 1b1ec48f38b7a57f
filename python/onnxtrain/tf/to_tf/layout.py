"""Images lie channels last inside: TensorFlow's CPU kernels for convolution and pooling know no other order.

The file says [batch, channel, ...]. A `Value` holds one tensor of the file in the file's order, with the channels last,
or both; the other form is made when somebody asks, once. Operators that work in either order take the order that their
inputs have, so no transpose stands between two image operators.
"""

import math

import tensorflow as tf


def last_axis(axis, rank):
    """Where an axis of [batch, channel, ...] lies with the channels last."""
    return axis if axis == 0 else rank - 1 if axis == 1 else axis - 1


def to_last(rank):
    return [0, *range(2, rank), 1]


def to_first(rank):
    return [0, rank - 1, *range(1, rank - 1)]


def _moved(t, perm):
    """A transpose, or a reshape where at most one of the two groups that change places is longer than 1."""
    sizes = t.shape.as_list()
    channel, spatial = (sizes[1], sizes[2:]) if perm[-1] == 1 else (sizes[-1], sizes[1:-1])
    if channel == 1 or (None not in spatial and math.prod(spatial) == 1):
        known = [sizes[k] for k in perm]
        if known.count(None) <= 1:
            return tf.reshape(t, [-1 if d is None else d for d in known])
        return tf.reshape(t, tf.gather(tf.shape(t), perm))
    return tf.transpose(t, perm)


class Value:
    """One value of the file: a tensor in the file's order, channels last, or both."""

    __slots__ = ("_first", "_last", "made_last", "static")

    def __init__(self, first=None, last=None, static=None):
        self._first, self._last, self.static = first, last, static
        self.made_last = last is not None and first is None

    @property
    def plain(self):
        if self._first is None:
            self._first = _moved(self._last, to_first(self._last.shape.rank))
        return self._first

    @property
    def last(self):
        if self._last is None:
            self._last = _moved(self._first, to_last(self._first.shape.rank))
        return self._last

    @property
    def any(self):
        """Whichever form is there: for the element type and the rank."""
        return self._last if self._first is None else self._first

    @property
    def rank(self):
        return self.any.shape.rank

    def shape(self):
        """Sizes in the file's order, None where open."""
        if self._first is not None:
            return self._first.shape.as_list()
        sizes = self._last.shape.as_list()
        return [sizes[k] for k in to_first(len(sizes))]

    def dims(self):
        """Sizes in the file's order: numbers, and scalar tensors where open."""
        known = self.shape()
        if None not in known:
            return known
        sizes, rank = tf.shape(self.any), len(known)
        place = range(rank) if self._first is not None else [last_axis(a, rank) for a in range(rank)]
        return [sizes[p] if d is None else d for d, p in zip(known, place)]


class Order:
    """The order in which one operator works: that of its inputs."""

    def __init__(self, rank, last):
        self.rank, self.is_last = rank, last

    def take(self, v):
        return v.last if self.is_last else v.plain

    def axis(self, a):
        a = a + self.rank if a < 0 else a
        return last_axis(a, self.rank) if self.is_last else a

    def wrap(self, t):
        """The result, of any rank above 2 in the same order."""
        return Value(last=t) if self.is_last and t.shape.rank > 2 else Value(t)

    @property
    def channel(self):
        return self.rank - 1 if self.is_last else 1

    @property
    def spatial(self):
        return list(range(1, self.rank - 1)) if self.is_last else list(range(2, self.rank))

    def per_channel(self, t):
        """A vector with one number per channel, so that it meets the channels."""
        return t if self.is_last or self.rank < 2 else tf.reshape(t, [-1, *[1] * (self.rank - 2)])


def order_of(*values):
    """Channels last if an input of the highest rank lies so and every other can follow."""
    ranks = [v.rank for v in values]
    if None in ranks or not ranks:
        return Order(None, False)
    rank = max(ranks)
    last = rank > 2 and any(v.made_last and v.rank == rank for v in values)
    return Order(rank, last and all(_follows(v, rank) for v in values))


def _follows(v, rank):
    return v.rank == rank or v.rank == 0 or None not in v.shape()


def aligned(order, v):
    """An input of an elementwise operator, broadcast from the right in the file's order, in this order."""
    if not order.is_last or v.rank == 0:
        return v.plain
    if v.rank == order.rank:
        return v.last
    sizes = [1] * (order.rank - v.rank) + v.shape()
    moved = [sizes[k] for k in to_last(order.rank)]
    if sum(d != 1 for d in sizes) <= 1:
        return tf.reshape(v.plain, moved)
    return tf.transpose(tf.reshape(v.plain, sizes), to_last(order.rank))


BROKEN = Value()  # the result of a node that was refused
