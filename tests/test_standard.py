"""docs/standard.md: every rule C1-C20 is tried on a broken file, its messages stand on the page as the program prints
them, and whatever the sources cite by number can be found on the pages."""

import pathlib
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxtrain as ot

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/standard.md").read_text()
TRAINING = "ai.onnx.preview.training"


def good():
    """The model of the page."""
    names = {}
    code = re.search(r"^```python\n(.*?)^```", PAGE, re.M | re.S).group(1)
    exec(code.split("assert ot.check")[0], names)
    return names["model"]


def nodes(m):
    return {n.output[0]: n for n in m.training_info[0].algorithm.node}


def strings(m, name):
    return next(a for a in nodes(m)["g"].attribute if a.name == name).strings


def initialize(m, text):
    m.training_info[0].initialization.CopyFrom(onnx.parser.parse_graph(text))


def c1(m):
    m.ir_version = 6


def c2(m):
    m.opset_import.pop()


def c3(m):
    nodes(m)["d"].input[1] = "target"


def c4(m):
    m.graph.node[0].input[1] = "t"


def c5(m):
    initialize(m, "init (float[2] z) => (float[2] w0) { w0 = Neg(z) }")


def c6(m):
    m.training_info[0].initialization_binding.add(key="w", value="w0")


def c7(m):
    m.training_info[0].update_binding[0].key = "x"


def c8(m):
    initialize(m, "init () => (float[2] w0) <float[2] z = {1, 1}> { w0 = Neg(z) }")
    m.training_info[0].initialization_binding.add(key="w", value="w1")


def c9(m):
    m.training_info[0].update_binding[0].value = "s"


def c10(m):
    m.training_info[0].update_binding.add(key="w", value="w_new")


def c11(m):
    second = m.training_info.add()
    second.algorithm.CopyFrom(onnx.parser.parse_graph("again () => (float[2] w2) { w2 = Neg(w) }"))
    second.update_binding.add(key="w", value="w2")


def c12(m):
    m.training_info[0].update_binding[0].value = "loss"


def c13(m):
    nodes(m)["g"].input.pop()


def c14(m):
    nodes(m)["g"].output.append("g2")


def c15(m):
    next(a for a in nodes(m)["g"].attribute if a.name == "y").s = b"s"


def c16(m):
    strings(m, "zs").append(b"y")
    nodes(m)["g"].input.append("y")


def c16_warning(m):
    strings(m, "zs").pop()
    nodes(m)["g"].input.pop()


def c17(m):
    m.training_info[0].algorithm.initializer.append(helper.make_tensor("n", TensorProto.INT64, [], [0]))
    strings(m, "xs").append(b"n")
    del nodes(m)["g"].input[:]
    nodes(m)["g"].input.extend(["w", "n", "x", "t"])


def c18(m):
    algorithm = m.training_info[0].algorithm
    algorithm.initializer.append(helper.make_tensor("T", TensorProto.INT64, [], [0]))
    algorithm.node.append(helper.make_node("Adam", ["lr", "T", "w", "g"], ["w_adam"], domain=TRAINING))


def c19(m):
    nodes(m)["g"].op_type = "Gradients"


def c20(m):
    values = helper.make_tensor("sparse", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [1])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    m.training_info[0].update_binding.add(key="sparse", value="w_new")


DAMAGE = {f.__name__: f for f in (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c16_warning,
                                  c17, c18, c19, c20)}
RULE = {"c4": "", "c11": "G1", "c16_warning": "C16"}  # C4 is ordinary validity, C11 is softened by ruling G1


def finding(name):
    m = good()
    DAMAGE[name](m)
    rule = RULE.get(name, name.upper())
    found = [f for f in ot.check(m.SerializeToString()) if f["rule"] == rule]
    assert found, (name, ot.check(m.SerializeToString()))
    return m, found[0]


def shown(f):
    """A finding as the page has it."""
    return f"{f['level']}[{f['code']}]: {f['message']}" + (f"\n  help: {f['hint']}" if f["hint"] else "")


