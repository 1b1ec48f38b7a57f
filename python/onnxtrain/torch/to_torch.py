"""`to_torch`: a model file (or a running Trainer) as a PyTorch module, loss, optimizer and scheduler."""

from dataclasses import replace

import torch

from ..errors import UsageError
from ..model import as_model
from ..trainer import Trainer
from .to_batchnorm import use_native
from .to_file import read_model
from .to_loss import OnnxLoss
from .to_module import Form, OnnxModule, assign
from .to_names import names_of
from .to_optimizer import build_optimizer
from .to_program import refuse
from .to_schedule import build_scheduler
from .to_split import split
from .to_store import store


class TorchSection:
    """One training section: `.loss`, `.optimizer`, `.scheduler` (None where the file has none)."""

    def __init__(self, module, loss, step, update, inputs, built, scheduler):
        self.module, self.loss = module, loss
        self._step, self._update, self._inputs, self.built = step, update, inputs, built
        self.optimizer = None if built is None else built.optimizer
        self.scheduler = scheduler

    def compute(self, feeds):
        """The loss in training form on {name: tensor}, inputs and targets together; buffers are updated."""
        device = self.module.device
        given = {k: torch.as_tensor(v).to(device) for k, v in feeds.items()}
        missing = [n for n in self._inputs if n not in given]
        if missing:
            raise UsageError(f"'{missing[0]}' is missing", "OT1721", f"a step needs {', '.join(self._inputs)}")
        loss, *values = self._step(self.module, given)
        assign(self.module, self._update, values)
        return loss

    def step(self, feeds):
        """One whole step as the file defines it; the loss before it, as a float."""
        self.optimizer.zero_grad()
        loss = self.compute(feeds)
        loss.backward()
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return float(loss.detach())


class TorchTraining:
    """What `to_torch` returns. `.module`, `.loss`, `.optimizer`, `.scheduler` are the first training section's;
    `.sections` has all of them; `.step(feeds)` runs one step as the file defines it; `.model()` goes back to ONNX."""

    def __init__(self, module, sections, model):
        self.module, self.sections, self._model = module, sections, model
        first = sections[0] if sections else None
        self.loss = first.loss if first else None
        self.optimizer = first.optimizer if first else None
        self.scheduler = first.scheduler if first else None

    def step(self, feeds, which=None):
        """One step of all training sections in order (the last loss), or of section `which`."""
        if not self.sections:
            raise UsageError("this model carries no training", "OT1724", "train = ot.prepare(model, loss=..., optimizer=...)")
        chosen = self.sections if which is None else [self.sections[which]]
        return [s.step(feeds) for s in chosen][-1]

    def model(self):
        """The file with the state that module, optimizers and schedulers have now, as an ot.Model."""
        return store(self._model, self)


def to_torch(model):
    """A model (ot.Model, path, bytes) or a Trainer -> TorchTraining."""
    source_model = model.model() if isinstance(model, Trainer) else as_model(model)
    source = read_model(source_model)
    splits = [split(source, k) for k in range(len(source.sections))]
    names = names_of(source, splits)
    module = _module(source, names)
    problems = []
    constants = {k: v for k, v in source.main.constants.items() if not module.has(k)}
    module._eval = _eval_form(module, source, splits, constants, problems)
    parts = []
    for s, section in zip(splits, source.sections):
        fixed = {**constants, **{k: v for k, v in section.algorithm.constants.items() if not module.has(k)}}
        use_native(s, {b: module.tensor(b) for b in names.buffers}, fixed)
        parts.append(_section_forms(module, source, section, s, fixed, problems))
    if not splits:
        module._train = _plain_training(module, source, names, constants, problems)
    refuse(problems)
    sections = []
    for (loss, step, update, inputs), s, section in zip(parts, splits, source.sections):
        built = build_optimizer(module, source, section, s, names)
        info = (names.info or {}).get("scheduler")
        sections.append(TorchSection(module, loss, step, update, inputs, built,
                                     None if built is None else build_scheduler(built, info)))
    return TorchTraining(module, sections, source_model)


def _module(source, names):
    module = OnnxModule(source.main.inputs, source.main.outputs)
    stored = dict(source.main.constants)
    for s in source.sections:
        stored.update({k: v for k, v in s.algorithm.constants.items() if k in names.parameters})
    for n in names.parameters:
        module.add_tensor(n, stored[n], True, n in names.trained)
    for n in names.buffers:
        module.add_tensor(n, stored[n], False, persistent=n not in names.temporary)
    for n, stored_name in names.ties.items():
        if module.has(stored_name):
            module.tie(n, stored_name)
    return module


def _form(module, nodes, inputs, outputs, inner, keys, update, constants, problems):
    program, places = module.program(nodes, inputs, [*outputs, *inner, *update.values()], constants, problems)
    return Form(module.adopt(program, places), len(outputs), keys, list(update))


def _eval_form(module, source, splits, constants, problems):
    """Outputs, and what losses read of the inside in inference form."""
    inner = {}
    for s in splits:
        for name, there in zip(s.frontier, s.eval_frontier):
            if there is not None and name not in s.outputs:
                inner[name] = there
    return _form(module, source.main.nodes, source.main.inputs, source.main.outputs, list(inner.values()), list(inner), {},
                 constants, problems)


def _section_forms(module, source, section, s, fixed, problems):
    main = source.main
    inner = [v for v in s.frontier if v not in s.outputs]
    module._train.append(_form(module, s.nodes, main.inputs, s.outputs, inner, inner, s.forward_update, fixed, problems))
    if s.loss is None:
        return None, None, [], []
    program, places = module.program(s.loss_nodes, [*s.frontier, *s.targets], [s.loss], fixed, problems)
    loss = OnnxLoss(module, module.adopt(program, places), s, main.outputs)
    inputs = list(dict.fromkeys([*main.inputs, *section.algorithm.inputs]))
    program, places = module.program(s.nodes, inputs, [s.loss, *s.forward_update.values()], fixed, problems)
    used = [i for i in inputs if program.reads(i)]
    return loss, module.adopt(program, places), list(s.forward_update), used


def _plain_training(module, source, names, constants, problems):
    """A file without training: live Dropout, and batch statistics by torch's rule."""
    nodes, live = [], False
    for n in source.main.nodes:
        if n.kind == ("", "Dropout"):
            n, live = replace(n, attrs={**n.attrs, "_training": 1}), True
        elif n.kind == ("", "BatchNormalization") and set(n.inputs[3:5]) <= set(names.buffers) and len(n.outputs) == 1:
            n, live = replace(n, op="BatchNorm", domain="torch", inputs=n.inputs[:5]), True
        nodes.append(n)
    if not live:
        return []
    return [_form(module, nodes, source.main.inputs, source.main.outputs, [], [], {}, constants, problems)]


