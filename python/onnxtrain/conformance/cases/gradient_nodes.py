"""The operator Gradient in a graph: both forms, several and missing outputs, higher orders, kinks, and the derivatives
of common operators."""

import numpy as np
import onnx

from .. import arithmetic as A
from ..case import STEPS, node_case, steps_case
from ..files import Section, node_file, training_file
from ..networks import F4, numbers

CATEGORY = "Gradient"


def node(name, about, inputs, body, outputs, compute, feeds, rule="", **more):
    """inputs: {name: "float[2,3]"}; outputs the same; body: text of the nodes."""
    text = "g (%s) => (%s) { %s }" % (
        ", ".join(f"{t} {n}" for n, t in inputs.items()),
        ", ".join(f"{t} {n}" for n, t in outputs.items()),
        body,
    )
    return node_case(f"gradient_{name}", CATEGORY, about, node_file(text), feeds, compute, rule=rule, **more)


def by(xs, zs=(), y="y", inputs=None):
    """Text of a Gradient node's attributes and inputs."""
    given = inputs or [*xs, *zs]
    z = f", zs = [{', '.join(chr(34) + n + chr(34) for n in zs)}]" if zs else ""
    return f'training.Gradient<xs = [{", ".join(chr(34) + n + chr(34) for n in xs)}]{z}, y = "{y}">({", ".join(given)})'


def tanh_ab(f, at=None):
    """Gradients of sum(tanh(a b)) by a and b, at the fed values or at others."""
    x, w = A.value(at[0] if at else f["a"]), A.value(at[1] if at else f["b"])
    return A.gradients(A.tanh(x * w).sum(), [x, w])


def forms():
    feeds = {"a": numbers((2, 3), 1), "b": numbers((3,), 2)}
    both = {"a": "float[2,3]", "b": "float[3]"}
    product = "p = Mul(a, b) t = Tanh(p) y = ReduceSum<keepdims = 0>(t)"
    yield from values(feeds, both, product)
    yield from results(feeds, both, product)


def values(feeds, both, product):
    """What the inputs of a Gradient are."""
    yield node(
        "first_form",
        "inputs are the named tensors themselves",
        both,
        product + "ga, gb = " + by(["a", "b"]),
        {"ga": "float[2,3]", "gb": "float[3]"},
        lambda f: dict(zip(["ga", "gb"], tanh_ab(f))),
        feeds,
    )
    other = {"a2": numbers((2, 3), 3), "b2": numbers((3,), 4)}
    yield node(
        "second_form",
        "inputs are other tensors: the subgraph is evaluated at their values",
        both | {"a2": "float[2,3]", "b2": "float[3]"},
        product + "ga, gb = " + by(["a", "b"], inputs=["a2", "b2"]),
        {"y": "float", "ga": "float[2,3]", "gb": "float[3]"},
        lambda f: (
            {"y": A.tanh(A.value(f["a"]) * f["b"]).sum().a} | dict(zip(["ga", "gb"], tanh_ab(f, (f["a2"], f["b2"]))))
        ),
        feeds | other,
    )
    yield node(
        "second_form_zs",
        "a tensor of zs is given another value",
        both | {"b2": "float[3]"},
        product + "ga = " + by(["a"], ["b"], inputs=["a", "b2"]),
        {"ga": "float[2,3]"},
        lambda f: {"ga": tanh_ab(f, (f["a"], f["b2"]))[0]},
        feeds | {"b2": other["b2"]},
    )
    yield node(
        "second_form_computed",
        "the given value is computed from the named tensor",
        both,
        product + "a2 = Neg(a) c = Mul(a2, a2) ga = " + by(["a"], ["b"], inputs=["c", "b"]),
        {"ga": "float[2,3]"},
        lambda f: {"ga": tanh_ab(f, (A.square(f["a"]).a, f["b"]))[0]},
        feeds,
    )


