"""A model file as plain Python: nodes, constants as torch tensors, training sections; local functions are inlined.

Everything of the way back to PyTorch works on these classes; only this file reads protobuf.
"""

import math
import os
import tempfile
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import torch
from onnx import AttributeProto, TensorProto, numpy_helper

from .to_export import scope_of
from .to_outline import LARGE, outline

_LARGE = 1 << 22  # elements
OWN = "ai.onnxtrain"
TRAINING = "ai.onnx.preview.training"
# functions of our domain that are known by name; others are their bodies
KEPT = {"Detach", "Sgd", "Adam", "AdamAms", "AdamW", "AdamWAms", "RMSprop", "RMSpropCentered", "RMSpropMomentum",
        "RMSpropCenteredMomentum", "NAdam", "NAdamW", "RAdam", "RAdamW", "Adamax", "Adadelta", "Adagrad", "Rprop",
        "MomentumCycled", "NesterovCycled", "RMSpropMomentumCycled", "RMSpropCenteredMomentumCycled", "NAdamCycled",
        "NAdamWCycled", "RAdamCycled", "RAdamWCycled", "AdamaxCycled", "AdamCycled", "AdamAmsCycled", "AdamWCycled",
        "AdamWAmsCycled"}

DTYPES = {
    TensorProto.FLOAT: torch.float32, TensorProto.UINT8: torch.uint8, TensorProto.INT8: torch.int8,
    TensorProto.UINT16: torch.uint16, TensorProto.INT16: torch.int16, TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64, TensorProto.BOOL: torch.bool, TensorProto.FLOAT16: torch.float16,
    TensorProto.DOUBLE: torch.float64, TensorProto.UINT32: torch.uint32, TensorProto.UINT64: torch.uint64,
    TensorProto.COMPLEX64: torch.complex64, TensorProto.COMPLEX128: torch.complex128,
    TensorProto.BFLOAT16: torch.bfloat16, TensorProto.FLOAT8E4M3FN: torch.float8_e4m3fn,
    TensorProto.FLOAT8E5M2: torch.float8_e5m2, TensorProto.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
}
_VIEW = {  # types that numpy lacks travel as their bits
    TensorProto.BFLOAT16: (np.int16, torch.int16), TensorProto.FLOAT8E4M3FN: (np.uint8, torch.uint8),
    TensorProto.FLOAT8E5M2: (np.uint8, torch.uint8), TensorProto.FLOAT8E4M3FNUZ: (np.uint8, torch.uint8),
    TensorProto.FLOAT8E5M2FNUZ: (np.uint8, torch.uint8),
}


def to_tensor(proto, folder=""):
    """TensorProto -> torch tensor (its own memory), or None for element types that torch lacks (strings, 4 bits)."""
    if proto.data_type not in DTYPES:
        return None
    if folder and proto.data_location == TensorProto.EXTERNAL:
        return _from_file(proto, folder)
    array = numpy_helper.to_array(proto)
    if proto.data_type in _VIEW:
        bits = np.array(array).view(_VIEW[proto.data_type][0])
        return torch.from_numpy(bits.copy()).view(DTYPES[proto.data_type])
    return torch.from_numpy(np.array(array, copy=True, order="C"))


def _from_file(proto, folder):
    """The data of a tensor in a file that we wrote."""
    place = {e.key: e.value for e in proto.external_data}
    bits = np.fromfile(os.path.join(folder, place["location"]), np.uint8, int(place["length"]), offset=int(place.get("offset", 0)))
    return torch.from_numpy(bits).view(DTYPES[proto.data_type]).reshape(tuple(proto.dims))


@dataclass
class Node:
    op: str
    domain: str
    version: int
    name: str
    inputs: list
    outputs: list
    attrs: dict = field(default_factory=dict)
    scope: str = None  # path of the module that it was exported from

    @property
    def kind(self):
        return (self.domain, self.op)

    @property
    def label(self):
        return f"{self.op} '{self.name}'" if self.name else f"{self.op} (makes '{self.outputs[0] if self.outputs else ''}')"


@dataclass
class Graph:
    name: str = ""
    inputs: list = field(default_factory=list)  # names, without those of initializers
    outputs: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    constants: dict = field(default_factory=dict)  # name -> tensor (None: a type that torch lacks)
    types: dict = field(default_factory=dict)  # input name -> element type number

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
    """One training_info: its algorithm, and what it assigns after a step."""

    algorithm: Graph
    update: dict  # state variable -> value


