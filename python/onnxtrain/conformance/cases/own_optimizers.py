"""Optimizers that the standard lacks: local functions whose bodies are standard operators (ruling G14).

The formulas are those of the frameworks that they come from."""

import numpy as np

from ... import recipe as R
from ...prepared import prepare
from .. import arithmetic as A
from ..case import STEPS, steps_case
from ..files import node_file
from ..networks import Mlp, cross_entropy, gradients_of, labels

LR = 0.0625
B1, B2, EPS = 0.875, 0.9375, 2.0**-10


def sgd(o, s, x, g, t):
    g = g + o.weight_decay * x
    if not o.momentum:
        return x - o.lr * g
    s["m"] = g if t == 1 else o.momentum * s["m"] + (1 - o.dampening) * g
    return x - o.lr * (g + o.momentum * s["m"] if o.nesterov else s["m"])


def averages(o, s, g):
    b1, b2 = o.betas
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * (g * g)
    return b1, b2, s["m"], s["v"]


def adam(o, s, x, g, t):
    if isinstance(o, R.AdamW):
        x = x * (1 - o.lr * o.weight_decay)
    else:
        g = g + o.weight_decay * x
    b1, b2, m, v = averages(o, s, g)
    if o.amsgrad:
        s["max"] = v = A.maximum(v, s["max"]) if "max" in s else v
    return x - (o.lr / (1 - b1**t)) * m / (A.sqrt(v) / np.sqrt(1 - b2**t) + o.eps)


def keras_adam(o, s, x, g, t):
    b1, b2, m, v = averages(o, s, g)
    return x - (o.lr * np.sqrt(1 - b2**t) / (1 - b1**t)) * m / (A.sqrt(v) + o.eps)


def adagrad(o, s, x, g, t):
    g = g + o.weight_decay * x
    s["h"] = s.get("h", o.initial_accumulator_value) + g * g
    return x - (o.lr / (1 + (t - 1) * o.lr_decay)) * g / (A.sqrt(s["h"]) + o.eps)


def rmsprop(o, s, x, g, t):
    g = g + o.weight_decay * x
    s["v"] = o.alpha * s.get("v", 0.0) + (1 - o.alpha) * (g * g)
    v = s["v"]
    if o.centered:
        s["mean"] = o.alpha * s.get("mean", 0.0) + (1 - o.alpha) * g
        v = v - s["mean"] * s["mean"]
    step = g / (A.sqrt(v) + o.eps)
    if o.momentum:
        s["m"] = step = o.momentum * s.get("m", 0.0) + step
    return x - o.lr * step


def adadelta(o, s, x, g, t):
    g = g + o.weight_decay * x
    s["v"] = o.rho * s.get("v", 0.0) + (1 - o.rho) * (g * g)
    d = A.sqrt(A.value(s.get("d", 0.0)) + o.eps) / A.sqrt(s["v"] + o.eps) * g
    s["d"] = o.rho * s.get("d", 0.0) + (1 - o.rho) * (d * d)
    return x - o.lr * d


def decayed(o, x, g):
    if o.decoupled_weight_decay:
        return x * (1 - o.lr * o.weight_decay), g
    return x, g + o.weight_decay * x


def nadam(o, s, x, g, t):
    x, g = decayed(o, x, g)
    b1, b2, m, v = averages(o, s, g)
    now = b1 * (1 - 0.5 * 0.96 ** (t * o.momentum_decay))
    after = b1 * (1 - 0.5 * 0.96 ** ((t + 1) * o.momentum_decay))
    s["product"] = product = s.get("product", 1.0) * now
    root = A.sqrt(v / (1 - b2**t)) + o.eps
    return x - (o.lr * (1 - now) / (1 - product)) * g / root - (o.lr * after / (1 - product * after)) * m / root


def radam(o, s, x, g, t):
    x, g = decayed(o, x, g)
    b1, b2, m, v = averages(o, s, g)
    far = 2 / (1 - b2) - 1
    rho = far - 2 * t * b2**t / (1 - b2**t)
    step = m / (1 - b1**t)
    if rho > 5:
        r = np.sqrt((rho - 4) * (rho - 2) * far / ((far - 4) * (far - 2) * rho))
        step = step * r * np.sqrt(1 - b2**t) / (A.sqrt(v) + o.eps)
    return x - o.lr * step


def adamax(o, s, x, g, t):
    g = g + o.weight_decay * x
    b1, b2 = o.betas
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["u"] = A.maximum(b2 * A.value(s.get("u", 0.0 * g.a)), A.absolute(g) + o.eps)
    return x - (o.lr / (1 - b1**t)) * s["m"] / s["u"]


def rprop(o, s, x, g, t):
    before = s.get("g", A.value(0 * g.a))
    size = s.get("size", A.value(np.full(g.shape, o.lr)))
    sign = np.sign(g.a * before.a)
    low, high = o.etas
    size = A.minimum(
        A.maximum(size * np.where(sign > 0, high, np.where(sign < 0, low, 1.0)), o.step_sizes[0]), o.step_sizes[1]
    )
    g = A.where(sign < 0, 0.0, g)
    s["g"], s["size"] = g, size
    return x - np.sign(g.a) * size


