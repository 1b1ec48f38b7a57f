"""Single-operator cases at every opset at which the operator's schema changed.

A case of the suite is rewritten for another version: inputs that were attributes become attributes and the
other way round, what the version does not have is left out. Finite differences compare the model with
itself, so it only matters that the result is a valid use of that version."""

import functools

import numpy as np
import onnx
from onnx import helper

import cases
import onnxtrain as ot
import table

# required attributes of old versions that later ones do not have
_FILL = {
    ("Upsample", 1): {"height_scale": 2.0, "width_scale": 1.5}, ("Reshape", 1): {"shape": [-1]}, ("Pad", 1): None,
    ("Tile", 1): None,
}
_ALIAS = {"pads": "paddings", "constant_value": "value", "k": "k"}


@functools.cache
def single_nodes():
    """{(domain, op): [case name]} of the suite's cases with one node; short ones first."""
    out = {}
    for name in cases.suite():
        t = cases.suite()[name]
        if t.model is None or len(t.model.graph.node) != 1 or t.model.functions:
            continue
        n = t.model.graph.node[0]
        out.setdefault(("" if n.domain == "ai.onnx" else n.domain, n.op_type), []).append(name)
    return out


def rewritten(case, schema):
    """The case with its node as a node of `schema`; None if that cannot be."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    feeds = dict(case.feeds)
    known = schema.attributes
    wanted = {k.lower(): k for k in known}
    attributes = {a.name: a for a in node.attribute if a.name in known}
    most = schema.max_input
    names = list(node.input)
    formal = [i.name for i in schema.inputs]
    later = onnx.defs.get_schema(node.op_type, max(o.version for o in model.opset_import if o.domain == node.domain),
                                 node.domain)
    for k in range(len(names)):
        label = later.inputs[min(k, len(later.inputs) - 1)].name
        key = wanted.get(label.lower()) or wanted.get(_ALIAS.get(label, ""))
        if key and label not in formal and names[k] in feeds:
            value = feeds.pop(names[k]).tolist()
            if value != []:  # an empty list is what leaving it out means
                attributes[key] = helper.make_attribute(key, value)
            names[k] = ""
    names = names[:most]
    while names and not names[-1]:
        names.pop()
    if len(names) < schema.min_input:
        return None
    if "reduction" in {a.name for a in node.attribute} - set(attributes) or "seq_none" in case.name:
        return None  # without it the indices would be ambiguous
    fill = _FILL.get((node.op_type, schema.since_version), {}) or {}
    for key, value in fill.items():
        attributes.setdefault(key, helper.make_attribute(key, value))
    if node.op_type == "Cast" and schema.since_version < 6:
        attributes["to"] = helper.make_attribute("to", "FLOAT")
    if "broadcast" in known and len(names) > 1:
        attributes["broadcast"] = helper.make_attribute("broadcast", 1)
    if any(a.required and k not in attributes for k, a in known.items()):
        return None
    del node.input[:]
    node.input.extend(names)
    del node.attribute[:]
    node.attribute.extend(attributes.values())
    outputs = list(node.output)[:schema.max_output]
    del node.output[:]
    node.output.extend(outputs)
    kept = [i for i in model.graph.input if i.name in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    outs = [o for o in model.graph.output if o.name in outputs]
    for o in outs:
        if o.type.WhichOneof("value") == "tensor_type":
            o.type.tensor_type.ClearField("shape")
    del model.graph.output[:]
    model.graph.output.extend(outs)
    for o in model.opset_import:
        if o.domain == node.domain or (not o.domain and not node.domain):
            o.version = schema.since_version
    return cases.Case(f"{case.name}@{schema.since_version}", model, {n: v for n, v in feeds.items() if n in names})


def versions():
    """[(domain, op, schema)] of everything that has a gradient."""
    out = []
    for row in table.rows():
        if row.kind in ("rule", "standard form", "function body"):
            out += [(row.domain, row.op, s) for s in table.schemas()[row.domain, row.op] if not s.deprecated]
    return out


def cases_at(domain, op, schema, most=2):
    """Up to `most` cases of the operator at that version that run."""
    found = []
    for name in single_nodes().get((domain, op), []):
        case = cases.load_case(name)
        if not case.wrt():
            continue
        try:
            other = rewritten(case, schema)
            if other is None or not other.wrt():
                continue
            out = ot.Session(ot.load(other.model.SerializeToString()), threads=1).run(other.feeds)
            if any(np.asarray(v).dtype.kind == "f" for v in out.values() if isinstance(v, np.ndarray)) or any(
                    isinstance(v, list) for v in out.values()):
                found.append(other)
        except (ot.Error, onnx.defs.SchemaError):
            continue
        if len(found) == most:
            break
    return found
