"""What exporters did to names, undone where the file still says it: the module that a node came from.

torch's exporters keep the module path of every node: in its name (legacy) or in its metadata (dynamo).
"""

import ast
import re

import torch

from .ops.recurrent import torch_rows

_SCOPES = "pkg.torch.onnx.name_scopes"


def scope_of(node):
    """The path of the module that made a node, or None."""
    if _SCOPES in node.metadata:
        try:
            path = ast.literal_eval(node.metadata[_SCOPES])
            return path[-2] if len(path) > 1 and isinstance(path[-2], str) else None
        except (ValueError, SyntaxError):
            return None
    if not node.name.startswith("/"):
        return None
    joined = []
    for part in node.name.strip("/").split("/")[:-1]:
        if joined and part.startswith(joined[-1] + "."):
            joined[-1] = part  # layers/layers.0 is layers.0
        else:
            joined.append(part)
    return ".".join(joined)


def tied_names(graphs, state):
    """{further name: stored name}: an embedding or linear layer whose weight is stored under another layer's name."""
    transposed = {n.outputs[0]: n.inputs[0] for n in graphs.main.nodes if n.op == "Transpose"}
    ties = {}
    for n in graphs.main.nodes:
        place, scope = {"Gather": 0, "MatMul": 1, "Gemm": 1}.get(n.op), scope_of(n)
        if place is None or not scope:
            continue
        weight = n.inputs[place]
        weight = transposed.get(weight, weight)
        again = ".".join(re.sub(r"_\d+$", "", p) for p in scope.split("."))  # a module that is called twice
        other = not weight.startswith(scope + ".") and weight != again + ".weight"
        if weight in state and weight.endswith(".weight") and f"{scope}.weight" not in state and other:
            ties[f"{scope}.weight"] = weight
    return ties


def original_weights(graphs, out):
    """Weights that the legacy exporter stores rearranged, back under the names and in the form of their layers."""
    for n in graphs.main.nodes:
        scope = scope_of(n)
        if not scope:
            continue
        if n.op == "MatMul" and _invented(n.inputs[1], out):
            name = f"{scope}.in_proj_weight" if f"{scope}.in_proj_bias" in out else f"{scope}.weight"
            if name not in out:
                out[name] = out.pop(n.inputs[1]).t().contiguous()
        elif n.op == "PRelu" and _invented(n.inputs[1], out) and f"{scope}.weight" not in out:
            out[f"{scope}.weight"] = out.pop(n.inputs[1]).reshape(-1)
        elif n.op in ("LSTM", "GRU", "RNN") and all(_invented(v, out) for v in n.inputs[1:3]):
            _unpack_recurrent(n, scope, out)
    return out


def _invented(name, out):
    return name in out and name.startswith("onnx::")


def _unpack_recurrent(n, scope, out):
    last = n.name.split("/")[-1].partition("_")[2]
    layer = int(last) if last.isdigit() else 0
    w, r = out.pop(n.inputs[1]), out.pop(n.inputs[2])
    b = out.pop(n.inputs[3]) if len(n.inputs) > 3 and n.inputs[3] in out else None
    hidden = r.shape[-1]
    for d in range(w.shape[0]):
        end = f"l{layer}" + ("_reverse" if d else "")
        out[f"{scope}.weight_ih_{end}"] = torch_rows(w[d], n.op, hidden).contiguous()
        out[f"{scope}.weight_hh_{end}"] = torch_rows(r[d], n.op, hidden).contiguous()
        if b is not None:
            for kind, half in zip(("ih", "hh"), torch.chunk(b[d], 2)):
                out[f"{scope}.bias_{kind}_{end}"] = torch_rows(half, n.op, hidden).contiguous()
