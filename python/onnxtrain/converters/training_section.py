"""Takes one training section of a file apart: the training form of the forward pass, the loss behind it, what is
assigned by the forward pass (running statistics) and what is assigned after the gradient (parameters and the
optimizer's state).
"""

from dataclasses import dataclass, field

from ..errors import ModelError
from ..graph import TRAINING, needed, reads, renamed
from .metadata import read_forms
from .training_form import find_training_forms

GRADIENT = (TRAINING, "Gradient")


@dataclass(frozen=True)
class Loss:
    """The nodes between the forward pass and the loss."""

    nodes: list = field(default_factory=list)
    reads: list = field(default_factory=list)  # values of the forward pass, in training form
    reads_in_eval: list = field(default_factory=list)  # the same in inference form (None where there is none)
    targets: list = field(default_factory=list)


@dataclass(frozen=True)
class TrainingParts:
    """One training section, taken apart."""

    loss_value: str  # the tensor that is differentiated; None when the section has no gradient
    gradients: dict  # output of Gradient -> parameter
    nodes: list  # everything that a step computes before the gradient
    outputs: list  # the model's outputs in training form
    loss: Loss
    forward_update: dict  # state variable -> value, by the forward pass
    after_update: dict  # state variable -> value, after the gradient


def take_apart(graphs, index):
    """Graphs, index of the training section -> TrainingParts."""
    main, section = graphs.main, graphs.sections[index]
    algorithm = section.algorithm
    loss_value, gradients = _gradients(graphs, algorithm, index)
    after = values_after_gradient(algorithm, gradients)
    before = [n for n in algorithm.nodes if n.kind != GRADIENT and not any(v in after for v in reads(n))]
    forward_update, after_update = _assignments(section, after)
    wanted = ([loss_value] if loss_value else []) + list(forward_update.values())
    live = needed(main.nodes + before, wanted)
    of_main = {id(n) for n in main.nodes}
    forms = find_training_forms(graphs, algorithm, [n for n in live if id(n) not in of_main])
    outputs, extra = _training_outputs(main, read_forms(graphs, algorithm), forms)
    nodes = main.nodes + before + extra
    loss = _loss(loss_value, main, algorithm, forms, live, nodes, outputs) if loss_value else Loss()
    return TrainingParts(loss_value, gradients, nodes, outputs, loss, forward_update, after_update)


def values_after_gradient(algorithm, gradients):
    """Names of the values that depend on a gradient."""
    found = set(gradients)
    for n in algorithm.nodes:
        if n.kind != GRADIENT and any(v in found for v in reads(n)):
            found.update(o for o in n.outputs if o)
    return found


def _gradients(graphs, algorithm, index):
    """(the tensor that is differentiated, {gradient: parameter})."""
    nodes = [n for n in algorithm.nodes if n.kind == GRADIENT]
    ys = list(dict.fromkeys(n.attrs.get("y") for n in nodes))
    if len(ys) > 1:
        raise ModelError(f"training section {index} differentiates several tensors ({', '.join(ys)}): "
                         "PyTorch's loop has one loss", "OT1712",
                         "keep it in onnxtrain, or write one training section per loss")
    gradients = {}
    for n in nodes:
        names = list(n.attrs.get("xs", [])) + list(n.attrs.get("zs", []))
        if names != list(n.inputs):
            raise ModelError(f"node {n.label} evaluates gradients at other values than the step's own", "OT1712",
                             "give the named tensors themselves as its inputs")
        for x, out in zip(n.attrs["xs"], n.outputs):
            if x not in graphs.main.constants and x not in algorithm.constants:
                raise ModelError(f"node {n.label} differentiates by '{x}', which is no stored tensor", "OT1712")
            if out:
                gradients[out] = x
    if not ys and "onnxtrain.loss" in graphs.metadata:
        raise ModelError(f"training section {index} has no Gradient node: the file is lowered, its gradients are plain "
                         "nodes", "OT1713", "prepare the model without `lowered` and convert that file")
    return ys[0] if ys else None, gradients


def _assignments(section, after):
    """(by the forward pass, after the gradient): {state variable: value} each."""
    own_state = set(section.update) & set(section.algorithm.constants)
    late = {k: v for k, v in section.update.items() if v in after or k in own_state}
    return {k: v for k, v in section.update.items() if k not in late}, late


def _training_outputs(main, said, forms):
    """(the model's outputs in training form, further nodes): what the step leaves out is computed from what it has.
    said: training forms that the file names, forms: those that the graphs show."""
    maker = {o: n for n in main.nodes for o in n.outputs if o}
    names, extra = dict(forms), []

    def training_form(name):
        # without recursion: deep models
        for n in needed(main.nodes, [name]):
            if any(o in names for o in n.outputs if o):
                continue
            if any(names.get(v, v) != v for v in reads(n)):
                names.update({o: o + "#train" for o in n.outputs if o})
                extra.append(renamed(n, names))
        return names.get(name, name)

    outputs = []
    for o in main.outputs:
        if o in said:
            names.setdefault(o, said[o])
        outputs.append(names.get(o) or (training_form(o) if o in maker else o))
    return outputs, extra


def _loss(value, main, algorithm, forms, live, nodes, outputs):
    """What stands between the forward pass (with its outputs) and the loss."""
    own = {o for n in algorithm.nodes for o in n.outputs if o}
    forward_values = {o for n in main.nodes for o in n.outputs if o} | set(forms.values()) | set(outputs)
    behind = needed(live, [value])
    read_forward = [v for n in behind for v in reads(n) if v in forward_values] + [v for v in outputs if v in own]
    forward = {id(n) for n in needed(nodes, [v for v in [*read_forward, *outputs] if v != value])}
    loss_nodes = [n for n in behind if id(n) not in forward]
    made = {o for n in loss_nodes for o in n.outputs}
    stored = set(main.constants) | set(algorithm.constants)
    outside = [v for n in loss_nodes for v in reads(n) if v not in made and v not in stored]
    read = [] if loss_nodes else [value]
    read += [v for v in dict.fromkeys(outside) if v not in algorithm.inputs]
    back = {v: k for k, v in forms.items()}
    back.update(zip(outputs, main.outputs))
    known = {o for n in main.nodes for o in n.outputs} | set(main.inputs)
    in_eval = [back.get(v, v) if back.get(v, v) in known else None for v in read]
    return Loss(loss_nodes, read, in_eval, [v for v in algorithm.inputs if v in outside])