def lion(o, s, x, g, t):
    b1, b2 = o.betas
    m = A.value(s.get("m", 0.0))
    direction = np.sign((b1 * m + (1 - b1) * g).a)
    s["m"] = b2 * m + (1 - b2) * g
    return x * (1 - o.lr * o.weight_decay) - o.lr * direction


def lamb(o, s, x, g, t):
    b1, b2, m, v = averages(o, s, g)
    r = m / (1 - b1**t) / (A.sqrt(v / (1 - b2**t)) + o.eps) + o.weight_decay * x
    nx, nr = A.sqrt((x * x).sum()), A.sqrt((r * r).sum())
    ratio = nx / nr if nx.a > 0 and nr.a > 0 else 1.0
    return x - o.lr * ratio * r


BETAS = {"betas": (B1, B2), "eps": EPS}
VARIANTS = {
    "sgd": (R.SGD(lr=LR), sgd),
    "sgd_decay": (R.SGD(lr=LR, weight_decay=0.125), sgd),
    "sgd_momentum": (R.SGD(lr=LR, momentum=0.875), sgd),
    "sgd_dampening": (R.SGD(lr=LR, momentum=0.75, dampening=0.25, weight_decay=0.125), sgd),
    "sgd_nesterov": (R.SGD(lr=LR, momentum=0.875, nesterov=True), sgd),
    "torch_adam": (R.Adam(lr=LR, **BETAS), adam),
    "torch_adam_epsilon": (R.Adam(lr=LR, betas=(B1, B2), eps=0.25), adam),
    "torch_adam_decay": (R.Adam(lr=LR, weight_decay=0.125, **BETAS), adam),
    "amsgrad": (R.Adam(lr=LR, amsgrad=True, **BETAS), adam),
    "keras_adam": (R.Adam(lr=LR, style="keras", **BETAS), keras_adam),
    "adamw": (R.AdamW(lr=LR, weight_decay=0.25, **BETAS), adam),
    "adamw_amsgrad": (R.AdamW(lr=LR, weight_decay=0.25, amsgrad=True, **BETAS), adam),
    "torch_adagrad": (
        R.Adagrad(lr=LR, lr_decay=0.125, eps=EPS, initial_accumulator_value=0.25, weight_decay=0.0625),
        adagrad,
    ),
    "rmsprop": (R.RMSprop(lr=LR, alpha=0.875, eps=EPS), rmsprop),
    "rmsprop_centered": (R.RMSprop(lr=LR, alpha=0.5, eps=0.125, centered=True), rmsprop),
    "rmsprop_momentum": (R.RMSprop(lr=LR, alpha=0.875, eps=EPS, momentum=0.5, weight_decay=0.125), rmsprop),
    "adadelta": (R.Adadelta(lr=1.0, rho=0.875, eps=2.0**-8), adadelta),
    "nadam": (R.NAdam(lr=LR, momentum_decay=0.125, **BETAS), nadam),
    "nadam_decoupled": (
        R.NAdam(lr=LR, momentum_decay=0.125, weight_decay=0.25, decoupled_weight_decay=True, **BETAS),
        nadam,
    ),
    "radam": (R.RAdam(lr=LR, **BETAS), radam),
    "radam_decay": (R.RAdam(lr=LR, weight_decay=0.25, **BETAS), radam),
    "adamax": (R.Adamax(lr=LR, weight_decay=0.125, **BETAS), adamax),
    "rprop": (R.Rprop(lr=LR, etas=(0.5, 1.25), step_sizes=(2.0**-10, 0.25)), rprop),
    "lion": (R.Lion(lr=2.0**-6, betas=(B1, B2), weight_decay=0.125), lion),
    "lamb": (R.Lamb(lr=LR, weight_decay=0.125, **BETAS), lamb),
}


def cases():
    net = Mlp()
    start = net.state()
    main = node_file(net.text, initializers=start)
    for name, (o, rule) in VARIANTS.items():
        model = prepare(main, loss="cross_entropy", optimizer=o).proto()
        yield trajectory(name, model, o, rule, net, start)


def trajectory(name, model, o, rule, net, start):
    feeds = [net.data(k) | {"label": labels(k, 5)} for k in range(STEPS)]
    params = list(net.shapes)
    kept = {}

    def step(s, f, k):
        if k == 0:
            kept.clear()
            kept.update({p: {} for p in params})
        loss, g = gradients_of(lambda p: cross_entropy(net.forward(p, f), f["label"]), s, params)
        return {"loss": loss}, {p: rule(o, kept[p], A.value(s[p]), A.value(g[p]), k + 1).a for p in params}

    settings = ", ".join(f"{k} {v}" for k, v in vars(o).items() if v not in (None, False, 0, "torch"))
    return steps_case(
        f"own_{name}",
        "optimizers that the standard lacks",
        f"10 steps, {type(o).__name__}: {settings}",
        model,
        step,
        start,
        feeds,
        rule="G14",
    )
