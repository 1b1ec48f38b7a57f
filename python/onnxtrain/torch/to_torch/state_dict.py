"""Weights under the names of the original PyTorch class: a state_dict that it loads with strict=True."""

import torch

from ...converters.training_section import take_apart
from ...model import as_model
from ...trainer import Trainer
from .exporter_names import original_weights
from .names import names_of
from .source import Source


def torch_state_dict(model):
    """A model (ot.Model, path, bytes) or a Trainer -> {name: tensor}."""
    graphs = Source(model.model() if isinstance(model, Trainer) else as_model(model)).graphs
    names = names_of(graphs, [take_apart(graphs, k) for k in range(len(graphs.sections))])
    stored = dict(graphs.main.constants)
    if names.info is not None:
        return _declared(names, stored)
    out = {n: stored[n] for n in (*names.parameters, *names.buffers) if n in stored and n not in names.temporary}
    out.update({n: out[s] for n, s in names.ties.items() if s in out})
    _count_batches(graphs, out)
    return original_weights(graphs, out)


def _declared(names, stored):
    """In the order of the original: what from_torch wrote down."""
    info = names.info
    of_loss = set((info.get("loss") or {}).get("state", []))
    own = _by_module(info.get("parameters", []), info.get("buffers", []))
    out = {n: stored[n] for n in own if n in stored and n not in names.temporary and n not in names.ties}
    for n, s in names.ties.items():
        if s in stored and n not in names.temporary:
            out[n] = stored[s]
    return {n: t for n, t in out.items() if n not in of_loss}


def _by_module(parameters, buffers):
    """A module's buffers follow its parameters, as state_dict() has them."""
    rest, out = list(buffers), []
    owners = [n.rpartition(".")[0] for n in parameters]
    for k, n in enumerate(parameters):
        out.append(n)
        if owners[k] not in owners[k + 1:]:
            mine = [b for b in rest if b.rpartition(".")[0] == owners[k]]
            out += mine
            rest = [b for b in rest if b not in mine]
    return out + rest


def _count_batches(graphs, out):
    """torch's BatchNorm counts its batches; ONNX does not: the file's own counter, or nothing seen yet."""
    steps = next((int(s.algorithm.constants["T"]) for s in graphs.sections if "T" in s.algorithm.constants), 0)
    for n in graphs.main.nodes:
        if n.op == "BatchNormalization" and n.inputs[3].endswith(".running_mean"):
            out.setdefault(n.inputs[3][: -len("running_mean")] + "num_batches_tracked", torch.tensor(steps))
