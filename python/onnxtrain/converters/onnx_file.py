"""An ONNX file under construction, and its bytes, without the package `onnx`: its pins clash with TensorFlow's.
numpy is all that a converter may take for granted.

Plain classes in the words of onnx.proto, and the wire format of protocol buffers for writing them. Reading is the
library's own affair (`onnxtrain.graph`).
"""

import struct
from dataclasses import dataclass, field

import numpy as np

from ..errors import ConversionError

DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "str": 8, "bool": 9,
          "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16}
IR = 10
OPSET = 22
_LIMIT = (1 << 31) - 1  # bytes of a protocol buffer


def dtype_number(dtype):
    """ONNX's number of an element type: a numpy dtype, or its name."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    name = "str" if name.startswith(("str", "object", "bytes")) else name
    if name not in DTYPES:
        raise ConversionError(f"elements of type {name} have no place in the file", "OT1601")
    return DTYPES[name]


@dataclass
class Ref:
    """An attribute of a node in a function's body that is the function's own attribute `name`."""

    name: str
    kind: int = 4  # TENSOR


@dataclass
class Node:
    op: str
    inputs: list
    outputs: list
    domain: str = ""
    name: str = ""
    attrs: dict = field(default_factory=dict)  # int, float, str, lists of them, numpy arrays, Graphs, Refs

    def reads(self):
        """What the node reads, its bodies' captures included."""
        found = [i for i in self.inputs if i]
        for a in self.attrs.values():
            if isinstance(a, Graph):
                found += a.captures()
        return found

    def rename(self, names):
        """Exchanges names of values {old: new}, in bodies and in what a Gradient names too."""
        self.inputs = [names.get(v, v) for v in self.inputs]
        self.outputs = [names.get(v, v) for v in self.outputs]
        for key, a in self.attrs.items():
            if isinstance(a, Graph):
                for n in a.nodes:
                    n.rename(names)
                for v in a.outputs:
                    v.name = names.get(v.name, v.name)
            elif self.op == "Gradient":
                self.attrs[key] = names.get(a, a) if isinstance(a, str) else [names.get(v, v) for v in a]


@dataclass
class Info:
    """A declared value: shape of numbers, names and None; None for no shape."""

    name: str
    dtype: object
    shape: list | None


@dataclass
class Graph:
    name: str
    nodes: list = field(default_factory=list)
    inputs: list = field(default_factory=list)  # Infos
    outputs: list = field(default_factory=list)
    initializers: dict = field(default_factory=dict)  # name -> array
    infos: list = field(default_factory=list)

    def captures(self):
        own = {v.name for v in self.inputs} | set(self.initializers) | {o for n in self.nodes for o in n.outputs}
        found = [v for n in self.nodes for v in n.reads()] + [v.name for v in self.outputs]
        return [v for v in dict.fromkeys(found) if v not in own]


@dataclass
class Function:
    domain: str
    name: str
    inputs: list
    outputs: list
    attributes: list
    nodes: list
    opsets: dict = field(default_factory=lambda: {"": OPSET})


@dataclass
class Training:
    algorithm: Graph
    update: list  # (state variable, value)
    initialization: Graph | None = None
    initial: list = field(default_factory=list)


@dataclass
class Model:
    graph: Graph
    opsets: dict = field(default_factory=lambda: {"": OPSET})
    training: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    metadata: dict = field(default_factory=dict)
    ir_version: int = IR

    def encode(self):
        """The bytes of the file."""
        size = sum(a.nbytes for g in self.graphs() for a in g.initializers.values() if a.dtype.kind not in "OSU")
        if size > _LIMIT:
            raise ConversionError(f"the file would have {size >> 20} MiB of tensors; a protocol buffer holds 2 GiB",
                             "OT1601")
        return _model(self)

    def graphs(self):
        return [self.graph, *[g for t in self.training for g in (t.algorithm, t.initialization) if g is not None]]


def remove_dead(nodes, wanted):
    """The nodes on which the names in `wanted` depend, in order; `wanted` grows by what they read."""
    keep = []
    for n in reversed(nodes):
        if any(o in wanted for o in n.outputs):
            keep.append(n)
            wanted.update(n.reads())
    return keep[::-1]


