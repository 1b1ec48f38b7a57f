"""Learning-rate schedules as formulas over the number of finished scheduler steps.

Each class of torch.optim.lr_scheduler is one formula. The formula is evaluated in Python against a copy of the live
scheduler, step by step, before it is written as nodes: what PyTorch does decides, not our reading of it.
"""

import copy
import math
import warnings

import torch

from ..errors import ModelError

_LIST = "StepLR, MultiStepLR, ExponentialLR, ConstantLR, LinearLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, PolynomialLR, " \
        "OneCycleLR, SequentialLR"


class Expr:
    """A formula: an operation over formulas, numbers and the position k."""

    def __init__(self, op, *args):
        self.op, self.args = op, [a if isinstance(a, Expr) else Expr("number", float(a)) if op != "number" else a for a in args]

    def __add__(self, o):
        return Expr("Add", self, o)

    def __sub__(self, o):
        return Expr("Sub", self, o)

    def __mul__(self, o):
        return Expr("Mul", self, o)

    def __truediv__(self, o):
        return Expr("Div", self, o)

    def at(self, k):
        """Its value at position k."""
        if self.op == "k":
            return float(k)
        if self.op == "number":
            return self.args[0]
        if self.op == "less":
            a, b, yes, no = self.args
            return yes.at(k) if a.at(k) < b.at(k) else no.at(k)
        v = [x.at(k) for x in self.args]
        return {"Add": lambda: v[0] + v[1], "Sub": lambda: v[0] - v[1], "Mul": lambda: v[0] * v[1], "Div": lambda: v[0] / v[1],
                "Pow": lambda: v[0] ** v[1], "Min": lambda: min(v), "Max": lambda: max(v), "Cos": lambda: math.cos(v[0]),
                "Floor": lambda: math.floor(v[0]), "Log": lambda: math.log(v[0])}[self.op]()

    def emit(self, e, k):
        """Nodes in double precision; k is the position's Value. Every sub-formula is one node."""
        if self.op == "k":
            return k
        if self.op == "number":
            return e.const(self.args[0], torch.float64)
        if self.op == "less":
            a, b, yes, no = (x.emit(e, k) for x in self.args)
            return e.op("Where", e.op("Less", a, b), yes, no)
        return e.op(self.op, *[x.emit(e, k) for x in self.args])


K = Expr("k")


def number(v):
    return Expr("number", float(v))


def less(a, b, yes, no):
    return Expr("less", a, b, yes, no)


def least(a, b):
    return Expr("Min", a, b)


def power(a, b):
    return Expr("Pow", a, b)


def _step(s, base, group, k):
    return number(base) * power(s.gamma, Expr("Floor", k / s.step_size))


def _multistep(s, base, group, k):
    passed = number(0)
    for m, times in sorted(s.milestones.items()):
        passed = passed + less(k, m, 0, times)
    return number(base) * power(s.gamma, passed)


def _exponential(s, base, group, k):
    return number(base) * power(s.gamma, k)


def _constant(s, base, group, k):
    return less(k, s.total_iters, base * s.factor, base)


def _linear(s, base, group, k):
    return (number(s.start_factor) + least(k, s.total_iters) * ((s.end_factor - s.start_factor) / s.total_iters)) * base


def _cosine(s, base, group, k):
    return number(s.eta_min) + (Expr("Cos", k * (math.pi / s.T_max)) + 1) * ((base - s.eta_min) / 2)


def _restarts(s, base, group, k):
    if s.T_mult == 1:
        length = number(s.T_0)
        at = k - Expr("Floor", k / s.T_0) * s.T_0
    else:
        cycles = Expr("Floor", Expr("Log", k * ((s.T_mult - 1) / s.T_0) + 1) / math.log(s.T_mult) + 1e-9)
        length = power(s.T_mult, cycles) * s.T_0
        at = k - (power(s.T_mult, cycles) - 1) * (s.T_0 / (s.T_mult - 1))
    return number(s.eta_min) + (Expr("Cos", at / length * math.pi) + 1) * ((base - s.eta_min) / 2)


def _polynomial(s, base, group, k):
    return power(number(1) - least(k, s.total_iters) / s.total_iters, s.power) * base


def _one_cycle(s, base, group, k, what="lr"):
    at = least(k, s.total_steps - 1)
    linear = s._anneal_func_type == "linear"
    result, start = None, 0.0
    pieces = []
    for phase in s._schedule_phases:
        end = float(phase["end_step"])
        first, last = group[phase[f"start_{what}"]], group[phase[f"end_{what}"]]
        part = (at - start) / (end - start)
        piece = part * (last - first) + first if linear else (Expr("Cos", part * math.pi) + 1) * ((first - last) / 2) + last
        pieces.append((end, piece))
        start = end
    for end, piece in reversed(pieces):  # a position exactly at the end of a phase belongs to it
        result = piece if result is None else less(end, at, result, piece)
    return result


_FORMULAS = {"StepLR": _step, "MultiStepLR": _multistep, "ExponentialLR": _exponential, "ConstantLR": _constant, "LinearLR": _linear,
             "CosineAnnealingLR": _cosine, "CosineAnnealingWarmRestarts": _restarts, "PolynomialLR": _polynomial,
             "OneCycleLR": _one_cycle}


