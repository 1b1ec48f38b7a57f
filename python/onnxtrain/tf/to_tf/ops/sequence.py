"""Sequences of tensors: inside, all elements in one flat tensor with a table of their shapes; at the edges, as inputs
and outputs of the module, a RaggedTensor."""

import tensorflow as tf

from ..layout import Value
from .shape import vector
from .table import Unsupported, dims, op, positive, rank_of, tf_dtype


class Sequence:
    """flat: all elements one behind the other; shapes: [count, 1 + rank], the first column is 1."""

    made_last, static = False, None

    def __init__(self, flat, shapes):
        self.flat, self.shapes = flat, shapes

    @property
    def tensors(self):
        return [self.flat, self.shapes]

    def count(self):
        return tf.shape(self.shapes, tf.int64)[0]

    def ends(self):
        return tf.cumsum(tf.reduce_prod(self.shapes, 1))

    def index(self, at):
        at = tf.cast(tf.reshape(at, []), tf.int64)
        return tf.where(at < 0, at + self.count(), at)

    def element(self, at, rank=None):
        known = self.shapes.shape[1]
        rank = known - 1 if known is not None else rank
        if rank is None:
            raise Unsupported("the rank of the sequence's elements is not known")
        ends = tf.concat([[tf.constant(0, tf.int64)], self.ends()], 0)
        k = self.index(at)
        return tf.reshape(self.flat[ends[k]:ends[k + 1]], tf.reshape(self.shapes[k], [rank + 1])[1:])


def of_tensors(xs):
    rank = rank_of(xs[0])
    shapes = tf.stack([_row(x) for x in xs])
    shapes.set_shape([len(xs), rank + 1])
    return Sequence(tf.concat([tf.reshape(x, [-1]) for x in xs], 0), shapes)


def _row(x):
    return tf.concat([[tf.constant(1, tf.int64)], tf.shape(x, tf.int64)], 0)


@op("SequenceConstruct")
def construct(n, *xs):
    return of_tensors(xs)


@op("SequenceEmpty")
def empty(n):
    return Sequence(tf.zeros([0], tf_dtype(n.get("dtype", 1))), tf.ones([0, 1], tf.int64))


@op("SequenceAt", values=True)
def at(n, items, index):
    known = n.run.known_shape(n.node.outputs[0])
    return Value(items.element(index.plain, None if known is None else known.rank))


@op("SequenceLength", values=True)
def length(n, items):
    return Value(items.count())


@op("SequenceInsert", values=True)
def insert(n, items, x, index=None):
    x = x.plain
    k = items.count() if index is None else items.index(index.plain)
    shapes = tf.reshape(items.shapes, [-1, rank_of(x) + 1])  # an empty sequence knows no rank yet
    ends = tf.concat([[tf.constant(0, tf.int64)], items.ends()], 0)
    flat = tf.concat([items.flat[:ends[k]], tf.reshape(x, [-1]), items.flat[ends[k]:]], 0)
    return Sequence(flat, tf.concat([shapes[:k], _row(x)[None], shapes[k:]], 0))


@op("SequenceErase", values=True)
def erase(n, items, index=None):
    k = items.count() - 1 if index is None else items.index(index.plain)
    ends = tf.concat([[tf.constant(0, tf.int64)], items.ends()], 0)
    flat = tf.concat([items.flat[:ends[k]], items.flat[ends[k + 1]:]], 0)
    return Sequence(flat, tf.concat([items.shapes[:k], items.shapes[k + 1:]], 0))


@op("SplitToSequence", settings=(1,))
def split_to_sequence(n, x, sizes=None):
    rank = rank_of(x)
    axis, keep = positive(n.get("axis", 0), rank), n.get("keepdims", 1)
    moved = tf.transpose(x, [axis, *[a for a in range(rank) if a != axis]]) if axis else x
    have = dims(x)
    if sizes is None:
        lengths = tf.ones([tf.cast(have[axis], tf.int64)], tf.int64)
    elif sizes.shape.rank == 0:
        total, each = tf.cast(have[axis], tf.int64), tf.cast(sizes, tf.int64)
        starts = tf.range(tf.constant(0, tf.int64), total, each)
        lengths = tf.minimum(each, total - starts)
    else:
        lengths = tf.cast(sizes, tf.int64)
    count = tf.shape(lengths, tf.int64)[0]
    columns = [tf.ones([count], tf.int64)]
    for a in range(rank):
        columns.append(lengths if a == axis else tf.fill([count], tf.cast(have[a], tf.int64)))
    if axis:
        flat = _in_order(moved, lengths, axis, have)
    else:
        flat = tf.reshape(moved, [-1])
    if sizes is None and not keep:
        columns.pop(axis + 1)
    return Sequence(flat, tf.stack(columns, 1))


