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

from .to_clock import decimal

_CHECKED = 400  # steps that a class of torch must agree on with the file
_LAST_REPLAY = 200_000


class GraphLR(LRScheduler):
    """Evaluates the schedule that stands in the file, whatever its form."""

    def __init__(self, optimizer, clock, rates, betas, done):
        self.clock, self.rates, self.betas = clock, list(rates), list(betas)
        self.at, self.scalars = 0, {k: v.clone() for k, v in clock.start.items()}
        super().__init__(optimizer)
        self.last_epoch, self._step_count, self.at = done, done + 1, done

    def _values(self):
        return dict(zip(self.clock.watched, self.clock.now(self.scalars)))

    def get_lr(self):
        while self.at < self.last_epoch:
            self.scalars = self.clock.advance(self.scalars)
            self.at += 1
        values = self._values()
        for group, beta in zip(self.optimizer.param_groups, self.betas):
            if beta:
                if "betas" in group:
                    group["betas"] = (values[beta], group["betas"][1])
                else:
                    group["momentum"] = values[beta]
        return [values[r] if r else g["lr"] for r, g in zip(self.rates, self.optimizer.param_groups)]

    def state_dict(self):
        hidden = ("optimizer", "clock", "rates", "betas")
        return {k: dict(v) if k == "scalars" else v for k, v in self.__dict__.items() if k not in hidden}


def build_scheduler(built, info):
    """info: what from_torch wrote about the scheduler, or None. None when the rates never change."""
    clock = built.clock
    if clock is None or not built.rates:
        return None
    watched = [r for r, _, _ in built.rates]
    if not any(watched):  # Rprop reads no rate
        return _declared(built.optimizer, info, built.done)
    if not _moves(clock, watched, built.betas):
        return None
    want = [[dict(zip(clock.watched, row)).get(r) for r in watched] for row in clock.series(_CHECKED)]
    for make in (lambda o: _declared(o, info, built.done), lambda o: _recognised(o, clock, want, built)):
        made = _verified(make, built.optimizer, want)
        if made is not None:
            return made
    return GraphLR(built.optimizer, clock, watched, built.betas, built.done)


def _moves(clock, watched, betas):
    """Can the rate change at all? Counters alone do not make a schedule."""
    names = [n for n in (*watched, *betas) if n]
    first = dict(zip(clock.watched, clock.now(clock.start)))
    state = dict(clock.start)
    for k in range(50):
        state = clock.advance(state)
        now = dict(zip(clock.watched, clock.now(state)))
        if any(now[n] != first[n] for n in names):
            return True
    floating = [k for k, v in clock.start.items() if v.dtype.is_floating_point]
    return bool(floating)  # a rate that is assigned but stays for long


def _dummy(optimizer):
    """An optimizer with the same groups over other tensors, to try a scheduler on."""
    groups = [{**{k: copy.copy(v) for k, v in g.items() if k != "params"}, "params": [torch.nn.Parameter(torch.zeros(1))]}
              for g in optimizer.param_groups]
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


# ---- forms that prepare writes
def _recognised(optimizer, clock, want, built):
    if built.done > _LAST_REPLAY or any(built.betas) or any(r is None for r, _, _ in built.rates):
        return None
    form = _form(clock, built)
    return None if form is None else _replayed(optimizer, built.done, form)


def _replayed(optimizer, done, form):
    base, make = form
    for g, rate in zip(optimizer.param_groups, base):
        g["lr"] = rate
        g.pop("initial_lr", None)
    scheduler = make(optimizer)
    optimizer._opt_called = True
    for _ in range(done):
        scheduler.step()
    return scheduler


def _form(clock, built):
    """([rate before the first step per group], maker), by trying the forms on the file's own numbers."""
    series = _Series(clock, built)
    if not series.usable:
        return None
    for attempt in (_exponential, _step, _multistep, _cosine, _linear, _polynomial):
        form = attempt(series, series.constants, 0)
        if form is not None:
            return [series.at(0) * f for f in series.factors], form[1]
    return _warm_up(series)


class _Series:
    """The rate as a function of the number of finished steps, from the first."""

    def __init__(self, clock, built):
        own = [(r, v, f) for r, v, f in built.rates]
        self.factors = [f / own[0][2] for _, _, f in own]
        self.clock, self.rate = clock, own[0][0]
        self.usable = built.done == 0 or self._rewind(built.done)
        self.start = self.clock.start if built.done == 0 else self.rewound if self.usable else None
        self.cache, self.state = [], None if self.start is None else dict(self.start)
        self.constants = _constants(clock)
        self.exact = built.done > 0  # before the first step the rate has the file's rounding

    def _rewind(self, done):
        """The state at the first step: counters back, everything else follows after one step."""
        state = {k: v.clone() for k, v in self.clock.start.items()}
        counters = [k for k, v in state.items() if not v.dtype.is_floating_point]
        if len(counters) != 1:
            return False
        state[counters[0]] = state[counters[0]] - done - 1  # the step before the first sets the rate
        self.rewound = self.clock.advance(state)
        # a schedule that is a function of the counter gives today's rate again
        now = self.rewound
        for _ in range(min(done, 3)):
            now = self.clock.advance(now)
        direct = {k: v.clone() for k, v in self.rewound.items()}
        direct[counters[0]] = direct[counters[0]] + done - 1
        again = self.clock.advance(direct) if done else self.rewound
        return all(math.isclose(float(again[k]), float(v), rel_tol=1e-6, abs_tol=1e-12) for k, v in self.clock.start.items())

    def at(self, k):
        while len(self.cache) <= k:
            rate = dict(zip(self.clock.watched, self.clock.now(self.state)))[self.rate]
            self.cache.append(rate if self.cache or self.exact else decimal(rate))
            self.state = self.clock.advance(self.state)
        return self.cache[k]

    def fits(self, f, first=0, steps=120):
        return all(math.isclose(self.at(first + k), f(k), rel_tol=2e-6, abs_tol=1e-12) for k in range(steps))


