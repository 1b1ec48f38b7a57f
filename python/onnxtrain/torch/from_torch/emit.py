"""Building ONNX graphs: nodes, constants and names, each distinct computation once.

The main graph is written first, the algorithm second, into the same Emitter: a node of the training form that computes
what the main graph already computes is not written again, so the algorithm holds only what differs (random nodes never
coincide).
"""

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

from ...converters import protos
from ...converters.names import Names
from ..shared import versions
from ..shared.dtypes import TO_ONNX, to_numpy

_GIVE_BOOL = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"}
_GIVE_INT64 = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"}
RANDOM = {"Dropout", "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


class Value:
    """A tensor of the graph: its name, torch's dtype and shape (ints, torch.SymInt, or None when not known)."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name, dtype=None, shape=None):
        self.name, self.dtype, self.shape = name, dtype, shape

    @property
    def rank(self):
        return len(self.shape)

    def __repr__(self):
        return f"<{self.name} {self.dtype} {self.shape}>"


def static(n):
    """The number of a dimension that is not symbolic (any more), otherwise None."""
    if isinstance(n, torch.SymInt):
        return versions.fixed_size(n)
    return int(n) if isinstance(n, int) else None


class Part:
    """One of the two graphs under construction."""

    def __init__(self):
        self.nodes, self.initializers = [], []


class Emitter(Names):
    def __init__(self):
        super().__init__()
        self.main, self.algorithm = Part(), Part()
        self.part = self.main
        self.known = {}  # what a node computes -> its outputs
        self.hint = "value"
        self.nodes_by_output = {}

    # ---- names
    def rename(self, old, new):
        """Gives a node's output another name everywhere, in what Gradient names too."""
        self.renamed[old] = new
        for part in (self.main, self.algorithm):
            for n in part.nodes:
                protos.rename(n, old, new)

    def makes(self, part, value):
        """Whether a node of this graph makes the value."""
        return any(value in n.output for n in part.nodes)

    # ---- nodes
    def node(self, op, inputs, outputs=1, domain="", named=None, **attrs):
        """The outputs' names; `inputs` are Values or names, None for one that is left out. With `named` the outputs get
        these names and the node is always new."""
        names = ["" if x is None else x if isinstance(x, str) else x.name for x in inputs]
        while names and not names[-1]:
            names.pop()
        attrs = {k: v for k, v in attrs.items() if v is not None}
        proto = [helper.make_attribute(k, v) for k, v in sorted(attrs.items())]
        key = (op, domain, tuple(names), outputs, tuple(a.SerializeToString() for a in proto))
        unique = op in RANDOM or named is not None
        if not unique and key in self.known:
            return list(self.known[key])
        wanted = named or [self.hint if outputs == 1 else f"{self.hint}_{k}" for k in range(outputs)]
        result = [self.claim(w) for w in wanted]
        n = onnx.NodeProto(op_type=op, domain=domain, input=names, output=result, name=result[0] + "_node")
        n.attribute.extend(proto)
        self.part.nodes.append(n)
        for r in result:
            self.nodes_by_output[r] = n
        if not unique:
            self.known[key] = list(result)
        return result

    def op(self, op, *inputs, domain="", **attrs):
        """One node with one output -> its Value. The dtype is the first input's unless the operator says otherwise."""
        name = self.node(op, inputs, domain=domain, **attrs)[0]
        dtype = self._dtype_of(op, inputs, attrs)
        return Value(name, dtype)

    @staticmethod
    def _dtype_of(op, inputs, attrs):
        if op in _GIVE_BOOL:
            return torch.bool
        if op in _GIVE_INT64:
            return torch.int64
        if op == "Cast":
            return next(t for t, n in TO_ONNX.items() if n == attrs["to"])
        first = inputs[1] if op == "Where" else inputs[0] if inputs else None
        return getattr(first, "dtype", None)

    # ---- constants
    def const(self, value, dtype=None):
        """A constant; equal ones are one node."""
        if isinstance(value, torch.Tensor):
            dtype = dtype or value.dtype
            array = to_numpy(value.to(dtype))
        else:
            floating = torch.float32 if isinstance(value, float) else torch.int64
            dtype = dtype or (torch.bool if isinstance(value, bool) else floating)
            array = to_numpy(torch.tensor(value, dtype=dtype))
        key = ("const", dtype, array.shape, array.tobytes())
        if key not in self.known:
            name = self.claim("const")
            n = onnx.NodeProto(op_type="Constant", output=[name], name=name + "_node")
            tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))
            n.attribute.append(helper.make_attribute("value", tensor))
            self.part.nodes.append(n)
            self.nodes_by_output[name] = n
            self.known[key] = [name]
        return Value(self.known[key][0], dtype, list(array.shape))

    def double(self, number):
        return self.const(number, torch.float64)

    def ints(self, values):
        return self.const(torch.tensor(list(values), dtype=torch.int64))

    # ---- small conveniences of the lowerings
    def cast(self, x, dtype):
        if x.dtype == dtype:
            return x
        y = self.op("Cast", x, to=TO_ONNX[dtype])
        y.shape = x.shape
        return y
