"""Gradients over more elements than the data's type can count: all cases of large.py at 70,000, some at 2^24 + 8
(all of them: tests/gradients/run.py --section large), a training step, and values of large means."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).parent))
import large  # noqa: E402
from large import COUNTS, TYPES  # noqa: E402

QUICK = ["mean, open", "variance", "BatchNormalization", "running variance", "cross entropy", "LayerNormalization",
         "AveragePool", "bias", "Gather"]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", large.CASES)
def test_more_than_float16_counts(case, kind):
    assert not large.compare(case, kind, COUNTS[0])


@pytest.mark.parametrize("case", QUICK)
def test_more_than_float32_counts(case):
    assert not large.compare(case, "float", COUNTS[1])


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("loss", ["mse", "l1", "huber", "bce_logits"])
@pytest.mark.parametrize("kind", TYPES)
def test_training_moves(kind, loss, lowered):
    """A mean over 131072 outputs: weights and the running variance of a BatchNormalization change as in double."""
    rows = 1 << 17
    text = """g (float[B,2] x) => (float[B,1] y)
        <float[2,1] w = {0.5, -0.25}, float[1] c = {0.125}, float[1] s = {1}, float[1] b = {0}, float[1] m = {0},
         float[1] v = {1}> { h = Gemm(x, w, c)  y = BatchNormalization(h, s, b, m, v) }"""

    def trained(kind, dtype):
        proto = large.in_type(onnx.load_from_string(large.parsed(text[2:]).proto()), kind, dtype)
        model = ot.prepare(ot.load(proto.SerializeToString()), loss=loss, optimizer=ot.SGD(lr=0.5), lowered=lowered,
                           batch=rows if lowered else None)
        t = ot.Trainer(model)
        x = np.random.default_rng(0).uniform(-1, 1, (rows, 2)).astype(np.float16).astype(dtype)
        label = (x[:, :1] > 0).astype(dtype) if loss == "bce_logits" else (2 * x[:, :1] + 1).astype(dtype)
        t.step({"x": x, "label": label})
        return {n: np.asarray(t.state[n], np.float64) for n in ("w", "c", "s", "b", "m", "v")}

    got, want = trained(kind, TYPES[kind][0]), trained("double", np.float64)
    for name in got:
        assert np.isfinite(got[name]).all(), name
        np.testing.assert_allclose(got[name], want[name], rtol=2 * TYPES[kind][1], atol=TYPES[kind][1], err_msg=name)
    assert loss == "bce_logits" or abs(got["b"] - 0).max() > 0.1, "the bias did not move"


@pytest.mark.parametrize("case", ["mean", "variance", "GlobalAveragePool", "AveragePool"])
def test_values_of_large_means(case):
    """Not only their gradients: float32 sums of 2^24 elements, beside float64."""
    text, of, _ = large.CASES[case]
    shape = large.dims_of(text[: text.index("=>")], "x", COUNTS[1])
    text = text.replace("@", str(COUNTS[1]))
    x = np.random.default_rng(7).uniform(0, 1, shape).astype(np.float32)
    want = ot.Session(large.parsed(text.replace("%", "double"))).run({"x": x.astype(np.float64)})[of]
    got = ot.Session(large.parsed(text.replace("%", "float"))).run({"x": x})[of]
    np.testing.assert_allclose(got, want, rtol=TYPES["float"][1])
