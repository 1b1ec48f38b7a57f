"""Operators that arrange elements: shapes, joins, cuts, padding, fills."""

import functools

import tensorflow as tf

from ..layout import Value, order_of, to_first, to_last
from .table import Unsupported, dims, op, positive, rank_of, tf_dtype

_LIMIT = 2**31 - 1  # TensorFlow's slices count in 32 bits


def _product(sizes):
    return functools.reduce(lambda a, b: a * b, sizes, 1)


def vector(sizes):
    """Numbers and scalar tensors -> one vector; a list where all are numbers."""
    if all(isinstance(d, int) for d in sizes):
        return list(sizes)
    return tf.stack([tf.cast(d, tf.int64) for d in sizes])


@op("Shape", values=True)
def shape(n, x):
    sizes = x.dims() if x.rank is not None else None
    if sizes is None:
        return tf.shape(x.plain, tf.int64)[n.get("start", 0):n.get("end")]
    sizes = sizes[n.get("start", 0):n.get("end")]
    if not sizes or all(isinstance(d, int) for d in sizes):
        return tf.constant(sizes, tf.int64)
    return tf.stack([tf.cast(d, tf.int64) for d in sizes])


@op("Size", values=True)
def size(n, x):
    return tf.cast(_product(x.dims()), tf.int64) if x.dims() else tf.constant(1, tf.int64)


@op("Reshape", settings=(1,))
def reshape(n, x, to=None):
    wanted = n.get("shape") if to is None else n.numbers(1)
    if wanted is not None:
        wanted = [int(d) for d in wanted]
        if not n.get("allowzero", 0) and 0 in wanted:
            have = dims(x)
            wanted = [have[k] if d == 0 else d for k, d in enumerate(wanted)]
        return tf.reshape(x, vector(wanted))
    if n.get("allowzero", 0):
        return tf.reshape(x, to)
    count = to.shape[0] if to.shape.rank == 1 else None
    if count is None:
        raise Unsupported("the rank of its result depends on the data")
    partial = tf.get_static_value(to, partial=True)
    have, made = dims(x), []
    for k in range(count):
        known = None if partial is None else partial[k]
        if known is not None:
            made.append(have[k] if known == 0 else int(known))
        elif k < len(have):
            made.append(tf.where(to[k] == 0, tf.cast(have[k], to.dtype), to[k]))
        else:
            made.append(to[k])
    return tf.reshape(x, vector(made))


@op("Flatten", values=True)
def flatten(n, x):
    rank = rank_of(x.any)
    axis = positive(n.get("axis", 1), rank)
    sizes = x.dims()
    rows, columns = _product(sizes[:axis]), _product(sizes[axis:])
    if isinstance(columns, int) and columns > 0:
        rows = -1
    elif isinstance(rows, int) and rows > 0:
        columns = -1
    return tf.reshape(x.plain, vector([rows, columns]))


@op("Squeeze", values=True, settings=(1,))
def squeeze(n, x, axes=None):
    given = n.get("axes") if axes is None else n.list_of(1, "axes")
    if given is None:
        return tf.squeeze(x.plain)
    order = order_of(x)
    spatial = [positive(a, x.rank) for a in given]
    if order.is_last and 0 not in spatial and 1 not in spatial:
        return order.wrap(tf.squeeze(x.last, [order.axis(a) for a in spatial]))
    return tf.squeeze(x.plain, spatial) if given else x.plain


@op("Unsqueeze", settings=(1,))
def unsqueeze(n, x, axes=None):
    given = n.get("axes") if axes is None else n.list_of(1, "axes")
    for a in sorted(positive(a, rank_of(x) + len(given)) for a in given):
        x = tf.expand_dims(x, a)
    return x


@op("Transpose", values=True)
def transpose(n, x):
    rank = rank_of(x.any)
    perm = list(n.get("perm") or range(rank)[::-1])
    if rank > 2 and x.made_last and perm == to_last(rank):
        return Value(x.last)
    if rank > 2 and not x.made_last and perm == to_first(rank):
        return Value(last=x.plain)
    return x if perm == list(range(rank)) else tf.transpose(x.plain, perm)


