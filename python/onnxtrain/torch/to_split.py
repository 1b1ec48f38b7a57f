"""Takes one training section apart: the training form of the forward pass, the loss behind it, what is assigned by the
forward pass (running statistics) and what is assigned after the gradient (parameters and the optimizer's state).
"""

from dataclasses import dataclass, field

from ..errors import ModelError
from .to_file import TRAINING, Graph, reads, renamed
from .to_program import needed
from .to_twin import find_twins

GRADIENT = (TRAINING, "Gradient")


@dataclass
class Split:
    loss: str = None  # the tensor that is differentiated
    gradients: dict = field(default_factory=dict)  # output of Gradient -> parameter
    nodes: list = field(default_factory=list)  # everything that a step computes before the gradient
    outputs: list = field(default_factory=list)  # the model's outputs in training form
    loss_nodes: list = field(default_factory=list)
    frontier: list = field(default_factory=list)  # what the loss reads of the forward pass
    eval_frontier: list = field(default_factory=list)  # the same in inference form (None where there is none)
    targets: list = field(default_factory=list)
    forward_update: dict = field(default_factory=dict)  # state variable -> value, by the forward pass
    after_nodes: list = field(default_factory=list)
    after_update: dict = field(default_factory=dict)  # state variable -> value, after the gradient


def split(source, index):
    """Source, index of the training section -> Split."""
    main, section = source.main, source.sections[index]
    algorithm = section.algorithm
    s = Split()
    _read_gradients(s, algorithm, index, source)
    after = _after_gradient(algorithm, s.gradients)
    own_state = set(section.update) & set(algorithm.constants)
    before = [n for n in algorithm.nodes if id(n) not in after and n.kind != GRADIENT]
    for key, value in section.update.items():
        if value in after["values"] or key in own_state:
            s.after_update[key] = value
        else:
            s.forward_update[key] = value
    s.after_nodes = algorithm.nodes
    wanted = ([s.loss] if s.loss else []) + list(s.forward_update.values())
    live = needed(main.nodes + before, wanted)
    twins = find_twins(main, [n for n in live if id(n) not in {id(m) for m in main.nodes}], algorithm, source)
    s.nodes = main.nodes + before
    s.outputs = _training_outputs(s, main, algorithm, twins)
    _cut_loss(s, main, algorithm, twins, live)
    return s


def _read_gradients(s, algorithm, index, source):
    nodes = [n for n in algorithm.nodes if n.kind == GRADIENT]
    ys = list(dict.fromkeys(n.attrs.get("y") for n in nodes))
    if len(ys) > 1:
        raise ModelError(f"training section {index} differentiates several tensors ({', '.join(ys)}): PyTorch's loop has one loss",
                         "OT1712", "keep it in onnxtrain, or write one training section per loss")
    for n in nodes:
        names = list(n.attrs.get("xs", [])) + list(n.attrs.get("zs", []))
        if names != list(n.inputs):
            raise ModelError(f"node {n.label} evaluates gradients at other values than the step's own", "OT1712",
                             "give the named tensors themselves as its inputs")
        for x, out in zip(n.attrs["xs"], n.outputs):
            if x not in source.main.constants and x not in algorithm.constants:
                raise ModelError(f"node {n.label} differentiates by '{x}', which is no stored tensor", "OT1712")
            if out:
                s.gradients[out] = x
    if ys:
        s.loss = ys[0]
    elif "onnxtrain.loss" in source.metadata:
        raise ModelError(f"training section {index} has no Gradient node: the file is lowered, its gradients are plain nodes",
                         "OT1713", "prepare the model without `lowered` and convert that file")


def _after_gradient(algorithm, gradients):
    """Nodes and values that depend on a gradient: {"values": names, id(node): True}."""
    found = {"values": set(gradients)}
    for n in algorithm.nodes:
        if n.kind != GRADIENT and any(v in found["values"] for v in reads(n)):
            found[id(n)] = True
            found["values"].update(o for o in n.outputs if o)
    return found


def _training_outputs(s, main, algorithm, twins):
    """The model's outputs in training form; what the step leaves out is computed from what it has."""
    made = {o for n in algorithm.nodes for o in n.outputs}
    maker = {o: n for n in main.nodes for o in n.outputs if o}
    names = dict(twins)
    extra = []

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
        explicit = o + "_train"
        if o not in names and explicit in made:
            names[o] = explicit
        outputs.append(names.get(o) or (training_form(o) if o in maker else o))
    s.nodes = s.nodes + extra
    return outputs


def _cut_loss(s, main, algorithm, twins, live):
    if s.loss is None:
        return
    own = {o: n for n in algorithm.nodes for o in n.outputs if o}
    forward_values = {o for n in main.nodes for o in n.outputs if o} | set(twins.values()) | set(s.outputs)
    behind = needed(live, [s.loss])
    read_forward = [v for n in behind for v in reads(n) if v in forward_values] + [v for v in s.outputs if v in own]
    forward = {id(n) for n in needed(s.nodes, [v for v in [*read_forward, *s.outputs] if v != s.loss])}
    s.loss_nodes = [n for n in behind if id(n) not in forward]
    if not s.loss_nodes:
        s.frontier = [s.loss]
    made = {o for n in s.loss_nodes for o in n.outputs}
    stored = set(main.constants) | set(algorithm.constants)
    outside = [v for n in s.loss_nodes for v in reads(n) if v not in made and v not in stored]
    s.targets = [v for v in algorithm.inputs if v in outside]
    s.frontier += [v for v in dict.fromkeys(outside) if v not in algorithm.inputs]
    back = {v: k for k, v in twins.items()}
    back.update({t: o for t, o in zip(s.outputs, main.outputs)})
    known = {o for n in main.nodes for o in n.outputs} | set(main.inputs)
    s.eval_frontier = [back.get(v, v) if back.get(v, v) in known else None for v in s.frontier]


__all__ = ["GRADIENT", "Graph", "Split", "split"]
