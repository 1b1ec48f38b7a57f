"""Bindings and several training sections: who sees what, and when values are assigned."""

import numpy as np

from .. import arithmetic as A
from ..case import STEPS, steps_case
from ..files import Section, training_file
from ..networks import F4, numbers

CATEGORY = "sections and bindings"
MAIN = "main (float[2] x) => (float[2] y) { p = Mul(x, a) y = Add(p, b) }"
START = {"a": F4([1, 2]), "b": F4([3, -4])}


def feeds():
    return [{"x": F4([0.5 - 0.25 * k, 0.125 * k])} for k in range(STEPS)]


def half_square(name, wrt, other, rate="R"):
    """A section that moves `wrt` down the slope of sum(y*y)/2."""
    return f"""{name} () => (float {name}_loss, float[2] {wrt}_{name}) {{
        {name}_q = Mul(y, y) {name}_l = ReduceSum<keepdims = 0>({name}_q) {name}_h = Constant<value_float = 0.5>()
        {name}_loss = Mul({name}_l, {name}_h)
        {name}_g = training.Gradient<xs = ["{wrt}"], zs = ["x", "{other}"], y = "{name}_loss">({wrt}, x, {other})
        {name}_s = Mul({name}_g, {rate}) {wrt}_{name} = Sub({wrt}, {name}_s) }}"""


def slope(s, f, wrt):
    p = {k: A.value(s[k]) for k in "ab"}
    loss = 0.5 * A.square(A.value(f["x"]) * p["a"] + p["b"]).sum()
    return loss.a, (p[wrt] - 0.125 * A.value(A.gradients(loss, [p[wrt]])[0])).a


def players():
    """Two sections, each with parameters of its own."""
    return training_file(
        MAIN,
        START,
        Section(half_square("one", "a", "b", "Ra"), {"a": "a_one"}, {"Ra": F4(0.125)}),
        Section(half_square("two", "b", "a", "Rb"), {"b": "b_two"}, {"Rb": F4(0.125)}),
    )


def both(s, f, k):
    first, s["a"] = slope(s, f, "a")
    second, s["b"] = slope(s, f, "b")
    return {"one_loss": first, "two_loss": second}, s


def cases():
    yield steps_case(
        "sections_in_order",
        CATEGORY,
        "a step runs both sections; the second sees what the first assigned",
        players(),
        both,
        START,
        feeds(),
    )
    turns = [0, 0, 1, 1, 1, 0, 1, 0, 0, 1]

    def one(s, f, k):
        loss, s["ab"[turns[k]]] = slope(s, f, "ab"[turns[k]])
        return {("one_loss", "two_loss")[turns[k]]: loss}, s

    yield steps_case(
        "sections_in_turn",
        CATEGORY,
        "one section at a time, as the players of a GAN",
        players(),
        one,
        START,
        feeds(),
        which=turns,
    )
    yield from bindings()
    yield from repeated_and_fed()
    yield gan()


def bindings():
    swap = "step () => (float loss, float[2] a, float[2] b) { loss = ReduceSum<keepdims = 0>(y) }"

    def turned(s, f, k):
        loss = (A.value(f["x"]) * s["a"] + s["b"]).sum()
        return {"loss": loss.a}, {"a": s["b"], "b": s["a"]}

    case = steps_case(
        "bindings_swap",
        CATEGORY,
        "two bindings that swap two variables: all reads come before all writes",
        training_file(MAIN, START, Section(swap, {"a": "b", "b": "a"})),
        turned,
        START,
        feeds(),
    )
    yield case
    chain = """step () => (float loss, float[2] a2, float[2] b2) { loss = ReduceSum<keepdims = 0>(y) a2 =
        Add(a, b) b2 = Mul(a2, h) }"""

    def chained(s, f, k):
        loss = (A.value(f["x"]) * s["a"] + s["b"]).sum()
        a = A.value(s["a"]) + s["b"]
        return {"loss": loss.a}, {"a": a.a, "b": (a * 0.25).a}

    yield steps_case(
        "bindings_at_once",
        CATEGORY,
        "new values are assigned at the end of the section, together",
        training_file(MAIN, START, Section(chain, {"a": "a2", "b": "b2"}, {"h": F4(0.25)})),
        chained,
        START,
        feeds(),
    )
    main = "main (float[2] x) => (float[2] y, float[2] next) { p = Mul(x, a) y = Add(p, b) next = Sub(a, x) }"

    def from_main(s, f, k):
        loss = (A.value(f["x"]) * s["a"] + s["b"]).sum()
        return {"loss": loss.a}, {"a": (A.value(s["a"]) - f["x"]).a}

    start = {"a": START["a"], "b": START["b"]}
    yield steps_case(
        "binding_of_a_main_output",
        CATEGORY,
        "a variable is assigned an output of the main graph",
        training_file(
            main, start, Section("step () => (float loss) { loss = ReduceSum<keepdims = 0>(y) }", {"a": "next"})
        ),
        lambda s, f, k: from_main(s | {"b": START["b"]}, f, k),
        {"a": start["a"]},
        feeds(),
        rule="G2",
    )
    kinds = """step () => (float loss, bool f2, int32[2] n2) { loss = ReduceSum<keepdims = 0>(y) f2 = Not(f) n2
        = Add(n, n) }"""

    def other_types(s, f, k):
        loss = (A.value(f["x"]) * START["a"] + START["b"]).sum()
        return {"loss": loss.a}, {"f": ~s["f"], "n": (s["n"] * 2).astype(np.int32)}

    yield steps_case(
        "bindings_bool_and_integer",
        CATEGORY,
        "state variables of type bool and int32",
        training_file(
            MAIN, START, Section(kinds, {"f": "f2", "n": "n2"}, {"f": np.array(True), "n": np.int32([1, -3])})
        ),
        other_types,
        {"f": np.array(True), "n": np.int32([1, -3])},
        feeds(),
    )