@dataclass
class Source:
    main: Graph
    sections: list
    metadata: dict
    reader: object = None

    def inlined(self, nodes):
        """Nodes with our own functions (the optimizers) replaced by their bodies."""
        out = []
        for n in nodes:
            f = self.reader.functions.get((n.domain, n.op))
            out += self.reader.call(f, n.inputs, n.outputs, n.attrs, n.name) if f is not None else [n]
        return out


def reads(node):
    """Every name that the node reads, its subgraphs' captures included."""
    names = [v for v in node.inputs if v]
    for a in node.attrs.values():
        if isinstance(a, Graph):
            names += a.captures()
    return names


class _Reader:
    def __init__(self, proto, folder=""):
        self.folder = folder
        self.opsets = {o.domain: o.version for o in proto.opset_import}
        self.functions = {(f.domain, f.name): f for f in proto.functions}
        self.fresh = 0

    def attribute(self, a):
        if a.type == AttributeProto.TENSOR:
            return a.t
        if a.type == AttributeProto.GRAPH:
            return a.g
        value = onnx.helper.get_attribute_value(a)
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        if a.type == AttributeProto.STRINGS:
            return [v.decode("utf-8", "surrogateescape") for v in value]
        return list(value) if a.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value

    def attributes(self, node, given, scope, opsets):
        out = {}
        for a in node.attribute:
            if a.ref_attr_name:
                if a.ref_attr_name in given:
                    out[a.name] = given[a.ref_attr_name]
            else:
                out[a.name] = self.attribute(a)
        for key, value in out.items():
            if isinstance(value, onnx.GraphProto):
                out[key] = self.graph(value, scope, given, opsets)
            elif isinstance(value, TensorProto):
                out[key] = to_tensor(value)
        return out

    def nodes(self, protos, scope=None, given=None, opsets=None):
        """Nodes with local functions inlined. scope: old name -> new name inside a function, None outside."""
        opsets = opsets or self.opsets
        given = given or {}
        out = []
        name = (lambda v: v) if scope is None else (lambda v: scope[v] if v and v in scope else v)
        for p in protos:
            domain = "" if p.domain == "ai.onnx" else p.domain
            inputs = [name(v) for v in p.input]
            outputs = [self._declare(v, scope) for v in p.output]
            attrs = self.attributes(p, given, scope, opsets)
            f = self.functions.get((p.domain, p.op_type))
            if f is not None and not (domain == OWN and p.op_type in KEPT):
                out += self.call(f, inputs, outputs, attrs, p.name)
            else:
                version = opsets.get(p.domain, opsets.get(domain, 1))
                out.append(Node(p.op_type, domain, version, p.name, inputs, outputs, attrs, scope_of(p)))
        return out

    def _declare(self, v, scope):
        if scope is None or not v:
            return v
        if v not in scope:
            self.fresh += 1
            scope[v] = f"{scope['']}/{v}#{self.fresh}"
        return scope[v]

    def call(self, f, inputs, outputs, attrs, where):
        given = {a.name: self.attribute(a) for a in f.attribute_proto}
        given.update(attrs)
        scope = {"": where or f.name}
        for k, v in enumerate(f.input):
            scope[v] = inputs[k] if k < len(inputs) else ""
        for k, v in enumerate(f.output):
            if k < len(outputs) and outputs[k] and v not in scope:
                scope[v] = outputs[k]
        passed = [(v, outputs[k]) for k, v in enumerate(f.output)
                  if k < len(outputs) and outputs[k] and scope.get(v) != outputs[k]]
        opsets = {**self.opsets, **{o.domain: o.version for o in f.opset_import}}
        body = self.nodes(f.node, scope, given, opsets)
        # an output of the function that is one of its inputs
        body += [Node("Identity", "", 13, "", [scope[v]], [o], {}) for v, o in passed]
        return body

    def graph(self, proto, scope=None, given=None, opsets=None, once=False, data=True):
        """`once`: nobody reads the proto again, its data goes as its tensors come. Without `data`, large tensors in a file stay there."""
        inner = None if scope is None else dict(scope)
        g = Graph(name=proto.name)
        for t in proto.initializer:
            absent = not data and t.data_location == TensorProto.EXTERNAL and t.data_type in DTYPES and math.prod(t.dims) >= LARGE
            value = torch.empty(tuple(t.dims), dtype=DTYPES[t.data_type], device="meta") if absent else to_tensor(t, self.folder)
            g.constants[self._declare(t.name, inner)] = value
            if once:
                t.ClearField("raw_data")
        for t in proto.sparse_initializer:
            g.constants[self._declare(t.values.name, inner)] = _dense(t)
        for i in proto.input:
            n = self._declare(i.name, inner)
            if n not in g.constants:
                g.inputs.append(n)
            g.types[n] = i.type.tensor_type.elem_type
        g.nodes = self.nodes(proto.node, inner, given, opsets)
        g.outputs = [o.name if inner is None else inner.get(o.name, o.name) for o in proto.output]
        return g


