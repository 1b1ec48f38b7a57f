"""Steps written by hand that read the number of rows: in blocks of rows it is that of the whole batch."""

import numpy as np
import onnx
import pytest

import onnxtrain as ot

MODEL = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.preview.training": 1]>
m (float[N,3] x) => (float[N,1] y) <float[3,1] w = {0.3,-0.2,0.1}>
{ y = MatMul(x, w) }"""
STEP = """step (float[N,1] target) => (float loss, float[3,1] w_next OUTPUTS) <float rate = {0.05} STATE>
{
  e = Sub(y, target)
  s = Mul(e, e)
  BODY
  g = ai.onnx.preview.training.Gradient<xs = ["w"], zs = ["x", "target"], y = "loss">(w, x, target)
  AFTER
  move = Mul(by, g)
  w_next = Sub(w, move)
}"""
NUMBER = "size = Size(target)\n  n = Cast<to = 1>(size)\n  "
MEAN, SUM = "loss = ReduceMean<keepdims = 0>(s)", "loss = ReduceSum<keepdims = 0>(s)"
CASES = {
    "rate by the size of the batch": (SUM, NUMBER + "by = Div(rate, n)", "", ""),
    "rate by the root of it": (SUM, NUMBER + "r = Sqrt(n)\n  by = Div(rate, r)", "", ""),
    "loss by the root of it": ("a = ReduceSum<keepdims = 0>(s)\n  " + NUMBER + "r = Sqrt(n)\n  loss = Div(a, r)",
                               "by = Identity(rate)", "", ""),
    "variance of the data, outside of the loss": (
        MEAN + "\n  mean = ReduceMean<axes = [0], keepdims = 1>(x)\n  d = Sub(x, mean)\n  dd = Mul(d, d)\n"
        "  first = Constant<value = int64[1] {0}>()\n  sum = ReduceSum<keepdims = 0>(dd, first)\n  " + NUMBER
        + "one = Constant<value = float {1.0}>()\n  less = Sub(n, one)\n  v_next = Div(sum, less)",
        "by = Identity(rate)", ", float[3] v_next", ", float[3] v = {0,0,0}"),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_the_whole_batch(name, tmp_path):
    body, after, outputs, state = CASES[name]
    model = onnx.parser.parse_model(MODEL)
    section = model.training_info.add()
    section.algorithm.CopyFrom(onnx.parser.parse_graph(
        STEP.replace("BODY", body).replace("AFTER", after).replace("OUTPUTS", outputs).replace("STATE", state)))
    for key in ("w", "v") if state else ("w",):
        section.update_binding.add(key=key, value=f"{key}_next")
    path = tmp_path / "step.train.onnx"
    path.write_bytes(model.SerializeToString())
    one, rng = ot.Trainer(path, threads=1), np.random.default_rng(1)
    cut = [ot.Trainer(path, threads=1, micro_blocks=k) for k in (2, 5)]
    for rows in (12, 5, 3, 12):
        batch = {"x": rng.normal(size=(rows, 3)).astype("f4"), "target": rng.normal(size=(rows, 1)).astype("f4")}
        loss = one.step(batch).loss
        for t in cut:
            assert t.step(batch).loss == pytest.approx(loss, rel=2e-6)
    for t in cut:
        for key in one.state:
            np.testing.assert_allclose(one.state[key], t.state[key], rtol=1e-5, atol=1e-6, err_msg=key)
