"""Further update bindings in a training file: an output of the main graph is assigned to a state variable."""

from ...converters.onnx_file import encode_bindings
from ...errors import ModelError
from ...model import load

_TRAINING = 20  # field of ModelProto


def with_bindings(model, bindings):
    """The model with {state variable: output of the main graph} in its first training section."""
    data, at, made = model.proto(), 0, []
    found = False
    while at < len(data):
        start = at
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, at = _varint(data, at)
            end = at + length
        elif kind == 0:
            _, end = _varint(data, at)
        else:
            end = at + (8 if kind == 1 else 4)
        if number == _TRAINING and kind == 2 and not found:
            found = True
            made.append(encode_bindings(_TRAINING, data[at:end], bindings.items()))
        else:
            made.append(data[start:end])
        at = end
    if not found:
        raise ModelError("the file has no training section", "OT1601")
    return load(b"".join(made))


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
