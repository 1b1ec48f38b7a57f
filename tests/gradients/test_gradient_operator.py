"""The Gradient operator where ONNX allows it: in the main graph, in bodies of If, Loop and Scan,
in local functions; with intermediate xs, zs, values that differ from the named tensors, left-out outputs,
higher order, y that is no scalar. Every value is compared with a formula or with central differences in float64."""

import numpy as np
import onnx
import pytest

import onnxtrain as ot

X = np.array([0.3, -0.7, 1.1])
W = np.array([1.5, -0.4, 0.8])
TRAINING = '"ai.onnx.preview.training" : 1'


def run(text, feeds=None, opset=17, more=""):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, {TRAINING}{more}]> {text}')
    return ot.Session(model.SerializeToString()).run(feeds if feeds is not None else {"x": X, "w": W})


def numeric(f, x, h=1e-6):
    out = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[k] = h
        out[k] = (f(x + d) - f(x - d)) / (2 * h)
    return out


def grad(inputs, outputs, xs, y, zs=()):
    names = "[" + ", ".join(f'"{n}"' for n in xs) + "]"
    others = ", zs = [" + ", ".join(f'"{n}"' for n in zs) + "]" if zs else ""
    call = f'ai.onnx.preview.training.Gradient <xs = {names}, y = "{y}"{others}> ({", ".join(inputs)})'
    return f'{", ".join(outputs)} = {call}'


def test_a_y_that_is_no_scalar_is_summed():
    got = run(f"g (double[3] x, double[3] w) => (double[3] d) {{ t = Mul (x, w) y = Tanh (t) "
              f"{grad(['x'], ['d'], ['x'], 'y')} }}")
    np.testing.assert_allclose(got["d"], W / np.cosh(X * W) ** 2, rtol=1e-12)


def test_intermediate_tensors():
    """d y / d t does not go on to what t is made from."""
    got = run(f"g (double[3] x, double[3] w) => (double[3] d) {{ t = Mul (x, w) y = Sin (t) "
              f"{grad(['t'], ['d'], ['t'], 'y')} }}")
    np.testing.assert_allclose(got["d"], np.cos(X * W), rtol=1e-12)


def test_values_that_differ_from_the_named_tensors():
    """The part of the graph between the named tensors and y is evaluated at the given values."""
    text = ("g (double[3] x, double[3] w, double[3] x2, double[3] w2) => (double[3] d, double[3] y) "
            f"{{ t = Mul (x, w) s = Mul (t, x) y = Exp (s) {grad(['x2', 'w2'], ['d'], ['x'], 'y', ['w'])} }}")
    x2, w2 = X + 0.4, W - 0.3
    got = run(text, {"x": X, "w": W, "x2": x2, "w2": w2})
    np.testing.assert_allclose(got["d"], 2 * x2 * w2 * np.exp(x2 * x2 * w2), rtol=1e-12)
    np.testing.assert_allclose(got["y"], np.exp(X * X * W), rtol=1e-12)


def test_zs_are_not_differentiated():
    text = ("g (double[3] x, double[3] w) => (double[3] d) "
            f"{{ t = Mul (x, w) y = Mul (t, x) {grad(['x', 'w'], ['d'], ['x'], 'y', ['w'])} }}")
    np.testing.assert_allclose(run(text)["d"], 2 * X * W, rtol=1e-12)


def test_outputs_may_be_left_out():
    text = ("g (double[3] x, double[3] w) => (double[3] e) "
            f"{{ t = Mul (x, w) y = Sin (t) {grad(['x', 'w'], ['', 'e'], ['x', 'w'], 'y')} }}")
    np.testing.assert_allclose(run(text)["e"], X * np.cos(X * W), rtol=1e-12)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_higher_order(order):
    nodes = "t = Mul (x, w) y0 = Sin (t) " + " ".join(grad(["x"], [f"y{k + 1}"], ["x"], f"y{k}") for k in range(order))
    got = run(f"g (double[3] x, double[3] w) => (double[3] y{order}) {{ {nodes} }}")
    want = W**order * np.array([np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t), np.sin][(order - 1) % 4](X * W))
    np.testing.assert_allclose(got[f"y{order}"], want, rtol=1e-10)


