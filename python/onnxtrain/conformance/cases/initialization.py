"""Initialization graphs: start values, in list order, from nothing but themselves."""

import numpy as np

from .. import arithmetic as A
from ..case import STEPS, Case, steps_case
from ..files import Section, training_file
from ..networks import F4

CATEGORY = "initialization"
MAIN = "main (float[2] x) => (float[2] y) { y = Mul(x, w) }"
STEP = """step () => (float loss, float[2] w_new) { q = Mul(y, y) loss = ReduceSum<keepdims = 0>(q)
    g = training.Gradient<xs = ["w"], zs = ["x"], y = "loss">(w, x) s = Mul(g, R) w_new = Sub(w, s) }"""
RATE = F4(0.125)


def feeds():
    return [{"x": F4([0.5 + 0.125 * k, -1.0])} for k in range(STEPS)]


def descent(s, f, k):
    w, x = A.value(s["w"]), A.value(f["x"])
    loss = A.square(x * w).sum()
    return {"loss": loss.a}, {"w": (w - 0.125 * A.value(A.gradients(loss, [w])[0])).a}


def case(name, about, sections, start, stored=None, step=descent, rule="", **more):
    model = training_file(MAIN, stored or {"w": F4([7, 7])}, *sections)
    return steps_case(
        f"initialize_{name}",
        CATEGORY,
        about,
        model,
        step,
        start,
        feeds(),
        rule=rule,
        initialized={k: np.asarray(v) for k, v in start.items()},
        **more,
    )


def cases():
    constants = "init () => (float[2] w0) { w0 = Constant<value_floats = [1.5, -0.5]>() }"
    yield case(
        "constant",
        "an initialization gives the weights",
        [Section(STEP, {"w": "w_new"}, {"R": RATE}, constants, {"w": "w0"})],
        {"w": F4([1.5, -0.5])},
    )
    own = "init () => (float[2] w0) <float[2] a = {1, 2}> { w0 = Mul(a, a) }"
    yield case(
        "own_initializer",
        "an initialization with an initializer of its own",
        [Section(STEP, {"w": "w_new"}, {"R": RATE}, own, {"w": "w0"})],
        {"w": F4([1, 4])},
    )
    yield case(
        "none",
        "without an initialization the stored values are the start",
        [Section(STEP, {"w": "w_new"}, {"R": RATE})],
        {"w": F4([0.75, 2])},
        {"w": F4([0.75, 2])},
    )
    yield counter()
    yield two_sections()
    shared = "init () => (float[2] a) { a = Constant<value_floats = [0.25, 0.5]>() }"
    first = Section(STEP, {"w": "w_new"}, {"R": RATE}, constants, {"w": "w0"})
    count = Section(
        "step2 () => (float[2] v_new) { v_new = Add(v, w) }",
        {"v": "v_new"},
        {"v": F4([9, 9])},
        shared,
        {"v": "a", "w": "a"},
    )

    def both(s, f, k):
        loss, new = descent(s, f, k)
        return loss, new | {"v": (A.value(s["v"]) + new["w"]).a}

    yield case(
        "later_section_wins",
        "two initializations give one variable: list order, the later one stays",
        [first, count],
        {"w": F4([0.25, 0.5]), "v": F4([0.25, 0.5])},
        step=both,
    )
    yield random()


def counter():
    """Start values of the algorithm's own initializers: counter and moment."""
    algorithm = STEP.replace("float[2] w_new)", "float[2] w_new, int64 T_new)").replace(
        "w_new = Sub(w, s)", "w_new = Sub(w, s) T_new = Add(T, one)"
    )
    init = (
        "init () => (int64 t, float[2] w0) { t = Constant<value_int = 5>() w0 = Constant<value_floats = [1.0, 2.0]>() }"
    )

    def step(s, f, k):
        loss, new = descent(s, f, k)
        return loss, new | {"T": s["T"] + 1}

    return case(
        "algorithm_state",
        "an initialization sets an initializer of its algorithm",
        [
            Section(
                algorithm,
                {"w": "w_new", "T": "T_new"},
                {"R": RATE, "T": np.int64(0), "one": np.int64(1)},
                init,
                {"T": "t", "w": "w0"},
            )
        ],
        {"w": F4([1, 2]), "T": np.int64(5)},
        step=step,
    )


def two_sections():
    one = Section(
        STEP,
        {"w": "w_new"},
        {"R": RATE},
        "init () => (float[2] w0) { w0 = Constant<value_floats = [2.0, 3.0]>() }",
        {"w": "w0"},
    )
    two = Section(
        "step2 () => (float[2] v_new) { v_new = Add(v, w) }",
        {"v": "v_new"},
        {"v": F4([9, 9])},
        "init2 () => (float[2] v0) { v0 = Constant<value_floats = [0.0, 1.0]>() }",
        {"v": "v0"},
    )

    def step(s, f, k):
        loss, new = descent(s, f, k)
        return loss, new | {"v": (A.value(s["v"]) + new["w"]).a}

    return case(
        "two_sections", "every section's initialization runs", [one, two], {"w": F4([2, 3]), "v": F4([0, 1])}, step=step
    )


def random():
    """Random start values: judged by their distribution."""
    init = "init () => (float[4000] w0) { w0 = RandomNormal<shape = [4000], mean = 0.5, scale = 0.25>() }"
    step = """step () => (float loss, float[4000] w_new) { loss = ReduceSum<keepdims = 0>(y) w_new = Identity(w) }"""
    model = training_file(
        "main (float[1] x) => (float[4000] y) { y = Mul(x, w) }",
        {"w": np.zeros(4000, F4)},
        Section(step, {"w": "w_new"}, {}, init, {"w": "w0"}),
    )
    return Case(
        "initialize_random",
        CATEGORY,
        "RandomNormal in an initialization: mean and deviation of 4000 numbers",
        model,
        "random",
        feeds=[{"x": F4([1])}],
        expected=[{}],
        tolerances=[{}],
        initialized={},
        checks=[{"check": "normal", "state": "w", "mean": 0.5, "deviation": 0.25}],
    )
