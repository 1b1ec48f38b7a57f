"""A model with its float32 and float16 numbers in float64, so that differences say something, or None."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

SINGLE = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "NonMaxSuppression", "ImageDecoder"}
SCALES = {"Resize": (2,), "Upsample": (1,)}  # inputs that ONNX has in float32 only
KINDS = ("to", "dtype", "output_datatype")
NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16)


def tensor(t):
    if t.data_type not in NARROW:
        return
    t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))


def kind(value):
    t = value.type
    while t.HasField("sequence_type") or t.HasField("optional_type"):
        t = t.sequence_type.elem_type if t.HasField("sequence_type") else t.optional_type.elem_type
    if t.HasField("tensor_type") and t.tensor_type.elem_type in NARROW:
        t.tensor_type.elem_type = TensorProto.DOUBLE


def attributes(node):
    for a in node.attribute:
        if a.type == onnx.AttributeProto.TENSOR:
            tensor(a.t)
        elif a.type == onnx.AttributeProto.GRAPH:
            if not graph(a.g):
                return False
        elif a.name in KINDS and a.i in NARROW:
            a.i = TensorProto.DOUBLE
        elif node.op_type == "Constant" and a.name in ("value_float", "value_floats"):
            value = np.array(a.f if a.name == "value_float" else list(a.floats), np.float64)
            a.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(value)))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float64))))
    return True


def graph(g):
    for i in g.initializer:
        tensor(i)
    for v in (*g.input, *g.output):
        kind(v)
    del g.value_info[:]
    nodes = []
    for n in g.node:
        if n.op_type in SINGLE or n.domain not in ("", "ai.onnx"):
            return False
        for k in SCALES.get(n.op_type, ()):
            if k < len(n.input) and n.input[k]:
                name = f"{n.input[k]}_as_float_{len(nodes)}"
                nodes.append(onnx.helper.make_node("Cast", [n.input[k]], [name], to=TensorProto.FLOAT))
                n.input[k] = name
        if not attributes(n):
            return False
        nodes.append(n)
    made = list(nodes)
    del g.node[:]
    g.node.extend(made)
    return True


def in_double_feeds(feeds):
    return {n: v.astype(np.float64) if v.dtype in (np.float32, np.float16) else v for n, v in feeds.items()}


def in_double(proto):
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    if copy.functions:
        return None
    return copy if graph(copy.graph) else None