def results(feeds, both, product):
    """What it is the gradient of, and what becomes of it."""
    yield left_out(both, product, feeds)
    yield node(
        "middle",
        "by a tensor inside the graph",
        both,
        product + "gp = " + by(["p"]),
        {"gp": "float[2,3]"},
        lambda f: {"gp": 1 - A.square(A.tanh(A.value(f["a"]) * f["b"])).a},
        feeds,
    )
    yield node(
        "twice_in_a_graph",
        "two Gradient nodes of two results",
        both,
        product + "u = ReduceSum<keepdims = 0>(p) ga = " + by(["a"], ["b"]) + "ha = " + by(["a"], ["b"], "u"),
        {"ga": "float[2,3]", "ha": "float[2,3]"},
        lambda f: {"ga": tanh_ab(f)[0], "ha": np.broadcast_to(np.float64(f["b"]), (2, 3))},
        feeds,
    )
    yield node(
        "of_a_tensor",
        "y is not a scalar: the product with ones",
        both,
        "p = Mul(a, b) y = Mul(p, a) ga, gb = " + by(["a", "b"]),
        {"ga": "float[2,3]", "gb": "float[3]"},
        lambda f: {"ga": (2 * A.value(f["a"]) * f["b"]).a, "gb": A.square(f["a"]).sum(0).a},
        feeds,
        "G12",
    )
    yield node(
        "independent",
        "y does not depend on one of xs: zeros",
        both,
        "y = ReduceSum<keepdims = 0>(a) ga, gb = " + by(["a", "b"]),
        {"ga": "float[2,3]", "gb": "float[3]"},
        lambda f: {"ga": np.ones((2, 3)), "gb": np.zeros(3)},
        feeds,
        "G12",
    )
    yield node(
        "used_in_the_graph",
        "the gradient is an ordinary tensor that later nodes read",
        both,
        product + "ga = " + by(["a"], ["b"]) + "s = Mul(ga, ga) z = ReduceSum<keepdims = 0>(s)",
        {"z": "float"},
        lambda f: {"z": A.square(tanh_ab(f)[0]).sum().a},
        feeds,
    )


def left_out(both, product, feeds):
    case = node(
        "left_out",
        "the first output is left out",
        both,
        product + "unused, gb = " + by(["a", "b"]),
        {"gb": "float[3]"},
        lambda f: {"gb": tanh_ab(f)[1]},
        feeds,
        "C14",
    )
    model = onnx.ModelProto.FromString(case.model)
    model.graph.node[-1].output[0] = ""
    case.model = model.SerializeToString(deterministic=True)
    return case


def orders():
    x = F4([0.5, -1.25, 2.0])
    vec = {"x": "float[3]"}
    cube = "s = Mul(x, x) c = Mul(s, x) y = ReduceSum<keepdims = 0>(c) "
    yield node(
        "second_order",
        "Gradient of a Gradient: 6 x",
        vec,
        cube + "g = " + by(["x"]) + "h = " + by(["x"], y="g"),
        {"g": "float[3]", "h": "float[3]"},
        lambda f: {"g": (3 * A.square(f["x"])).a, "h": (6 * A.value(f["x"])).a},
        {"x": x},
    )
    yield node(
        "third_order",
        "three deep: sin",
        vec,
        "t = Sin(x) y = ReduceSum<keepdims = 0>(t) g = "
        + by(["x"])
        + "h = "
        + by(["x"], y="g")
        + "k = "
        + by(["x"], y="h"),
        {"k": "float[3]"},
        lambda f: {"k": -A.cos(f["x"]).a},
        {"x": x},
    )
    yield node(
        "mixed",
        "second derivatives by two tensors",
        {"x": "float[3]", "w": "float[3]"},
        "p = Mul(x, w) e = Exp(p) y = ReduceSum<keepdims = 0>(e) g = "
        + by(["x"], ["w"])
        + "h = "
        + by(["w"], ["x"], "g"),
        {"h": "float[3]"},
        lambda f: {"h": (A.exp(A.value(f["x"]) * f["w"]) * (1 + A.value(f["x"]) * f["w"])).a},
        {"x": x, "w": F4([0.25, 0.5, -0.75])},
    )
    matrix = numbers((3, 3), 9)
    yield node(
        "hessian_vector",
        "Hessian times a vector",
        {"x": "float[3]", "v": "float[3]", "m": "float[3,3]"},
        "q = MatMul(m, x) t = Tanh(q) y = ReduceSum<keepdims = 0>(t) g = "
        + by(["x"], ["m"])
        + "gv = Mul(g, v) d = ReduceSum<keepdims = 0>(gv) hv = "
        + by(["x"], ["m", "v"], "d"),
        {"hv": "float[3]"},
        hessian_vector,
        {"x": x, "v": F4([1, -0.5, 0.25]), "m": matrix},
    )
    yield penalty()


def hessian_vector(f):
    m, x, v = (A.value(f[k]) for k in "mxv")
    t = A.tanh((m @ x.reshape(3, 1)).reshape(3))
    second = -2 * t * (1 - A.square(t))
    return {"hv": (m.T @ (second * (m @ v.reshape(3, 1)).reshape(3)).reshape(3, 1)).reshape(3).a}