def _dense(sparse):
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    shape = tuple(sparse.dims)
    dense = np.zeros(shape, values.dtype)
    dense[np.unravel_index(indices, shape) if indices.ndim == 1 else tuple(indices.T)] = values
    return torch.from_numpy(dense)


def read_model(model, state=True):
    """ot.Model -> Source. A large one goes through a file, so that its tensors are in memory once; without `state` the optimizer's
    are not read at all."""
    if sum(i["elements"] for i in model.info["initializers"]) < _LARGE:
        return read(onnx.ModelProto.FromString(model.proto()))
    with tempfile.TemporaryDirectory(prefix="onnxtrain-") as folder:
        path = os.path.join(folder, "model.onnx")
        model.save(path)
        return read(onnx.ModelProto.FromString(outline(path)), folder, state)


def read(proto, folder="", state=True):
    """onnx.ModelProto -> Source. Empties the proto's tensors as it goes, so that weights exist once."""
    r = _Reader(proto, folder)
    main = r.graph(proto.graph, once=True)
    del proto.graph.initializer[:]
    sections = []
    for t in proto.training_info:
        sections.append(Section(r.graph(t.algorithm, once=True, data=state), {b.key: b.value for b in t.update_binding}))
        del t.algorithm.initializer[:]
    for s in sections:  # bindings may be on names that are constants of Constant nodes
        _lift_constants(s.algorithm)
    _lift_constants(main)
    return Source(main, sections, {p.key: p.value for p in proto.metadata_props}, r)


def _lift_constants(graph):
    """Constant nodes become constants; Identity of nothing else stays."""
    kept = []
    for n in graph.nodes:
        value = constant_value(n) if n.kind == ("", "Constant") else None
        if value is None:
            kept.append(n)
        else:
            graph.constants[n.outputs[0]] = value
    graph.nodes = kept


def constant_value(node):
    a = node.attrs
    if a.get("value") is not None:
        return a["value"]
    for key, dtype in (("value_float", torch.float32), ("value_floats", torch.float32), ("value_int", torch.int64),
                       ("value_ints", torch.int64)):
        if key in a:
            return torch.tensor(a[key], dtype=dtype)
    return None


def schema_body(node):
    """The standard's own body of a function operator as nodes, or None; inlined with the node's names."""
    try:
        schema = onnx.defs.get_schema(node.op, node.version, node.domain)
    except onnx.defs.SchemaError:
        return None
    if not schema.has_function:
        return None
    f = schema.function_body
    r = _Reader(onnx.ModelProto())
    r.opsets = {node.domain: node.version, "": node.version}
    given = {name: r.attribute(a.default_value) for name, a in schema.attributes.items() if a.default_value.name}
    given = {k: to_tensor(v) if isinstance(v, TensorProto) else v for k, v in given.items()}
    return r.call(f, node.inputs, node.outputs, {**given, **node.attrs}, node.name or node.op)


def renamed(node, names):
    """The node with inputs and outputs exchanged by `names`, in its subgraphs' captures too."""
    attrs = {k: _renamed_graph(v, names) if isinstance(v, Graph) else v for k, v in node.attrs.items()}
    return replace(node, inputs=[names.get(v, v) for v in node.inputs], outputs=[names.get(v, v) for v in node.outputs],
                   attrs=attrs)


def _renamed_graph(g, names):
    own = set(g.inputs) | set(g.constants) | {o for n in g.nodes for o in n.outputs}
    names = {k: v for k, v in names.items() if k not in own}
    return replace(g, nodes=[renamed(n, names) for n in g.nodes], outputs=[names.get(v, v) for v in g.outputs])
