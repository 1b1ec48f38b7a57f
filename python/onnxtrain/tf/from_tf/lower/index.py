"""Gathers, scatters, one-hot, positions."""

import numpy as np
import tensorflow as tf

from .table import Unsupported, op


@op("Gather", "GatherV2", "ResourceGather")
def gather(n):
    batch = int(n.attr("batch_dims", 0))
    axis = int(n.known(2, "axis").reshape(())) if n.op.type == "GatherV2" else 0
    x = n.walk.value_of(n[0]) if n.op.type == "ResourceGather" else n[0]
    rank = x.rank
    if rank is None:
        raise Unsupported("the rank of its input is not known")
    axis = axis + rank if axis < 0 else axis
    batch = batch + (n[1].rank or 0) if batch < 0 else batch
    name, at = n.w.plain(x), n.w.int64(n[1])
    if batch == 0:
        return n.e.op("Gather", name, at, axis=axis)
    if batch != axis:
        raise Unsupported("batch_dims differs from the axis")
    # GatherND takes batches, and indices with a last axis of 1
    last = n.e.op("Unsqueeze", at, n.e.ints([-1]))
    return n.e.op("GatherND", name, last, batch_dims=batch)


@op("GatherNd", "ResourceGatherNd")
def gather_nd(n):
    x = n.walk.value_of(n[0]) if n.op.type == "ResourceGatherNd" else n[0]
    return n.e.op("GatherND", n.w.plain(x), n.w.int64(n[1]))


@op("ScatterNd")
def scatter_nd(n):
    zeros = n.e.op("ConstantOfShape", n.w.int64(n[2]), value=np.zeros(1, n.dtype.as_numpy_dtype))
    return n.e.op("ScatterND", zeros, n.w.int64(n[0]), n.plain(1), reduction="add")


_SCATTER = {"TensorScatterUpdate": None, "TensorScatterAdd": "add", "TensorScatterMax": "max",
            "TensorScatterMin": "min"}


@op(*_SCATTER)
def tensor_scatter(n):
    return n.e.op("ScatterND", n.plain(0), n.w.int64(n[1]), n.plain(2), reduction=_SCATTER[n.op.type])


@op("TensorScatterSub")
def tensor_scatter_sub(n):
    return n.e.op("ScatterND", n.plain(0), n.w.int64(n[1]), n.e.op("Neg", n.plain(2)), reduction="add")


@op("OneHot")
def one_hot(n):
    """Numbers outside of the range are no class; ONNX counts negative ones from the end."""
    axis = int(n.attr("axis", -1))
    at, depth = n.w.int64(n[0]), n.w.int64(n[1])
    at = n.e.op("Where", n.e.op("Less", at, n.e.const(np.array(0))), n.e.op("Reshape", depth, n.e.ints([])), at)
    both = [n.e.op("Unsqueeze", n.plain(k), n.e.ints([0])) for k in (3, 2)]
    values = n.e.node("Concat", both, axis=0)[0]
    return n.e.op("OneHot", at, n.e.op("Reshape", depth, n.e.ints([])), values, axis=axis)


@op("Where")
def where(n):
    return n.e.op("Transpose", n.e.op("NonZero", n.plain(0)), perm=[1, 0])


@op("InvertPermutation")
def invert_permutation(n):
    at = n.w.int64(n[0])
    count = n.e.op("Shape", at)
    rows = n.e.op("Range", n.e.const(np.array(0)), n.e.op("Squeeze", count), n.e.const(np.array(1)))
    zeros = n.e.op("ConstantOfShape", count, value=np.zeros(1, np.int64))
    made = n.e.op("ScatterElements", zeros, at, rows, axis=0)
    return made if n.dtype == tf.int64 else n.e.cast(made, n.dtype.as_numpy_dtype)
