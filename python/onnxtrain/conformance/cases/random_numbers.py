"""Random numbers: what must hold for any generator. Checks are in ../random_checks.py."""

import numpy as np

from ..case import Case
from ..files import Section, training_file
from ..networks import F4

CATEGORY = "random numbers"
N = 4000


def case(name, about, body, checks, outputs, rule="G8", state=None, steps=3):
    main = f"main (float[{N}] x) => (float[{N}] y) {{ y = Mul(x, w) }}"
    outs = ", ".join(f"float[{N}] {o}" for o in outputs)
    step = f"step () => (float loss, {outs}) {{ {body} }}"
    model = training_file(
        main, {"w": np.ones(N, F4)}, Section(step, state or {}, {"ratio": F4(0.25), "on": np.array(True), "R": F4(0.5)})
    )
    return Case(
        name,
        CATEGORY,
        about,
        model,
        "random",
        rule,
        [{"x": F4(1 + np.arange(N) / N)} for _ in range(steps)],
        [{} for _ in range(steps)],
        [{} for _ in range(steps)],
        checks=checks,
    )


GRADIENT = 'g = training.Gradient<xs = ["w"], zs = ["x"], y = "loss">(w, x)'


def cases():
    dropped = "z = Dropout<seed = 7>(y, ratio, on) loss = ReduceSum<keepdims = 0>(z) "
    yield case(
        "dropout_fraction",
        "a quarter is dropped, the rest is scaled by 4/3",
        dropped,
        [{"check": "dropout", "output": "z", "ratio": 0.25, "input": "x"}],
        ["z"],
    )
    yield case(
        "dropout_same_mask",
        "forward and backward of one Dropout drop the same elements",
        dropped + GRADIENT,
        [{"check": "equal", "a": "z", "b": "g", "because": "the loss is the sum of x w m: both are x m at w = 1"}],
        ["z", "g"],
    )
    plain = "z = Dropout(y, ratio, on) loss = ReduceSum<keepdims = 0>(z) "
    yield case(
        "dropout_new_mask", "every step drops other elements", plain, [{"check": "changes", "output": "z"}], ["z"]
    )
    yield case(
        "dropout_two_nodes",
        "two Dropout nodes of one step drop different elements",
        plain + "v = Dropout(y, ratio, on)",
        [{"check": "differ", "a": "z", "b": "v"}],
        ["z", "v"],
    )
    yield case(
        "dropout_update",
        "the update uses the mask of its own step",
        plain + GRADIENT + " s = Mul(g, R) w_new = Sub(w, s)",
        [{"check": "dropped_stay", "output": "z", "state": "w"}],
        ["z", "w_new"],
        state={"w": "w_new"},
        steps=1,
    )
    normal = "n = RandomNormalLike<mean = 0.5, scale = 0.25>(y) z = Identity(n) loss = ReduceSum<keepdims = 0>(z)"
    yield case(
        "noise_normal",
        "RandomNormalLike in a step: mean and deviation, new numbers in every step",
        normal,
        [{"check": "normal", "output": "z", "mean": 0.5, "deviation": 0.25}, {"check": "changes", "output": "z"}],
        ["z"],
    )
