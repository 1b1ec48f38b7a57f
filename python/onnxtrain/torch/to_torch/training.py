"""What `to_torch` returns: module, loss, optimizer and scheduler of every training section, and the way back."""

import torch

from ...errors import UsageError
from .module import assign
from .store import store


class TorchSection:
    """One training section: `.loss`, `.optimizer`, `.scheduler` (None where the file has none)."""

    def __init__(self, module, forms, built, scheduler):
        self.module, self.loss, self.built, self.scheduler = module, forms.loss, built, scheduler
        self._forms = forms
        self.optimizer = None if built is None else built.optimizer

    @property
    def input_names(self):
        """Inputs and targets that a step needs."""
        return self._forms.inputs

    def compute(self, feeds):
        """The loss in training form on {name: tensor}, inputs and targets together; buffers are updated."""
        device = self.module.device
        given = {k: torch.as_tensor(v).to(device) for k, v in feeds.items()}
        missing = [n for n in self.input_names if n not in given]
        if missing:
            raise UsageError(f"'{missing[0]}' is missing", "OT1721", f"a step needs {', '.join(self.input_names)}")
        loss, *values = self._forms.step(self.module, given)
        assign(self.module, self._forms.update, values)
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
            raise UsageError("this model carries no training", "OT1724",
                             "train = ot.prepare(model, loss=..., optimizer=...)")
        chosen = self.sections if which is None else [self.sections[which]]
        return [s.step(feeds) for s in chosen][-1]

    def model(self):
        """The file with the state that module, optimizers and schedulers have now, as an ot.Model."""
        return store(self._model, self)
