"""`to_torch`: a model file (or a running Trainer) as a PyTorch module, loss, optimizer and scheduler.

Stages: graphs (source.py) -> training sections taken apart (converters/training_section.py) -> names of parameters and
buffers (names.py) -> module with its forms (module.py, loss.py) -> optimizer and scheduler of each section.
"""

from dataclasses import dataclass, replace

from ...converters.training_section import take_apart
from ...model import as_model
from ...trainer import Trainer
from .batchnorm import use_native
from .loss import OnnxLoss
from .module import Form, OnnxModule
from .names import names_of
from .ops.table import TORCH
from .optimizer import build_optimizer
from .program import refuse
from .schedule import build_scheduler
from .source import Source
from .training import TorchSection, TorchTraining


@dataclass(frozen=True)
class SectionForms:
    """How a training section runs: the loss for the user's loop, and a whole step from inputs and targets to it."""

    loss: object = None
    step: object = None
    update: tuple = ()  # buffers that a step assigns
    inputs: tuple = ()  # inputs and targets that a step reads


def to_torch(model):
    """A model (ot.Model, path, bytes) or a Trainer -> TorchTraining."""
    model = model.model() if isinstance(model, Trainer) else as_model(model)
    source = Source(model)
    graphs = source.graphs
    parts = [take_apart(graphs, k) for k in range(len(graphs.sections))]
    names = names_of(graphs, parts)
    module = _module(graphs, names)
    parts, forms = _forms(module, graphs, parts, names)
    sections = []
    for k, (f, p) in enumerate(zip(forms, parts)):
        built = build_optimizer(module, source, k, p, names)
        scheduler = None if built is None else build_scheduler(built, (names.info or {}).get("scheduler"))
        sections.append(TorchSection(module, f, built, scheduler))
    return TorchTraining(module, sections, model)


def _module(graphs, names):
    module = OnnxModule(graphs.main.inputs, graphs.main.outputs)
    stored = dict(graphs.main.constants)
    for s in graphs.sections:
        stored.update({k: v for k, v in s.algorithm.constants.items() if k in names.parameters})
    for n in names.parameters:
        module.add_tensor(n, stored[n], True, n in names.trained)
    for n in names.buffers:
        module.add_tensor(n, stored[n], False, persistent=n not in names.temporary)
    for n, stored_name in names.ties.items():
        if module.has(stored_name):
            module.tie(n, stored_name)
    return module


def _forms(module, graphs, parts, names):
    """Gives the module its forms; (TrainingParts as they run in torch, SectionForms) per section. Nodes that torch
    cannot run are named all at once."""
    problems = []
    constants = {k: v for k, v in graphs.main.constants.items() if not module.has(k)}
    module._eval = _eval_form(module, graphs.main, parts, constants, problems)
    ready, forms = [], []
    for p, section in zip(parts, graphs.sections):
        fixed = {**constants, **{k: v for k, v in section.algorithm.constants.items() if not module.has(k)}}
        p = use_native(p, {b: module.tensor(b) for b in names.buffers}, fixed)
        inner = [v for v in p.loss.reads if v not in p.outputs]
        module._train.append(_form(module, p.nodes, graphs.main.inputs, p.outputs, dict(zip(inner, inner)),
                                   p.forward_update, fixed, problems))
        ready.append(p)
        forms.append(_section_forms(module, graphs.main, section, p, fixed, problems))
    if not parts:
        module._train = _plain_training(module, graphs.main, names, constants, problems)
    refuse(problems)
    return ready, forms


def _form(module, nodes, inputs, outputs, inner, update, constants, problems):
    """inner: {name for the loss: value}, update: {state variable: value}."""
    results = [*outputs, *inner.values(), *update.values()]
    program, places = module.program(nodes, inputs, results, constants, problems)
    return Form(module.adopt(program, places), len(outputs), list(inner), list(update))


def _eval_form(module, main, parts, constants, problems):
    """Outputs, and what losses read of the inside in inference form."""
    inner = {name: there for p in parts for name, there in zip(p.loss.reads, p.loss.reads_in_eval)
             if there is not None and name not in p.outputs}
    return _form(module, main.nodes, main.inputs, main.outputs, inner, {}, constants, problems)


def _section_forms(module, main, section, p, fixed, problems):
    if p.loss_value is None:
        return SectionForms()
    program, places = module.program(p.loss.nodes, [*p.loss.reads, *p.loss.targets], [p.loss_value], fixed, problems)
    loss = OnnxLoss(module, module.adopt(program, places), p, main.outputs)
    inputs = list(dict.fromkeys([*main.inputs, *section.algorithm.inputs]))
    program, places = module.program(p.nodes, inputs, [p.loss_value, *p.forward_update.values()], fixed, problems)
    used = tuple(i for i in inputs if program.reads(i))
    return SectionForms(loss, module.adopt(program, places), tuple(p.forward_update), used)


def _plain_training(module, main, names, constants, problems):
    """A file without training: live Dropout, and batch statistics by torch's rule."""
    nodes, live = [], False
    for n in main.nodes:
        if n.kind == ("", "Dropout"):
            n, live = replace(n, attrs={**n.attrs, "_training": 1}), True
        elif n.kind == ("", "BatchNormalization") and set(n.inputs[3:5]) <= set(names.buffers) and len(n.outputs) == 1:
            n, live = replace(n, op="BatchNorm", domain=TORCH, inputs=n.inputs[:5]), True
        nodes.append(n)
    return [_form(module, nodes, main.inputs, main.outputs, {}, {}, constants, problems)] if live else []
