"""Losses over classes that are one operation in TensorFlow."""

import numpy as np

from ....graph import OWN
from .table import op


@op("SoftmaxCrossEntropyWithLogits")
def soft(n):
    """The second result is TensorFlow's own gradient."""
    logs = n.e.op("LogSoftmax", n.plain(0), axis=-1)
    labels = n.plain(1)
    loss = n.e.op("Neg", n.e.op("ReduceSum", n.e.op("Mul", labels, logs), n.e.ints([-1]), keepdims=0))
    if n.dtype.is_floating:
        loss = n.e.op("Add", loss, _rest(n, labels))
    back = n.e.op("Sub", n.e.op("Exp", logs), labels)
    return [n.out(loss), n.out(back, 1)]


def _rest(n, labels):
    """0, with a gradient: TensorFlow's is softmax(logits) - labels also where a row of labels does not sum to 1."""
    total = n.e.op("ReduceLogSumExp", n.plain(0), n.e.ints([-1]), keepdims=0)
    missing = n.e.op("Sub", n.number(1), n.e.op("ReduceSum", labels, n.e.ints([-1]), keepdims=0))
    return n.e.op("Mul", missing, n.e.op("Sub", total, n.e.op("Detach", total, domain=OWN)))


@op("SparseSoftmaxCrossEntropyWithLogits")
def sparse(n):
    logs = n.e.op("LogSoftmax", n.plain(0), axis=-1)
    at = n.e.op("Unsqueeze", n.w.int64(n[1]), n.e.ints([-1]))
    picked = n.e.op("GatherElements", logs, at, axis=-1)
    loss = n.e.op("Neg", n.e.op("Squeeze", picked, n.e.ints([-1])))
    depth = n.e.op("Squeeze", n.e.op("Shape", n.plain(0), start=-1), n.e.ints([0]))
    values = n.e.const(np.array([0, 1], n.dtype.as_numpy_dtype))
    back = n.e.op("Sub", n.e.op("Exp", logs), n.e.op("OneHot", n.w.int64(n[1]), depth, values))
    return [n.out(loss), n.out(back, 1)]
