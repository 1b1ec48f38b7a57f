"""Models in another floating-point type: every float, half and bfloat16 of a model becomes `to`."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_TYPE_ATTRIBUTES = {"to", "dtype", "output_datatype", "output_dtype", "stash_type", "softmax_precision", "precision"}
_TEXT = {TensorProto.FLOAT: "tensor(float)", TensorProto.DOUBLE: "tensor(double)",
         TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)"}


def numpy_type(elem):
    return onnx.helper.tensor_dtype_to_np_dtype(elem)


def is_float(array):
    return isinstance(array, np.ndarray) and array.dtype.name in ("float32", "float64", "float16", "bfloat16")


def cast_value(value, to):
    """An array, or a (nested) list of arrays, with its floating-point arrays in type `to`."""
    if isinstance(value, list):
        return [cast_value(v, to) for v in value]
    return value.astype(numpy_type(to)) if is_float(value) else value


def _schema(node, opsets):
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(node.domain, opsets.get("", 1)), node.domain)
    except onnx.defs.SchemaError:
        return None


def _allowed(schema, k):
    """Type strings that formal input k may have."""
    if not schema.inputs:
        return None
    formal = schema.inputs[min(k, len(schema.inputs) - 1)]
    for c in schema.type_constraints:
        if c.type_param_str == formal.type_str:
            return set(c.allowed_type_strs)
    return {formal.type_str}


class Retype:
    """strict: inputs whose schema does not allow `to` keep their type; otherwise only inputs that the
    schema fixes to one type do (Resize's scales)."""

    def __init__(self, to, strict):
        self.to, self.strict = to, strict

    def model(self, model):
        out = onnx.ModelProto()
        out.CopyFrom(model)
        self.opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in out.opset_import}
        self.keep = set()
        self._find_kept(out.graph)
        for f in out.functions:
            for n in f.node:
                self._node(n)
        self._graph(out.graph)
        return out

    def _find_kept(self, graph):
        for n in graph.node:
            schema = _schema(n, self.opsets)
            for k, name in enumerate(n.input):
                allowed = schema and _allowed(schema, k)
                if not allowed or _TEXT[self.to] in allowed:
                    continue
                if self.strict or len(allowed) == 1:
                    self.keep.add(name)
            for a in n.attribute:
                if a.HasField("g"):
                    self._find_kept(a.g)

    def _tensor(self, t):
        if t.data_type in FLOATS and t.data_type != self.to:
            name = t.name
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(numpy_type(self.to)), name))

    def _type(self, t):
        kind = t.WhichOneof("value")
        if kind == "tensor_type" and t.tensor_type.elem_type in FLOATS:
            t.tensor_type.elem_type = self.to
        elif kind in ("sequence_type", "optional_type"):
            self._type(getattr(t, kind).elem_type)

    def _node(self, n):
        if n.op_type == "Constant" and n.output and n.output[0] in self.keep:
            return
        for a in n.attribute:
            if n.op_type == "Constant" and a.name in ("value_float", "value_floats"):
                v = a.f if a.name == "value_float" else list(a.floats)
                t = numpy_helper.from_array(np.array(v, numpy_type(self.to)))
                a.CopyFrom(onnx.helper.make_attribute("value", t))
            elif a.HasField("t") and n.op_type in ("Constant", "ConstantOfShape"):
                self._tensor(a.t)
            elif a.name in _TYPE_ATTRIBUTES and a.type == onnx.AttributeProto.INT and a.i in FLOATS:
                a.i = self.to
            elif a.HasField("g"):
                self._graph(a.g)

    def _graph(self, g):
        for n in g.node:
            self._node(n)
        for t in g.initializer:
            if t.name not in self.keep:
                self._tensor(t)
        for v in list(g.input) + list(g.output):
            if v.name not in self.keep:
                self._type(v.type)
        del g.value_info[:]


def retype(model, feeds, to, strict):
    r = Retype(to, strict)
    out = r.model(model)
    return out, {n: v if n in r.keep else cast_value(v, to) for n, v in feeds.items()}
