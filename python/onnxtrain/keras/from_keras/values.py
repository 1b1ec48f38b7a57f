"""Tensors of a trace: Keras' own symbolic tensors that also know their value in the file."""

import keras
import numpy as np
from keras import KerasTensor

_PRIMES = (7919, 7927, 7933, 7937, 7949, 7951, 7963, 7993, 8009, 8011, 8017, 8039)
_TURNED = {  # function of numpy -> method of the right operand
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__",
    "matmul": "__rmatmul__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
    "equal": "__eq__", "not_equal": "__ne__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__"}


class Traced(KerasTensor):
    """A tensor of the graph under construction.

    `layout` None: the file has it in Keras' order of axes. Else axis i of the file is axis layout[i] of Keras: images
    stay channels first between operators, whatever the model says.
    """

    def __init__(self, name, shape, dtype, layout=None):
        super().__init__(shape=[None if is_open(d) else d for d in shape], dtype=dtype, record_history=False, name=name)
        self.onnx = name
        self.layout = None if layout is None or list(layout) == sorted(layout) else tuple(layout)
        self.slices = None  # for a gradient of rows: (values, indices), as TensorFlow's IndexedSlices
        self.summed = None  # then: the tracer's function that adds the rows up

    @property
    def rank(self):
        return len(self.shape)

    def like(self, name, shape=None, dtype=None, layout=False):
        """Another value; what is not given is as here."""
        return Traced(name, self.shape if shape is None else shape, dtype or self.dtype,
                      self.layout if layout is False else layout)

    def rows(self, values, indices, summed):
        """The gradient of this tensor as rows."""
        made = self.like(self.onnx)
        made.slices, made.summed = (values, indices), summed
        return made

    def __deepcopy__(self, memo):
        return self

    # as tensors of every backend have it; KerasTensor compares by identity
    def __eq__(self, other):
        return self is other if other is None else keras.ops.equal(self, other)

    def __ne__(self, other):
        return self is not other if other is None else keras.ops.not_equal(self, other)

    __hash__ = KerasTensor.__hash__

    # an array of numpy or JAX on the left leaves the operator to this class; so does `array += traced`
    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        name = _TURNED.get(ufunc.__name__)
        plain = method == "__call__" and len(inputs) == 2 and not isinstance(inputs[0], Traced)
        if name is None or not plain or set(more) - {"out"}:
            return NotImplemented
        return getattr(inputs[1], name)(inputs[0])

    @property
    def __jax_array__(self):
        raise AttributeError("__jax_array__")


def _dense(x):
    return x.summed(x) if isinstance(x, Traced) and x.slices is not None else x


def _on_dense(name):
    """Python's operators on IndexedSlices make dense tensors; the functions of keras.ops keep rows where they can."""
    plain = getattr(KerasTensor, name)

    def operator(self, other):
        return plain(_dense(self), _dense(other))

    return operator


for _kind in ("add", "sub", "mul", "truediv", "pow"):
    for _name in (f"__{_kind}__", f"__r{_kind}__"):
        setattr(Traced, _name, _on_dense(_name))


class Dim(int):
    """An open size. As a number it is a prime that no layer has, so that arithmetic on shapes shows where it went;
    `onnx` is its value in the file (a scalar int64)."""

    def __new__(cls, number, tracer, name):
        self = super().__new__(cls, number)
        self.tracer, self.onnx = tracer, name
        return self

    def _with(self, op, other, number, swap=False):
        e = self.tracer.e
        there = other.onnx if isinstance(other, Dim) else e.const(int(other), np.int64)
        pair = (there, self.onnx) if swap else (self.onnx, there)
        return Dim(number, self.tracer, e.op(op, *pair))

    def __mul__(self, o):
        return self._with("Mul", o, int(self) * int(o)) if isinstance(o, (int, np.integer)) else NotImplemented

    __rmul__ = __mul__

    def __add__(self, o):
        return self._with("Add", o, int(self) + int(o)) if isinstance(o, (int, np.integer)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, o):
        return self._with("Sub", o, int(self) - int(o)) if isinstance(o, (int, np.integer)) else NotImplemented

    def __rsub__(self, o):
        return self._with("Sub", o, int(o) - int(self), True) if isinstance(o, (int, np.integer)) else NotImplemented

    def __floordiv__(self, o):
        if int(o) and int(self) % int(o) == 0 and isinstance(o, Dim) and o.onnx == self.onnx:
            return 1
        return self._with("Div", o, int(self) // int(o))

    def __bool__(self):
        return True

    def __deepcopy__(self, memo):
        return self


def is_open(d):
    """Whether a size stands for one that is not known."""
    if d is None or isinstance(d, Dim):
        return True
    return isinstance(d, int) and d >= _PRIMES[0] and any(d % p == 0 for p in _PRIMES)


def prime(k):
    return _PRIMES[k % len(_PRIMES)]


def inverse(layout):
    return [layout.index(a) for a in range(len(layout))]
