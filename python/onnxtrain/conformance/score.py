"""Runs cases on a target and counts."""

import time
from dataclasses import dataclass, field

import numpy as np

from ..errors import Error
from .random_checks import failures
from .targets import NotThere

PASS, WRONG, REFUSED, LEFT_OUT = "pass", "wrong", "refused", "not applicable"


@dataclass
class Result:
    name: str
    category: str
    about: str
    rule: str
    verdict: str
    why: str = ""
    seconds: float = 0.0


@dataclass
class Score:
    target: str
    version: str = ""
    results: list = field(default_factory=list)

    def count(self, verdict):
        return sum(r.verdict == verdict for r in self.results)

    @property
    def line(self):
        asked = len(self.results) - self.count(LEFT_OUT)
        return (
            f"{self.target}: {self.count(PASS)} of {asked} pass, {self.count(WRONG)} wrong, "
            f"{self.count(REFUSED)} refused, {self.count(LEFT_OUT)} not applicable"
        )


def judge(case, target):
    """(verdict, why) of one case."""
    if case.kind == "refuse":
        return _refusal(case, target)
    try:
        why = _node(case, target) if case.kind == "node" else _steps(case, target)
    except NotThere as e:
        return LEFT_OUT, str(e).splitlines()[0]
    except Exception as e:  # noqa: BLE001  whatever a foreign runtime throws is a refusal
        return REFUSED, _said(e)
    return (WRONG, why) if why else (PASS, "")


def _said(e):
    text = e.message if isinstance(e, Error) else f"{type(e).__name__}: {e}"
    return text.strip().splitlines()[0][:300] if text.strip() else type(e).__name__


def _refusal(case, target):
    """A broken file: right is to refuse it, before the step or in it."""
    if not target.reads_files:
        return LEFT_OUT, "the library reads the file, not the engine"
    try:
        training = target.training(case.model)
        training.step(case.feeds[0])
        training.initialize()
    except NotThere as e:
        return LEFT_OUT, str(e)
    except Exception as e:  # noqa: BLE001
        return PASS, _said(e)
    return WRONG, f"the file was accepted, though it breaks {case.rule}"


def _node(case, target):
    got = target.node(case.model, case.feeds[0])
    return compare(case.expected[0], got, case.tolerances[0])


def _steps(case, target):
    training = target.training(case.model)
    initial = {}
    if case.initialized is not None:
        training.initialize()
        initial = training.state()
        why = compare(case.initialized, initial, case.initial_tolerance)
        if why:
            return f"after the initialization: {why}"
    made = []
    for k, feeds in enumerate(case.feeds):
        outputs = training.step(feeds, case.which[k] if case.which else None)
        state = training.state()
        why = compare(
            case.expected[k], state | {o: v for o, v in outputs.items() if o not in state}, case.tolerances[k]
        )
        if why:
            return f"step {k}: {why}"
        made.append((outputs, state))
    return "; ".join(failures(case, initial, made)) if case.checks else ""


def compare(expected, got, tolerances):
    """What is wrong, in words, or ""."""
    for name, want in expected.items():
        if name not in got:
            return f"'{name}' is missing"
        have = np.asarray(got[name])
        if have.shape != want.shape:
            return f"'{name}' has shape {list(have.shape)}, not {list(want.shape)}"
        if have.dtype != want.dtype:
            return f"'{name}' is {have.dtype}, not {want.dtype}"
        far = np.abs(have.astype(np.float64) - want.astype(np.float64))
        allowed = tolerances.get(name, 0.0)
        if not np.all(far <= allowed):  # NaN is not
            worst = float(np.max(far)) if np.all(np.isfinite(far)) else float("nan")
            return f"'{name}' is off by {worst:.3g}, allowed {allowed:.3g}"
    return ""


def run(cases, target, version="", progress=None):
    score = Score(target.name, version)
    for case in cases:
        start = time.perf_counter()
        verdict, why = judge(case, target)
        score.results.append(
            Result(case.name, case.category, case.about, case.rule, verdict, why, round(time.perf_counter() - start, 4))
        )
        if progress:
            progress(score.results[-1])
    return score
