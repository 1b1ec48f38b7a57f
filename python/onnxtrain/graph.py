"""A model's graphs as plain Python: nodes, attributes, constants, types, training steps.

This is the one way in which Python code walks a model: the library has read the file, and gives its graphs node by
node. Converters to other frameworks work on these classes. Values are known by their names, in subgraphs too.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import _native
from .values import from_native

OWN = "ai.onnxtrain"  # the domain of our own operators
TRAINING = "ai.onnx.preview.training"
_SMALL = 64  # elements of a constant whose content is compared


@dataclass
class Node:
    op: str
    domain: str  # "" is ai.onnx
    version: int  # opset of the domain
    name: str
    inputs: list  # names; "" for one that is left out
    outputs: list
    attrs: dict = field(default_factory=dict)  # numbers, texts, lists, tensors, Graphs
    metadata: dict = field(default_factory=dict)  # what an exporter wrote beside it

    @property
    def kind(self):
        return (self.domain, self.op)

    @property
    def label(self):
        return f"{self.op} '{self.name}'"


@dataclass(frozen=True)
class Type:
    """A tensor's element type, numbered as in ONNX, and its shape: numbers, names, None; or no shape at all."""

    dtype: int
    shape: tuple | None = None


class Constants(Mapping):
    """name -> tensor of a graph's initializers and Constant nodes, in the file's order; each is made when it is asked
    for, and then kept."""

    def __init__(self, natives, tensor):
        self._natives, self._tensor, self._made = natives, tensor, {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = self._tensor(self._natives[name])
        return self._made[name]

    def __contains__(self, name):
        return name in self._natives

    def __iter__(self):
        return iter(self._natives)

    def __len__(self):
        return len(self._natives)

    def content(self, name):
        """(element type, shape, bytes) of a small tensor, to tell whether two are equal; None for others."""
        value = self._natives[name]
        shape = tuple(value.shape)
        if value.dtype == 8 or math.prod(shape) > _SMALL:  # 8: texts
            return None
        return value.dtype, shape, bytes(value.memory())


@dataclass
class Graph:
    name: str = ""
    inputs: list = field(default_factory=list)  # names, without those of initializers
    outputs: list = field(default_factory=list)
    nodes: list = field(default_factory=list)  # in an order in which they can run
    constants: Mapping = field(default_factory=dict)
    types: dict = field(default_factory=dict)  # name -> Type, as far as it is known

    def captures(self):
        """Names that nodes here read from outside."""
        known = set(self.inputs) | set(self.constants)
        read = []
        for n in self.nodes:
            read += [v for v in reads(n) if v not in known]
            known.update(n.outputs)
        read += [v for v in self.outputs if v and v not in known]
        return list(dict.fromkeys(read))


@dataclass
class Section:
    """One training section of a file: what a step computes, and what it assigns afterwards."""

    algorithm: Graph
    update: dict  # state variable -> value
    initialization: Graph = field(default_factory=Graph)
    initial: dict = field(default_factory=dict)  # state variable -> value of the initialization


@dataclass
class Graphs:
    """Everything of a model."""

    main: Graph  # the inference form
    sections: list
    metadata: dict
    opsets: dict  # domain -> version
    signatures: dict  # (domain, name) of the file's functions -> names of their inputs


def read_graphs(model, kept=None, tensor=from_native):
    """The graphs of an ot.Model.

    kept: (domain, operator) pairs that the caller knows. Other operators that have a body (a function of the file, of
    this library or of the standard) are given as their bodies. None: operators that this library computes stand.
    tensor: makes a constant of a native value, by default a numpy array.
    """
    names = None if kept is None else [f"{domain}::{op}" if domain else op for domain, op in kept]
    native = _native.graphs(model._m, names)
    read = _Reader(native, tensor)
    j = json.loads(native.json())
    sections = [Section(read.graph(t["algorithm"]), dict(t["update_binding"]), read.graph(t["initialization"]),
                        dict(t["initialization_binding"])) for t in j["training"]]
    signatures = {(f["domain"], f["name"]): f["inputs"] for f in j["functions"]}
    return Graphs(read.graph(j["main"]), sections, j["metadata"], j["opsets"], signatures)


class _Reader:
    """JSON of the C API -> the classes above."""

    def __init__(self, native, tensor):
        self.native, self.tensor = native, tensor

    def graph(self, j):
        constants = Constants({c["name"]: self.native.tensor(c["tensor"]) for c in j["constants"]}, self.tensor)
        types = {n: Type(t["dtype"], tuple(t["shape"]) if "shape" in t else None) for n, t in j["types"].items()}
        inputs = [n for n in j["inputs"] if n not in constants]
        return Graph(j["name"], inputs, j["outputs"], [self.node(n) for n in j["nodes"]], constants, types)

    def node(self, j):
        attrs = {name: self.attribute(*next(iter(a.items())), a) for name, a in j["attributes"].items()}
        return Node(j["op"], j["domain"], j["version"], j["name"], j["inputs"], j["outputs"], attrs,
                    j.get("metadata", {}))

    def attribute(self, kind, value, whole):
        if kind == "float":
            return float(value)  # infinities are texts
        if kind == "floats":
            return [float(v) for v in value]
        if kind == "graph":
            return self.graph(value)
        if kind == "tensor":
            return self.tensor(self.native.tensor(value))
        if kind == "tensors":
            return [self.tensor(self.native.tensor(v)) for v in value]
        if kind == "text":  # any bytes
            texts = from_native(self.native.tensor(value))
            return texts.item() if texts.ndim == 0 else texts.tolist()
        if kind == "sparse":
            parts = {part: from_native(self.native.tensor(k)) for part, k in value.items()}
            return {**parts, "shape": whole["shape"]}
        return value


def reads(node):
    """Every name that the node reads, its subgraphs' captures included."""
    names = [v for v in node.inputs if v]
    for a in node.attrs.values():
        if isinstance(a, Graph):
            names += a.captures()
    return names


def needed(nodes, wanted, given=()):
    """The nodes that `wanted` depends on, in order; nothing behind the values that are given."""
    given = set(given)
    wanted, keep = set(wanted) - given, []
    for n in reversed(nodes):
        if any(o in wanted for o in n.outputs if o):
            keep.append(n)
            wanted.update(v for v in reads(n) if v not in given)
    return keep[::-1]


def renamed(node, names):
    """The node with inputs and outputs exchanged by `names`, in its subgraphs' captures too."""
    attrs = {k: _renamed_graph(v, names) if isinstance(v, Graph) else v for k, v in node.attrs.items()}
    return replace(node, inputs=[names.get(v, v) for v in node.inputs], outputs=[names.get(v, v) for v in node.outputs],
                   attrs=attrs)


def _renamed_graph(g, names):
    own = set(g.inputs) | set(g.constants) | {o for n in g.nodes for o in n.outputs}
    names = {k: v for k, v in names.items() if k not in own}
    return replace(g, nodes=[renamed(n, names) for n in g.nodes], outputs=[names.get(v, v) for v in g.outputs])
