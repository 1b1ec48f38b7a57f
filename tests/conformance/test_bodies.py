"""Operators that run through the standard's bodies, where a body is wrong for some inputs."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxtrain as ot


def affine_grid(theta, height, width):
    """Centres of pixels from -1 to 1, moved."""
    y, x = (np.arange(n) * 2 / n + 1 / n - 1 for n in (height, width))
    points = np.stack([*np.meshgrid(x, y), np.ones((height, width))], -1)
    return np.einsum("hwk,njk->nhwj", points, theta)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("first", ["N", None])
def test_affine_grid_of_any_batch(rows, first):
    node = helper.make_node("AffineGrid", ["theta", "size"], ["grid"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("theta", TensorProto.FLOAT, [first or rows, 2, 3]),
                                            helper.make_tensor_value_info("size", TensorProto.INT64, [4])],
                              [helper.make_tensor_value_info("grid", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    theta = np.random.default_rng(0).standard_normal((rows, 2, 3)).astype(np.float32)
    got = ot.Session(ot.load(model.SerializeToString())).run({"theta": theta, "size": np.array([rows, 3, 4, 5])})["grid"]
    np.testing.assert_allclose(got, affine_grid(theta, 4, 5), rtol=1e-5, atol=1e-6)
