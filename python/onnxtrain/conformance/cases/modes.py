"""Operators that behave differently in training: BatchNormalization and Dropout, by ruling G7."""

import numpy as np

from ...prepared import prepare
from ...recipe import SGD
from .. import arithmetic as A
from ..case import STEPS, steps_case
from ..files import Section, node_file, training_file
from ..networks import F4, numbers

CATEGORY = "BatchNormalization and Dropout"
EPS = 2.0**-4


def normalised(x, scale, shift, momentum, mean, var, unbiased=False):
    """(y, running mean, running variance) in training mode; the channels are axis 1."""
    axes = tuple(a for a in range(x.a.ndim) if a != 1)
    shape = tuple(-1 if a == 1 else 1 for a in range(x.a.ndim))
    mu = x.mean(axes, True)
    d = x - mu
    variance = A.square(d).mean(axes, True)
    y = d / A.sqrt(variance + EPS) * scale.reshape(*shape) + shift.reshape(*shape)
    n = x.a.size / x.shape[1]
    kept = A.constant(variance).reshape(-1) * (n / (n - 1) if unbiased else 1.0)
    return (
        y,
        momentum * A.value(mean) + (1 - momentum) * A.constant(mu).reshape(-1),
        momentum * A.value(var) + (1 - momentum) * kept,
    )


def start(shape=(2, 3)):
    return {
        "w": numbers(shape, 5, 0.5),
        "scale": F4([1, 0.5, 2]),
        "shift": F4([0, 0.25, -0.5]),
        "mean": F4([0.5, 0, -0.25]),
        "var": F4([1, 2, 0.5]),
    }


def text(momentum, copy):
    """A file by hand: the main graph normalises with the running statistics, the step with those of the batch."""
    main = f"""main (float[N,2] x) => (float[N,3] y) {{ h = MatMul(x, w)
        y = BatchNormalization<epsilon = {EPS}, momentum = {momentum}>(h, scale, shift, mean, var) }}"""
    bn = (
        f"""ty, mean_new, var_new = BatchNormalization<epsilon = {EPS}, momentum = {momentum}, training_mode = 1>
        (h, scale, shift, mean, var)"""
        if copy
        else "ty = Identity(y)"
    )
    outs = ", float[3] mean_new, float[3] var_new" if copy else ""
    step = f"""step (float[N,3] t) => (float loss, float[2,3] w_new, float[3] scale_new, float[3] shift_new{outs}) {{
        {bn} d = Sub(ty, t) q = Mul(d, d) loss = ReduceMean<keepdims = 0>(q)
        gw, gs, gb = training.Gradient<xs = ["w", "scale", "shift"], zs = ["x", "t", "mean", "var"], y = "loss">
            (w, scale, shift, x, t, mean, var)
        uw = Mul(gw, R) us = Mul(gs, R) ub = Mul(gb, R)
        w_new = Sub(w, uw) scale_new = Sub(scale, us) shift_new = Sub(shift, ub) }}"""
    names = ["w", "scale", "shift"] + (["mean", "var"] if copy else [])
    return training_file(main, start(), Section(step, {n: f"{n}_new" for n in names}, {"R": F4(0.25)}))


def data(shape, target):
    return [{"x": numbers(shape, 800 + k), "t": numbers(target, 900 + k)} for k in range(STEPS)]


def dense_step(momentum, copy):
    def step(s, f, k):
        p = {n: A.value(s[n]) for n in ("w", "scale", "shift")}
        h = A.value(f["x"]) @ p["w"]
        new = {}
        if copy:
            y, mean, var = normalised(h, p["scale"], p["shift"], momentum, s["mean"], s["var"])
            new = {"mean": mean.a, "var": var.a}
        else:
            fixed = start()
            y = (h - fixed["mean"]) / A.sqrt(A.value(fixed["var"]) + EPS) * p["scale"] + p["shift"]
        loss = A.square(y - f["t"]).mean()
        for (n, v), g in zip(p.items(), A.gradients(loss, list(p.values()))):
            new[n] = (v - 0.25 * A.value(g)).a
        return {"loss": loss.a}, new

    return step


