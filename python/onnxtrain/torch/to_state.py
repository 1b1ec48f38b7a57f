"""Weights under the names of the original PyTorch class: a state_dict that it loads with strict=True."""

import torch

from ..model import as_model
from ..trainer import Trainer
from .to_export import original_weights
from .to_file import read_model
from .to_names import names_of
from .to_split import split


def torch_state_dict(model):
    """A model (ot.Model, path, bytes) or a Trainer -> {name: tensor}."""
    source_model = model.model() if isinstance(model, Trainer) else as_model(model)
    source = read_model(source_model, state=False)
    names = names_of(source, [split(source, k) for k in range(len(source.sections))])
    stored = dict(source.main.constants)
    if names.info is not None:
        return _declared(names, stored)
    out = {n: stored[n] for n in (*names.parameters, *names.buffers) if n in stored and n not in names.temporary}
    out.update({n: out[s] for n, s in names.ties.items() if s in out})
    _count_batches(source, out)
    return original_weights(source, out)


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


def _count_batches(source, out):
    """torch's BatchNorm counts its batches; ONNX does not: the file's own counter, or nothing seen yet."""
    steps = next((int(s.algorithm.constants["T"]) for s in source.sections if "T" in s.algorithm.constants), 0)
    for n in source.main.nodes:
        if n.op == "BatchNormalization" and n.inputs[3].endswith(".running_mean"):
            out.setdefault(n.inputs[3][: -len("running_mean")] + "num_batches_tracked", torch.tensor(steps))
