"""Schedules, clipping and accumulation: ordinary nodes of the step (ruling G13)."""

import math

import numpy as np

from ...prepared import prepare
from ...recipe import SGD, Adam
from .. import arithmetic as A
from ..case import STEPS, steps_case
from ..files import node_file
from ..networks import Line, gradients_of, targets

CATEGORY = "schedules, clipping, accumulation"
LR = 0.25


def onecycle(k, total=10, start=0.3, div=25.0, final=1e4):
    low, end = LR / div, LR / div / final
    up = start * total - 1
    if k <= up:
        return LR + (low - LR) * (1 + math.cos(math.pi * k / up)) / 2
    return end + (LR - end) * (1 + math.cos(math.pi * (k - up) / (total - 1 - up))) / 2


SCHEDULES = {
    "step": ({"kind": "step", "step_size": 3, "gamma": 0.5}, lambda k: LR * 0.5 ** (k // 3)),
    "multistep": (
        {"kind": "multistep", "milestones": [2, 7], "gamma": 0.25},
        lambda k: LR * 0.25 ** ((k >= 2) + (k >= 7)),
    ),
    "exponential": ({"kind": "exponential", "gamma": 0.75}, lambda k: LR * 0.75**k),
    "cosine": (
        {"kind": "cosine", "total_steps": 8, "min_lr": 0.03125},
        lambda k: 0.03125 + (LR - 0.03125) * (1 + math.cos(math.pi * k / 8)) / 2,
    ),
    "linear": (
        {"kind": "linear", "total_steps": 6, "start_factor": 0.25, "end_factor": 1.0},
        lambda k: LR * (0.25 + 0.75 * min(k, 6) / 6),
    ),
    "polynomial": ({"kind": "polynomial", "total_steps": 8, "power": 2}, lambda k: LR * (1 - min(k, 8) / 8) ** 2),
    "onecycle": ({"kind": "onecycle", "total_steps": 10}, onecycle),
    "warmup": ({"kind": "constant", "warmup_steps": 4}, lambda k: LR * min(1.0, (k + 1) / 5)),
    "warmup_exponential": (
        {"kind": "exponential", "gamma": 0.5, "warmup_steps": 3},
        lambda k: LR * (k + 1) / 4 if k < 3 else LR * 0.5 ** (k - 3),
    ),
}


def feeds(net):
    return [net.data(k) | {"label": targets(k, (4, 1))} for k in range(STEPS)]


def slopes(net, s, f):
    return gradients_of(
        lambda p: A.square(net.forward(p, f) - f["label"]).mean(), {n: s[n] for n in net.shapes}, list(net.shapes)
    )


def file(net, **recipe):
    return prepare(node_file(net.text, initializers=net.state()), loss="mse", **recipe).proto()


def schedules():
    net = Line()
    for name, (schedule, rate) in SCHEDULES.items():

        def step(s, f, k, rate=rate):
            loss, g = slopes(net, s, f)
            return {"loss": loss}, {n: (A.value(s[n]) - rate(k) * A.value(g[n])).a for n in net.shapes}

        yield steps_case(
            f"schedule_{name}",
            CATEGORY,
            f"learning rate over 10 steps: {schedule}",
            file(net, optimizer=SGD(lr=LR), schedule=schedule),
            step,
            net.state(),
            feeds(net),
            rule="G13",
        )


def clipping():
    net = Line()

    def clipped(how):
        def step(s, f, k):
            loss, g = slopes(net, s, f)
            g = how({n: A.value(v) for n, v in g.items()})
            return {"loss": loss}, {n: (A.value(s[n]) - LR * g[n]).a for n in net.shapes}

        return step

    def by_value(g):
        return {n: A.minimum(A.maximum(v, -0.25 + 0 * v.a), 0.25 + 0 * v.a) for n, v in g.items()}

    def by_norm(limit):
        def how(g):
            norm = A.sqrt(sum((A.square(v).sum() for v in g.values()), A.value(0.0)))
            factor = A.minimum(1.0, limit / (norm + 1e-6))
            return {n: v * factor for n, v in g.items()}

        return how

    for name, recipe, how in (
        ("value", {"clip_value": 0.25}, by_value),
        ("norm", {"clip_norm": 0.5}, by_norm(0.5)),
        ("norm_not_reached", {"clip_norm": 1000.0}, by_norm(1000.0)),
    ):
        yield steps_case(
            f"clip_{name}",
            CATEGORY,
            f"gradients clipped: {recipe}",
            file(net, optimizer=SGD(lr=LR), **recipe),
            clipped(how),
            net.state(),
            feeds(net),
            rule="G13",
        )


def accumulation():
    net = Line()
    for name, n, adam in (("2", 2, False), ("3", 3, False), ("2_adam", 2, True)):
        o = Adam(lr=0.0625, betas=(0.875, 0.9375), eps=2.0**-10) if adam else SGD(lr=LR)
        kept = {}

        def step(s, f, k, n=n, adam=adam, o=o, kept=kept):
            if k == 0:
                kept.clear()
            loss, g = slopes(net, s, f)
            new = {p: s[p] for p in net.shapes}
            for p in net.shapes:
                kept[p] = kept.get(p, 0.0) + A.value(g[p]) / n
                if (k + 1) % n == 0:
                    new[p] = (
                        adam_update(o, kept, p, A.value(s[p]), (k + 1) // n) if adam else A.value(s[p]) - LR * kept[p]
                    ).a
                    kept[p] = 0.0
            return {"loss": loss}, new

        yield steps_case(
            f"accumulate_{name}",
            CATEGORY,
            f"the mean gradient of {n} steps, an update every {n} steps",
            file(net, optimizer=o, accumulate=n),
            step,
            net.state(),
            feeds(net),
            rule="G13",
        )
    yield both()


def adam_update(o, kept, p, x, t):
    g, (b1, b2) = kept[p], o.betas
    m = kept[p + ".m"] = b1 * kept.get(p + ".m", 0.0) + (1 - b1) * g
    v = kept[p + ".v"] = b2 * kept.get(p + ".v", 0.0) + (1 - b2) * (g * g)
    return x - (o.lr / (1 - b1**t)) * m / (A.sqrt(v) / np.sqrt(1 - b2**t) + o.eps)


def both():
    """A schedule counts updates, not steps."""
    net = Line()
    kept = {}

    def step(s, f, k):
        if k % 2 == 0:
            kept.clear()
        loss, g = slopes(net, s, f)
        new = {p: s[p] for p in net.shapes}
        for p in net.shapes:
            kept[p] = kept.get(p, 0.0) + A.value(g[p]) / 2
            if k % 2:
                new[p] = (A.value(s[p]) - LR * 0.5 ** (k // 2) * kept[p]).a
        return {"loss": loss}, new

    return steps_case(
        "accumulate_schedule",
        CATEGORY,
        "with accumulation a schedule counts updates",
        file(net, optimizer=SGD(lr=LR), accumulate=2, schedule={"kind": "exponential", "gamma": 0.5}),
        step,
        net.state(),
        feeds(net),
        rule="G13",
    )


def cases():
    yield from schedules()
    yield from clipping()
    yield from accumulation()