def test_mixed_second_derivative():
    nodes = (f"t = Mul (x, w) y = Exp (t) {grad(['x', 'w'], ['dx'], ['x', 'w'], 'y')} "
             f"{grad(['x', 'w'], ['a', 'b'], ['x', 'w'], 'dx')}")
    got = run(f"g (double[3] x, double[3] w) => (double[3] a, double[3] b) {{ {nodes} }}")
    e = np.exp(X * W)
    np.testing.assert_allclose(got["a"], W * W * e, rtol=1e-10)
    np.testing.assert_allclose(got["b"], e + X * W * e, rtol=1e-10)


@pytest.mark.parametrize("cond", [True, False])
def test_inside_a_branch(cond):
    """x is local to the branch: a copy of what it captures."""
    def branch(name, f):
        return (f"{name} () => (double[3] d) {{ u = Identity (x) s = Mul (u, w) q = {f} (s) "
                f"{grad(['u'], ['d'], ['u'], 'q')} }}")
    got = run(f"g (double[3] x, double[3] w, bool c) => (double[3] y) {{ y = If (c) "
              f"<then_branch = {branch('a', 'Sin')}, "
              f"else_branch = {branch('b', 'Exp')}> }}", {"x": X, "w": W, "c": np.array(cond)})
    np.testing.assert_allclose(got["y"], W * (np.cos(X * W) if cond else np.exp(X * W)), rtol=1e-12)


@pytest.mark.parametrize("cond", [True, False])
def test_inside_a_branch_of_what_it_captures(cond):
    """xs may name a tensor of the enclosing graph."""
    body = f"{{ s = Mul (x, w) q = Sin (s) {grad(['x'], ['d'], ['x'], 'q')} }}"
    got = run(f"g (double[3] x, double[3] w, bool c) => (double[3] y) {{ y = If (c) <then_branch = a () "
              f"=> (double[3] d) {body}, "
              f"else_branch = b () => (double[3] e) {{ e = Neg (x) }}> }}", {"x": X, "w": W, "c": np.array(cond)})
    np.testing.assert_allclose(got["y"], W * np.cos(X * W) if cond else -X, rtol=1e-12)


def descent(body_of_loop):
    return ("g (double[3] x, double[3] w, int64 n) => (double[3] y) { one = Constant <value = bool {1}> () "
            "rate = Constant <value = double {0.1}> () "
            f"y = Loop (n, one, x) <body = b (int64 i, bool c, double[3] s) => (bool c2, double[3] s2) "
            f"{{ c2 = Identity (c) {body_of_loop} }}> }}")


def test_inside_a_loop():
    """Gradient descent as a Loop."""
    text = descent(f"a = Sub (s, w) q = Mul (a, a) {grad(['s'], ['d'], ['s'], 'q')} m = Mul (rate, d) s2 = Sub (s, m)")
    got = run(text, {"x": X, "w": W, "n": np.array(5)})
    want = X.copy()
    for _ in range(5):
        want -= 0.1 * 2 * (want - W)
    np.testing.assert_allclose(got["y"], want, rtol=1e-12)


def test_through_a_loop_that_descends():
    """The result of the descent is differentiated by the target: a gradient of gradients through a Loop."""
    text = descent(f"a = Sub (s, w) p = Mul (a, a) q = Mul (p, p) {grad(['s'], ['d'], ['s'], 'q')} m = Mul (rate, d) "
                   f"s2 = Sub (s, m)")
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17, {TRAINING}]> {text}').SerializeToString()
    feeds = {"x": X, "w": W, "n": np.array(4)}

    def f(w):
        return ot.Session(model).run(feeds | {"w": w})["y"].sum()
    got = ot.gradients(model, feeds, wrt=["w", "x"])
    np.testing.assert_allclose(got["w"], numeric(f, W), rtol=1e-6)


def test_inside_a_scan():
    text = ("g (double[3] x, double[4,3] w) => (double[3] last, double[4,3] all) { last, all = Scan (x, w) "
            "<num_scan_inputs = 1, "
            "body = b (double[3] s, double[3] e) => (double[3] s2, double[3] d) "
            f"{{ t = Mul (s, e) q = Sin (t) {grad(['s'], ['d'], ['s'], 'q')} s2 = Add (s, d) }}> }}")
    w = np.random.default_rng(0).standard_normal((4, 3))
    got = run(text, {"x": X, "w": w})
    s, all_ = X.copy(), []
    for e in w:
        all_.append(e * np.cos(s * e))
        s = s + all_[-1]
    np.testing.assert_allclose(got["last"], s, rtol=1e-12)
    np.testing.assert_allclose(got["all"], all_, rtol=1e-12)