def repeated_and_fed():
    main = """main (float[2] x, float[2] unused) => (float[2] y, float[2] z) { p = Mul(x, a) y = Add(p, b) z =
        Mul(unused, a) }"""
    one = Section(half_square("one", "a", "b", "R"), {"a": "a_one"}, {"R": F4(0.125)})

    def first(s, f, k):
        loss, s["a"] = slope(s | {"b": START["b"]}, f, "a")
        return {"one_loss": loss}, s

    yield steps_case(
        "unused_input",
        CATEGORY,
        "an input of the main graph that the step does not need is not fed",
        training_file(main, START, one),
        first,
        {"a": START["a"]},
        feeds(),
        rule="G6",
    )
    again = Section(half_square("again", "a", "b", "R2"), {"a": "a_again"}, {"R2": F4(0.125)})

    def twice(s, f, k):
        now = s | {"b": START["b"]}
        loss, now["a"] = slope(now, f, "a")
        second, now["a"] = slope(now, f, "a")
        return {"one_loss": loss, "again_loss": second}, {"a": now["a"]}

    yield steps_case(
        "key_in_two_sections",
        CATEGORY,
        "two sections update one variable: assigned after each",
        training_file(MAIN, START, one, again),
        twice,
        {"a": START["a"]},
        feeds(),
        rule="G1",
    )
    open_main = MAIN.replace("(float[2] x)", "(float[2] x, float[2] a)")
    fed = [f | ({"a": F4([k, -1])} if k % 4 == 2 else {}) for k, f in enumerate(feeds())]

    def given(s, f, k):
        loss, new = slope({"a": f.get("a", s["a"]), "b": START["b"]}, f, "a")
        return {"one_loss": loss}, {"a": new}

    yield steps_case(
        "fed_state",
        CATEGORY,
        "a state variable that is also an input: a fed value wins in that step, the binding still assigns",
        training_file(open_main, START, one),
        given,
        {"a": START["a"]},
        fed,
        rule="G5",
    )


def gan():
    """Generator and discriminator on one number: log-losses, Momentum for one, plain descent for the other."""
    main = """main (float[N,1] z) => (float[N,1] fake) { m = Mul(z, gs) fake = Add(m, gb) }"""
    critic = """{n} ({inputs}) => (float {n}_loss, {outs}) {{
        {n}_f0 = Mul(fake, dw) {n}_f = Add({n}_f0, db) {body}
        {grads} = training.Gradient<xs = [{xs}], zs = [{zs}], y = "{n}_loss">({given})
        {update} }}"""
    d = critic.format(
        n="d",
        inputs="float[N,1] real",
        outs="float[1] dw_new, float[1] db_new",
        body="""d_r0 = Mul(real, dw) d_r = Add(d_r0, db) d_nr = Neg(d_r) d_sr = Softplus(d_nr) d_sf = Softplus(d_f)
            d_sum = Add(d_sr, d_sf) d_loss = ReduceMean<keepdims = 0>(d_sum)""",
        grads="d_gw, d_gb",
        xs='"dw", "db"',
        zs='"real", "fake"',
        given="dw, db, real, fake",
        update="d_uw = Mul(d_gw, Rd) d_ub = Mul(d_gb, Rd) dw_new = Sub(dw, d_uw) db_new = Sub(db, d_ub)",
    )
    g = critic.format(
        n="g",
        inputs="",
        outs="float[1] gs_new, float[1] gb_new",
        body="g_nf = Neg(g_f) g_sf = Softplus(g_nf) g_loss = ReduceMean<keepdims = 0>(g_sf)",
        grads="g_gs, g_gb",
        xs='"gs", "gb"',
        zs='"z", "dw", "db"',
        given="gs, gb, z, dw, db",
        update="g_us = Mul(g_gs, Rg) g_ub = Mul(g_gb, Rg) gs_new = Sub(gs, g_us) gb_new = Sub(gb, g_ub)",
    )
    start = {"gs": F4([0.5]), "gb": F4([-0.25]), "dw": F4([0.75]), "db": F4([0.125])}
    model = training_file(
        main,
        start,
        Section(d, {"dw": "dw_new", "db": "db_new"}, {"Rd": F4(0.25)}),
        Section(g, {"gs": "gs_new", "gb": "gb_new"}, {"Rg": F4(0.5)}),
    )
    data = [{"z": numbers((4, 1), 30 + k), "real": numbers((4, 1), 60 + k, 0.5) + F4(2)} for k in range(STEPS)]

    def soft(x):
        return A.log(1 + A.exp(x))

    def step(s, f, k):
        p = {n: A.value(v) for n, v in s.items()}
        fake = A.value(f["z"]) * p["gs"] + p["gb"]
        d_loss = (soft(-(A.value(f["real"]) * p["dw"] + p["db"])) + soft(A.constant(fake) * p["dw"] + p["db"])).mean()
        gw, gb = A.gradients(d_loss, [p["dw"], p["db"]])
        p["dw"], p["db"] = A.value((p["dw"] - 0.25 * A.value(gw)).a), A.value((p["db"] - 0.25 * A.value(gb)).a)
        g_loss = soft(-(fake * p["dw"] + p["db"])).mean()
        gs, gb = A.gradients(g_loss, [p["gs"], p["gb"]])
        p["gs"], p["gb"] = p["gs"] - 0.5 * A.value(gs), p["gb"] - 0.5 * A.value(gb)
        return {"d_loss": d_loss.a, "g_loss": g_loss.a}, {n: v.a for n, v in p.items()}

    return steps_case(
        "gan", CATEGORY, "a GAN: discriminator, then generator against the new discriminator", model, step, start, data
    )
