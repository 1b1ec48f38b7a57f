"""A saved model file without its large tensors: their data is replaced by its place in the file, as external data of the file itself.

protobuf's own reader keeps every tensor in memory, next to what is made of it; a model of a gigabyte would be there three times.
"""

import mmap
import os

from onnx import StringStringEntryProto

LARGE = 1 << 16  # bytes of a tensor from which on it stays in the file
_VARINT, _LENGTH, _FIXED = 0, 2, {1: 8, 5: 4}
# field numbers of onnx.proto: where tensors are
_INSIDE = {"model": {7: "graph", 20: "training"}, "training": {1: "graph", 2: "graph"}, "graph": {5: "tensor"}, "tensor": {}}
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 9, 13, 14, 1


def outline(path):
    """The file's message as bytes."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return b"".join(_message(data, "model", 0, len(data), os.path.basename(path)))


def _message(data, kind, at, end, name):
    """The pieces of one message."""
    pieces = []
    while at < end:
        start = at
        key, at = _read(data, at)
        field, wire = key >> 3, key & 7
        if wire == _VARINT:
            _, at = _read(data, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        elif wire != _LENGTH:
            raise ValueError(f"wire type {wire}")
        else:
            size, body = _read(data, at)
            at = body + size
            inner = _INSIDE[kind].get(field)
            if inner is not None:
                parts = _message(data, inner, body, at, name)
                pieces += [_number(key), _number(sum(map(len, parts))), *parts]
                continue
            if kind == "tensor" and field == _RAW_DATA and size >= LARGE:
                pieces += _elsewhere(name, body, size)
                continue
        pieces.append(data[start:at])
    return pieces


def _elsewhere(name, offset, size):
    """external_data and data_location of a TensorProto."""
    pieces = []
    for key, value in (("location", name), ("offset", str(offset)), ("length", str(size))):
        entry = StringStringEntryProto(key=key, value=value).SerializeToString()
        pieces += [_number(_EXTERNAL_DATA << 3 | _LENGTH), _number(len(entry)), entry]
    return [*pieces, _number(_DATA_LOCATION << 3 | _VARINT), _number(_EXTERNAL)]


def _read(data, at):
    """(number, the place after it)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
