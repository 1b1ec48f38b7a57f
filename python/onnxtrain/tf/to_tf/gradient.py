"""The Gradient operator by TensorFlow's own differentiation of the named part of the graph."""

import tensorflow as tf

from .layout import BROKEN, Value
from .ops.table import Unsupported


def gradient(run, n):
    xs, zs, y = list(n.attrs.get("xs", [])), list(n.attrs.get("zs") or []), n.attrs["y"]
    names = xs + zs
    inputs = list(n.inputs)[:len(names)]
    if any(run.read(v) is BROKEN for v in [*inputs, y]):
        return None
    given = [run.read(v).plain for v in inputs]
    if names == inputs:
        target, points = run.read(y), given
    else:
        target, points = _elsewhere(run, n, names, given, y)
    if not points[0].dtype.is_floating:
        raise Unsupported(f"'{xs[0]}' is not a floating-point tensor")
    got = tf.gradients(target.plain, points[:len(xs)], stop_gradients=points,
                       unconnected_gradients=tf.UnconnectedGradients.ZERO)
    made = []
    for g, x in zip(got, points):
        dense = tf.convert_to_tensor(g)
        dense.set_shape(x.shape)
        made.append(dense)
    return tuple(made)


def _elsewhere(run, n, names, given, y):
    """The part between the named tensors and y, evaluated again at the given values."""
    inner = type(run)(run.graphs, run.values, run.problems, run.seed, run._counter, run.cut)
    behind = _behind(run.nodes, names)
    for name in behind:
        inner.values.pop(name, None)
    points = [tf.identity(g) for g in given]
    inner.values.update({name: Value(p) for name, p in zip(names, points)})
    inner.add([m for m in run.nodes if m is not n], [y])
    return inner.read(y), points


def _behind(nodes, names):
    """Names of values that depend on one of `names`."""
    from ...graph import reads

    found = set(names)
    for m in nodes:
        if any(v in found for v in reads(m)):
            found.update(o for o in m.outputs if o)
    return found