def penalty():
    """The loss itself holds a gradient: |dy/dx| is pulled towards 1."""
    main = "main (float[N,2] x) => (float[N,1] y) { h = MatMul(x, w) y = Tanh(h) }"
    algorithm = """step (float[N,1] t) => (float loss, float[2,1] w_new) {
        d = Sub(y, t) q = Mul(d, d) fit = ReduceMean<keepdims = 0>(q)
        gx = training.Gradient<xs = ["x"], zs = ["w"], y = "y">(x, w)
        gg = Mul(gx, gx) p = ReduceSum<keepdims = 0>(gg) part = Mul(p, factor) loss = Add(fit, part)
        gw = training.Gradient<xs = ["w"], zs = ["x", "t"], y = "loss">(w, x, t)
        s = Mul(gw, R) w_new = Sub(w, s) }"""
    w = F4([[0.5], [-0.75]])
    model = training_file(main, {"w": w}, Section(algorithm, {"w": "w_new"}, {"factor": F4(0.125), "R": F4(0.25)}))
    feeds = [{"x": numbers((4, 2), 80 + k), "t": numbers((4, 1), 90 + k, 0.5)} for k in range(STEPS)]

    def step(s, f, k):
        p = A.value(s["w"])
        y = A.tanh(A.value(f["x"]) @ p)
        gx = (1 - A.square(y)) @ p.T
        loss = A.square(y - f["t"]).mean() + 0.125 * A.square(gx).sum()
        return {"loss": loss.a}, {"w": (p - 0.25 * A.value(A.gradients(loss, [p])[0])).a}

    return steps_case(
        "gradient_penalty",
        CATEGORY,
        "10 steps on a loss that holds a Gradient: second derivatives in training",
        model,
        step,
        {"w": w},
        feeds,
    )


def kinks():
    """Subgradients where a derivative does not exist (ruling G12): PyTorch's."""
    x = F4([-1, 0, 0, 2])
    rows = [
        ("relu", "y = Relu(x)", [0, 0, 0, 1], "Relu at 0: 0"),
        ("abs", "y = Abs(x)", [-1, 0, 0, 1], "Abs at 0: 0"),
        (
            "clip",
            "lo = Constant<value_float = -1.0>() hi = Constant<value_float = 1.0>() y = Clip(x, lo, hi)",
            [1, 1, 1, 0],
            "Clip at its bounds: 1",
        ),
        ("leaky_relu", "y = LeakyRelu<alpha = 0.25>(x)", [0.25, 0.25, 0.25, 1], "LeakyRelu at 0: alpha"),
        (
            "hard_sigmoid",
            "y = HardSigmoid<alpha = 0.25, beta = 0.75>(x)",
            [0.25, 0.25, 0.25, 0],
            "HardSigmoid where it is cut off: 0",
        ),
    ]
    for name, body, want, about in rows:
        yield node(
            f"kink_{name}",
            about,
            {"x": "float[4]"},
            body + " g = " + by(["x"]),
            {"g": "float[4]"},
            lambda f, want=want: {"g": np.float64(want)},
            {"x": x},
            "G12",
        )
    text = "p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) g = " + by(["x"], y="p")
    yield node(
        "kink_max_pool",
        "equal elements in a window: the first takes the gradient",
        {"x": "float[1,1,2,4]"},
        text,
        {"g": "float[1,1,2,4]"},
        lambda f: {"g": np.float64([[[[1, 0, 0, 1], [0, 0, 0, 0]]]])},
        {"x": F4([[[[3, 3, 1, 4], [3, 2, 4, 0]]]])},
        "G12",
    )


