"""Means over more elements than the data's type can count: the gradient is right against float64."""

import ml_dtypes
import numpy as np
import pytest

import onnxtrain as ot

MODEL = """<ir_version: 10, opset_import: ["" : 18]>
g (%s[%s] x) => (%s y) { y = ReduceMean<keepdims=0>(x) }"""


@pytest.mark.parametrize("size", ["N", "count"])
@pytest.mark.parametrize("name, dtype, tolerance", [
    ("float16", np.float16, 1e-3), ("bfloat16", ml_dtypes.bfloat16, 8e-3), ("float", np.float32, 1e-6)])
@pytest.mark.parametrize("count", [70_000, (1 << 24) + 8])
def test_mean(name, dtype, tolerance, count, size):
    model = ot.parse(MODEL % (name, "N" if size == "N" else count, name))
    cotangent = 0.5 * count / 64  # the exact gradient is 1 / 128
    if cotangent > 60_000 and name == "float16":
        cotangent = 60_000.0
    x = np.zeros(count, dtype)
    given = np.asarray(cotangent, dtype)
    got = ot.gradients(model, {"x": x}, of="y", wrt=["x"], cotangent=given)["x"].astype(np.float64)
    want = float(given) / count
    assert np.all(np.abs(got - want) <= tolerance * want + 3e-8)