def _places(lengths, before, after):
    """Where the elements of the concatenation [before, sum(lengths), after] stand in the flat sequence."""
    total = tf.reduce_sum(lengths)
    ends = tf.cumsum(lengths)
    starts = ends - lengths
    at = tf.range(total)
    which = tf.searchsorted(ends, at, "right", out_type=tf.int64)
    here, first = tf.gather(lengths, which), tf.gather(starts, which)
    base = first * before * after  # elements of all earlier tensors
    p = tf.range(tf.cast(before, tf.int64))[:, None, None]
    q = tf.range(tf.cast(after, tf.int64))[None, None, :]
    column = lambda v: v[None, :, None]
    return tf.reshape(column(base) + (p * column(here) + column(at - first)) * after + q, [-1])


def _around(sizes, axis):
    before = after = tf.constant(1, tf.int64)
    for a, d in enumerate(sizes):
        d = tf.cast(d, tf.int64)
        before, after = (before * d, after) if a < axis else (before, after * d if a > axis else after)
    return before, after


def _in_order(moved, lengths, axis, have):
    """The flat sequence of the parts of a tensor along `axis`; `moved` has that axis first."""
    before, after = _around(have, axis)
    whole = [a for a in range(len(have)) if a != axis]
    back = tf.transpose(moved, sorted(range(len(have)), key=[axis, *whole].__getitem__))
    place = _places(lengths, before, after)
    order = tf.argsort(place)
    return tf.gather(tf.reshape(back, [-1]), order)


@op("ConcatFromSequence", values=True)
def concat_from_sequence(n, items):
    width = items.shapes.shape[1]
    known = n.run.known_shape(n.node.outputs[0])
    new = n.get("new_axis", 0)
    if width is None and known is not None and known.rank is not None:
        width = known.rank + (0 if new else 1)
    if width is None:
        raise Unsupported("the rank of the sequence's elements is not known")
    rank = width - 1
    axis = positive(n.get("axis"), rank + (1 if new else 0))
    shapes = tf.reshape(items.shapes, [-1, width])
    sizes = tf.unstack(shapes[0][1:], rank)  # all elements agree outside of `axis`
    if new:
        sizes = [*sizes[:axis], tf.constant(1, tf.int64), *sizes[axis:]]
        lengths = tf.ones([items.count()], tf.int64)
    else:
        lengths = shapes[:, axis + 1]
    before, after = _around(sizes, axis)
    flat = items.flat if axis == 0 else tf.gather(items.flat, _places(lengths, before, after))
    sizes[axis] = tf.reduce_sum(lengths)
    return Value(tf.reshape(flat, vector(sizes)))


def to_ragged(items, rank=None):
    """A RaggedTensor of the sequence's elements, every one of their dimensions ragged."""
    width = items.shapes.shape[1] if items.shapes.shape[1] is not None else rank + 1
    shapes = tf.reshape(items.shapes, [-1, width])
    if width == 1:
        return items.flat
    lengths, repeats = [], tf.ones([items.count()], tf.int64)
    for a in range(1, width):
        lengths.append(tf.repeat(shapes[:, a], repeats))
        repeats = repeats * shapes[:, a]
    return tf.RaggedTensor.from_nested_row_lengths(items.flat, lengths, validate=False)


def from_ragged(x, rank):
    """The inverse; x: a RaggedTensor, or a tensor whose first axis counts the elements."""
    if not isinstance(x, tf.RaggedTensor):
        x = tf.RaggedTensor.from_tensor(x, ragged_rank=rank) if rank else x
    if rank == 0:
        return Sequence(x, tf.ones([tf.size(x, tf.int64), 1], tf.int64))
    while x.ragged_rank < rank:
        x = x.with_flat_values(tf.RaggedTensor.from_tensor(x.flat_values))
    columns = [tf.ones([x.nrows(tf.int64)], tf.int64), tf.cast(x.row_lengths(), tf.int64)]
    for a in range(2, rank + 1):
        lengths = x.row_lengths(axis=a)
        while isinstance(lengths, tf.RaggedTensor):
            lengths = tf.reduce_max(lengths, axis=-1)
        columns.append(tf.cast(tf.maximum(lengths, 0), tf.int64))
    return Sequence(x.flat_values, tf.stack(columns, 1))
