"""Gradients: a sample of tests/gradients/run.py (which runs everything), PyTorch's numbers, the table of operators,
and the words of refusal."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
sys.path.insert(0, str(Path(__file__).parent))
import extras  # noqa: E402
import lowering  # noqa: E402
import onnxtrain as ot  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

# every so many-th case of each section; the numbers keep the whole within two minutes of one core. All of `lowered`:
# each case says whether it is rightly in own_session.txt
SAMPLE = {"suite": 12, "extra": 6, "versions": 9, "shapes": 10, "dynamic": 16, "narrow": 25, "second": 18, "third": 3,
          "lowered": 1, "torch": 1}


@pytest.mark.parametrize("section", SAMPLE)
def test_section(section):
    todo = run.jobs([section], take=SAMPLE[section])
    bad, agree = [], 0
    for _, label, _, r, _ in run.run(todo):
        why = run.failed(section, label, r)
        agree += r.status == "ok"
        if why:
            bad.append(f"  {label}: {why}")
    assert not bad, f"{len(bad)} of {len(todo)} cases:\n" + "\n".join(bad)
    assert agree > len(todo) / 4  # most of the others have nothing to compare


def test_no_more_cases_are_stepped_by_our_own_session():
    """A smaller number is good news: write it here. A larger one needs a better reason than the list can give."""
    assert len(lowering.own_session()) <= 157


def test_no_operator_lacks_a_rule():
    missing = [r.name for r in table.rows() if r.kind == "missing"]
    assert not missing, f"no gradient, no function body and no reason: {missing}"
    tagged = [r.name for r in table.rows() if r.tagged and r.kind == "reason"]
    assert not tagged, f"ONNX says that these have a derivative: {tagged}"
    assert len(table.rows()) > 220


def test_every_own_operator_can_be_differentiated_or_says_why():
    for (domain, name), records in table.records().items():
        for r in records:
            assert r["gradient"] or r["lowered"] or r["why_not"], f"{domain}.{name}"


TWO_BLOCKED = """agraph (float[2,3] x, float[3] w) => (float[3] det) {
    two = Constant <value_ints = [3]> ()  ones = Constant <value_floats = [1.0, 1.0, 1.0]> ()
    a = Mul (x, w)  q, s, z = DynamicQuantizeLinear (a)  h = Mul (ones, s)  r, k = TopK <axis = 0> (h, two)
    b = Bernoulli (r)  det = Mul (b, w) }"""


def test_a_path_without_derivative_names_every_node():
    case = extras.text_case("blocked", TWO_BLOCKED, {})
    feeds = {"x": np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32), "w": np.ones(3, np.float32)}
    with pytest.raises(ot.ModelError) as e:
        ot.gradients(case.model.SerializeToString(), feeds, of="det", wrt=["x"])
    said = str(e.value)
    assert e.value.code == "OT1203" and e.value.hint
    assert "operator 'Bernoulli'" in said and "operator 'DynamicQuantizeLinear'" in said, said
    lines = [line.strip() for line in said.splitlines() if "depends on it by" in line]
    assert len(lines) == 2 and all(line.endswith("-> output 'det'") for line in lines), said
    assert "a -> DynamicQuantizeLinear" in said and "onnxtrain.gradients" not in lines[0], said


def test_a_path_that_is_not_needed_does_not_block():
    case = extras.text_case("partly", """agraph (float[2,3] x, float[3] w) => (float[2,3] y) {
        b = Bernoulli (x)  y = Mul (b, w) }""", {})
    feeds = {"x": np.full((2, 3), 0.5, np.float32), "w": np.ones(3, np.float32)}
    assert ot.gradients(case.model.SerializeToString(), feeds, wrt=["w"])["w"].shape == (3,)


GRADIENT = """agraph (float[3] x, float[3] w) => ({outs}) {{
    a = Mul (x, w)  b = Tanh (a)  y = {last} (b)
    {node} }}"""
TRAINING = ', "ai.onnx.preview.training" : 1'


def run_gradient(node, outs, last="ReduceSum <keepdims = 0>", **feeds):
    case = extras.text_case("gradient", GRADIENT.format(node=node, outs=outs, last=last), {}, more=TRAINING)
    return ot.Session(case.model.SerializeToString()).run(feeds)


X, W = np.array([0.3, -0.7, 1.1], np.float32), np.array([0.5, 2.0, -1.0], np.float32)
SLOPE = (1 - np.tanh(X * W) ** 2).astype(np.float32)


def test_gradient_operator():
    # an intermediate tensor
    got = run_gradient('da = ai.onnx.preview.training.Gradient <xs = ["a"], y = "y"> (a)', "float[3] da", x=X, w=W)
    np.testing.assert_allclose(got["da"], SLOPE, rtol=1e-6)
    # an output left out
    got = run_gradient('_, dw = ai.onnx.preview.training.Gradient <xs = ["x", "w"], y = "y"> (x, w)'.replace("_,", ","),
                       "float[3] dw", x=X, w=W)
    np.testing.assert_allclose(got["dw"], SLOPE * X, rtol=1e-6)
    # values that differ from the named tensors: the graph is evaluated again
    got = run_gradient('v = Neg (x)  dx = ai.onnx.preview.training.Gradient <xs = ["x"], zs = ["w"], y = "y"> (v, w)',
                       "float[3] dx", x=X, w=W)
    np.testing.assert_allclose(got["dx"], SLOPE * W, rtol=1e-6)
    # y that is not a scalar: with ones (G12)
    got = run_gradient('dx = ai.onnx.preview.training.Gradient <xs = ["x"], zs = ["w"], y = "y"> (x, w)',
                       "float[3] dx", last="Identity", x=X, w=W)
    np.testing.assert_allclose(got["dx"], SLOPE * W, rtol=1e-6)
    # y that does not depend on xs: zeros
    got = run_gradient('z = Neg (w)  dx = ai.onnx.preview.training.Gradient <xs = ["x"], zs = ["w"], y = "z"> (x, w)',
                       "float[3] dx", x=X, w=W)
    np.testing.assert_array_equal(got["dx"], np.zeros(3, np.float32))


def test_gradient_of_gradient_of_gradient():
    node = "\n".join(f'g{k} = ai.onnx.preview.training.Gradient <xs = ["x"], zs = ["w"], y = "{y}"> (x, w)'
                     for k, y in ((1, "y"), (2, "g1"), (3, "g2")))
    got = run_gradient(node, "float[3] g1, float[3] g2, float[3] g3", x=X, w=W)
    t = np.tanh(X.astype(np.float64) * W)
    np.testing.assert_allclose(got["g2"], -2 * t * (1 - t**2) * W**2, rtol=1e-4)
    np.testing.assert_allclose(got["g3"], (6 * t**2 - 2) * (1 - t**2) * W**3, rtol=1e-4)