def image(name, variance):
    """Through `prepare`: convolution, BatchNormalization over images, mean, with either running variance."""
    main = f"""main (float[N,1,4,4] x) => (float[N,3] y) {{ c = Conv<pads = [1, 1, 1, 1]>(x, w)
        b = BatchNormalization<epsilon = {EPS}, momentum = 0.75>(c, scale, shift, mean, var) r = Relu(b)
        y = ReduceMean<axes = [2, 3], keepdims = 0>(r) }}"""
    s0 = start((3, 1, 3, 3))
    model = prepare(node_file(main, initializers=s0), loss="mse", optimizer=SGD(lr=0.25), bn_variance=variance).proto()
    feeds = [{"x": f["x"], "label": f["t"]} for f in data((2, 1, 4, 4), (2, 3))]

    def step(s, f, k):
        p = {n: A.value(s[n]) for n in ("w", "scale", "shift")}
        y, mean, var = normalised(
            A.conv2d(A.value(f["x"]), p["w"], None, 1),
            p["scale"],
            p["shift"],
            0.75,
            s["mean"],
            s["var"],
            variance == "torch",
        )
        loss = A.square(A.relu(y).mean((2, 3)) - f["label"]).mean()
        new = {n: (v - 0.25 * A.value(g)).a for (n, v), g in zip(p.items(), A.gradients(loss, list(p.values())))}
        return {"loss": loss.a}, new | {"mean": mean.a, "var": var.a}

    return steps_case(
        f"batch_norm_{name}",
        CATEGORY,
        f"images; running variance as {variance} keeps it",
        model,
        step,
        s0,
        feeds,
        rule="G7",
    )


def dropout(name, about, ratio, mode, factor):
    """A Dropout that drops nothing is exact: mode off, or ratio 0."""
    main = "main (float[N,2] x) => (float[N,3] y) { y = MatMul(x, w) }"
    step_text = """step (float[N,3] t) => (float loss, float[2,3] w_new) { z = Dropout(y, ratio, mode)
        d = Sub(z, t) q = Mul(d, d) loss = ReduceMean<keepdims = 0>(q)
        g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) u = Mul(g, R) w_new = Sub(w, u) }"""
    w = start()["w"]
    model = training_file(
        main, {"w": w}, Section(step_text, {"w": "w_new"}, {"R": F4(0.25), "ratio": F4(ratio), "mode": np.array(mode)})
    )

    def step(s, f, k):
        p = A.value(s["w"])
        loss = A.square(factor * (A.value(f["x"]) @ p) - f["t"]).mean()
        return {"loss": loss.a}, {"w": (p - 0.25 * A.value(A.gradients(loss, [p])[0])).a}

    return steps_case(f"dropout_{name}", CATEGORY, about, model, step, {"w": w}, data((4, 2), (4, 3)))


def cases():
    rows = data((4, 2), (4, 3))
    for name, momentum in (("half", 0.5), ("slow", 0.9375), ("replaced", 0.0)):
        yield steps_case(
            f"batch_norm_momentum_{name}",
            CATEGORY,
            f"statistics of the batch in the step, running ones kept with momentum {momentum}, population variance",
            text(momentum, True),
            dense_step(momentum, True),
            start(),
            rows,
            rule="G7",
        )
    trained = {k: v for k, v in start().items() if k in ("w", "scale", "shift")}
    yield steps_case(
        "batch_norm_inference",
        CATEGORY,
        "without a training-mode copy the running statistics are used and stay",
        text(0.5, False),
        dense_step(0.5, False),
        trained,
        rows,
        rule="G7",
    )
    yield image("onnx", "onnx")
    yield image("torch", "torch")
    yield dropout("off", "training_mode false: the identity", 0.5, False, 1.0)
    yield dropout("ratio_zero", "ratio 0 in training mode: the identity", 0.0, True, 1.0)
