"""The operator table ONNX -> TensorFlow.

An entry is a function of a `View` of the node and of its inputs. It runs while a tf.function is traced. By default
inputs are tensors in the file's order; with `values` they are `Value`s, and the function chooses the order itself.
The result is one tensor or Value, or a tuple.
"""

from dataclasses import dataclass

import tensorflow as tf

from ....converters.table import Table
from ....graph import Graph
from ...shared.dtypes import FROM_ONNX
from ..layout import Value, aligned, order_of

_TABLE = Table(__name__)
find, kinds = _TABLE.find, _TABLE.kinds
_UNSIGNED = (tf.uint16, tf.uint32, tf.uint64)


class Unsupported(Exception):
    """This node cannot run in TensorFlow; the text says why."""


@dataclass
class Op:
    run: object
    values: bool = False
    settings: tuple = ()  # inputs that are sizes, axes or bounds: their constants are never variables
    pure: bool = True  # depends on its inputs alone


def op(*names, values=False, settings=(), pure=True, domain=""):
    def register(run):
        for name in names:
            _TABLE.entries[(domain, name)] = Op(run, values, tuple(settings), pure)
        return run

    return register


def pointwise(table):
    """Elementwise operators, in either order of the channels: {name: function of tensors}."""
    for name, f in table.items():
        _TABLE.entries[("", name)] = Op(lambda n, *vs, f=f: elementwise(f, *vs), True)


def elementwise(f, *values):
    order = order_of(*values)
    return order.wrap(f(*(aligned(order, v) for v in values)))


class View:
    """What an operator sees of its node."""

    def __init__(self, node, run, values):
        self.node, self.op, self.version, self.attrs, self.run = node, node.op, node.version, node.attrs, run
        self._values = values

    def get(self, key, default=None):
        value = self.attrs.get(key)
        return default if value is None else value

    def has(self, k):
        return k < len(self.node.inputs) and bool(self.node.inputs[k])

    def wants(self, k):
        return k < len(self.node.outputs) and bool(self.node.outputs[k])

    def numbers(self, k):
        """Input k as a numpy array where it is known now, else None."""
        v = self._values[k] if k < len(self._values) else None
        if v is None:
            return None
        return v.static if v.static is not None else tf.get_static_value(v.plain)

    def list_of(self, k, what):
        """Input k as a list that must be known now."""
        got = self.numbers(k)
        if got is None:
            raise Unsupported(f"its {what} ('{self.node.inputs[k]}') depend on the data")
        return got.reshape(-1).tolist()

    @property
    def captures(self):
        found = [c for a in self.attrs.values() if isinstance(a, Graph) for c in a.captures()]
        return list(dict.fromkeys(found))


def tf_dtype(number):
    if number not in FROM_ONNX:
        raise Unsupported(f"TensorFlow has no element type {number}")
    return FROM_ONNX[number]


def wide(x):
    """Element types that TensorFlow computes with: unsigned 16, 32 and 64 bit integers are not among them."""
    return tf.cast(x, tf.int64) if x.dtype in _UNSIGNED else x


def through_wide(f):
    """f on integers that TensorFlow cannot compute with, through int64 and back."""
    def run(*xs):
        back = xs[0].dtype
        if back not in _UNSIGNED and back not in (tf.int8, tf.int16, tf.uint8):
            return f(*xs)
        y = f(*(tf.cast(x, tf.int64) for x in xs))
        return tf.cast(y, back) if y.dtype == tf.int64 else y

    return run


def rank_of(x):
    if x.shape.rank is None:
        raise Unsupported("the rank of an input is not known")
    return x.shape.rank


def dims(x):
    """Sizes: numbers, and scalar tensors where open."""
    rank_of(x)
    return Value(x).dims()


def positive(axis, rank):
    return axis + rank if axis < 0 else axis


def set_axis_shape(rank, axis, size):
    """[1, ..., size, ..., 1]."""
    return [size if k == axis else 1 for k in range(rank)]