# ---- the wire format: a field is its number and kind, then a varint, four bytes or a length and bytes
def _varint(n):
    if n < 0:
        n += 1 << 64
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _read_varint(data, at):
    """(number, the place behind it)."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def wire_fields(data):
    """(number, kind, start, body, end) of each field: places in `data`, `body` behind its number and length."""
    start = 0
    while start < len(data):
        key, body = _read_varint(data, start)
        kind = key & 7
        if kind == 2:
            length, body = _read_varint(data, body)
            end = body + length
        else:
            end = _read_varint(data, body)[1] if kind == 0 else body + (8 if kind == 1 else 4)
        yield key >> 3, kind, start, body, end
        start = end


def _int(number, value):
    return _varint(number << 3) + _varint(int(value))


def _bytes(number, value):
    if isinstance(value, str):
        value = value.encode()
    return b"".join((_varint(number << 3 | 2), _varint(len(value)), value))


def _float(number, value):
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def _packed(number, values):
    return _bytes(number, b"".join(_varint(int(v)) for v in values))


def encode_tensor(array, name=""):
    """Bytes of a TensorProto."""
    array = np.asarray(array)
    parts = [_packed(1, array.shape) if array.ndim else b"", _int(2, dtype_number(array.dtype))]
    if array.dtype.kind in "OSU":
        parts += [_bytes(6, v if isinstance(v, bytes) else str(v)) for v in array.reshape(-1).tolist()]
    else:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind in "fiuc" else array
        parts.append(_bytes(9, np.ascontiguousarray(little).tobytes()))
    return b"".join(parts) + (_bytes(8, name) if name else b"")


def _attribute(name, a):
    head = _bytes(1, name)
    if isinstance(a, Ref):
        return head + _bytes(21, a.name) + _int(20, a.kind)
    if isinstance(a, Graph):
        return head + _bytes(6, _graph(a)) + _int(20, 5)
    if isinstance(a, np.ndarray) or isinstance(a, np.generic) and not isinstance(a, (np.integer, np.floating)):
        return head + _bytes(5, encode_tensor(a)) + _int(20, 4)
    if isinstance(a, (str, bytes)):
        return head + _bytes(4, a) + _int(20, 3)
    if isinstance(a, (bool, int, np.integer)):
        return head + _int(3, a) + _int(20, 2)
    if isinstance(a, (float, np.floating)):
        return head + _float(2, a) + _int(20, 1)
    return head + _list_attribute(list(a))


def _list_attribute(values):
    if values and isinstance(values[0], (str, bytes)):
        return b"".join(_bytes(9, v) for v in values) + _int(20, 8)
    if values and isinstance(values[0], np.ndarray):
        return b"".join(_bytes(10, encode_tensor(v)) for v in values) + _int(20, 9)
    if any(isinstance(v, (float, np.floating)) for v in values):
        return _bytes(7, struct.pack(f"<{len(values)}f", *values)) + _int(20, 6)
    return _packed(8, values) + _int(20, 7)


def _node(n):
    inputs = list(n.inputs)
    while inputs and not inputs[-1]:
        inputs.pop()
    parts = [_bytes(1, v) for v in inputs] + [_bytes(2, v) for v in n.outputs]
    parts += [_bytes(3, n.name) if n.name else b"", _bytes(4, n.op)]
    parts += [_bytes(5, _attribute(k, a)) for k, a in sorted(n.attrs.items()) if a is not None]
    return b"".join(parts) + (_bytes(7, n.domain) if n.domain else b"")


def _info(v):
    tensor = _int(1, dtype_number(v.dtype))
    if v.shape is not None:
        dims = [_bytes(2, d) if isinstance(d, str) else b"" if d is None else _int(1, d) for d in v.shape]
        tensor += _bytes(2, b"".join(_bytes(1, d) for d in dims))
    return _bytes(1, v.name) + _bytes(2, _bytes(1, tensor))


def _graph(g):
    parts = [_bytes(1, _node(n)) for n in g.nodes] + [_bytes(2, g.name or "graph")]
    parts += [_bytes(5, encode_tensor(a, name)) for name, a in g.initializers.items()]
    for number, infos in ((11, g.inputs), (12, g.outputs), (13, g.infos)):
        parts += [_bytes(number, _info(v)) for v in infos]
    return b"".join(parts)


def _opsets(number, opsets):
    return b"".join(_bytes(number, (_bytes(1, d) if d else b"") + _int(2, v)) for d, v in opsets.items())


def _entries(number, pairs):
    return b"".join(_bytes(number, _bytes(1, k) + _bytes(2, v)) for k, v in pairs)


def _function(f):
    parts = [_bytes(1, f.name)] + [_bytes(4, v) for v in f.inputs] + [_bytes(5, v) for v in f.outputs]
    parts += [_bytes(6, v) for v in f.attributes] + [_bytes(7, _node(n)) for n in f.nodes]
    return b"".join(parts) + _opsets(9, f.opsets) + _bytes(10, f.domain)


def _training(t):
    parts = [_bytes(1, _graph(t.initialization))] if t.initialization is not None else []
    parts.append(_bytes(2, _graph(t.algorithm)))
    return b"".join(parts) + _entries(3, t.initial) + _entries(4, t.update)


def _model(m):
    parts = [_int(1, m.ir_version), _bytes(2, "onnxtrain"), _bytes(7, _graph(m.graph)), _opsets(8, m.opsets)]
    parts += [_bytes(20, _training(t)) for t in m.training] + [_bytes(25, _function(f)) for f in m.functions]
    return b"".join(parts) + _entries(14, sorted(m.metadata.items()))


def encode_bindings(number, training, pairs):
    """A TrainingInfoProto's bytes with further update bindings, as field `number`."""
    return _bytes(number, training + _entries(4, pairs))
