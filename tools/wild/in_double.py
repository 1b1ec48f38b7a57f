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


def halves(g):
    """Names of the float16 numbers of a graph: initializers, inputs, constants, and what is computed from them."""
    known = {i.name for i in g.initializer if i.data_type == TensorProto.FLOAT16}
    known |= {v.name for v in g.input if v.type.tensor_type.elem_type == TensorProto.FLOAT16}
    for n in g.node:
        to = next((a.i for a in n.attribute if a.name in KINDS), None)
        kinds = [a.t.data_type for a in n.attribute if a.type == onnx.AttributeProto.TENSOR]
        if to is not None or n.op_type in ("Constant", "ConstantOfShape"):
            half = TensorProto.FLOAT16 in (to, *kinds)
        else:
            half = n.op_type not in ("Shape", "Size") and any(name in known for name in n.input)
        known |= set(n.output) if half else set()
    return known


def rounded_to_half(proto):
    """`in_double`, with every float16 result rounded as the file's type rounds it; None where nothing is float16."""
    half = halves(proto.graph)
    wide = in_double(proto) if half else None
    if wide is None:
        return None
    nodes = []
    for n in wide.graph.node:
        nodes.append(onnx.NodeProto.FromString(n.SerializeToString()))
        for k, name in enumerate(n.output):
            if name not in half or n.op_type == "Constant":
                continue
            nodes[-1].output[k] = f"{name}_exact"
            nodes.append(onnx.helper.make_node("Cast", [f"{name}_exact"], [f"{name}_half"], to=TensorProto.FLOAT16))
            nodes.append(onnx.helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.DOUBLE))
    del wide.graph.node[:]
    wide.graph.node.extend(nodes)
    return wide