@op("Concat", values=True)
def concat(n, *xs):
    if len(xs) == 1:
        return xs[0]
    order = order_of(*xs)
    if any(v.rank != order.rank for v in xs):
        raise Unsupported("its inputs differ in rank")
    return order.wrap(tf.concat([order.take(v) for v in xs], order.axis(n.get("axis", 1))))


@op("Split", values=True, settings=(1,))
def split(n, x, sizes=None):
    parts = len(n.node.outputs)
    order = order_of(x)
    axis = order.axis(n.get("axis", 0))
    t = order.take(x)
    given = n.get("split") if sizes is None else n.numbers(1)
    if given is None and sizes is not None:
        return tuple(order.wrap(p) for p in tf.split(t, sizes.plain, axis, num=parts))
    if given is None:
        have = t.shape[axis]
        if have is None:
            raise Unsupported("it cuts an open size into equal parts")
        each = -(-have // parts)
        given = [min(each, max(0, have - k * each)) for k in range(parts)]
    return tuple(order.wrap(p) for p in tf.split(t, [int(s) for s in given], axis))


@op("Slice", values=True, settings=(1, 2, 3, 4))
def cut(n, x, *_):
    lists = [n.get("starts"), n.get("ends"), n.get("axes"), None]
    tensors = [None] * 4
    for k in range(4):
        if n.has(k + 1):
            known = n.numbers(k + 1)
            lists[k] = None if known is None else [int(v) for v in known]
            tensors[k] = n._values[k + 1].plain
    order = order_of(x)
    t = order.take(x)
    starts, ends, axes, steps = lists
    count = len(starts) if starts is not None else tensors[0].shape[0]
    if tensors[2] is not None and axes is None or tensors[3] is not None and steps is None or count is None:
        raise Unsupported("its axes or steps depend on the data")
    axes = list(range(count)) if axes is None else [positive(a, x.rank) for a in axes]
    steps = steps or [1] * count
    picks = [slice(None)] * x.rank
    for k, a in enumerate(axes):
        low = None if starts is None else starts[k]
        high = None if ends is None else ends[k]
        low = tensors[0][k] if low is None else low
        high = tensors[1][k] if high is None else high
        picks[order.axis(a)] = slice(*_bounds(low, high, steps[k], x.dims()[a]), steps[k])
    return order.wrap(t[tuple(picks)])


def _bounds(low, high, step, have):
    """Starts and ends as TensorFlow's slices understand them."""
    if isinstance(low, int) and isinstance(have, int):
        low = max(min(low + have if low < 0 else low, have), 0 if step > 0 else -1)
        low = min(low, have - 1) if step < 0 else low
    elif isinstance(low, int):
        low = min(low, _LIMIT)
    else:
        low = tf.cast(tf.clip_by_value(low, -_LIMIT, _LIMIT), tf.int64)
    if isinstance(high, int):
        if step > 0:
            high = None if high >= _LIMIT else max(high, -_LIMIT)
        elif high < 0 and (isinstance(have, int) and high < -have or high < -_LIMIT):
            high = None
        return low, high
    high = tf.clip_by_value(high, -_LIMIT, _LIMIT)
    if step < 0:
        raise Unsupported("it runs backwards to an end that depends on the data")
    return low, tf.cast(high, tf.int64)


@op("Expand", settings=(1,))
def expand(n, x, to):
    known = n.numbers(1)
    if known is not None and None not in x.shape.as_list():
        return tf.broadcast_to(x, tf.broadcast_static_shape(x.shape, tf.TensorShape([int(d) for d in known])))
    return tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x, tf.int64), tf.cast(to, tf.int64)))


@op("Tile", settings=(1,))
def tile(n, x, repeats):
    return tf.tile(x, repeats)


@op("ConstantOfShape", settings=(0,))
def constant_of_shape(n, to):
    value = n.get("value")
    number = tf.constant(0.0) if value is None else tf.constant(value.reshape(-1)[0])
    known = n.numbers(0)
    return tf.fill(to if known is None else [int(d) for d in known], number)


@op("Range")
def number_range(n, start, limit, delta):
    return tf.range(start, limit, delta)