@pytest.mark.parametrize("name", DAMAGE)
def test_rule(name):
    m, f = finding(name)
    assert f["code"] in PAGE
    if name != "c4":
        assert shown(f) in PAGE
    if f["level"] == "error":
        with pytest.raises(ot.ModelError) as e:
            ot.load(m.SerializeToString())
        assert e.value.code == f["code"]
    else:
        ot.load(m.SerializeToString())
    if name not in ("c2", "c4"):
        onnx.checker.check_model(m)  # the standard's own checker accepts it, as the page says


def test_every_rule_and_ruling_has_its_row():
    rows = re.findall(r"^\| ([CG]\d+) \|", PAGE, re.M)
    assert rows == [f"C{k}" for k in range(1, 21)] + [f"G{k}" for k in range(1, 17) if k not in (3, 10, 11)]


SOURCES = ("src/**/*.cpp", "src/**/*.hpp", "include/**/*.h*", "python/onnxtrain/**/*.py", "tests/**/*.py",
           "docs/**/*.md", "*.md")


def test_what_is_cited_is_there():
    """Rules and rulings by number, pages by name: nothing points outside the repository."""
    rows = set(re.findall(r"^\| ([CG]\d+) \|", PAGE, re.M))
    sections = set(re.findall(r"^## (\d+) ", (ROOT / "docs/safety.md").read_text(), re.M))
    wrong = []
    for path in (p for pattern in SOURCES for p in ROOT.glob(pattern)):
        text = path.read_text()
        if path.name == pathlib.Path(__file__).name:
            continue
        text = text.replace("no rulings G3, G10 and G11", "")
        for kind, number in re.findall(r"\b(?:[Rr]ul(?:e|ing)s? )([CG])(\d+)\b", text):
            if f"{kind}{number}" not in rows:
                wrong.append(f"{path.name}: {kind}{number}")
        for number in re.findall(r"safety\.md, (\d+)", text):
            if number not in sections:
                wrong.append(f"{path.name}: safety.md {number}")
        for page in re.findall(r"\bdocs/([\w/-]+\.md)\b", text):
            if not (ROOT / "docs" / page).exists():
                wrong.append(f"{path.name}: docs/{page}")
        for page in re.findall(r"\]\(([\w./-]+\.md)\)", text) if path.suffix == ".md" else ():
            if not (path.parent / page).exists():
                wrong.append(f"{path.name}: {page}")
        outside = re.search(r"(?<!docs/)\bsafety\.md\b|training-files\.md|interface\.md", text)
        if outside and path.suffix in (".cpp", ".hpp"):
            wrong.append(f"{path.name}: a page without its folder")
    assert not wrong, wrong


def test_gradient_is_evaluated_at_the_given_values():
    """`Gradient` with inputs other than the named tensors."""
    m = good()
    algorithm = m.training_info[0].algorithm
    algorithm.initializer.append(helper.make_tensor("there", TensorProto.FLOAT, [2], [10.0, 20.0]))
    nodes(m)["g"].input[0] = "there"
    t = ot.Trainer(ot.load(m.SerializeToString()))
    t.step({"x": np.float32([1, 1]), "t": np.float32([0, 0])})
    np.testing.assert_allclose(t.state["w"], [1 - 0.1 * 2 * 10, 2 - 0.1 * 2 * 20], rtol=1e-6)


def test_initialize_resets_then_runs_the_initialization():
    m = good()
    initialize(m, "init () => (float[2] w0) <float[2] z = {5, 6}> { w0 = Neg(z) }")
    t = ot.Trainer(ot.load(m.SerializeToString()))
    t.step({"x": np.float32([1, 1]), "t": np.float32([0, 0])})
    t.initialize()
    assert t.state["w"].tolist() == [1, 2]  # no binding: the stored value
    m.training_info[0].initialization_binding.add(key="w", value="w0")
    t = ot.Trainer(ot.load(m.SerializeToString()))
    t.initialize()
    assert t.state["w"].tolist() == [-5, -6] and t.step_count == 0


