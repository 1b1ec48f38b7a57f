"""A cast to text or integers stops the gradient, wherever it stands; one to another floating-point type does not."""

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import onnxtrain as ot


def casts(source, through, target):
    return [h.make_node("Cast", [source], ["between"], to=through),
            h.make_node("Cast", ["between"], [target], to=T.FLOAT)]


def plain(through):
    return casts("a", through, "y")


def in_loop(through):
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), *casts("s", through, "s2")], "body",
        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
         h.make_tensor_value_info("s", T.FLOAT, None)],
        [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("s2", T.FLOAT, None)])
    return [h.make_node("Loop", ["n", "", "a"], ["y"], body=body)]


@pytest.mark.parametrize("where", [plain, in_loop])
@pytest.mark.parametrize(("through", "flows"), [(T.STRING, False), (T.INT32, False), (T.DOUBLE, True)])
def test_what_a_cast_lets_through(where, through, flows):
    weights = [numpy_helper.from_array(np.full((3, 2), 0.5, np.float32), "w"),
               numpy_helper.from_array(np.array(2), "n")]
    g = h.make_graph([h.make_node("MatMul", ["x", "w"], ["a"]), *where(through)], "g",
                     [h.make_tensor_value_info("x", T.FLOAT, [2, 3])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                     weights)
    m = ot.load(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())
    got = ot.gradients(m, {"x": np.ones((2, 3), np.float32)}, wrt=["w"])["w"]
    assert np.array_equal(got, np.full((3, 2), 2.0 if flows else 0.0))
