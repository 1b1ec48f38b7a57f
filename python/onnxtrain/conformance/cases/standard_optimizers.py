"""Adagrad, Adam and Momentum of ai.onnx.preview.training: as nodes, and in trajectories.

All settings are sums of powers of two, so that float32 holds them exactly."""

import numpy as np

from .. import arithmetic as A
from ..case import STEPS, node_case, steps_case
from ..files import Section, node_file, training_file
from ..networks import F4, Line, Mlp, cross_entropy, gradients_of, labels, numbers, targets

STATES = {"Adagrad": ["H"], "Momentum": ["V"], "Adam": ["V", "H"]}
DEFAULTS = {
    "Adagrad": {"decay_factor": 0.0, "epsilon": 2.0**-10, "norm_coefficient": 0.0},
    "Momentum": {"alpha": 0.875, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.0},
    "Adam": {
        "alpha": 0.875,
        "beta": 0.9375,
        "epsilon": 2.0**-10,
        "norm_coefficient": 0.0,
        "norm_coefficient_post": 0.0,
    },
}
VARIANTS = {
    "Adagrad": {
        "": {},
        "decay": {"decay_factor": 0.25},
        "norm": {"norm_coefficient": 0.125},
        "epsilon": {"epsilon": 0.5},
        "all": {"decay_factor": 0.5, "norm_coefficient": 0.0625, "epsilon": 0.25},
    },
    "Momentum": {
        "": {},
        "nesterov": {"mode": "nesterov"},
        "beta": {"beta": 0.5},
        "norm": {"norm_coefficient": 0.125},
        "no_momentum": {"alpha": 0.0},
        "all": {"mode": "nesterov", "beta": 0.25, "norm_coefficient": 0.0625, "alpha": 0.5},
    },
    "Adam": {
        "": {},
        "epsilon": {"epsilon": 0.5},
        "norm": {"norm_coefficient": 0.125},
        "post": {"norm_coefficient_post": 0.125},
        "averages": {"alpha": 0.5, "beta": 0.75},
        "all": {"norm_coefficient": 0.0625, "norm_coefficient_post": 0.03125, "epsilon": 0.25, "alpha": 0.75},
    },
}


def update(kind, a, r, t, x, g, state):
    """(new x, [new state]) as the standard's text has it."""
    x, g, state = A.value(x), A.value(g), [A.value(s) for s in state]
    g = g + a["norm_coefficient"] * x
    if kind == "Adagrad":
        h = state[0] + g * g
        return x - (r / (1 + t * a["decay_factor"])) * g / (A.sqrt(h) + a["epsilon"]), [h]
    if kind == "Momentum":
        v = a["alpha"] * state[0] + (a["beta"] if t > 0 else 1.0) * g
        return x - r * (g + a["alpha"] * v if a["mode"] == "nesterov" else v), [v]
    v = a["alpha"] * state[0] + (1 - a["alpha"]) * g
    h = a["beta"] * state[1] + (1 - a["beta"]) * (g * g)
    if t > 0:
        r = r * np.sqrt(1 - a["beta"] ** t) / (1 - a["alpha"] ** t)
    return (1 - a["norm_coefficient_post"]) * (x - r * v / (A.sqrt(h) + a["epsilon"])), [v, h]


def attributes(a):
    return ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {float(v)!r}" for k, v in a.items())


def node(kind, label, settings, t, count=1):
    """The operator alone, `count` tensors at once."""
    a = DEFAULTS[kind] | settings
    shapes = [(2, 3), (4,)][:count]
    names = [f"{n}{i}" for n in ["X", "G", *STATES[kind]] for i in range(count)]
    feeds = {"R": F4(0.25), "T": np.int64(t)}
    for n in names:
        v = numbers(shapes[int(n[-1])], 40 + sum(map(ord, n)))
        feeds[n] = np.abs(v) if n[0] == "H" else v
    sizes = ["[2,3]", "[4]"]
    inputs = ", ".join(["float R", "int64 T"] + [f"float{sizes[int(n[-1])]} {n}" for n in names])
    outs = [f"{n}{i}_new" for n in ["X", *STATES[kind]] for i in range(count)]
    outputs = ", ".join(f"float{sizes[int(o[1])]} {o}" for o in outs)
    text = f"""g ({inputs}) => ({outputs}) {{
        {", ".join(outs)} = training.{kind}<{attributes(a)}>(R, T, {", ".join(names)}) }}"""

    def compute(f):
        got = {}
        for i in range(count):
            x, s = update(
                kind, a, float(f["R"]), int(f["T"]), f[f"X{i}"], f[f"G{i}"], [f[f"{n}{i}"] for n in STATES[kind]]
            )
            got[f"X{i}_new"] = x.a
            got |= {f"{n}{i}_new": v.a for n, v in zip(STATES[kind], s)}
        return {o: got[o] for o in outs}

    return node_case(
        f"{kind.lower()}_node{label}",
        "optimizers of the standard",
        f"{kind} alone, T = {t}, {count} tensor(s){', ' + attributes(settings) if settings else ''}",
        node_file(text),
        feeds,
        compute,
    )


