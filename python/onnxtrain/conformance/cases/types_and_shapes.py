"""Element types, and sizes that are not known before the data comes."""

import ml_dtypes
import numpy as np

from .. import arithmetic as A
from ..case import STEPS, UNITS, steps_case
from ..files import Section, training_file
from ..networks import F4, cross_entropy, labels, numbers

NAMES = {
    "double": (np.float64, UNITS["float64"]),
    "float16": (np.float16, UNITS["float16"]),
    "bfloat16": (ml_dtypes.bfloat16, UNITS["bfloat16"]),
}


def descent(inputs="{t}[N,2] x", target="{t}[N,1] t"):
    """Texts of a linear regression in element type {t}."""
    main = f"main ({inputs}) => ({{t}}[N,1] y) {{{{ y = MatMul(x, w) }}}}"
    step = f"""step ({target}) => ({{t}} loss, {{t}}[2,1] w_new) {{{{ d = Sub(y, t) q = Mul(d, d)
        loss = ReduceMean<keepdims = 0>(q)
        g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) s = Mul(g, R) w_new = Sub(w, s) }}}}"""
    return main, step


def mse_step(s, f, k):
    w = A.value(s["w"])
    loss = A.square(A.value(f["x"]) @ w - f["t"]).mean()
    return {"loss": loss.a}, {"w": (w - 0.25 * A.value(A.gradients(loss, [w])[0])).a}


def element_types():
    for name, (dtype, unit) in NAMES.items():
        main, step = (x.format(t=name) for x in descent())
        w = np.array([[0.5], [-1.25]], dtype)
        feeds = [
            {"x": numbers((4, 2), 10 + k).astype(dtype), "t": numbers((4, 1), 20 + k).astype(dtype)}
            for k in range(STEPS)
        ]
        model = training_file(main, {"w": w}, Section(step, {"w": "w_new"}, {"R": np.array(0.25, dtype)}))
        yield steps_case(
            f"type_{name}",
            "element types",
            f"weights, data and learning rate are {name}",
            model,
            mse_step,
            {"w": w},
            feeds,
            unit,
            {"w": dtype, "loss": dtype},
        )
    yield cast_input()
    yield int32_labels()


def cast_input():
    main = "main (uint8[N,2] u) => (float[N,1] y) { x0 = Cast<to = 1>(u) x = Mul(x0, k) y = MatMul(x, w) }"
    step = descent()[1].format(t="float").replace('"x"', '"u"').replace("(w, x, t)", "(w, u, t)")
    w = F4([[0.5], [-1.25]])
    feeds = [
        {"u": np.random.default_rng(k).integers(0, 256, (4, 2)).astype(np.uint8), "t": numbers((4, 1), 20 + k)}
        for k in range(STEPS)
    ]

    def run(s, f, k):
        return mse_step(s, {"x": (A.value(f["u"]) * 0.0078125).a, "t": f["t"]}, k)

    return steps_case(
        "type_uint8_input",
        "element types",
        "data are bytes, cast and scaled by the main graph",
        training_file(main, {"w": w, "k": F4(0.0078125)}, Section(step, {"w": "w_new"}, {"R": F4(0.25)})),
        run,
        {"w": w},
        feeds,
    )


def int32_labels():
    main = "main (float[N,2] x) => (float[N,3] y) { y = MatMul(x, w) }"
    step = """step (int32[N] t) => (float loss, float[2,3] w_new) { loss = SoftmaxCrossEntropyLoss(y, t)
        g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) s = Mul(g, R) w_new = Sub(w, s) }"""
    w = numbers((2, 3), 3)
    feeds = [{"x": numbers((4, 2), 10 + k), "t": labels(k, 4).astype(np.int32)} for k in range(STEPS)]

    def run(s, f, k):
        p = A.value(s["w"])
        loss = cross_entropy(A.value(f["x"]) @ p, f["t"])
        return {"loss": loss.a}, {"w": (p - 0.25 * A.value(A.gradients(loss, [p])[0])).a}

    return steps_case(
        "type_int32_labels",
        "element types",
        "labels are int32",
        training_file(main, {"w": w}, Section(step, {"w": "w_new"}, {"R": F4(0.25)})),
        run,
        {"w": w},
        feeds,
    )


