"""Graphs under construction: nodes, constants and names. Everything is written in operators of the standard."""

import numpy as np

from ...converters.onnx_file import Graph, Info, Node, dtype_number

DOUBLE, FLOAT, INT64, BOOL, TEXT = (np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_, object))


def stored(array):
    """An array as the file has it: texts are objects."""
    array = np.asarray(array)
    return array.astype(object) if array.dtype.kind in "UT" else array


class Names:
    """Unique names of one file; reserved: those that state variables, targets and outputs will have."""

    def __init__(self, reserved=()):
        self.taken, self.reserved = set(), set(reserved)

    def claim(self, wanted, free=False):
        """free: a name of the user's, which must not be a reserved one."""
        name, k = wanted, 1
        while name in self.taken or free and name in self.reserved:
            k += 1
            name = f"{wanted}_{k}"
        self.taken.add(name)
        return name


class Nodes:
    """One graph: `g.Add(a, b)` appends a node and gives the name of its output; numbers become constants."""

    def __init__(self, names, dtype):
        self.names, self.dtype = names, np.dtype(dtype)  # dtype: of plain numbers
        self.nodes, self.constants, self._known = [], {}, {}

    def __getattr__(self, op):
        if not op[:1].isupper():
            raise AttributeError(op)
        return lambda *inputs, **settings: self.node(op, inputs, **settings)

    def node(self, op, inputs, name=None, outputs=1, **attrs):
        inputs = [v if isinstance(v, str) else self.constant(v) for v in inputs]
        label = self.names.claim(name or op)
        made = [label + "_out" if k == 0 else f"{label}_out_{k}" for k in range(outputs)]
        made = [self.names.claim(m) for m in made]
        self.nodes.append(Node(op, inputs, made, "", label, attrs))
        return made[0] if outputs == 1 else made

    def rename_last(self, name):
        """The last node's output gets a name of its own."""
        self.nodes[-1].outputs[0] = self.names.claim(name)
        return self.nodes[-1].outputs[0]

    def named(self, name, value):
        """A value under a name of its own."""
        self.node("Identity", [value])
        return self.rename_last(name)

    def constant(self, value, name=None):
        """An initializer; equal small ones are shared. Plain floats have the graph's element type."""
        if type(value) is float:
            value = np.asarray(value, self.dtype)
        elif type(value) is int:
            value = np.asarray(value, np.int64)
        elif isinstance(value, (list, tuple)):
            value = np.asarray(value, np.int64)
        value = np.asarray(value)
        key = (value.dtype.str, value.shape, value.tobytes()) if value.dtype != object and value.size <= 16 else None
        if name is None and key in self._known:
            return self._known[key]
        made = self.names.claim(name or "constant")
        self.constants[made] = stored(value)
        if key is not None and name is None:
            self._known[key] = made
        return made

    def real(self, array, name=None):
        """A constant of the graph's own element type."""
        return self.constant(np.asarray(array, self.dtype), name)

    def cast(self, value, dtype):
        return self.Cast(value, to=dtype_number(dtype))

    def body(self, dtype=None):
        """Nodes of a body of this graph."""
        return Nodes(self.names, dtype or self.dtype)

    def graph(self, name, inputs, outputs):
        """The body itself. inputs, outputs: (name, dtype, shape)."""
        return Graph(name, self.nodes, [Info(*i) for i in inputs], [Info(*o) for o in outputs], self.constants)

    def sum(self, value, axes, keepdims=0):
        return self.ReduceSum(value, list(axes), keepdims=keepdims)

    def columns(self, value, indices):
        return self.Gather(value, list(map(int, indices)), axis=1)

    def rows_of(self, value):
        """The number of rows, an int64 scalar."""
        return self.Squeeze(self.Shape(value, start=0, end=1), [0])

