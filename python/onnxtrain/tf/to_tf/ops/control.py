"""If, Loop, Scan, and SequenceMap by TensorFlow's own control flow."""

import tensorflow as tf

from ..layout import Value
from .sequence import Sequence, of_tensors
from .table import Unsupported, op, positive


def _flat(values):
    """Values -> (tensors, a way back)."""
    tensors, kinds = [], []
    for v in values:
        parts = v.tensors if isinstance(v, Sequence) else [v.plain]
        kinds.append((type(v), len(parts)))
        tensors += parts
    return tensors, kinds


def _back(tensors, kinds):
    values, k = [], 0
    for kind, count in kinds:
        parts = tensors[k:k + count]
        values.append(Sequence(*parts) if kind is Sequence else Value(parts[0]))
        k += count
    return values


def _loose(t):
    return tf.TensorShape(None if t.shape.rank is None else [None] * t.shape.rank)


@op("If", values=True, pure=False)
def branch(n, condition):
    made = []

    def side(key):
        def run():
            got, kinds = _flat(n.run.body(n.attrs[key]))
            made.append(kinds)
            return got

        return run

    known = n.numbers(0)
    if known is not None:  # the other branch need not even make sense
        return tuple(n.run.body(n.attrs["then_branch" if bool(known.reshape(-1)[0]) else "else_branch"], inline=True))
    n.run.capture(n)
    got = tf.cond(tf.reshape(condition.plain, []), side("then_branch"), side("else_branch"))
    return tuple(_back(list(got), made[0]))


@op("Loop", values=True, pure=False)
def loop(n, limit, go, *state):
    graph = n.attrs["body"]
    n.run.capture(n)
    start, kinds = _flat(state)
    scans = len(graph.outputs) - 1 - len(state)
    limit = None if limit is None else tf.cast(tf.reshape(limit.plain, []), tf.int64)
    types = n.run.outputs_of(graph, [tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.bool)], state)
    arrays = [tf.TensorArray(t.dtype, 0, dynamic_size=True, infer_shape=False) for t in types[1 + len(state):]]
    first = tf.constant(True) if go is None else tf.reshape(go.plain, [])

    def more(k, go, *_):
        return go if limit is None else go & (k < limit)

    def body(k, go, *rest):
        carried, arrays = rest[:len(start)], rest[len(start):]
        got = n.run.body(graph, [Value(k), Value(go), *_back(list(carried), kinds)])
        new, _ = _flat(got[1:1 + len(state)])
        arrays = [a.write(tf.cast(k, tf.int32), v.plain) for a, v in zip(arrays, got[1 + len(state):])]
        return (k + 1, tf.reshape(got[0].plain, []), *new, *arrays)

    shapes = (tf.TensorShape([]), tf.TensorShape([]), *(_loose(t) for t in start), *[tf.TensorShape(None)] * scans)
    got = tf.while_loop(more, body, (tf.constant(0, tf.int64), first, *start, *arrays), shape_invariants=shapes)
    stacked = [_stacked(a, t) for a, t in zip(got[2 + len(start):], types[1 + len(state):])]
    return (*_back(list(got[2:2 + len(start)]), kinds), *stacked)


def _stacked(array, spec):
    y = array.stack()
    if spec.shape.rank is not None:
        y.set_shape([None, *spec.shape])
    return Value(y)


@op("Scan", values=True, pure=False)
def scan(n, *values):
    if n.version < 9:
        raise Unsupported("Scan of opset 8 has a batch axis")
    graph, count = n.attrs["body"], n.get("num_scan_inputs")
    n.run.capture(n)
    kept = len(values) - count
    state, xs = values[:kept], [v.plain for v in values[kept:]]
    results = len(graph.outputs) - kept
    in_axes = [positive(a, x.shape.rank) for a, x in zip(n.get("scan_input_axes") or [0] * count, xs)]
    out_axes = n.get("scan_output_axes") or [0] * results
    in_back = n.get("scan_input_directions") or [0] * count
    out_back = n.get("scan_output_directions") or [0] * results
    rows = [tf.transpose(x, [a, *[k for k in range(x.shape.rank) if k != a]]) if a else x for x, a in zip(xs, in_axes)]
    steps = tf.shape(rows[0])[0]
    start = [v.plain for v in state]
    parts = [tf.TensorSpec(r.shape[1:], r.dtype) for r in rows]
    types = n.run.outputs_of(graph, [], state, parts)[kept:]
    arrays = [tf.TensorArray(t.dtype, steps, infer_shape=False) for t in types]

    def body(k, *rest):
        carried, arrays = rest[:kept], rest[kept:]
        read = [Value(r[steps - 1 - k if back else k]) for r, back in zip(rows, in_back)]
        got = n.run.body(graph, [*(Value(v) for v in carried), *read])
        places = [steps - 1 - k if back else k for back in out_back]
        arrays = [a.write(p, v.plain) for a, p, v in zip(arrays, places, got[kept:])]
        return (k + 1, *(v.plain for v in got[:kept]), *arrays)

    shapes = (tf.TensorShape([]), *(_loose(t) for t in start), *[tf.TensorShape(None)] * results)
    got = tf.while_loop(lambda k, *_: k < steps, body, (0, *start, *arrays), shape_invariants=shapes)
    made = []
    for array, spec, axis in zip(got[1 + kept:], types, out_axes):
        y = _stacked(array, spec).plain
        axis = positive(axis, y.shape.rank) if axis else 0
        order = list(range(1, y.shape.rank)) if axis else None
        made.append(Value(y if not axis else tf.transpose(y, [*order[:axis], 0, *order[axis:]])))
    return (*(Value(v) for v in got[1:1 + kept]), *made)


@op("SequenceMap", values=True, pure=False)
def sequence_map(n, items, *rest):
    count = items.shapes.shape[0]
    if count is None:
        raise Unsupported("the length of its sequence depends on the data")
    columns = []
    for k in range(count):
        given = [Value(v.element(k)) if isinstance(v, Sequence) else v for v in (items, *rest)]
        columns.append([v.plain for v in n.run.body(n.attrs["body"], given, inline=True)])
    return tuple(of_tensors(c) for c in zip(*columns))
