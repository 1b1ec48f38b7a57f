"""What exporters did to names, undone where the file still says it: the module that a node came from.

torch's exporters keep the module path of every node: in its name (legacy) or in its metadata (dynamo).
"""

import ast
import re

import torch

_SCOPES = "pkg.torch.onnx.name_scopes"


def scope_of(proto):
    """The path of the module that made a NodeProto, or None."""
    for p in proto.metadata_props:
        if p.key == _SCOPES:
            try:
                path = ast.literal_eval(p.value)
                return path[-2] if len(path) > 1 and isinstance(path[-2], str) else None
            except (ValueError, SyntaxError):
                return None
    if not proto.name.startswith("/"):
        return None
    joined = []
    for part in proto.name.strip("/").split("/")[:-1]:
        if joined and part.startswith(joined[-1] + "."):
            joined[-1] = part  # layers/layers.0 is layers.0
        else:
            joined.append(part)
    return ".".join(joined)


def tied_names(source, state):
    """{further name: stored name}: an embedding or linear layer whose weight is stored under another layer's name."""
    transposed = {n.outputs[0]: n.inputs[0] for n in source.main.nodes if n.op == "Transpose"}
    ties = {}
    for n in source.main.nodes:
        place = {"Gather": 0, "MatMul": 1, "Gemm": 1}.get(n.op)
        if place is None or not n.scope:
            continue
        weight = n.inputs[place]
        weight = transposed.get(weight, weight)
        name = f"{n.scope}.weight"
        again = ".".join(re.sub(r"_\d+$", "", p) for p in n.scope.split("."))  # a module that is called twice
        if weight in state and weight.endswith(".weight") and name not in state and not weight.startswith(
                n.scope + ".") and weight != again + ".weight":
            ties[name] = weight
    return ties


def original_weights(source, out):
    """Weights that the legacy exporter stores rearranged, back under the names and in the form of their layers."""
    for n in source.main.nodes:
        if not n.scope:
            continue
        if n.op == "MatMul" and _invented(n.inputs[1], out):
            name = f"{n.scope}.in_proj_weight" if f"{n.scope}.in_proj_bias" in out else f"{n.scope}.weight"
            if name not in out:
                out[name] = out.pop(n.inputs[1]).t().contiguous()
        elif n.op == "PRelu" and _invented(n.inputs[1], out) and f"{n.scope}.weight" not in out:
            out[f"{n.scope}.weight"] = out.pop(n.inputs[1]).reshape(-1)
        elif n.op in ("LSTM", "GRU", "RNN") and all(_invented(v, out) for v in n.inputs[1:3]):
            _unpack_recurrent(n, out)
    return out


def _invented(name, out):
    return name in out and name.startswith("onnx::")


def _unpack_recurrent(n, out):
    from .to_ops_rnn import torch_rows

    last = n.name.split("/")[-1].partition("_")[2]
    layer = int(last) if last.isdigit() else 0
    w, r = out.pop(n.inputs[1]), out.pop(n.inputs[2])
    b = out.pop(n.inputs[3]) if len(n.inputs) > 3 and n.inputs[3] in out else None
    hidden = r.shape[-1]
    for d in range(w.shape[0]):
        end = f"l{layer}" + ("_reverse" if d else "")
        out[f"{n.scope}.weight_ih_{end}"] = torch_rows(w[d], n.op, hidden).contiguous()
        out[f"{n.scope}.weight_hh_{end}"] = torch_rows(r[d], n.op, hidden).contiguous()
        if b is not None:
            for kind, half in zip(("ih", "hh"), torch.chunk(b[d], 2)):
                out[f"{n.scope}.bias_{kind}_{end}"] = torch_rows(half, n.op, hidden).contiguous()
