"""A torch LR scheduler at the file's position.

torch's own class where one gives the same rates step by step (what from_torch wrote down, or a known form); otherwise
GraphLR, which evaluates the file's schedule. The scheduler counts optimizer steps: call step() after every one.
"""

import copy
import importlib
import math
import warnings

import torch
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import LRScheduler

from ...converters.recognise_schedule import recognise
from .learning_rates import learning_rates
from .optimizer import set_momentum
from .step_scalars import decimal

_CHECKED = 400  # steps that a class of torch must agree on with the file
_LAST_REPLAY = 200_000


class GraphLR(LRScheduler):
    """Evaluates the schedule that stands in the file, whatever its form."""

    def __init__(self, optimizer, step_scalars, rates, betas, done):
        self.step_scalars, self.rates, self.betas = step_scalars, list(rates), list(betas)
        self.at, self.scalars = 0, {k: v.clone() for k, v in step_scalars.start.items()}
        super().__init__(optimizer)
        self.last_epoch, self._step_count, self.at = done, done + 1, done

    def get_lr(self):
        while self.at < self.last_epoch:
            self.scalars = self.step_scalars.advance(self.scalars)
            self.at += 1
        values = self.step_scalars.by_name(self.scalars)
        for group, beta in zip(self.optimizer.param_groups, self.betas):
            if beta:
                set_momentum(group, values[beta])
        return [values[r] if r else g["lr"] for r, g in zip(self.rates, self.optimizer.param_groups)]

    def state_dict(self):
        hidden = ("optimizer", "step_scalars", "rates", "betas")
        return {k: dict(v) if k == "scalars" else v for k, v in self.__dict__.items() if k not in hidden}


def build_scheduler(built, info):
    """info: what from_torch wrote about the scheduler, or None. None when the rates never change."""
    scalars = built.scalars
    if scalars is None or not built.rates:
        return None
    watched = [r for r, _, _ in built.rates]
    if not any(watched):  # Rprop reads no rate
        return _declared(built.optimizer, info, built.done)
    if not _moves(scalars, watched, built.betas):
        return None
    want = [[row.get(r) for r in watched] for row in scalars.series(_CHECKED)]
    for make in (lambda o: _declared(o, info, built.done), lambda o: _recognised(o, built)):
        made = _verified(make, built.optimizer, want)
        if made is not None:
            return made
    return GraphLR(built.optimizer, scalars, watched, built.betas, built.done)


def _moves(scalars, watched, betas):
    """Can the learning rate change at all? Counters alone do not make a schedule."""
    names = [n for n in (*watched, *betas) if n]
    first, *later = scalars.series(51)
    if any(now[n] != first[n] for now in later for n in names):
        return True
    return any(v.dtype.is_floating_point for v in scalars.start.values())  # assigned, but stays for long


def _dummy(optimizer):
    """An optimizer with the same groups over other tensors, to try a scheduler on."""
    groups = [
        {**{k: copy.copy(v) for k, v in g.items() if k != "params"}, "params": [torch.nn.Parameter(torch.zeros(1))]}
        for g in optimizer.param_groups
    ]
    trial = torch.optim.SGD([{"params": g["params"], "lr": g["lr"]} for g in groups])
    for mine, theirs in zip(trial.param_groups, groups):
        mine.update({k: v for k, v in theirs.items() if k != "params"})
    return trial


def _verified(make, optimizer, want):
    """The scheduler, when it gives the wanted rates from here on; the optimizer is untouched otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = _dummy(optimizer)
        scheduler = make(trial)
        if scheduler is None:
            return None
        if isinstance(scheduler, lr_scheduler.OneCycleLR):  # has an end, and runs wild on it
            want = want[: max(scheduler.total_steps - scheduler.last_epoch, 1)]
        for k, row in enumerate(want):
            have = [float(g["lr"]) for g in trial.param_groups]
            if not all(b is None or math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-12) for a, b in zip(have, row)):
                return None
            if k + 1 < len(want):
                scheduler.step()
        return make(optimizer)


# ---- what from_torch wrote down
def _declared(optimizer, info, done):
    if not info:
        return None
    try:
        ahead = done - int(info.get("step", 0))
        if not 0 <= ahead <= _LAST_REPLAY:
            return None
        scheduler = _restore(optimizer, info)
        for _ in range(ahead):
            scheduler.step()
        return scheduler
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, ImportError):
        return None


def _restore(optimizer, info):
    """An object of the class with its state, without running its constructor on live rates."""
    module, _, name = info["class"].rpartition(".")
    if module.split(".")[0] != "torch":
        raise ImportError(info["class"])
    cls = getattr(importlib.import_module(module), name)
    if not (isinstance(cls, type) and issubclass(cls, LRScheduler)):
        raise TypeError(info["class"])
    scheduler = cls.__new__(cls)
    state = dict(info["state"])
    inner = info.get("schedulers")
    if inner is not None:
        scheduler._schedulers = [_restore(optimizer, s) for s in inner]
        state.pop("_schedulers", None)
    if cls is lr_scheduler.MultiStepLR:
        from collections import Counter

        m = state["milestones"]
        state["milestones"] = Counter({int(k): v for k, v in m.items()} if isinstance(m, dict) else m)
    scheduler.__dict__.update(state)
    scheduler.optimizer = optimizer
    lr_scheduler.LambdaLR(optimizer, lambda k: 1.0)  # makes the optimizer count its steps, as every scheduler does
    optimizer._opt_called = True
    rates = state.get("_last_lr")
    for k, g in enumerate(optimizer.param_groups):
        g.setdefault("initial_lr", scheduler.base_lrs[k] if hasattr(scheduler, "base_lrs") else g["lr"])
        if rates is not None:
            g["lr"] = rates[k]
    return scheduler


# ---- a class of torch that follows the file's own numbers
_CLASSES = {
    "exponential": lambda o, s: lr_scheduler.ExponentialLR(o, s["gamma"]),
    "step": lambda o, s: lr_scheduler.StepLR(o, s["size"], s["gamma"]),
    "multi_step": lambda o, s: lr_scheduler.MultiStepLR(o, s["milestones"], s["gamma"]),
    "cosine": lambda o, s: lr_scheduler.CosineAnnealingLR(o, s["steps"], s["lowest"]),
    "linear": lambda o, s: lr_scheduler.LinearLR(o, decimal(s["start"]), decimal(s["end"]), s["steps"]),
    "polynomial": lambda o, s: lr_scheduler.PolynomialLR(o, s["steps"], s["exponent"]),
}


def _recognised(optimizer, built):
    if built.done > _LAST_REPLAY or any(built.betas) or any(r is None for r, _, _ in built.rates):
        return None
    series = learning_rates(built)
    form = None if series is None else recognise(series)
    if form is None:
        return None
    for g, factor in zip(optimizer.param_groups, series.factors):
        g["lr"] = form.base * factor
        g.pop("initial_lr", None)
    if form.warm_up:
        line = lr_scheduler.LinearLR(optimizer, decimal(form.start), 1.0, form.warm_up)
        after = _CLASSES[form.name](optimizer, form.settings)
        scheduler = lr_scheduler.SequentialLR(optimizer, [line, after], [form.warm_up])
    else:
        scheduler = _CLASSES[form.name](optimizer, form.settings)
    optimizer._opt_called = True
    for _ in range(built.done):
        scheduler.step()
    return scheduler
