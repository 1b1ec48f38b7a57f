"""PyTorch's learning-rate schedulers as formulas (converters/schedules.py).

Each class of torch.optim.lr_scheduler is one formula. It is evaluated in Python against a copy of the live scheduler,
step by step, before it is written as nodes: what PyTorch does decides, not our reading of it.
"""

import copy
import warnings
from dataclasses import dataclass

from ...converters import schedules
from ...converters.schedules import K
from ...errors import ModelError

_LIST = "StepLR, MultiStepLR, ExponentialLR, ConstantLR, LinearLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, " \
        "PolynomialLR, OneCycleLR, SequentialLR"


def _one_cycle(s, group, k, what="lr"):
    pieces = [(float(p["end_step"]), group[p[f"start_{what}"]], group[p[f"end_{what}"]]) for p in s._schedule_phases]
    return schedules.phases(k, s.total_steps - 1, pieces, s._anneal_func_type == "linear")


_FORMULAS = {  # class -> formula of (scheduler, learning rate before the first step, parameter group, position)
    "StepLR": lambda s, base, group, k: schedules.step(base, k, s.step_size, s.gamma),
    "MultiStepLR": lambda s, base, group, k: schedules.multi_step(base, k, s.milestones, s.gamma),
    "ExponentialLR": lambda s, base, group, k: schedules.exponential(base, k, s.gamma),
    "ConstantLR": lambda s, base, group, k: schedules.constant(base, k, s.factor, s.total_iters),
    "LinearLR": lambda s, base, group, k: schedules.linear(base, k, s.start_factor, s.end_factor, s.total_iters),
    "CosineAnnealingLR": lambda s, base, group, k: schedules.cosine(base, k, s.T_max, s.eta_min),
    "CosineAnnealingWarmRestarts": lambda s, base, group, k: schedules.cosine_restarts(base, k, s.T_0, s.T_mult,
                                                                                       s.eta_min),
    "PolynomialLR": lambda s, base, group, k: schedules.polynomial(base, k, s.total_iters, s.power),
    "OneCycleLR": lambda s, base, group, k: _one_cycle(s, group, k),
}


def check(scheduler, optimizer, obstacles):
    name, cls = type(scheduler).__name__, type(scheduler)
    if not cls.__module__.startswith("torch.optim.lr_scheduler"):
        obstacles.add(f"the scheduler {cls.__module__}.{cls.__qualname__} is Python code that a file cannot carry",
                      fix=f"one of {_LIST}")
    elif name == "SequentialLR":
        for sub in scheduler._schedulers:
            check(sub, optimizer, obstacles)
    elif name in ("LambdaLR", "MultiplicativeLR"):
        obstacles.add(f"the scheduler {name} computes the learning rate by a Python function", fix=f"one of {_LIST}")
    elif name == "ReduceLROnPlateau":
        obstacles.add("the scheduler ReduceLROnPlateau waits for a validation result that no training step has",
                      fix="set the learning rate from your loop: trainer.lr = ...")
    elif name not in _FORMULAS:
        obstacles.add(f"the scheduler {name} has no form in a file", fix=f"one of {_LIST}")
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        obstacles.add("the scheduler belongs to another optimizer", fix="make it with the optimizer that is converted")


def formula(s, g, group, k=K):
    """The learning rate of parameter group g after k steps of the scheduler."""
    if type(s).__name__ == "SequentialLR":
        parts = [(begin, lambda at, sub=sub: formula(sub, g, group, at))
                 for begin, sub in zip([0, *s._milestones], s._schedulers)]
        return schedules.sequential(k, parts)
    return _FORMULAS[type(s).__name__](s, float(s.base_lrs[g]), group, k)


def momentum_formula(s, group):
    """For OneCycleLR with cycle_momentum, else None."""
    if type(s).__name__ == "OneCycleLR" and s.cycle_momentum:
        return _one_cycle(s, group, K, "momentum")
    return None


def momentum_of(group):
    return float(group["betas"][0]) if "betas" in group else float(group["momentum"])


@dataclass(frozen=True)
class Schedule:
    """Formulas per parameter group, proved against the live scheduler."""

    scheduler: object
    position: int  # finished steps of the scheduler
    rates: list
    momenta: list  # None where the momentum stays


def schedule_of(scheduler, optimizer):
    """The Schedule of a live scheduler; refuses one that does not follow its formula."""
    position = int(scheduler.last_epoch)
    rates, momenta = [], []
    for g, group in enumerate(optimizer.param_groups):
        f = formula(scheduler, g, group)
        now, said = float(group["lr"]), f.at(position)
        if said != 0 and abs(now / said - 1) > 1e-7:  # the rate was changed by hand: PyTorch goes on from there
            f = f * (now / said)
        rates.append(f)
        momenta.append(momentum_formula(scheduler, group))
    schedule = Schedule(scheduler, position, rates, momenta)
    _prove(schedule, optimizer)
    return schedule


def _prove(schedule, optimizer):
    copied, groups = _detached(schedule.scheduler, optimizer)
    position, last = schedule.position, getattr(schedule.scheduler, "total_steps", None)
    count = min(_horizon(schedule.scheduler), 4000)
    if last is not None:
        count = max(0, min(count, last - 1 - position))
    for k in range(position, position + count + 1):
        for g, group in enumerate(groups):
            _prove_group(schedule, g, group, k)
        if k < position + count:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                copied.step()


def _prove_group(schedule, g, group, k):
    said, is_ = schedule.rates[g].at(k), float(group["lr"])
    if abs(said - is_) > 1e-9 * max(abs(is_), 1e-12) + 1e-6 * abs(is_) + 1e-15:
        _refuse(schedule, "rate", g, k, said, is_)
    momentum = schedule.momenta[g]
    if momentum is not None and abs(momentum.at(k) - momentum_of(group)) > 1e-6:
        _refuse(schedule, "momentum", g, k, momentum.at(k), momentum_of(group))


def _refuse(schedule, what, g, k, said, is_):
    name = type(schedule.scheduler).__name__
    raise ModelError(f"the {what} that {name} gives group {g} at its step {k} is {is_:.9g}, our formula says "
                     f"{said:.9g}: the scheduler does not follow its plain rule", "OT1604",
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
    stand_in.param_groups = [{k: copy.copy(v) for k, v in g.items() if k != "params"} | {"params": []}
                             for g in optimizer.param_groups]
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
    """What to_torch needs to make the scheduler again; step: the value of T at which its state was taken."""
    return {**_describe(schedule.scheduler), "step": step}


def _describe(x):
    cls = type(x)
    kept = {k: _plain(v) for k, v in x.__dict__.items() if k not in ("optimizer", "_schedulers") and not callable(v)}
    made = {"class": f"{cls.__module__}.{cls.__qualname__}", "state": kept}
    if hasattr(x, "_schedulers"):
        made["schedulers"] = [_describe(y) for y in x._schedulers]
    return made


def _plain(v):
    if isinstance(v, dict):
        return {str(k): _plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [_plain(x) for x in v]
    return v if isinstance(v, (bool, int, float, str, type(None))) else None
