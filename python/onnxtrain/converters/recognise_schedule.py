"""Which of the field's schedules a file's learning rate follows: found by trying them on the file's own numbers.

`series.at(k)` is the learning rate of step k, `series.numbers` are the numbers that stand in the file's formulas:
periods and factors are among them.
"""

import math
from dataclasses import dataclass, field

_LONGEST = 100_000  # steps of a period that are followed


@dataclass(frozen=True)
class Form:
    """A schedule by name with its settings, as in converters/schedules.py; `warm_up` steps of a line come before it."""

    name: str
    settings: dict
    base: float  # the learning rate that the settings refer to
    warm_up: int = 0
    start: float = field(default=1.0)  # of the line, as a factor of base


def recognise(series):
    """A Form, or None."""
    for attempt in (_exponential, _step, _multi_step, _cosine, _linear, _polynomial):
        form = attempt(series, 0)
        if form is not None:
            return form
    return _warm_up(series)


def fits(series, f, first=0, steps=120):
    return all(math.isclose(series.at(first + k), f(k), rel_tol=2e-6, abs_tol=1e-12) for k in range(steps))


def _whole(series):
    return [int(c) for c in series.numbers if c == int(c) and 1 <= c < 1e9]


def _close_to(series, value):
    return [c for c in series.numbers if math.isclose(c, value, rel_tol=1e-6)]


def _exponential(s, w):
    base, gamma = s.at(w), s.at(w + 1) / s.at(w)
    if gamma == 1:
        return None
    for g in _close_to(s, gamma):
        if fits(s, lambda k, g=g: base * g ** k, w):
            return Form("exponential", {"gamma": g}, base)
    return None


def _step(s, w):
    base = s.at(w)
    for size in _whole(s):
        if size > _LONGEST or s.at(w + size) == base:
            continue
        for g in _close_to(s, s.at(w + size) / base):
            if fits(s, lambda k, g=g, size=size: base * g ** (k // size), w, min(3 * size + 5, 2000)):
                return Form("step", {"size": size, "gamma": g}, base)
    return None


def _multi_step(s, w):
    base = s.at(w)
    marks = sorted(m for m in _whole(s) if m < _LONGEST)
    if not marks:
        return None
    for g in s.numbers:
        if not 0 < g != 1:
            continue
        real = []
        for m in marks:
            down = math.isclose(s.at(w + m), base * g ** (len(real) + 1), rel_tol=1e-6)
            if down and math.isclose(s.at(w + m - 1), base * g ** len(real), rel_tol=1e-6):
                real.append(m)
        if real and fits(s, lambda k, g=g, real=real: base * g ** sum(k >= m for m in real), w,
                         min(real[-1] + 50, 5000)):
            return Form("multi_step", {"milestones": real, "gamma": g}, base)
    return None


def _cosine(s, w):
    base = s.at(w)
    for steps in _whole(s):
        for low in [0.0, *(c for c in s.numbers if 0 <= c < base)]:
            def rate(k, steps=steps, low=low):
                return low + (base - low) * (1 + math.cos(math.pi * k / steps)) / 2

            if fits(s, rate, w, 30) and fits(s, rate, w, min(steps + 10, 5000)):
                return Form("cosine", {"steps": steps, "lowest": low}, base)
    return None


def _linear(s, w):
    first = s.at(w)
    for steps in _whole(s):
        if steps > _LONGEST:
            continue
        last = s.at(w + steps)

        def rate(k, steps=steps, last=last):
            return first + (last - first) * min(k, steps) / steps

        if first == last or not fits(s, rate, w, min(steps + 10, 3000)):
            continue
        for base in [c for c in s.numbers if c > 0]:
            start, end = first / base, last / base
            if 0 < start <= 1 and 0 <= end <= 1 and max(start, end) == 1:
                return Form("linear", {"start": start, "end": end, "steps": steps}, base)
    return None


def _polynomial(s, w):
    base = s.at(w)
    for steps in _whole(s):
        for exponent in [c for c in s.numbers if 0 < c <= 20]:
            def rate(k, steps=steps, exponent=exponent):
                return base * (1 - min(k, steps) / steps) ** exponent

            if fits(s, rate, w, 30) and fits(s, rate, w, min(steps + 10, 5000)):
                return Form("polynomial", {"steps": steps, "exponent": exponent}, base)
    return None


def _warm_up(s):
    """A line up to the w-th step, then one of the forms."""
    for w in [m for m in _whole(s) if m < _LONGEST]:
        first, top = s.at(0), s.at(w)
        if not first < top or not fits(s, lambda k, w=w, a=first, b=top: a + (b - a) * k / w, 0, w):
            continue
        for attempt in (_cosine, _exponential, _step, _multi_step, _polynomial, _linear):
            form = attempt(s, w)
            if form is not None and form.base == top:
                return Form(form.name, form.settings, top, w, first / top)
    return None
