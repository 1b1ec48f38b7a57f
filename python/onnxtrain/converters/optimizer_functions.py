"""Bodies of the operators of our own domain, as the library's records have them (`src/ops/optim`)."""

import functools
import json

import onnx
from onnx import helper, parser

from .. import _native

# attribute that a cycling schedule turns into an input, and the input behind which it stands
_CYCLED = {"Adam": ("beta1", "T"), "NAdam": ("beta1", "T"), "RAdam": ("beta1", "T"), "RMSprop": ("momentum", "R")}


@functools.cache
def _texts():
    return json.loads(_native.functions())


def function(name, opset=22):
    """FunctionProto of an operator of our own domain, for a model of this opset."""
    if name in _texts():
        f = parser.parse_function(_texts()[name])
        f.opset_import[0].version = opset  # onnx.checker wants the version that the model imports
        return f
    plain = name.removesuffix("Cycled")
    key, behind = next(v for k, v in _CYCLED.items() if plain.startswith(k))
    f = onnx.FunctionProto()
    f.CopyFrom(function(plain, opset))
    f.name = name
    f.attribute.remove(key)
    inputs = list(f.input)
    inputs.insert(inputs.index(behind) + 1, "Beta")
    f.input[:] = inputs
    for n in f.node:
        if n.op_type == "Constant" and n.attribute[0].ref_attr_name == key:
            n.CopyFrom(helper.make_node("Cast", ["Beta"], list(n.output), to=11))
    return f
