"""The scalars that a step reads and advances by itself: counters, rates, momenta of a cycle.

A Clock evaluates them for any number of steps ahead, whatever the form of the schedule in the file is.
"""

import torch

from ..errors import Error
from .to_file import reads
from .to_program import Program, needed


class Clock:
    """now(state) -> the watched values of the next step; advance(state) -> the state after it."""

    def __init__(self, watched, state, now, advance):
        self.watched, self.start, self._now, self._advance = watched, state, now, advance

    @property
    def changes(self):
        return bool(self.start)

    def now(self, state):
        return [float(v) for v in self._now(state)]

    def advance(self, state):
        return dict(zip(self.start, self._advance(state)))

    def series(self, steps):
        """The watched values of the next `steps` steps: a list of lists."""
        out, state = [], dict(self.start)
        for k in range(steps):
            out.append(self.now(state))
            state = self.advance(state) if k + 1 < steps else state
        return out


def make_clock(section, main, watched, gradient_values):
    """A Clock for the named values, or None when they depend on gradients or data."""
    algorithm, update = section.algorithm, section.update
    stored = {**main.constants, **algorithm.constants}
    names, todo = [], list(watched)
    done = set()
    while todo:
        value = todo.pop()
        if value in done:
            continue
        done.add(value)
        leaves = {v for n in needed(algorithm.nodes, [value]) for v in reads(n)} | {value}
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
        clock = Clock(list(watched), {n: stored[n].clone() for n in names}, now, advance)
        clock.advance(clock.start)
        clock.now(clock.start)
    except (Error, KeyError, RuntimeError):
        return None
    return clock


def _without_rounding(algorithm, value):
    """A rate is computed in double precision and then rounded to the file's type: torch keeps the double."""
    for n in algorithm.nodes:
        if value in n.outputs and n.op == "Cast" and n.attrs.get("to") == 1:
            return n.inputs[0]
        if value in n.outputs and n.op == "Identity":
            return _without_rounding(algorithm, n.inputs[0])
    return value


def decimal(x, dtype=torch.float32):
    """The shortest decimal number that rounds to x in its stored type: 0.001, not 0.0010000000474974513."""
    import numpy as np

    return float(str(np.float32(x))) if dtype == torch.float32 else float(x)