def _constants(clock):
    """Numbers that stand in the schedule: what sizes of periods and factors are made of."""
    found = []
    for t in (*clock._advance.tensors.values(), *clock._advance.folded):
        if t.numel() == 1 and t.dtype.is_floating_point:
            found.append(float(t))
    return sorted(set(found))


def _whole(constants):
    return [int(c) for c in constants if c == int(c) and 1 <= c < 1e9]


def _exponential(s, constants, w):
    base, gamma = s.at(w), s.at(w + 1) / s.at(w)
    if gamma == 1:
        return None
    for g in [c for c in constants if math.isclose(c, gamma, rel_tol=1e-6)]:
        if s.fits(lambda k: base * g ** k, w):
            return None, lambda o: lr_scheduler.ExponentialLR(o, g)
    return None


def _step(s, constants, w):
    base = s.at(w)
    for size in _whole(constants):
        if size > 100_000 or s.at(w + size) == base:
            continue
        ratio = s.at(w + size) / base
        for g in [c for c in constants if math.isclose(c, ratio, rel_tol=1e-6)]:
            if s.fits(lambda k: base * g ** (k // size), w, min(3 * size + 5, 2000)):
                return None, lambda o: lr_scheduler.StepLR(o, size, g)
    return None


def _multistep(s, constants, w):
    base = s.at(w)
    marks = sorted(m for m in _whole(constants) if m < 100_000)
    if not marks:
        return None
    for g in constants:
        if not 0 < g != 1:
            continue
        passed, real = 0, []
        for m in marks:
            if math.isclose(s.at(w + m), base * g ** (passed + 1), rel_tol=1e-6) and math.isclose(
                    s.at(w + m - 1), base * g ** passed, rel_tol=1e-6):
                passed += 1
                real.append(m)
        if real and s.fits(lambda k: base * g ** sum(k >= m for m in real), w, min(real[-1] + 50, 5000)):
            return None, lambda o: lr_scheduler.MultiStepLR(o, real, g)
    return None


def _low(constants, base):
    return [0.0] + [c for c in constants if 0 <= c < base]


def _cosine(s, constants, w):
    base = s.at(w)
    for total in _whole(constants):
        for low in _low(constants, base):
            if s.fits(lambda k: low + (base - low) * (1 + math.cos(math.pi * k / total)) / 2, w, 30) and s.fits(
                    lambda k: low + (base - low) * (1 + math.cos(math.pi * k / total)) / 2, w, min(total + 10, 5000)):
                return None, lambda o: lr_scheduler.CosineAnnealingLR(o, total, low)
    return None


def _linear(s, constants, w):
    first = s.at(w)
    for total in _whole(constants):
        if total > 100_000:
            continue
        last = s.at(w + total)
        if not s.fits(lambda k: first + (last - first) * min(k, total) / total, w, min(total + 10, 3000)) or first == last:
            continue
        for base in [c for c in constants if c > 0]:
            start, end = first / base, last / base
            if 0 < start <= 1 and 0 <= end <= 1 and max(start, end) == 1:
                a, b = decimal(start), decimal(end)
                return base, lambda o: _linear_from(o, base / first, a, b, total)
    return None


def _linear_from(optimizer, factor, start, end, total):
    for g in optimizer.param_groups:
        g["lr"] = g["lr"] * factor
    return lr_scheduler.LinearLR(optimizer, start, end, total)


def _polynomial(s, constants, w):
    base = s.at(w)
    for total in _whole(constants):
        for power in [c for c in constants if 0 < c <= 20]:
            if s.fits(lambda k: base * (1 - min(k, total) / total) ** power, w, 30) and s.fits(
                    lambda k: base * (1 - min(k, total) / total) ** power, w, min(total + 10, 5000)):
                return None, lambda o: lr_scheduler.PolynomialLR(o, total, power)
    return None


def _warm_up(s):
    """A line up to the w-th step, then one of the forms."""
    for w in [m for m in _whole(s.constants) if m < 100_000]:
        first, top = s.at(0), s.at(w)
        if not first < top or not s.fits(lambda k: first + (top - first) * k / w, 0, w):
            continue
        for attempt in (_cosine, _exponential, _step, _multistep, _polynomial, _linear):
            form = attempt(s, s.constants, w)
            if form is None or form[0] not in (None, top):
                continue
            inner, start = form[1], decimal(first / top)
            base = [top * f for f in s.factors]
            return base, lambda o: lr_scheduler.SequentialLR(
                o, [lr_scheduler.LinearLR(o, start, 1.0, w), inner(o)], [w])
    return None