def optimizer_step(op, attributes, states, t):
    """One update of x = 3 with gradient 2 and state 0.5 by ONNX's operator, here and by the page's formula."""
    names = ["x", "g"] + [f"s{k}" for k in range(states)]
    results = ["x_new"] + [f"n{k}" for k in range(states)]
    node = helper.make_node(op, ["r", "t", *names], results, domain=TRAINING, **attributes)
    one = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
    scalars = [helper.make_tensor_value_info("r", TensorProto.FLOAT, []),
               helper.make_tensor_value_info("t", TensorProto.INT64, [])]
    graph = helper.make_graph([node], "g", scalars + [one(name) for name in names], [one("x_new")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    m = helper.make_model(graph, opset_imports=imports, ir_version=8)
    feeds = {"r": np.float32(0.1), "t": np.int64(t), "x": np.float32([3]), "g": np.float32([2])}
    feeds |= {f"s{k}": np.float32([0.5]) for k in range(states)}
    return ot.Session(m.SerializeToString()).run(feeds)["x_new"][0]


@pytest.mark.parametrize("t", [0, 1, 3])
def test_formulas_of_the_optimizers(t):
    R, X, G, S, c, eps = 0.1, 3.0, 2.0, 0.5, 0.25, 1e-3
    g = c * X + G
    H = S + g * g
    attributes = {"decay_factor": 0.5, "epsilon": eps, "norm_coefficient": c}
    expected = X - R / (1 + t * 0.5) * g / (H**0.5 + eps)
    assert optimizer_step("Adagrad", attributes, 1, t) == pytest.approx(expected, rel=1e-6)
    alpha, beta = 0.9, 0.75
    V = alpha * S + (beta if t > 0 else 1) * g
    for mode, way in (("standard", V), ("nesterov", g + alpha * V)):
        attributes = {"alpha": alpha, "beta": beta, "norm_coefficient": c, "mode": mode}
        assert optimizer_step("Momentum", attributes, 1, t) == pytest.approx(X - R * way, rel=1e-6)
    V, H = alpha * S + (1 - alpha) * g, beta * S + (1 - beta) * g * g
    Rc = R * (1 - beta**t) ** 0.5 / (1 - alpha**t) if t > 0 else R
    attributes = {"alpha": alpha, "beta": beta, "epsilon": eps, "norm_coefficient": c, "norm_coefficient_post": 0.125}
    expected = (1 - 0.125) * (X - Rc * V / (H**0.5 + eps))
    assert optimizer_step("Adam", attributes, 2, t) == pytest.approx(expected, rel=1e-6)


def test_ir_versions_of_the_page():
    opsets, irs = (re.search(rf"^\| {name} \|(.*)\|$", PAGE, re.M).group(1).split("|") for name in ("opset", "IR"))
    table = {opset.strip(): ir.strip() for opset, ir in zip(opsets, irs)}
    official = {str(v[2]): str(v[1]) for v in helper.VERSION_TABLE if v[2] >= 12}
    assert table == official
    for opset, ir in table.items():
        m = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["" : {opset}]>'
                                    "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }")
        if int(opset) >= 15:  # prepare brings older ones to 17
            made = onnx.load_from_string(ot.prepare(m.SerializeToString(), loss="mse").proto())
            assert made.ir_version >= int(ir) and made.ir_version == max(int(ir), 8), opset


def test_gradients_have_a_value_info():
    plain = ot.parse('<ir_version: 8, opset_import: ["" : 17]>'
                     "g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }")
    made = onnx.load_from_string(ot.prepare(plain, loss="mse").proto())
    algorithm = made.training_info[0].algorithm
    typed = {v.name for v in [*algorithm.value_info, *algorithm.output]}
    assert {o for n in algorithm.node if n.op_type == "Gradient" for o in n.output} <= typed
