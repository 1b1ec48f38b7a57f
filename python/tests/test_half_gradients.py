"""float16 gradients that are too small for their type are said at the first step."""

import warnings

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import onnxtrain as ot


def model(kind, dtype):
    r = np.random.default_rng(0)
    g = h.make_graph(
        [h.make_node("MatMul", ["x", "a"], ["h"]), h.make_node("Relu", ["h"], ["r"]),
         h.make_node("MatMul", ["r", "b"], ["y"])], "g", [h.make_tensor_value_info("x", kind, ["N", 64])],
        [h.make_tensor_value_info("y", kind, ["N", 1])],
        [numpy_helper.from_array(r.normal(0, 0.1, (64, 32)).astype(dtype), "a"),
         numpy_helper.from_array(r.normal(0, 0.1, (32, 1)).astype(dtype), "b")])
    return ot.load(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())


def codes(kind, dtype, distance, weight=1):
    """Warnings of a training whose targets are so far from the outputs."""
    r, m = np.random.default_rng(1), model(kind, dtype)
    x = r.normal(size=(256, 64)).astype(dtype)
    y = (ot.Session(m).run({"x": x})["y"] + r.normal(0, distance, (256, 1))).astype(dtype)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m.compile(loss=weight * ot.losses.MSE(), optimizer=ot.SGD(lr=1e-3 / weight)).fit(x, y, epochs=1, valid=0)
    return [w for w in map(str, (s.message for s in said)) if "OT1288" in w]


@pytest.mark.parametrize("distance", [1e-4, 1e-5])
def test_small_gradients_are_said(distance):
    assert codes(T.FLOAT16, np.float16, distance)


def test_ordinary_ones_are_not():
    assert not codes(T.FLOAT16, np.float16, 0.1)
    assert not codes(T.FLOAT, np.float32, 1e-5)


def test_the_hint_helps():
    assert not codes(T.FLOAT16, np.float16, 1e-4, weight=1024)
