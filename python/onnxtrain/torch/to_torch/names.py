"""Which stored tensors of a file are parameters, buffers or plain constants of a module, and under which names.

`from_torch` writes it down (metadata `onnxtrain.torch`); for other files it follows from the graph.
"""

import re
from dataclasses import dataclass, field

import torch

from ...converters.metadata import read_info
from ...errors import ModelError
from ..shared.metadata import KEY
from .exporter_names import tied_names
from .ops.table import find

# names that exporters invent for numbers in the code
_INVENTED = re.compile(r"^(val_\d+|const(ant)?s?_?\d*|_?Constant.*|/.*|onnx::.*|\d+|[a-z]+\d*_\d+_\d+d?"
                       r"|(int64|float32|bool)_.*|scalar_tensor.*)$")


@dataclass(frozen=True)
class Names:
    parameters: list
    trained: set
    buffers: list
    temporary: set = field(default_factory=set)  # buffers that no state_dict holds
    ties: dict = field(default_factory=dict)  # further name -> stored name
    info: dict | None = None  # what from_torch wrote


def names_of(graphs, parts):
    trained = {x for p in parts for x in p.gradients.values()}
    stored = dict(graphs.main.constants)
    for s in graphs.sections:  # a loss of its own may have parameters
        own = s.algorithm.constants
        stored.update({k: own[k] for k in own if k in trained})
    info = read_info(graphs, KEY)
    names = _derived(graphs, stored, trained) if info is None else _declared(info, stored, trained)
    bad = [n for n in (*names.parameters, *names.buffers) if stored[n] is None]
    if bad:
        raise ModelError(f"'{bad[0]}' has an element type that torch lacks", "OT1711")
    return names


def _declared(info, stored, trained):
    """As from_torch wrote it down."""
    ties = {k: v for k, v in info.get("ties", {}).items() if v in stored}
    parameters = [n for n in info.get("parameters", []) if n in stored and n not in ties]
    parameters += [n for n in stored if n in trained and n not in parameters]
    buffers = [n for n in info.get("buffers", []) if n in stored and n not in ties]
    frozen = set(info.get("frozen", []))
    return Names(parameters, {n for n in parameters if n not in frozen}, buffers, set(info.get("non_persistent", [])),
                 ties, info)


def _derived(graphs, stored, trained):
    """As it follows from the graph."""
    statistics, sizes = _uses(graphs)
    bound = {k for s in graphs.sections for k in s.update}
    parameters, buffers = [], []
    for name, t in stored.items():
        if name in trained:
            parameters.append(name)
        elif t is None or name in sizes:
            continue
        elif name in statistics or name in bound:
            buffers.append(name)
        elif not t.dtype.is_floating_point:
            if not _INVENTED.match(name):
                buffers.append(name)
        elif t.dim() == 0 or _INVENTED.match(name) and not _is_weight(graphs, name):
            continue
        else:
            (buffers if bool(torch.isinf(t).any()) else parameters).append(name)
    if not graphs.sections:  # a file without training: everything that looks like a weight may learn
        trained = set(parameters)
    state = {*parameters, *buffers}
    return Names(parameters, trained, buffers, ties={**tied_names(graphs, state), **_identity_ties(graphs, state)})


def _all_nodes(graphs):
    return graphs.main.nodes + [n for s in graphs.sections for n in s.algorithm.nodes]


def _uses(graphs):
    """Names of running statistics, and of tensors that are sizes, axes, bounds."""
    statistics, sizes = set(), set()
    for n in _all_nodes(graphs):
        if n.op == "BatchNormalization":
            statistics.update(n.inputs[3:5])
        entry = find(n.kind)
        if entry is not None:
            sizes.update(v for k, v in enumerate(n.inputs) if k in entry.host)
        if n.op in ("Clip", "Dropout"):
            sizes.update(n.inputs[1:])
    return statistics, sizes


_WEIGHTS = {"MatMul": (1,), "Gemm": (1, 2), "Conv": (1, 2), "ConvTranspose": (1, 2), "LSTM": (1, 2, 3),
            "GRU": (1, 2, 3), "RNN": (1, 2, 3), "LayerNormalization": (1, 2)}


def _is_weight(graphs, name):
    """A weight position: exporters rename transposed and merged weights."""
    return any(name in (n.inputs[k] for k in _WEIGHTS.get(n.op, ()) if k < len(n.inputs)) for n in graphs.main.nodes)


def _identity_ties(graphs, state):
    """Exporters write a tied weight as Identity(first name) -> second name."""
    outputs = set(graphs.main.outputs)
    return {n.outputs[0]: n.inputs[0] for n in graphs.main.nodes
            if n.op == "Identity" and n.inputs[0] in state and "." in n.outputs[0] and n.outputs[0] not in outputs}
