"""Building ONNX graphs: nodes, constants and names, each distinct computation once.

The main graph is written first, the algorithm second, into the same Emitter: a node of the training form that computes
what the main graph already computes is not written again, so the algorithm holds only what differs (random nodes never
coincide).
"""

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

from . import versions

ELEM = {
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
    torch.float16: 10, torch.float64: 11, torch.bfloat16: 16, torch.complex64: 14, torch.complex128: 15,
}
OWN, TRAINING = "ai.onnxtrain", "ai.onnx.preview.training"
RANDOM = {"Dropout", "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


class Value:
    """A tensor of the graph: its name, torch's dtype and shape (ints, torch.SymInt, or None when not known)."""

    __slots__ = ("name", "dtype", "shape")

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


class Emitter:
    def __init__(self):
        self.main, self.algorithm = Part(), Part()
        self.part = self.main
        self.known = {}  # what a node computes -> its outputs
        self.names = set()
        self.renamed = {}
        self.functions = set()  # names of our own domain's functions that are used
        self.hint = "value"
        self.nodes_by_output = {}

    # ---- names
    def claim(self, wanted):
        name, k = wanted, 1
        while name in self.names:
            name, k = f"{wanted}_{k}", k + 1
        self.names.add(name)
        return name

    def rename(self, old, new):
        """Gives a node's output another name everywhere, in what Gradient names too."""
        self.renamed[old] = new
        for part in (self.main, self.algorithm):
            for n in part.nodes:
                _rename(n, old, new)
                if n.op_type == "Gradient":
                    for a in n.attribute:
                        if a.s == old.encode():
                            a.s = new.encode()
                        for i, v in enumerate(a.strings):
                            if v == old.encode():
                                a.strings[i] = new.encode()

    def current(self, name):
        """Today's name of a value."""
        while name in self.renamed:
            name = self.renamed[name]
        return name

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
        if op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"):
            return torch.bool
        if op in ("Shape", "Size", "ArgMax", "ArgMin", "NonZero"):
            return torch.int64
        if op == "Cast":
            return next(t for t, n in ELEM.items() if n == attrs["to"])
        first = inputs[1] if op == "Where" else inputs[0] if inputs else None
        return getattr(first, "dtype", None)

    # ---- constants
    def const(self, value, dtype=None):
        """A constant; equal ones are one node."""
        if isinstance(value, torch.Tensor):
            dtype = dtype or value.dtype
            array = to_numpy(value.to(dtype))
        else:
            dtype = dtype or (torch.bool if isinstance(value, bool) else torch.float32 if isinstance(value, float) else torch.int64)
            array = to_numpy(torch.tensor(value, dtype=dtype))
        key = ("const", dtype, array.shape, array.tobytes())
        if key not in self.known:
            name = self.claim("const")
            n = onnx.NodeProto(op_type="Constant", output=[name], name=name + "_node")
            n.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))))
            self.part.nodes.append(n)
            self.nodes_by_output[name] = n
            self.known[key] = [name]
        return Value(self.known[key][0], dtype, list(array.shape))

    def ints(self, values):
        return self.const(torch.tensor(list(values), dtype=torch.int64))

    # ---- small conveniences of the lowerings
    def cast(self, x, dtype):
        if x.dtype == dtype:
            return x
        y = self.op("Cast", x, to=ELEM[dtype])
        y.shape = x.shape
        return y


def to_numpy(t):
    t = t.detach().cpu()
    if t.dtype == torch.bfloat16:
        import ml_dtypes

        return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return t.resolve_conj().resolve_neg().contiguous().numpy()


def _rename(node, old, new):
    """In a node and in the bodies that it carries."""
    for values in (node.input, node.output):
        for i, v in enumerate(values):
            if v == old:
                values[i] = new
    for a in node.attribute:
        for n in a.g.node if a.type == onnx.AttributeProto.GRAPH else ():
            _rename(n, old, new)


def reads(node):
    """What a node reads, its bodies' captures included."""
    found = [i for i in node.input if i]
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            own = {v.name for v in a.g.input} | {o for n in a.g.node for o in n.output}
            found += [v for n in a.g.node for v in reads(n) if v not in own]
    return found


def remove_dead(nodes, wanted):
    """The nodes on which the names in `wanted` depend, in order; `wanted` grows by what they read."""
    keep = []
    for n in reversed(nodes):
        if any(o in wanted for o in n.output):
            keep.append(n)
            wanted.update(reads(n))
    return keep[::-1]
