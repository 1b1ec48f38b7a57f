"""`predict(proba=, labels=)` and the estimators take from the library what an output holds, as the program does."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 4)).astype(np.float32)


def model(tail, width, output="p"):
    """x [N,4] -> Gemm -> the operators of `tail` -> output [N,width]."""
    weight = numpy_helper.from_array(RNG.normal(size=(4, width)).astype(np.float32), "w")
    bias = numpy_helper.from_array(np.zeros(width, np.float32), "b")
    shape = numpy_helper.from_array(np.array([-1, width]), "shape")
    nodes, last = [helper.make_node("Gemm", ["x", "w", "b"], ["z0"])], "z0"
    for k, op in enumerate(tail, 1):
        out = output if k == len(tail) else f"z{k}"
        inputs, attributes = [last], {}
        if op == "Reshape":
            inputs.append("shape")
        if op in ("Softmax", "LogSoftmax"):
            attributes["axis"] = -1
        nodes.append(helper.make_node(op, inputs, [out], **attributes))
        last = out
    if not tail:
        nodes[0].output[0] = output
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", width])],
                              [weight, bias, shape])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("tail", [[], ["Softmax"], ["Softmax", "Reshape"], ["Softmax", "Identity"], ["LogSoftmax"]],
                         ids=lambda t: "-".join(t) or "scores")
def test_probabilities_of_classes(tail):
    """Probabilities are not sent through a second softmax, whatever stands behind the first."""
    m = ot.load(model(tail, 3)).compile(loss="nll" if tail == ["LogSoftmax"] else "cross_entropy")
    m.fit(X, RNG.integers(0, 3, 60), epochs=1, verbose=0)
    raw = m.predict(X)
    p = m.predict(X, proba=True)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    if "Softmax" in tail:
        np.testing.assert_array_equal(p, raw)
    else:
        np.testing.assert_allclose(p, np.exp(raw) / np.exp(raw).sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(m.predict(X, labels=True), raw.argmax(1))


@pytest.mark.parametrize("tail", [[], ["Sigmoid"], ["Sigmoid", "Reshape"]], ids=lambda t: "-".join(t) or "score")
def test_one_score_for_two_classes(tail):
    m = ot.load(model(tail, 1)).compile(loss="bce" if tail else "bce_logits")
    m.fit(X, (X[:, :1] > 0).astype(np.float32), epochs=1, verbose=0)
    raw = m.predict(X)
    np.testing.assert_allclose(m.predict(X, proba=True), raw if tail else 1 / (1 + np.exp(-raw)), rtol=1e-5)
    np.testing.assert_array_equal(m.predict(X, labels=True), (raw[:, 0] > (0.5 if tail else 0)).astype(int))


def test_numbers_are_no_scores():
    m = ot.load(model([], 2)).compile(loss="mse")
    m.fit(X, RNG.normal(size=(60, 2)).astype(np.float32), epochs=1, verbose=0)
    for asked in ({"proba": True}, {"labels": True}):
        with pytest.raises(ot.UsageError, match="holds no scores of classes"):
            m.predict(X, **asked)


@pytest.mark.parametrize("tail", [["Softmax"], ["Softmax", "Reshape"]], ids="-".join)
def test_estimators_too(tail):
    file = ot.load(model(tail, 3))
    labels = np.array(["ash", "oak", "fir"])[RNG.integers(0, 3, 60)]
    found = ot.OnnxClassifier(file, epochs=1).fit(X, labels)
    np.testing.assert_allclose(found.predict_proba(X), found.model_.predict(X), rtol=1e-5)


def test_estimator_of_one_score():
    file = ot.load(model(["Sigmoid", "Reshape"], 1))
    found = ot.OnnxClassifier(file, loss="bce", epochs=1).fit(X, X[:, 0] > 0)
    np.testing.assert_allclose(found.predict_proba(X)[:, 1], found.model_.predict(X)[:, 0], rtol=1e-5)
