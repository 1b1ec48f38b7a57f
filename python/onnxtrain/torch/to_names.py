"""Which stored tensors of a file are parameters, buffers or plain constants of a module, and under which names.

`from_torch` writes it down (metadata `onnxtrain.torch`); for other files it follows from the graph.
"""

import json
import re
from dataclasses import dataclass, field

import torch

from ..errors import ModelError
from .to_export import tied_names
from .to_ops import find

METADATA = "onnxtrain.torch"
# names that exporters invent for numbers in the code
_INVENTED = re.compile(r"^(val_\d+|const(ant)?s?_?\d*|_?Constant.*|/.*|onnx::.*|\d+|[a-z]+\d*_\d+_\d+d?|(int64|float32|bool)_.*|scalar_tensor.*)$")


@dataclass
class Names:
    parameters: list = field(default_factory=list)
    trained: set = field(default_factory=set)
    buffers: list = field(default_factory=list)
    temporary: set = field(default_factory=set)  # buffers that no state_dict holds
    ties: dict = field(default_factory=dict)  # further name -> stored name
    info: dict = None  # what from_torch wrote


def metadata(source):
    text = source.metadata.get(METADATA)
    if not text:
        return None
    try:
        info = json.loads(text)
        if not isinstance(info, dict) or info.get("format") != 1:
            raise ValueError("its format is not 1")
        return info
    except ValueError as e:
        raise ModelError(f"the metadata '{METADATA}' is damaged: {e}", "OT1714", "convert the PyTorch model again") from None


def names_of(source, splits):
    trained = {x for s in splits for x in s.gradients.values()}
    stored = dict(source.main.constants)
    for s in source.sections:  # a loss of its own may have parameters
        stored.update({k: v for k, v in s.algorithm.constants.items() if k in trained})
    info = metadata(source)
    out = Names(trained=trained, info=info)
    if info is not None:
        _declared(out, info, stored, trained)
    else:
        _derived(out, source, stored, trained)
    bad = [n for n in (*out.parameters, *out.buffers) if stored[n] is None]
    if bad:
        raise ModelError(f"'{bad[0]}' has an element type that torch lacks", "OT1711")
    return out


def _declared(out, info, stored, trained):
    ties = {k: v for k, v in info.get("ties", {}).items() if v in stored}
    out.parameters = [n for n in info.get("parameters", []) if n in stored and n not in ties]
    out.parameters += [n for n in stored if n in trained and n not in out.parameters]
    out.buffers = [n for n in info.get("buffers", []) if n in stored and n not in ties]
    out.temporary = set(info.get("non_persistent", []))
    out.ties = ties
    frozen = set(info.get("frozen", []))
    out.trained = {n for n in out.parameters if n not in frozen}


def _derived(out, source, stored, trained):
    statistics, sizes = _uses(source)
    bound = {k for s in source.sections for k in s.update}
    free = not source.sections  # a file without training: everything that looks like a weight may learn
    for name, t in stored.items():
        if name in trained:
            out.parameters.append(name)
        elif t is None or name in sizes:
            continue
        elif name in statistics or name in bound:
            out.buffers.append(name)
        elif not t.dtype.is_floating_point:
            if not _INVENTED.match(name):
                out.buffers.append(name)
        elif t.dim() == 0 or _INVENTED.match(name) and not _is_weight(source, name):
            continue
        elif bool(torch.isinf(t).any()):
            out.buffers.append(name)
        else:
            out.parameters.append(name)
    if free:
        out.trained = set(out.parameters)
    state = set(out.parameters) | set(out.buffers)
    out.ties = {**tied_names(source, state), **_identity_ties(source, state)}


def _all_nodes(source):
    return source.main.nodes + [n for s in source.sections for n in s.algorithm.nodes]


def _uses(source):
    """Names of running statistics, and of tensors that are sizes, axes, bounds."""
    statistics, sizes = set(), set()
    for n in _all_nodes(source):
        if n.op == "BatchNormalization":
            statistics.update(n.inputs[3:5])
        entry = find(n.kind)
        if entry is not None:
            sizes.update(v for k, v in enumerate(n.inputs) if k in entry.host)
        if n.op in ("Clip", "Dropout"):
            sizes.update(n.inputs[1:])
    return statistics, sizes


def _is_weight(source, name):
    """A weight position: exporters rename transposed and merged weights."""
    places = {"MatMul": (1,), "Gemm": (1, 2), "Conv": (1, 2), "ConvTranspose": (1, 2), "LSTM": (1, 2, 3), "GRU": (1, 2, 3),
              "RNN": (1, 2, 3), "LayerNormalization": (1, 2)}
    return any(name in (n.inputs[k] for k in places.get(n.op, ()) if k < len(n.inputs)) for n in source.main.nodes)


def _identity_ties(source, state):
    """Exporters write a tied weight as Identity(first name) -> second name."""
    outputs = set(source.main.outputs)
    return {n.outputs[0]: n.inputs[0] for n in source.main.nodes
            if n.op == "Identity" and n.inputs[0] in state and "." in n.outputs[0] and n.outputs[0] not in outputs}


