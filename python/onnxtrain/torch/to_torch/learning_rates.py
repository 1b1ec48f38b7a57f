"""The learning rate of a file as a function of the number of finished steps, from the first."""

import math

from .step_scalars import decimal


class RateSeries:
    """at(k) is the rate of the first group at step k; factors: the groups' rates over it."""

    def __init__(self, start, scalars, rate, factors, rounded):
        self.scalars, self.rate, self.factors = scalars, rate, factors
        self.numbers = scalars.numbers()
        self._rounded = rounded  # the first rate has the file's rounding
        self._known, self._state = [], dict(start)

    def at(self, k):
        while len(self._known) <= k:
            rate = self.scalars.by_name(self._state)[self.rate]
            self._known.append(decimal(rate) if self._rounded and not self._known else rate)
            self._state = self.scalars.advance(self._state)
        return self._known[k]


def learning_rates(built):
    """The RateSeries of a Built, or None when the file's position cannot be taken back to the first step."""
    start = built.scalars.start if built.done == 0 else _rewound(built.scalars, built.done)
    if start is None:
        return None
    first = built.rates[0]
    return RateSeries(start, built.scalars, first[0], [f / first[2] for _, _, f in built.rates], built.done == 0)


def _rewound(scalars, done):
    """The state at the first step: the counter back, everything else follows after one step."""
    state = {k: v.clone() for k, v in scalars.start.items()}
    counters = [k for k, v in state.items() if not v.dtype.is_floating_point]
    if len(counters) != 1:
        return None
    counter = counters[0]
    state[counter] = state[counter] - done - 1  # the step before the first sets the rate
    first = scalars.advance(state)
    # a schedule that is a function of the counter gives today's rate again
    direct = {k: v.clone() for k, v in first.items()}
    direct[counter] = direct[counter] + done - 1
    again = scalars.advance(direct)
    same = all(math.isclose(float(again[k]), float(v), rel_tol=1e-6, abs_tol=1e-12) for k, v in scalars.start.items())
    return first if same else None
