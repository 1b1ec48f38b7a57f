"""Learning-rate schedules as formulas over the number of finished scheduler steps.

A formula is evaluated in Python (`at`), so that a converter can prove it against the framework's own scheduler, and
written as nodes in double precision (`emit`). `e` is the converter's emitter: e.op(name, *inputs) adds a node,
e.double(number) a constant.
"""

import math


class Expr:
    """A formula: an operation over formulas, numbers and the position k."""

    def __init__(self, op, *args):
        self.op = op
        self.args = list(args) if op == "number" else [a if isinstance(a, Expr) else number(a) for a in args]

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
        return _COMPUTE[self.op](*[x.at(k) for x in self.args])

    def emit(self, e, k):
        """Nodes in double precision; k is the position's value in the graph. Every sub-formula is one node."""
        if self.op == "k":
            return k
        if self.op == "number":
            return e.double(self.args[0])
        if self.op == "less":
            a, b, yes, no = (x.emit(e, k) for x in self.args)
            return e.op("Where", e.op("Less", a, b), yes, no)
        return e.op(self.op, *[x.emit(e, k) for x in self.args])


_COMPUTE = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b,
            "Pow": lambda a, b: a ** b, "Min": min, "Cos": math.cos, "Floor": math.floor, "Log": math.log}
K = Expr("k")  # the position: finished steps of the scheduler


def number(v):
    return Expr("number", float(v))


def less(a, b, yes, no):
    return Expr("less", a, b, yes, no)


def least(a, b):
    return Expr("Min", a, b)


def power(a, b):
    return Expr("Pow", a, b)


def floor(a):
    return Expr("Floor", a)


def cos(a):
    return Expr("Cos", a)


# ---- the schedules of the field; base is the learning rate before the first step
def step(base, k, size, gamma):
    return number(base) * power(gamma, floor(k / size))


def multi_step(base, k, milestones, gamma):
    """milestones: {position: how often it counts}."""
    passed = number(0)
    for m, times in sorted(milestones.items()):
        passed = passed + less(k, m, 0, times)
    return number(base) * power(gamma, passed)


def exponential(base, k, gamma):
    return number(base) * power(gamma, k)


def constant(base, k, factor, steps):
    return less(k, steps, base * factor, base)


def linear(base, k, start, end, steps):
    return (number(start) + least(k, steps) * ((end - start) / steps)) * base


def cosine(base, k, steps, lowest):
    return number(lowest) + (cos(k * (math.pi / steps)) + 1) * ((base - lowest) / 2)


def cosine_restarts(base, k, first, factor, lowest):
    """Cycles of `first` steps, each `factor` times as long as the one before."""
    if factor == 1:
        length = number(first)
        at = k - floor(k / first) * first
    else:
        cycles = floor(Expr("Log", k * ((factor - 1) / first) + 1) / math.log(factor) + 1e-9)
        length = power(factor, cycles) * first
        at = k - (power(factor, cycles) - 1) * (first / (factor - 1))
    return number(lowest) + (cos(at / length * math.pi) + 1) * ((base - lowest) / 2)


def polynomial(base, k, steps, exponent):
    return power(number(1) - least(k, steps) / steps, exponent) * base


def phases(k, last, pieces, is_linear):
    """Phases one after the other, up to position `last`. pieces: [(end, first value, last value)]; each is a line or
    half a cosine."""
    at = least(k, last)
    made, start = [], 0.0
    for end, first, final in pieces:
        part = (at - start) / (end - start)
        made.append((end, part * (final - first) + first if is_linear
                     else (cos(part * math.pi) + 1) * ((first - final) / 2) + final))
        start = end
    result = None
    for end, piece in reversed(made):  # a position exactly at the end of a phase belongs to it
        result = piece if result is None else less(end, at, result, piece)
    return result


def sequential(k, parts):
    """[(begin, formula of the position within)] in order."""
    result, end = None, None
    for begin, part in reversed(parts):
        here = part(k - begin if begin else k)
        result = here if result is None else less(k, end, here, result)
        end = begin
    return result