OPERATORS = {  # name: (inputs, text of y, formula)
    "matmul_batched": ({"x": (2, 2, 3), "w": (3, 2)}, "y = MatMul(x, w)", lambda x, w: x @ w),
    "gemm_transposed": (
        {"x": (3, 2), "w": (4, 3)},
        "y = Gemm<transA = 1, transB = 1, alpha = 0.5>(x, w)",
        lambda x, w: 0.5 * (x.T @ w.T),
    ),
    "broadcast": ({"x": (2, 1, 3), "w": (4, 1)}, "y = Mul(x, w)", lambda x, w: x * w),
    "div": ({"x": (2, 3), "w": (3,)}, "e = Exp(w) y = Div(x, e)", lambda x, w: x / A.exp(w)),
    "pow": ({"x": (2, 3)}, "e = Exp(x) k = Constant<value_float = 2.5>() y = Pow(e, k)", lambda x: A.exp(2.5 * x)),
    "sqrt_exp_log": ({"x": (2, 3)}, "e = Exp(x) s = Sqrt(e) y = Log(s)", lambda x: A.log(A.sqrt(A.exp(x)))),
    "sigmoid": ({"x": (2, 3)}, "y = Sigmoid(x)", A.sigmoid),
    "softmax": ({"x": (2, 3), "w": (2, 3)}, "s = Softmax<axis = 1>(x) y = Mul(s, w)", lambda x, w: A.softmax(x, 1) * w),
    "log_softmax": (
        {"x": (2, 3), "w": (2, 3)},
        "s = LogSoftmax<axis = 1>(x) y = Mul(s, w)",
        lambda x, w: A.log_softmax(x, 1) * w,
    ),
    "conv": (
        {"x": (2, 2, 4, 4), "w": (3, 2, 3, 3), "b": (3,)},
        "y = Conv<pads = [1, 1, 1, 1]>(x, w, b)",
        lambda x, w, b: A.conv2d(x, w, b, 1),
    ),
    "conv_strided": (
        {"x": (1, 2, 5, 5), "w": (2, 2, 2, 2)},
        "y = Conv<strides = [2, 2]>(x, w)",
        lambda x, w: A.conv2d(x, w, None, 0, 2),
    ),
    "max_pool": ({"x": (1, 2, 4, 4)}, "y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)", A.max_pool2),
    "average_pool": (
        {"x": (1, 2, 4, 4)},
        "y = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
        lambda x: 0.25 * (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]),
    ),
    "reduce_mean": ({"x": (2, 3, 4)}, "y = ReduceMean<axes = [0, 2], keepdims = 0>(x)", lambda x: x.mean((0, 2))),
    "concat": ({"x": (2, 3), "w": (2, 2)}, "y = Concat<axis = 1>(x, w)", lambda x, w: A.concat([x, w], 1)),
    "transpose": (
        {"x": (2, 3, 2), "w": (2, 2, 3)},
        "t = Transpose<perm = [2, 0, 1]>(x) y = Mul(t, w)",
        lambda x, w: A.transpose(x, (2, 0, 1)) * w,
    ),
    "gather_repeated": (
        {"x": (4, 2), "w": (3, 2)},
        "i = Constant<value_ints = [2, 0, 2]>() r = Gather(x, i) y = Mul(r, w)",
        lambda x, w: x[np.array([2, 0, 2])] * w,
    ),
    "slice": (
        {"x": (4, 3)},
        "b = Constant<value_ints = [1]>() e = Constant<value_ints = [4]>() a = Constant<value_ints = "
        "[0]>() s = Constant<value_ints = [2]>() y = Slice(x, b, e, a, s)",
        lambda x: x[1:4:2],
    ),
    "where": (
        {"x": (2, 3), "w": (2, 3)},
        "zero = Constant<value_float = 0.0>() c = Less(x, zero) y = Where(c, x, w)",
        lambda x, w: A.where(x.a.real < 0, x, w),
    ),
    "layer_normalization": (
        {"x": (2, 4), "w": (4,), "b": (4,)},
        "y = LayerNormalization<axis = 1, epsilon = 0.125>(x, w, b)",
        lambda x, w, b: layer_norm(x, 0.125) * w + b,
    ),
    "gelu_by_parts": (
        {"x": (2, 3)},
        "h = Constant<value_float = 1.75>() k = Mul(x, h) s = Sigmoid(k) y = Mul(x, s)",
        lambda x: x * A.sigmoid(1.75 * x),
    ),
}


def layer_norm(x, epsilon):
    d = x - x.mean(-1, True)
    return d / A.sqrt(A.square(d).mean(-1, True) + epsilon)


def operators():
    for name, (shapes, body, formula) in OPERATORS.items():
        types = {n: f"float[{','.join(map(str, s))}]" for n, s in shapes.items()}
        outs = {f"g_{n}": t for n, t in types.items()}

        def compute(f, formula=formula, shapes=shapes):
            xs = [A.value(f[n]) for n in shapes]
            z = A.square(formula(*xs)).sum()
            return {"z": z.a} | dict(zip((f"g_{n}" for n in shapes), A.gradients(z, xs)))

        text = (
            body + " q = Mul(y, y) z = ReduceSum<keepdims = 0>(q) " + ", ".join(outs) + " = " + by(list(shapes), y="z")
        )
        feeds = {n: numbers(s, 20 + i, 0.75) for i, (n, s) in enumerate(shapes.items())}
        yield node(
            f"op_{name}", f"derivative of {name.replace('_', ' ')}", types, text, {"z": "float"} | outs, compute, feeds
        )


def cases():
    yield from forms()
    yield from orders()
    yield from kinks()
    yield from operators()
