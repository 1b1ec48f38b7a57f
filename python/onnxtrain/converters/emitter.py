"""Building the two graphs of a training file: nodes, constants and names, each distinct computation once.

The main graph is written first, the algorithm second, into the same Emitter: a node of the training form that computes
what the main graph already computes is not written again, so the algorithm holds only what differs (random nodes never
coincide). Values are names; element types and shapes are the converter's own affair.
"""

import numpy as np

from .names import Names
from .onnx_file import Graph, Node, dtype_number, encode_tensor, remove_dead

RANDOM = {"Dropout", "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
          "Multinomial"}


class Emitter(Names):
    def __init__(self):
        super().__init__()
        self.main, self.algorithm = [], []  # nodes
        self.part = self.main
        self.known = {}  # what a node computes -> its outputs
        self.hint = "value"
        self.maker = {}  # value -> node

    # ---- names
    def rename(self, old, new):
        """Gives a node's output another name everywhere, in what Gradient names too."""
        self.rename_all({old: new})

    def rename_all(self, names):
        """{old: new}, in one pass over the nodes."""
        self.renamed.update(names)
        for n in [*self.main, *self.algorithm]:
            n.rename(names)
        for old, new in names.items():
            if old in self.maker:
                self.maker[new] = self.maker.pop(old)

    def makes(self, part, value):
        """Whether a node of this graph makes the value."""
        node = self.maker.get(self.current(value))
        return node is not None and any(n is node for n in part)

    # ---- nodes
    def node(self, op, inputs, outputs=1, domain="", named=None, **attrs):
        """The outputs' names; None or "" for an input that is left out. With `named` the outputs get these names (or
        free ones like them) and the node is always new."""
        names = ["" if x is None else self.current(x) for x in inputs]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        key = (op, domain, tuple(names), outputs, tuple((k, _key(v)) for k, v in sorted(attrs.items())))
        unique = op in RANDOM or named is not None
        if not unique and key in self.known:
            return [self.current(v) for v in self.known[key]]
        wanted = named or [self.hint if outputs == 1 else f"{self.hint}_{k}" for k in range(outputs)]
        result = [self.claim(w) for w in wanted]
        n = Node(op, names, result, domain, result[0] + "_node", attrs)
        self.part.append(n)
        for r in result:
            self.maker[r] = n
        if not unique:
            self.known[key] = list(result)
        return result

    def op(self, op, *inputs, domain="", **attrs):
        """One node with one output -> its name."""
        return self.node(op, inputs, domain=domain, **attrs)[0]

    # ---- constants
    def const(self, value, dtype=None):
        """A constant; equal ones are one node."""
        array = np.asarray(value, dtype)
        key = ("const", array.dtype.name, array.shape, array.tobytes() if array.dtype.kind not in "OSU" else
               tuple(array.reshape(-1).tolist()))
        if key not in self.known:
            name = self.claim("const")
            n = Node("Constant", [], [name], "", name + "_node", {"value": array})
            self.part.append(n)
            self.maker[name] = n
            self.known[key] = [name]
        return self.current(self.known[key][0])

    def ints(self, values):
        return self.const(np.array(list(values), np.int64))

    def double(self, number):
        return self.const(number, np.float64)

    def cast(self, x, dtype):
        return self.op("Cast", x, to=dtype_number(dtype))

    def value_of(self, name):
        """The array of a constant, or None."""
        n = self.maker.get(self.current(name))
        return n.attrs["value"] if n is not None and n.op == "Constant" and "value" in n.attrs else None

    # ---- both graphs
    def split(self, outputs, wanted):
        """(nodes of the main graph, nodes of the algorithm, names that each of them reads): main keeps what `outputs`
        need; what only `wanted` needs goes into the algorithm."""
        main_reads, reads = set(outputs), set(wanted)
        main = remove_dead(self.main, main_reads)
        kept = {id(n) for n in main}
        used = remove_dead(self.main + self.algorithm, reads)
        return main, [n for n in used if id(n) not in kept], main_reads, reads


def _key(v):
    if isinstance(v, np.ndarray):
        return encode_tensor(v)
    if isinstance(v, Graph):
        return id(v)
    return (type(v).__name__, repr(v))
