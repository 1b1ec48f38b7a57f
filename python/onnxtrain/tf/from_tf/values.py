"""Values of a TensorFlow graph while the file is written.

TensorFlow's images are [batch, ..., channel]; ONNX's operators want [batch, channel, ...]. A `Sym` is known by its name
in TensorFlow's order, with the channels first, or both; the other form is written when somebody asks, once. Operators
that work in either order take the order that their inputs have, so no Transpose stands between two image operators.
"""

import math

import numpy as np
import tensorflow as tf

from ...converters.emitter import Emitter
from ...converters.onnx_file import Graph, Info, dtype_number

_FOLD = 1024  # elements of an integer constant that is computed while walking


class Unsupported(Exception):
    """This operation has no form in the file; the text says why."""


class Behind(Exception):
    """What this would need was refused already."""


class Sym:
    """One tensor: dtype and shape are TensorFlow's, in its order."""

    __slots__ = ("_plain", "_first", "dtype", "shape", "static", "made_first", "wide", "resource")

    def __init__(self, plain=None, first=None, dtype=None, shape=None, static=None, resource=None):
        self._plain, self._first, self.dtype, self.shape = plain, first, dtype, tf.TensorShape(shape)
        self.static, self.made_first, self.wide = static, plain is None and first is not None, None
        self.resource = resource  # a variable, a table, or a list of tensors

    @property
    def rank(self):
        return self.shape.rank

    def copy(self):
        made = Sym(self._plain, self._first, self.dtype, self.shape, self.static, self.resource)
        made.made_first, made.wide = self.made_first, self.wide
        return made


def numpy_dtype(dtype):
    return np.dtype(object) if dtype == tf.string else dtype.as_numpy_dtype


def to_first(rank):
    return [0, rank - 1, *range(1, rank - 1)]


def to_last(rank):
    return [0, *range(2, rank), 1]


def first_axis(axis, rank):
    """Where an axis of TensorFlow's order lies with the channels first."""
    return 0 if axis == 0 else 1 if axis == rank - 1 else axis + 1


class Writer:
    """Writes nodes for Syms."""

    def __init__(self):
        self.e = Emitter()

    # ---- forms
    def plain(self, s):
        if s._plain is None:
            if s.static is not None:
                s._plain = self.e.const(_as_constant(s.static, s.dtype))
            elif s._first is not None:
                s._plain = self._move(s._first, to_last(s.rank), s.shape)
            else:
                raise Unsupported("it reads a list or a resource as a tensor")
        return s._plain

    def first(self, s):
        """With the channels first."""
        if s._first is None:
            s._first = self._move(self.plain(s), to_first(s.rank), s.shape)
        return s._first

    def _move(self, name, perm, shape):
        """shape: in TensorFlow's order. Where one of the two groups is 1 long a Reshape does it."""
        sizes = shape.as_list()
        if sizes[-1] == 1 or None not in sizes[1:-1] and math.prod(sizes[1:-1]) == 1:
            first = [sizes[k] for k in to_first(len(sizes))]
            to = first if perm == to_first(len(sizes)) else sizes
            if to.count(None) <= 1:
                return self.e.op("Reshape", name, self.e.ints([-1 if d is None else d for d in to]))
        return self.e.op("Transpose", name, perm=perm)

    def int64(self, s):
        """As int64, which ONNX wants for sizes, axes and indices."""
        if s.dtype == tf.int64:
            return self.plain(s)
        if s.static is not None:
            return self.e.const(np.asarray(s.static, np.int64))
        if s.wide is None:
            s.wide = self.e.cast(self.plain(s), "int64")
        return s.wide

    # ---- nodes
    def sym(self, name, dtype, shape, first=False):
        return Sym(None if first else name, name if first else None, dtype, shape)

    def const(self, value, dtype):
        return self.e.const(_as_constant(value, dtype))

    def number(self, value, like):
        """A number in the element type of a Sym."""
        return self.e.const(np.asarray(value, numpy_dtype(like.dtype)))

    # ---- order
    def order(self, *syms):
        ranks = [s.rank for s in syms]
        if None in ranks or not ranks:
            return Order(self, None, False)
        rank = max(ranks)
        first = rank > 2 and any(s.made_first and s.rank == rank for s in syms)
        return Order(self, rank, first and all(s.rank in (0, rank) or None not in s.shape.as_list() for s in syms))

    # ---- bodies of control flow
    def body(self, name, write):
        """A Graph: write() -> (inputs, outputs) as Infos, its nodes lie in the graph."""
        before, known = self.e.part, self.e.known
        self.e.part, self.e.known = [], dict(known)
        try:
            inputs, outputs = write()
            return Graph(name, self.e.part, inputs, outputs)
        finally:
            self.e.part, self.e.known = before, known


class Order:
    """The order in which one operation is written: that of its inputs."""

    def __init__(self, writer, rank, first):
        self.w, self.rank, self.is_first = writer, rank, first

    def take(self, s):
        return self.w.first(s) if self.is_first else self.w.plain(s)

    def axis(self, a):
        a = a + self.rank if a < 0 else a
        return first_axis(a, self.rank) if self.is_first else a

    def wrap(self, name, dtype, shape):
        return self.w.sym(name, dtype, shape, self.is_first)

    def aligned(self, s):
        """An input that is broadcast from the right in TensorFlow's order, in this order."""
        if not self.is_first or s.rank == 0:
            return self.w.plain(s)
        if s.rank == self.rank:
            return self.w.first(s)
        sizes = [1] * (self.rank - s.rank) + s.shape.as_list()
        moved = [sizes[k] for k in to_first(self.rank)]
        if sum(d != 1 for d in sizes) <= 1:
            return self.w.e.op("Reshape", self.w.plain(s), self.w.e.ints(moved))
        full = self.w.e.op("Reshape", self.w.plain(s), self.w.e.ints(sizes))
        return self.w.e.op("Transpose", full, perm=to_first(self.rank))


def _as_constant(value, dtype):
    array = np.asarray(value)
    if dtype == tf.string or array.dtype.kind in "OSU":
        flat = [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else str(v) for v in array.reshape(-1)]
        return np.array(flat, dtype=object).reshape(array.shape)
    return array.astype(numpy_dtype(dtype), copy=False) if dtype is not None else array


def info(name, dtype, shape, dims=None):
    """A declared value; open sizes get names from `dims`, a function of the axis."""
    sizes = None
    if tf.TensorShape(shape).rank is not None:
        sizes = [d if d is not None else (dims(k) if dims else None) for k, d in enumerate(tf.TensorShape(shape))]
    return Info(name, "str" if dtype == tf.string else dtype.as_numpy_dtype, sizes)


def small(array):
    return array is not None and array.size <= _FOLD


__all__ = ["Behind", "Order", "Sym", "Unsupported", "Writer", "dtype_number", "info", "numpy_dtype", "small",
           "to_first", "to_last"]