def check(scheduler, optimizer, obstacles):
    name, cls = type(scheduler).__name__, type(scheduler)
    if not cls.__module__.startswith("torch.optim.lr_scheduler"):
        obstacles.add(f"the scheduler {cls.__module__}.{cls.__qualname__} is Python code that a file cannot carry", fix=f"one of {_LIST}")
    elif name == "SequentialLR":
        for sub in scheduler._schedulers:
            check(sub, optimizer, obstacles)
    elif name in ("LambdaLR", "MultiplicativeLR"):
        obstacles.add(f"the scheduler {name} computes the rate by a Python function", fix=f"one of {_LIST}")
    elif name == "ReduceLROnPlateau":
        obstacles.add("the scheduler ReduceLROnPlateau waits for a validation result that no training step has",
                      fix="set the rate from your loop: trainer.lr = ...")
    elif name not in _FORMULAS:
        obstacles.add(f"the scheduler {name} has no form in a file", fix=f"one of {_LIST}")
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        obstacles.add("the scheduler belongs to another optimizer", fix="make it with the optimizer that is converted")


def formula(s, g, group, k=K):
    """The rate of parameter group g after k steps of the scheduler."""
    if type(s).__name__ == "SequentialLR":
        result = None
        for begin, sub in reversed(list(zip([0, *s._milestones], s._schedulers))):
            part = formula(sub, g, group, k - begin if begin else k)
            result = part if result is None else less(k, end, part, result)
            end = begin
        return result
    return _FORMULAS[type(s).__name__](s, float(s.base_lrs[g]), group, k)


def momentum_formula(s, group):
    """For OneCycleLR with cycle_momentum, else None."""
    if type(s).__name__ == "OneCycleLR" and s.cycle_momentum:
        return _one_cycle(s, None, group, K, "momentum")
    return None


def momentum_of(group):
    return float(group["betas"][0]) if "betas" in group else float(group["momentum"])


class Schedule:
    """Formulas per group, proved against the live scheduler."""

    def __init__(self, scheduler, optimizer):
        self.scheduler, self.position = scheduler, int(scheduler.last_epoch)
        self.rates, self.momenta = [], []
        for g, group in enumerate(optimizer.param_groups):
            f = formula(scheduler, g, group)
            now, said = float(group["lr"]), f.at(self.position)
            if said != 0 and abs(now / said - 1) > 1e-7:  # the rate was changed by hand: PyTorch goes on from there
                f = f * (now / said)
            self.rates.append(f)
            self.momenta.append(momentum_formula(scheduler, group))
        self._prove(optimizer)

    def _prove(self, optimizer):
        copied, groups = _detached(self.scheduler, optimizer)
        last = getattr(self.scheduler, "total_steps", None)
        count = min(_horizon(self.scheduler), 4000)
        if last is not None:
            count = max(0, min(count, last - 1 - self.position))
        for k in range(self.position, self.position + count + 1):
            for g, group in enumerate(groups):
                said, is_ = self.rates[g].at(k), float(group["lr"])
                if abs(said - is_) > 1e-9 * max(abs(is_), 1e-12) + 1e-6 * abs(is_) + 1e-15:
                    self._refuse("rate", g, k, said, is_)
                if self.momenta[g] is not None and abs(self.momenta[g].at(k) - momentum_of(group)) > 1e-6:
                    self._refuse("momentum", g, k, self.momenta[g].at(k), momentum_of(group))
            if k < self.position + count:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    copied.step()

    def _refuse(self, what, g, k, said, is_):
        name = type(self.scheduler).__name__
        raise ModelError(f"the {what} that {name} gives group {g} at its step {k} is {is_:.9g}, our formula says {said:.9g}: "
                         "the scheduler does not follow its plain rule", "OT1604",
                         "use the scheduler without further changes, or convert without it and set trainer.lr in your loop")


def _horizon(s):
    """Enough steps to see every turn of the schedule."""
    if type(s).__name__ == "SequentialLR":
        return max(s._milestones) + max(_horizon(x) for x in s._schedulers)
    numbers = [getattr(s, n, 0) or 0 for n in ("step_size", "total_iters", "T_max", "T_0", "total_steps")]
    numbers += list(getattr(s, "milestones", {}) or {})
    return int(max([20, *[2 * n + 2 for n in numbers if isinstance(n, (int, float))]]))


def _detached(scheduler, optimizer):
    """A copy of the scheduler that drives a stand-in for the optimizer."""
    stand_in = copy.copy(optimizer)
    stand_in.param_groups = [{k: copy.copy(v) for k, v in g.items() if k != "params"} | {"params": []} for g in optimizer.param_groups]
    stand_in.state = {}

    def copied(s):
        new = copy.copy(s)
        new.__dict__.update({k: copy.copy(v) for k, v in s.__dict__.items() if isinstance(v, (list, dict))})
        new.optimizer = stand_in
        if hasattr(s, "_schedulers"):
            new._schedulers = [copied(x) for x in s._schedulers]
        return new

    return copied(scheduler), stand_in.param_groups


def metadata(schedule, step):
    s = schedule.scheduler

    def plain(v):
        if isinstance(v, dict):
            return {str(k): plain(x) for k, x in v.items()}
        if isinstance(v, (list, tuple)):
            return [plain(x) for x in v]
        return v if isinstance(v, (bool, int, float, str, type(None))) else None

    def describe(x):
        cls = type(x)
        kept = {k: plain(v) for k, v in x.__dict__.items() if k not in ("optimizer", "_schedulers") and not callable(v)}
        made = {"class": f"{cls.__module__}.{cls.__qualname__}", "state": kept}
        if hasattr(x, "_schedulers"):
            made["schedulers"] = [describe(y) for y in x._schedulers]
        return made

    return {**describe(s), "step": step}
