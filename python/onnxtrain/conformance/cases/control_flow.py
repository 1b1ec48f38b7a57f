"""If, Loop and Scan before the loss, a Gradient inside a branch, local functions, files of ONNX 1.7."""

import numpy as np

from .. import arithmetic as A
from ..case import STEPS, steps_case
from ..files import Section, training_file
from ..networks import F4, numbers

CATEGORY = "control flow and functions"
STEP = """step (float[2] t) => (float loss, float[2] w_new) { d = Sub(y, t) q = Mul(d, d) loss =
    ReduceSum<keepdims = 0>(q)
    g = training.Gradient<xs = ["w"], zs = [%s], y = "loss">(w, %s) s = Mul(g, R) w_new = Sub(w, s) }"""
W = F4([0.75, -0.5])


def descent(name, about, main, forward, data, inputs=("x",), opset=17, extra=None, step=None, ir=8, **more):
    zs = ", ".join(f'"{i}"' for i in (*inputs, "t")), ", ".join((*inputs, "t"))
    algorithm = step or STEP % zs
    model = training_file(
        main,
        {"w": W} | (extra or {}),
        Section(algorithm, {"w": "w_new"}, {"R": F4(0.125)}),
        opset=opset,
        ir=ir,
        **{k: v for k, v in more.items() if k in ("functions", "domains")},
    )
    feeds = [data(k) | {"t": numbers((2,), 50 + k, 0.5)} for k in range(STEPS)]

    def run(s, f, k):
        w = A.value(s["w"])
        loss = A.square(forward(w, f) - f["t"]).sum()
        return {"loss": loss.a}, {"w": (w - 0.125 * A.value(A.gradients(loss, [w])[0])).a}

    return steps_case(name, CATEGORY, about, model, run, {"w": W}, feeds, rule=more.get("rule", ""))


def vector(k):
    return {"x": numbers((2,), 10 + k)}


def branches():
    main = """main (float[2] x) => (float[2] y) { a = ReduceSum<keepdims = 0>(x) z = Constant<value_float = 0.0>()
        c = Less(a, z)
        y = If(c)<then_branch = th () => (float[2] o) { p = Mul(x, w) o = Tanh(p) },
                  else_branch = el () => (float[2] o2) { o2 = Mul(w, w) }> }"""
    yield descent(
        "if_forward",
        "a branch decides what the loss sees",
        main,
        lambda w, f: A.tanh(f["x"] * w) if np.sum(f["x"], dtype=np.float64) < 0 else w * w,
        vector,
    )
    main = "main (float[2] x) => (float[2] y) { y = Mul(x, w) }"
    step = """step (float[2] t) => (float loss, float[2] w_new) { d = Sub(y, t) q = Mul(d, d)
        loss = ReduceSum<keepdims = 0>(q) limit = Constant<value_float = 1.0>() c = Less(limit, loss)
        w_new = If(c)<then_branch = th () => (float[2] o) {
                g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) s = Mul(g, R) o = Sub(w, s) },
            else_branch = el () => (float[2] o2) { o2 = Identity(w) }> }"""
    feeds = [vector(k) | {"t": numbers((2,), 50 + k)} for k in range(STEPS)]

    def run(s, f, k):
        w = A.value(s["w"])
        loss = A.square(f["x"] * w - f["t"]).sum()
        new = (w - 0.125 * A.value(A.gradients(loss, [w])[0])).a if loss.a > 1 else s["w"]
        return {"loss": loss.a}, {"w": new}

    yield steps_case(
        "if_update",
        CATEGORY,
        "a Gradient inside a branch: the update is made only where the loss is above 1",
        training_file(main, {"w": W}, Section(step, {"w": "w_new"}, {"R": F4(0.125)})),
        run,
        {"w": W},
        feeds,
    )


def loops():
    def powers(w, f, n):
        h = A.value(f["x"])
        for _ in range(n):
            h = A.tanh(h * w)
        return h

    body = """loop_body (int64 i, bool go, float[2] h) => (bool on, float[2] h2) {
        on = Identity(go) p = Mul(h, w) h2 = Tanh(p) }"""
    main = (
        """main (float[2] x) => (float[2] y) { n = Constant<value_int = 3>() y = Loop(n, on0, x)<body = %s> }""" % body
    )
    yield descent(
        "loop_fixed",
        "a loop of three rounds before the loss",
        main,
        lambda w, f: powers(w, f, 3),
        vector,
        extra={"on0": np.array(True)},
    )
    main = "main (float[2] x, int64 n) => (float[2] y) { y = Loop(n, on0, x)<body = %s> }" % body
    yield descent(
        "loop_counted",
        "the number of rounds is an input and changes from step to step",
        main,
        lambda w, f: powers(w, f, int(f["n"])),
        lambda k: vector(k) | {"n": np.int64(1 + k % 4)},
        ("x", "n"),
        extra={"on0": np.array(True)},
    )
    main = """main (float[L,2] x) => (float[2] y) { y, all = Scan(h0, x)<num_scan_inputs = 1, body = scan_body
        (float[2] h, float[2] e) => (float[2] h2, float[2] o) { p = Mul(h, w) a = Add(p, e) h2 = Tanh(a) o =
        Identity(h2) }> }"""

    def scanned(w, f):
        h = A.value(np.zeros(2))
        for e in f["x"]:
            h = A.tanh(h * w + e)
        return h

    yield descent(
        "scan_open_length",
        "a recurrence over a sequence whose length changes",
        main,
        scanned,
        lambda k: {"x": numbers((1 + k % 5, 2), 10 + k)},
        extra={"h0": np.zeros(2, F4)},
    )


def functions():
    main = "main (float[2] x) => (float[2] y) { p = Mul(x, w) y = local.Swish<beta = 2.0>(p) }"
    body = """
<domain: "local", opset_import: ["" : 17]>
Swish <beta> (a) => (o) { b = Constant<value_float: float = @beta>() m = Mul(a, b) s = Sigmoid(m) o = Mul(a, s) }
"""
    yield descent(
        "local_function",
        "the main graph calls a function of the file, with an attribute",
        main,
        lambda w, f: (f["x"] * w) * A.sigmoid(2.0 * (f["x"] * w)),
        vector,
        functions=body,
        domains=("local",),
    )
    main = "main (float[2] x) => (float[2] y) { p = Mul(x, w) y = Tanh(p) }"
    step = """step (float[2] batch, float[2] t) => (float loss, float[2] w_new) {
        r = training.GraphCall<graph_name = "main">(batch) d = Sub(r, t) q = Mul(d, d)
        loss = ReduceSum<keepdims = 0>(q) g = training.Gradient<xs = ["w"], zs = ["batch", "t"], y = "loss">(w,
        batch, t)
        s = Mul(g, R) w_new = Sub(w, s) }"""
    yield descent(
        "graph_call",
        "a file of ONNX 1.7: the algorithm calls the main graph",
        main,
        lambda w, f: A.tanh(f["batch"] * w),
        lambda k: {"batch": vector(k)["x"]},
        opset=12,
        ir=7,
        step=step,
    )


def cases():
    yield from branches()
    yield from loops()
    yield from functions()
