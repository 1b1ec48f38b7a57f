"""Lists of tensors, as loops over time use them: one tensor with the elements along its first axis."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ..values import Sym, Unsupported
from .table import op


@dataclass
class TensorList:
    """stacked: Sym of all elements; None while a list is only reserved, then count and shape say what it will hold."""

    stacked: object = None
    count: object = None  # Sym
    shape: object = None  # of an element
    dtype: object = None


def list_sym(made):
    return Sym(dtype=tf.variant, shape=[], resource=made)


def _of(n, k=0):
    made = n[k].resource
    if not isinstance(made, TensorList):
        raise Unsupported("its list is not known")
    return made


def _element_shape(s):
    """A TensorShape of what an operation says about its elements."""
    if s.static is None:
        return tf.TensorShape(None)
    sizes = np.asarray(s.static)
    return tf.TensorShape(None if sizes.ndim == 0 else [None if d < 0 else int(d) for d in sizes])


@op("TensorListFromTensor")
def from_tensor(n):
    return list_sym(TensorList(n[0], dtype=n[0].dtype))


@op("TensorListReserve")
def reserve(n):
    return list_sym(TensorList(None, n[1], _element_shape(n[0]), tf.as_dtype(n.attr("element_dtype"))))


@op("EmptyTensorList")
def empty(n):
    zero = Sym(dtype=tf.int32, shape=[], static=np.array(0, np.int32))
    return list_sym(TensorList(None, zero, _element_shape(n[0]), tf.as_dtype(n.attr("element_dtype"))))


@op("TensorListGetItem")
def get_item(n):
    stacked = stacked_of(n, _of(n))
    return n.e.op("Gather", n.w.plain(stacked), n.w.int64(n[1]), axis=0)


@op("TensorListSetItem")
def set_item(n):
    old, item = _of(n), n[2]
    stacked = stacked_of(n, old, item.shape)
    at = n.e.op("Reshape", n.w.int64(n[1]), n.e.ints([1, 1]))
    row = n.e.op("Unsqueeze", n.w.plain(item), n.e.ints([0]))
    name = n.e.op("ScatterND", n.w.plain(stacked), at, row)
    return list_sym(TensorList(n.w.sym(name, item.dtype, stacked.shape), old.count, old.shape, item.dtype))


@op("TensorListPushBack")
def push_back(n):
    old, item = _of(n), n[1]
    row = n.e.op("Unsqueeze", n.w.plain(item), n.e.ints([0]))
    if old.stacked is not None:
        row = n.e.node("Concat", [n.w.plain(old.stacked), row], axis=0)[0]
    shape = tf.TensorShape([None]).concatenate(item.shape)
    return list_sym(TensorList(n.w.sym(row, item.dtype, shape), None, old.shape, item.dtype))


@op("TensorListStack")
def stack(n):
    made = stacked_of(n, _of(n), n.shape[1:] if n.shape.rank else None).copy()
    made.shape = made.shape.merge_with(n.shape) if made.shape.is_compatible_with(n.shape) else n.shape
    return made


@op("TensorListLength")
def length(n):
    made = _of(n)
    if made.stacked is None and made.count is not None:
        return made.count
    return n.e.cast(n.e.op("Squeeze", n.e.op("Shape", n.w.plain(made.stacked), end=1), n.e.ints([0])), "int32")


def stacked_of(n, made, shape=None):
    """The elements as one tensor; zeros for a list that was only reserved."""
    if made.stacked is not None:
        return made.stacked
    shape = tf.TensorShape(made.shape if shape is None or made.shape.is_fully_defined() else shape)
    if not shape.is_fully_defined():
        raise Unsupported("a list whose elements have an open size is not written one element per step, in order")
    count = n.e.op("Reshape", n.w.int64(made.count), n.e.ints([1]))
    sizes = n.e.node("Concat", [count, n.e.ints(shape.as_list())], axis=0)[0]
    name = n.e.op("ConstantOfShape", sizes, value=np.zeros(1, made.dtype.as_numpy_dtype))
    return n.w.sym(name, made.dtype, tf.TensorShape([None]).concatenate(shape))
