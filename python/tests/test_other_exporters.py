"""Habits of exporters other than PyTorch's: scikit-learn's put the class before its scores,
pack scores into maps and repeat operator sets; TensorFlow's keep constants of the program beside the weights."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import onnxtrain as ot


def classifier(zipped=False, twice=False, other=None, scores="Softmax"):
    """x -> Scaler -> dense -> Softmax; outputs: label (int64), then probabilities as a tensor or as maps."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((4, 3)), "b": np.zeros(3), "head/mul/y:0": np.array(0.5)}
    nodes = [
        h.make_node("Scaler", ["x"], ["scaled"], domain="ai.onnx.ml", offset=[0.0] * 4, scale=[1.0] * 4),
        h.make_node("MatMul", ["scaled", "w"], ["product"]),
        h.make_node("Mul", ["product", "head/mul/y:0"], ["small"]),
        h.make_node("Add", ["small", "b"], ["scores"]),
        h.make_node(scores, ["scores"], ["probabilities"]),
        h.make_node("ArgMax", ["probabilities"], ["label"], axis=1, keepdims=0),
    ]
    outputs = [h.make_tensor_value_info("label", T.INT64, ["N"])]
    if zipped:
        nodes.append(h.make_node("ZipMap", ["probabilities"], ["maps"], domain="ai.onnx.ml",
                                 classlabels_int64s=[0, 1, 2]))
        inner = h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, []))
        outputs.append(h.make_value_info("maps", h.make_sequence_type_proto(inner)))
    else:
        outputs.append(h.make_tensor_value_info("probabilities", T.FLOAT, ["N", 3]))
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 4])], outputs,
                         [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    sets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    if twice:
        sets.append(h.make_opsetid("", other or 17))
    return h.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("zipped", [False, True])
def test_the_loss_is_on_the_scores_not_on_the_class(zipped):
    trained = ot.prepare(classifier(zipped), optimizer=ot.SGD(lr=0.5))
    model = onnx.load_from_string(trained.proto())
    keys = {b.key for b in model.training_info[0].update_binding}
    assert {"w", "b"} <= keys and "head/mul/y:0" not in keys
    assert "target" in [i.name for i in model.training_info[0].algorithm.input]  # 'label' is taken
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((64, 4)).astype(np.float32), rng.integers(0, 3, 64)
    t = ot.Trainer(trained)
    losses = [t.step({"x": x, "target": y}).loss for _ in range(20)]
    w, b = t.state["w"], t.state["b"]
    before = x @ np.asarray(onnx.numpy_helper.to_array(next(i for i in model.graph.initializer if i.name == "w"))) * 0.5
    p = np.exp(before) / np.exp(before).sum(1, keepdims=True)
    assert abs(losses[0] + np.log(p[np.arange(64), y]).mean()) < 1e-6
    assert losses[-1] < losses[0] and w.shape == (4, 3) and b.shape == (3,)


def test_the_same_operator_set_twice_is_harmless_two_versions_are_not():
    x = np.ones((2, 4), np.float32)
    once = ot.Session(classifier()).run({"x": x})["probabilities"]
    assert np.array_equal(ot.Session(classifier(twice=True)).run({"x": x})["probabilities"], once)
    with pytest.raises(ot.ModelError) as e:
        ot.load(classifier(twice=True, other=13))
    assert e.value.code == "OT1021" and "17 and 13" in str(e.value)


def test_probabilities_are_not_taken_for_scores():
    with pytest.raises(ot.ModelError) as e:
        ot.prepare(classifier(scores="HardSigmoid"), optimizer="sgd")
    assert e.value.code == "OT1238" and "probabilities" in str(e.value)
    assert ot.prepare(classifier(scores="HardSigmoid"), loss="cross_entropy", optimizer="sgd") is not None