@op("Pad", values=True, settings=(1, 3))
def pad(n, x, pads=None, value=None, axes=None):
    given = n.get("pads", n.get("paddings")) if pads is None else n.list_of(1, "pads")
    mode = n.get("mode", "constant")
    rank = rank_of(x.any)
    where = range(rank) if axes is None else [positive(a, rank) for a in n.list_of(3, "axes")]
    low, high = [0] * rank, [0] * rank
    for k, a in enumerate(where):
        low[a], high[a] = int(given[k]), int(given[k + len(where)])
    order = order_of(x)
    t = order.take(x)
    place = [order.axis(a) for a in range(rank)]
    pairs = [None] * rank
    for a in range(rank):
        pairs[place[a]] = (low[a], high[a])
    if mode == "constant":
        number = tf.cast(n.get("value", 0.0), t.dtype) if value is None else tf.reshape(value.plain, [])
        return order.wrap(constant_pad(t, pairs, number))
    return order.wrap(_index_pad(t, pairs, mode))


def constant_pad(t, pairs, number=0):
    """pairs: (before, after) per axis; negative ones cut."""
    if any(p < 0 for pair in pairs for p in pair):
        t = t[tuple(slice(max(-a, 0), min(b, 0) or None) for a, b in pairs)]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    return tf.pad(t, pairs, constant_values=number) if any(map(any, pairs)) else t


def _index_pad(t, pairs, mode):
    """reflect, edge, wrap: gather along each axis; negative pads cut."""
    for a, (low, high) in enumerate(pairs):
        if not low and not high:
            continue
        have = dims(t)[a]
        at = tf.range(-low, have + high)
        if mode == "edge":
            at = tf.clip_by_value(at, 0, have - 1)
        elif mode == "wrap":
            at = at % have
        elif mode == "reflect":
            period = tf.maximum(2 * (have - 1), 1)
            at = at % period
            at = tf.where(at >= have, period - at, at)
        else:
            raise Unsupported(f"there is no mode '{mode}'")
        t = tf.gather(t, at, axis=a)
    return t


@op("DepthToSpace", values=True)
def depth_to_space(n, x):
    b = n.get("blocksize")
    if n.get("mode", "DCR") == "DCR":
        return Value(last=tf.nn.depth_to_space(x.last, b))
    s, h, w, c = dims(x.last)
    y = tf.transpose(tf.reshape(x.last, vector([s, h, w, c // (b * b), b, b])), [0, 1, 4, 2, 5, 3])
    return Value(last=tf.reshape(y, vector([s, h * b, w * b, c // (b * b)])))


@op("SpaceToDepth", values=True)
def space_to_depth(n, x):
    b = n.get("blocksize")
    if n.get("mode", "DCR") == "DCR":
        return Value(last=tf.nn.space_to_depth(x.last, b))
    s, h, w, c = dims(x.last)
    y = tf.transpose(tf.reshape(x.last, vector([s, h // b, b, w // b, b, c])), [0, 1, 3, 5, 2, 4])
    return Value(last=tf.reshape(y, vector([s, h // b, w // b, c * b * b])))


@op("EyeLike")
def eye_like(n, x):
    dtype = x.dtype if n.get("dtype") is None else tf_dtype(n.get("dtype"))
    rows, columns = dims(x)
    return tf.cast(tf.range(rows)[:, None] + n.get("k", 0) == tf.range(columns), dtype)


@op("Trilu", settings=(1,))
def trilu(n, x, k=None):
    at = 0 if k is None else tf.cast(tf.reshape(k, []), tf.int32)
    rows, columns = dims(x)[-2:]
    distance = tf.range(columns) - tf.range(rows)[:, None]
    keep = distance >= at if n.get("upper", 1) else distance <= at
    return tf.where(keep, x, tf.zeros_like(x))


@op("ReverseSequence")
def reverse_sequence(n, x, lengths):
    return tf.reverse_sequence(x, lengths, n.get("time_axis", 0), n.get("batch_axis", 1))


@op("CenterCropPad", settings=(1,))
def center_crop_pad(n, x, to):
    wanted, rank = n.list_of(1, "sizes"), rank_of(x)
    axes = range(rank) if n.get("axes") is None else [positive(a, rank) for a in n.get("axes")]
    pairs = [(0, 0)] * rank
    for want, a in zip(wanted, axes):
        more = int(want) - dims(x)[a]
        if not isinstance(more, int):
            raise Unsupported("it cuts an open size")
        low = more // 2 if more > 0 else -(-more // 2)
        pairs[a] = (low, more - low)
    return constant_pad(x, pairs)
