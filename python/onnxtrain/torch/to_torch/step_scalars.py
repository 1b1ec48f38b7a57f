"""The scalars that a step reads and advances by itself: counters, learning rates, momenta of a cycle.

StepScalars evaluates them for any number of steps ahead, whatever the form of the schedule in the file is.
"""

import numpy as np
import torch

from ...errors import Error
from ...graph import needed, reads
from .program import Program


class StepScalars:
    """now(state) -> the watched values of the next step; advance(state) -> the state after it."""

    def __init__(self, watched, state, now, advance):
        self.watched, self.start, self._now, self._advance = watched, state, now, advance

    def now(self, state):
        return [float(v) for v in self._now(state)]

    def by_name(self, state):
        """{watched value: number} of the next step."""
        return dict(zip(self.watched, self.now(state)))

    def advance(self, state):
        return dict(zip(self.start, self._advance(state)))

    def series(self, steps):
        """The watched values of the next `steps` steps: a list of {value: number}."""
        out, state = [], dict(self.start)
        for k in range(steps):
            out.append(self.by_name(state))
            state = self.advance(state) if k + 1 < steps else state
        return out

    def numbers(self):
        """Floating-point numbers that stand in the formulas, sorted."""
        tensors = (*self._advance.tensors.values(), *self._advance.folded)
        return sorted({float(t) for t in tensors if t.numel() == 1 and t.dtype.is_floating_point})


def find_step_scalars(section, main, watched, gradient_values):
    """StepScalars for the named values, or None when they depend on gradients or data."""
    algorithm, update = section.algorithm, section.update
    stored = {**main.constants, **algorithm.constants}
    names, todo, done = [], list(watched), set()
    while todo:
        value = todo.pop()
        if value in done:
            continue
        done.add(value)
        leaves = leaves_of(algorithm.nodes, value)
        if leaves & gradient_values:
            return None
        for v in leaves:
            if v in update and v in stored and v not in names:
                names.append(v)
                todo.append(update[v])
    names = [n for n in algorithm.constants if n in names]
    if any(stored[n].numel() != 1 for n in names):
        return None
    fixed = {k: v for k, v in stored.items() if k not in names}
    exact = [_without_rounding(algorithm, update[n]) for n in names]
    try:
        now = Program(algorithm.nodes, names, watched, fixed)
        advance = Program(algorithm.nodes, names, exact, fixed)
        scalars = StepScalars(list(watched), {n: stored[n].clone() for n in names}, now, advance)
        scalars.advance(scalars.start)
        scalars.now(scalars.start)
    except (Error, KeyError, RuntimeError):
        return None
    return scalars


def leaves_of(nodes, value):
    """Everything that the computation of a value reads, and the value itself."""
    return {v for n in needed(nodes, [value]) for v in reads(n)} | {value}


def _without_rounding(algorithm, value):
    """A learning rate is computed in double precision and then rounded to the file's type: torch keeps the double."""
    for n in algorithm.nodes:
        if value in n.outputs and n.op == "Cast" and n.attrs.get("to") == 1:
            return n.inputs[0]
        if value in n.outputs and n.op == "Identity":
            return _without_rounding(algorithm, n.inputs[0])
    return value


def decimal(x, dtype=torch.float32):
    """The shortest decimal number that rounds to x in its stored type: 0.001, not 0.0010000000474974513."""
    return float(str(np.float32(x))) if dtype == torch.float32 else float(x)
