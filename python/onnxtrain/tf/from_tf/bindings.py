"""Further update bindings in a training file: an output of the main graph is assigned to a state variable."""

from ...converters.onnx_file import encode_bindings, wire_fields
from ...errors import ConversionError
from ...model import load

_TRAINING = 20  # field of ModelProto


def with_bindings(model, bindings):
    """The model with {state variable: output of the main graph} in its first training section."""
    data, made, found = model.proto(), [], False
    for number, kind, start, body, end in wire_fields(data):
        if number == _TRAINING and kind == 2 and not found:
            found = True
            made.append(encode_bindings(_TRAINING, data[body:end], bindings.items()))
        else:
            made.append(data[start:end])
    if not found:
        raise ConversionError("the file has no training section", "OT1601")
    return load(b"".join(made))
