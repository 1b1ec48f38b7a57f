"""The writer of ONNX files that the converters use: what it writes is what the package `onnx` reads."""

import numpy as np
import pytest

from onnxtrain.converters import onnx_file as files
from onnxtrain.converters.emitter import Emitter
from onnxtrain.converters.functions import Body


def written():
    onnx = pytest.importorskip("onnx")
    e = Emitter()
    product = e.op("MatMul", "x", "w")
    scaled = e.op("Mul", product, e.const(2.0, np.float32))
    assert e.op("Mul", product, e.const(2.0, np.float32)) == scaled  # the same computation once
    assert e.place(scaled, "out", e.main, set()) == "out"
    body = Body("Halve", ["decay"], ["X", "G"])
    body.output("X1", body["X"] - body.like(body.attr("decay") * 2, "X") * body["G"].abs())
    e.part = e.algorithm
    gradient = e.node("Gradient", ["w", "x"], named=["w_grad"], domain="ai.onnx.preview.training", xs=["w"], zs=["x"],
                      y=scaled)[0]
    e.rename(gradient, "w_gradient")
    e.node("Halve", ["w", gradient], named=["w_new"], domain="ai.onnxtrain", decay=np.array(0.5))
    main, algorithm, *_ = e.split(["out"], ["w_new"])
    weights = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    graph = files.Graph("g", main, [files.Info("x", "float32", ["batch", 2])],
                        [files.Info("out", "float32", ["batch", 3])], weights)
    step = files.Graph("step", algorithm, [], [files.Info("w_new", "float32", [2, 3])])
    model = files.Model(graph, {"": 22, "ai.onnxtrain": 1, "ai.onnx.preview.training": 1},
                        [files.Training(step, [("w", "w_new")])], [body.function()], {"key": "value"})
    return onnx, onnx.ModelProto.FromString(model.encode())


def test_onnx_reads_it():
    onnx, proto = written()
    onnx.checker.check_model(proto)
    assert [n.op_type for n in proto.graph.node] == ["MatMul", "Constant", "Mul"]
    assert [n.op_type for n in proto.training_info[0].algorithm.node] == ["Gradient", "Halve"]
    assert proto.training_info[0].algorithm.node[0].output == ["w_gradient"]
    assert proto.training_info[0].update_binding[0].value == "w_new"
    assert proto.metadata_props[0].value == "value"
    assert [n.op_type for n in proto.functions[0].node][-1] == "Identity"


@pytest.mark.parametrize("array", [np.array(-3, np.int64), np.arange(6.0).reshape(2, 3), np.array(["a", "ß"], object),
                                   np.array([True, False]), np.zeros([0, 2], np.float16), np.arange(3, dtype=np.uint8)])
def test_tensors(array):
    onnx = pytest.importorskip("onnx")
    got = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(files.encode_tensor(array, "t")))
    assert got.shape == array.shape
    assert [v.decode() if isinstance(v, bytes) else v for v in got.reshape(-1).tolist()] == array.reshape(-1).tolist()


def test_attributes():
    onnx = pytest.importorskip("onnx")
    attrs = {"a": 1, "b": 2.5, "c": "text", "d": [1, -2], "e": [0.5], "f": ["x", "y"], "g": np.array([1.0])}
    graph = files.Graph("g", [files.Node("Any", [], ["y"], "d", "n", attrs)], [], [files.Info("y", "float32", None)])
    node = onnx.ModelProto.FromString(files.Model(graph, {"": 22, "d": 1}).encode()).graph.node[0]
    got = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert onnx.numpy_helper.to_array(got.pop("g")).tolist() == [1.0]
    assert got == {"a": 1, "b": 2.5, "c": b"text", "d": [1, -2], "e": [0.5], "f": [b"x", b"y"]}
