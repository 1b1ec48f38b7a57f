"""Cases of standard operators that the backend suite leaves out and other runtimes run."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxtrain as ot


def run(op, opset, attributes, **inputs):
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for k, v in inputs.items()]
    g = helper.make_graph([helper.make_node(op, list(inputs), ["y"], **attributes)], "g", infos,
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return ot.Session(m.SerializeToString()).run(inputs)["y"], m


def grid(theta, sizes, aligned):
    """The definition: base coordinates, x first and 1 last, times theta."""
    axes = [(-1 + 2 * np.arange(n) / max(n - 1, 1)) if aligned else (2 * np.arange(n) + 1) / n - 1 for n in sizes]
    base = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(sizes)], -1)
    return np.einsum("...k,njk->n...j", base, theta)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [[1, 1, 2, 3], [2, 1, 1, 4], [3, 2, 4, 1], [1, 1, 1, 1], [1, 1, 2, 3, 4],
                                  [2, 1, 1, 3, 1]])
def test_affine_grid_of_one_picture_and_of_sizes_of_one(size, aligned):
    k = len(size) - 2
    theta = np.random.default_rng(0).normal(size=(size[0], k, k + 1)).astype(np.float32)
    y, model = run("AffineGrid", 20, {"align_corners": aligned}, theta=theta, size=np.array(size, np.int64))
    np.testing.assert_allclose(y, grid(theta, size[2:], aligned), atol=1e-6)
    g = ot.gradients(ot.load(model.SerializeToString()), {"theta": theta, "size": np.array(size, np.int64)},
                     wrt=["theta"])["theta"]
    ones = np.zeros_like(theta)
    ones[:] = grid(np.eye(k + 1)[None], size[2:], aligned).reshape(-1, k + 1).sum(0)  # d sum / d theta: the summed base
    np.testing.assert_allclose(g, ones, atol=1e-5)


def test_group_normalization_of_opset_18_scales_by_group():
    x = np.random.default_rng(1).normal(size=(2, 6, 3)).astype(np.float32)
    scale, bias = np.array([2, -1, 0.5], np.float32), np.array([0, 1, 3], np.float32)
    y, model = run("GroupNormalization", 18, {"num_groups": 3, "epsilon": 1e-3}, x=x, scale=scale, bias=bias)
    groups = x.reshape(2, 3, -1)
    n = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, (n * scale[:, None] + bias[:, None]).reshape(x.shape), atol=1e-5)
    assert [(f["code"], f["level"]) for f in ot.check(model.SerializeToString())] == [("OT1023", "warning")]
    with pytest.raises(onnx.checker.ValidationError):  # withdrawn by the standard: a reason to warn
        onnx.checker.check_model(model)
