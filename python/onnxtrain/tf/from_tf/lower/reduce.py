"""Reductions, arg-reductions, softmax, cumulative sums, top k."""

import numpy as np
import tensorflow as tf

from .table import Unsupported, op

_REDUCE = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd",
           "EuclideanNorm": "ReduceL2", "All": "ReduceMin", "Any": "ReduceMax"}


@op(*_REDUCE)
def reduce(n):
    s, keep = n[0], bool(n.attr("keep_dims", False))
    order = n.w.order(s)
    if n[1].static is None:
        if not keep and n.shape.rank is None:
            raise Unsupported("its axes depend on the data")
        return n.e.op(_REDUCE[n.op.type], n.plain(0), n.w.int64(n[1]), keepdims=int(keep))
    rank = n.rank()
    axes = [a + rank if a < 0 else a for a in n.ints(1, "axes")]
    if not axes:
        return s.copy()
    if order.is_first and not keep and 0 in axes and rank - 1 not in axes:
        order.is_first = False
    name = order.take(s)
    if n.op.type in ("All", "Any"):
        name = n.e.cast(name, "int32")
    name = n.e.op(_REDUCE[n.op.type], name, n.e.ints(sorted(order.axis(a) for a in axes)), keepdims=int(keep))
    if n.op.type in ("All", "Any"):
        name = n.e.cast(name, "bool")
    left = rank if keep else rank - len(set(axes))
    first = order.is_first and left > 2 and (keep or rank - 1 not in axes)
    return n.w.sym(name, n.dtype, n.shape, first)


@op("ArgMax", "ArgMin")
def arg(n):
    axis = int(n.known(1, "axis").reshape(()))
    name = n.e.op(n.op.type, n.plain(0), axis=axis, keepdims=0)
    if n.dtype == tf.int64:
        return name
    made = n.out(n.e.cast(name, n.dtype.as_numpy_dtype))
    made.wide = name
    return made


@op("Softmax", "LogSoftmax")
def softmax(n):
    order = n.w.order(n[0])
    return n.out(n.e.op(n.op.type, order.take(n[0]), axis=order.axis(-1)), order=order)


@op("Cumsum", "Cumprod")
def cumulative(n):
    if n.op.type == "Cumprod":
        raise Unsupported("ONNX has no running product in this opset")
    axis = n.e.const(np.array(int(n.known(1, "axis").reshape(()))))
    return n.e.op("CumSum", n.plain(0), axis, exclusive=int(bool(n.attr("exclusive"))) or None,
                  reverse=int(bool(n.attr("reverse"))) or None)


@op("TopKV2")
def top_k(n):
    count = n.e.op("Reshape", n.w.int64(n[1]), n.e.ints([1]))
    values, at = n.e.node("TopK", [n.plain(0), count], 2, axis=-1, sorted=int(bool(n.attr("sorted", True))))
    index = n.op.outputs[1].dtype
    return [n.out(values), n.out(at if index == tf.int64 else n.e.cast(at, index.as_numpy_dtype), 1)]
