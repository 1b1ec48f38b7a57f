"""The table TensorFlow -> ONNX: how an operation of a graph becomes nodes.

An entry takes a `View` of the operation and gives a Sym, a list of Syms for several results, or the name of a node's
output, which has the type and shape that TensorFlow says.
"""

import numpy as np
import tensorflow as tf

from ....converters.table import Table, entered_in
from ..values import Sym, Unsupported, dtype_number, numpy_dtype

_TABLE = Table(__name__)
op, find, kinds = entered_in(_TABLE.entries), _TABLE.find, _TABLE.kinds


class View:
    """What an entry sees of an operation."""

    def __init__(self, op, inputs, walk, shapes, env):
        self.op, self.inputs, self.walk, self.w, self.e = op, inputs, walk, walk.w, walk.w.e
        self.shapes, self._env = shapes, env  # of the results; Syms of all tensors so far

    def again(self, op):
        """The View of an operation that was written before."""
        return View(op, [self.sym_of(t) for t in op.inputs], self.walk, [t.shape for t in op.outputs], self._env)

    def sym_of(self, tensor):
        """The Sym of any tensor of the graph that was written before, or None."""
        return self._env.get(id(tensor))

    def __getitem__(self, k):
        return self.inputs[k]

    def attr(self, name, default=None):
        try:
            value = self.op.get_attr(name)
        except ValueError:
            return default
        return value.decode() if isinstance(value, bytes) else value

    def plain(self, k):
        return self.w.plain(self.inputs[k])

    def out(self, name, k=0, order=None):
        """The Sym of a result."""
        first = order is not None and order.is_first
        return self.w.sym(name, self.op.outputs[k].dtype, self.shapes[k], first)

    @property
    def dtype(self):
        return self.op.outputs[0].dtype

    @property
    def shape(self):
        return self.shapes[0]

    def known(self, k, what):
        """Input k as numpy; it must be known while converting."""
        s = self.inputs[k]
        if s.static is None:
            raise Unsupported(f"its {what} depends on the data")
        return np.asarray(s.static)

    def ints(self, k, what):
        return [int(v) for v in self.known(k, what).reshape(-1)]

    def rank(self, k=0):
        r = self.inputs[k].rank
        if r is None:
            raise Unsupported("the rank of its input is not known")
        return r

    def number(self, value, k=0):
        return self.w.number(value, self.inputs[k])

    def onnx_dtype(self, dtype):
        return dtype_number("str" if dtype == tf.string else numpy_dtype(dtype))


def elementwise(n, name, *syms, **attrs):
    """One node over inputs in their common order."""
    order = n.w.order(*syms)
    return n.out(n.e.op(name, *(order.aligned(s) for s in syms), **attrs), order=order)


def formula(n, write, *syms):
    """Several nodes over inputs in their common order: write(names...) -> name."""
    order = n.w.order(*syms)
    return n.out(write(*(order.aligned(s) for s in syms)), order=order)


__all__ = ["Sym", "Unsupported", "View", "elementwise", "find", "formula", "kinds", "op"]