def algorithm(kind, a, params, shapes, inputs, target, loss):
    """Text of a step: loss, Gradient, one optimizer node for all parameters, T + 1; and its updates."""
    sizes = {p: f"float[{','.join(map(str, s))}]" for p, s in shapes.items()}
    states = [f"{p}_{s}" for s in STATES[kind] for p in params]
    new = [f"{p}_new" for p in params] + [f"{s}_new" for s in states]
    outs = ", ".join([f"{sizes[n.split('_')[0]]} {n}" for n in new])
    zs = inputs + [target.split()[-1]]
    text = f"""step ({target}) => (float loss, {outs}, int64 T_new) {{
        {loss}
        {", ".join("g_" + p for p in params)} = training.Gradient<xs = [{", ".join(f'"{p}"' for p in params)}],
            zs = [{", ".join(f'"{z}"' for z in zs)}], y = "loss">({", ".join(params + zs)})
        {", ".join(new)} = training.{kind}<{attributes(a)}>(R, T, {", ".join(params)},
            {", ".join("g_" + p for p in params)}, {", ".join(states)})
        T_new = Add(T, one) }}"""
    return text, {n.removesuffix("_new"): n for n in new} | {"T": "T_new"}, states


def trajectory(kind, label, settings, network, t0=None, rate=0.125):
    a = DEFAULTS[kind] | settings
    net = network()
    t0 = (1 if kind == "Adam" else 0) if t0 is None else t0
    params = list(net.shapes)
    if network is Mlp:
        target, loss = "int64[N] label", "loss = SoftmaxCrossEntropyLoss(scores, label)"
        feeds = [net.data(k) | {"label": labels(k, 5)} for k in range(STEPS)]
    else:
        target, loss = "float[N,1] t", "d = Sub(y, t) q = Mul(d, d) loss = ReduceMean<keepdims = 0>(q)"
        feeds = [net.data(k) | {"t": targets(k, (4, 1))} for k in range(STEPS)]
    text, bound, states = algorithm(kind, a, params, net.shapes, net.inputs, target, loss)
    start = net.state()
    moments = {s: np.zeros(net.shapes[s.split("_")[0]], F4) for s in states}
    model = training_file(
        net.text, start, Section(text, bound, moments | {"T": np.int64(t0), "R": F4(rate), "one": np.int64(1)})
    )

    def loss_of(p, f):
        out = net.forward(p, f)
        return cross_entropy(out, f["label"]) if network is Mlp else A.square(out - f["t"]).mean()

    def step(s, f, k):
        loss, g = gradients_of(lambda p: loss_of(p, f), {n: s[n] for n in params}, params)
        new = {"T": s["T"] + 1}
        for p in params:
            x, st = update(kind, a, rate, int(s["T"]), s[p], g[p], [s[f"{p}_{n}"] for n in STATES[kind]])
            new[p] = x.a
            new |= {f"{p}_{n}": v.a for n, v in zip(STATES[kind], st)}
        return {"loss": loss}, new

    return steps_case(
        f"{kind.lower()}_{network.__name__.lower()}{label}",
        "optimizers of the standard",
        f"10 steps with {kind}, T from {t0}{', ' + attributes(settings) if settings else ''}",
        model,
        step,
        start | moments | {"T": np.int64(t0)},
        feeds,
    )


def cases():
    for kind, variants in VARIANTS.items():
        for t, label in ((0, "_t0"), (5, "_t5")):
            yield node(kind, label, {}, t)
        yield node(kind, "_all_two_tensors", variants["all"], 3, 2)
        for label, settings in variants.items():
            yield trajectory(kind, "_" + label if label else "", settings, Mlp)
        yield trajectory(kind, "_late", {}, Line, t0=7)
    yield node("Momentum", "_beta_t0", {"beta": 0.25}, 0)
    yield node("Momentum", "_beta_t1", {"beta": 0.25}, 1)
    yield node("Momentum", "_nesterov", {"mode": "nesterov"}, 2)
    yield trajectory("Adam", "_no_correction_first", {}, Line, t0=0)
