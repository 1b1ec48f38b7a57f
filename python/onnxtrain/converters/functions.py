"""Bodies of functions, written as Python formulas.

    f = Body("KerasSgd", ["decay"], ["R", "X", "G"])
    r = f.like("R", "X")                  # values of the first kind in the type of the second
    f.output("X1", f["X"] - r * f["G"])
    f.function()

Attributes are double tensors (`f.attr`). Every operation is one node; numbers are written as doubles and cast to the
type of what stands beside them.
"""

import numpy as np

from ..graph import OWN
from .onnx_file import OPSET, Function, Node, Ref


class Sym:
    """A value in a body."""

    def __init__(self, body, name, double=False):
        self.body, self.name, self.double = body, name, double

    def _pair(self, other):
        if isinstance(other, Sym):
            return other
        return self.body.number(other) if self.double else self.body.number_like(other, self)

    def _two(self, op, a, b):
        return self.body.op(op, a, b)

    def __add__(self, o):
        return self._two("Add", self, self._pair(o))

    def __radd__(self, o):
        return self._two("Add", self._pair(o), self)

    def __sub__(self, o):
        return self._two("Sub", self, self._pair(o))

    def __rsub__(self, o):
        return self._two("Sub", self._pair(o), self)

    def __mul__(self, o):
        return self._two("Mul", self, self._pair(o))

    __rmul__ = __mul__

    def __truediv__(self, o):
        return self._two("Div", self, self._pair(o))

    def __rtruediv__(self, o):
        return self._two("Div", self._pair(o), self)

    def __pow__(self, o):
        return self._two("Pow", self, self._pair(o))

    def __rpow__(self, o):
        return self._two("Pow", self._pair(o), self)

    def __neg__(self):
        return self.body.op("Neg", self)

    def sqrt(self):
        return self.body.op("Sqrt", self)

    def abs(self):
        return self.body.op("Abs", self)

    def sign(self):
        return self.body.op("Sign", self)

    def maximum(self, o):
        return self._two("Max", self, self._pair(o))

    def minimum(self, o):
        return self._two("Min", self, self._pair(o))

    def greater(self, o):
        return self._two("Greater", self, self._pair(o))

    def less(self, o):
        return self._two("Less", self, self._pair(o))


class Body:
    def __init__(self, name, attributes, inputs, domain=OWN):
        self.name, self.attributes, self.inputs, self.domain = name, list(attributes), list(inputs), domain
        self.nodes, self.outputs, self._made = [], [], {}

    def __getitem__(self, name):
        assert name in self.inputs, name
        return Sym(self, name)

    def op(self, op, *inputs, double=None, **attrs):
        names = [i.name for i in inputs]
        key = (op, tuple(names), repr(sorted(attrs.items())))
        if key not in self._made:
            out = f"v{len(self.nodes)}"
            self.nodes.append(Node(op, names, [out], "", "", attrs))
            self._made[key] = out
        return Sym(self, self._made[key], all(i.double for i in inputs) if double is None else double)

    def attr(self, name):
        """An attribute as a double."""
        assert name in self.attributes, name
        return self._constant(("attr", name), Ref(name))

    def number(self, value):
        return self._constant(("number", float(value)), np.array(float(value), np.float64))

    def _constant(self, key, value):
        if key not in self._made:
            out = f"v{len(self.nodes)}"
            self.nodes.append(Node("Constant", [], [out], "", "", {"value": value}))
            self._made[key] = out
        return Sym(self, self._made[key], True)

    def number_like(self, value, like):
        return self.like(self.number(value), like)

    def like(self, value, like):
        """A value in another's element type."""
        value, like = (self[v] if isinstance(v, str) else v for v in (value, like))
        return self.op("CastLike", value, like, double=like.double)

    def where(self, condition, yes, no):
        return self.op("Where", condition, yes, no, double=yes.double)

    def output(self, name, value):
        self.nodes.append(Node("Identity", [value.name], [name], "", "", {}))
        self.outputs.append(name)

    def function(self):
        return Function(self.domain, self.name, self.inputs, self.outputs, self.attributes, self.nodes, {"": OPSET})