def functions(main, functions_text):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17, {TRAINING}, "mine" : 1]> {main} '
                                    f'{functions_text}')
    return ot.Session(model.SerializeToString()).run({"x": X, "w": W})


FUNCTION = f'<domain: "mine", opset_import: ["" : 17, {TRAINING}]>'


def test_inside_a_function():
    """Names are those of the function's body."""
    f = f"{FUNCTION} slope (a, b) => (d) {{ t = Mul (a, b) y = Sin (t) {grad(['a'], ['d'], ['a'], 'y')} }}"
    got = functions("g (double[3] x, double[3] w) => (double[3] p, double[3] q) { p = mine.slope (x, w) "
                    "q = mine.slope (w, x) }", f)
    np.testing.assert_allclose(got["p"], W * np.cos(X * W), rtol=1e-12)
    np.testing.assert_allclose(got["q"], X * np.cos(X * W), rtol=1e-12)


def test_inside_a_function_with_an_inner_tensor_and_a_nested_function():
    inner = f"{FUNCTION} wave (a) => (y) {{ y = Sin (a) }}"
    f = (
        f'<domain: "mine", opset_import: ["" : 17, {TRAINING}, "mine" : 1]> slope (a, b) => (d, e) {{ t = Mul (a, b) '
        f'y = mine.wave (t) '
        + f"{grad(['t'], ['d'], ['t'], 'y')} {grad(['b'], ['e'], ['b'], 'y')} }}"
    )
    got = functions("g (double[3] x, double[3] w) => (double[3] d, double[3] e) { d, e = mine.slope (x, w) }",
                    f"{f} {inner}")
    np.testing.assert_allclose(got["d"], np.cos(X * W), rtol=1e-12)
    np.testing.assert_allclose(got["e"], X * np.cos(X * W), rtol=1e-12)


def test_a_function_with_a_gradient_inside_a_branch_of_a_function():
    """Both at once: the function's body holds an If whose branch holds the Gradient."""
    f = (f"{FUNCTION} slope (a, b) => (d) {{ zero = Constant <value = double {{0}}> () "
         f"s = ReduceSum <keepdims = 0> (a) c = Greater (s, zero) "
         f"d = If (c) <then_branch = p () => (double[3] u) {{ t = Mul (a, b) y = Sin (t) "
         f"{grad(['a'], ['u'], ['a'], 'y')} }}, "
         "else_branch = q () => (double[3] v) { v = Neg (b) }> }")
    got = functions("g (double[3] x, double[3] w) => (double[3] p, double[3] q) { m = Neg (x) p = mine.slope (x, w) "
                    "q = mine.slope (m, w) }", f)
    np.testing.assert_allclose(got["p"], W * np.cos(X * W), rtol=1e-12)
    np.testing.assert_allclose(got["q"], -W, rtol=1e-12)


def test_a_gradient_node_in_a_function_is_differentiated_again():
    f = f"{FUNCTION} slope (a, b) => (d) {{ t = Mul (a, b) y = Sin (t) {grad(['a'], ['d'], ['a'], 'y')} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17, {TRAINING}, "mine" : 1]> '
                                    f"g (double[3] x, double[3] w) => (double[3] p) {{ p = mine.slope (x, w) }} {f}")
    got = ot.gradients(model.SerializeToString(), {"x": X, "w": W}, wrt=["x", "w"])
    np.testing.assert_allclose(got["x"], -W * W * np.sin(X * W), rtol=1e-10)
    np.testing.assert_allclose(got["w"], np.cos(X * W) - X * W * np.sin(X * W), rtol=1e-10)


def test_an_unknown_name_is_refused_by_name():
    with pytest.raises(ot.ModelError, match="'nowhere'") as e:
        run(f"g (double[3] x, double[3] w) => (double[3] d) {{ y = Mul (x, w) {grad(['x'], ['d'], ['nowhere'], 'y')} "
            f"}}")
    assert e.value.code == "OT1315"