def shapes():
    w = F4([[0.5], [-1.25]])
    sizes = [4, 1, 7, 4, 2, 16, 3, 1, 5, 4]
    feeds = [{"x": numbers((n, 2), 10 + k), "t": numbers((n, 1), 20 + k)} for k, n in enumerate(sizes)]
    section = {"w": "w_new"}, {"R": F4(0.25)}
    main, step = (x.format(t="float") for x in descent())
    yield steps_case(
        "shape_open_batch",
        "open shapes",
        f"batches of {sizes} rows, one after the other",
        training_file(main, {"w": w}, Section(step, *section)),
        mse_step,
        {"w": w},
        feeds,
    )
    free, free_step = (x.replace("N,", "?,").format(t="float") for x in descent())
    yield steps_case(
        "shape_unnamed",
        "open shapes",
        "the batch dimension has neither a size nor a name",
        training_file(free, {"w": w}, Section(free_step, *section)),
        mse_step,
        {"w": w},
        feeds,
    )
    none = training_file(main, {"w": w}, Section(step, *section))
    yield steps_case(
        "shape_unknown_rank",
        "open shapes",
        "inputs and outputs of the main graph have no shape at all",
        without_shapes(none),
        mse_step,
        {"w": w},
        feeds,
    )
    yield sequence()
    yield reshaped()


def without_shapes(model):
    import onnx

    m = onnx.ModelProto.FromString(model)
    for v in [*m.graph.input, *m.graph.output, *m.training_info[0].algorithm.input]:
        v.type.tensor_type.ClearField("shape")
    return m.SerializeToString(deterministic=True)


def sequence():
    """A length that differs from batch to batch, and a mean over it."""
    main = """main (float[N,L,2] x) => (float[N,2] y) { h = MatMul(x, w) a = Tanh(h) y = ReduceMean<axes = [1],
        keepdims = 0>(a) }"""
    step = """step (float[N,2] t) => (float loss, float[2,2] w_new) { d = Sub(y, t) q = Mul(d, d)
        loss = ReduceMean<keepdims = 0>(q)
        g = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t) s = Mul(g, R) w_new = Sub(w, s) }"""
    w = numbers((2, 2), 4)
    feeds = [
        {"x": numbers((2 + k % 3, 1 + k % 4, 2), 10 + k), "t": numbers((2 + k % 3, 2), 20 + k)} for k in range(STEPS)
    ]

    def run(s, f, k):
        p = A.value(s["w"])
        loss = A.square(A.tanh(A.value(f["x"]) @ p).mean(1) - f["t"]).mean()
        return {"loss": loss.a}, {"w": (p - 0.25 * A.value(A.gradients(loss, [p])[0])).a}

    return steps_case(
        "shape_open_length",
        "open shapes",
        "batch and sequence length change from step to step",
        training_file(main, {"w": w}, Section(step, {"w": "w_new"}, {"R": F4(0.25)})),
        run,
        {"w": w},
        feeds,
    )


def reshaped():
    """A shape that is computed from the shape of the data."""
    main = """main (float[N,2,3] x) => (float[N,1] y) { s = Shape<end = 1>(x) m = Constant<value_ints = [-1]>()
        r = Concat<axis = 0>(s, m) f = Reshape(x, r) y = MatMul(f, w) }"""
    step = (
        descent()[1]
        .format(t="float")
        .replace("float[2,1] w_new", "float[6,1] w_new")
        .replace("s = Mul(g, R)", "u = Mul(g, R)")
    )
    step = step.replace("Sub(w, s)", "Sub(w, u)")
    w = numbers((6, 1), 4)
    feeds = [{"x": numbers((1 + k % 4, 2, 3), 10 + k, 0.5), "t": numbers((1 + k % 4, 1), 20 + k)} for k in range(STEPS)]

    def run(s, f, k):
        return mse_step(s, {"x": f["x"].reshape(len(f["x"]), 6), "t": f["t"]}, k)

    return steps_case(
        "shape_computed",
        "open shapes",
        "Reshape to a shape that is computed from the batch",
        training_file(main, {"w": w}, Section(step, {"w": "w_new"}, {"R": F4(0.25)})),
        run,
        {"w": w},
        feeds,
    )


def cases():
    yield from element_types()
    yield from shapes()
