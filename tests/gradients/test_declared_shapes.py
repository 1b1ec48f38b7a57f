"""Shapes that a file declares for outputs and loop states are hints: what nothing proves is found out while running."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import onnxtrain as ot

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
X = np.array([0.5, 1, 2], np.float32)


def loop(state, scan, stacked, grows):
    """A state of 3 numbers that grows or shrinks in each of 3 iterations, under whatever shapes are declared."""
    change = [h.make_node("Concat", ["m", "one"], ["s2"], axis=0)] if grows else [
        h.make_node("Greater", ["m", "one"], ["k"]), h.make_node("Compress", ["m", "k"], ["s2"], axis=0)]
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), h.make_node("Mul", ["s", "w"], ["m"]), *change,
         h.make_node("ReduceSum", ["s2"], ["sum"], keepdims=1)], "b",
        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
         h.make_tensor_value_info("s", T.FLOAT, state)],
        [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("s2", T.FLOAT, state),
         h.make_tensor_value_info("sum", T.FLOAT, scan)])
    g = h.make_graph(
        [h.make_node("Loop", ["trips", "", "x"], ["y", "sums"], "again", body=body),
         h.make_node("ReduceSum", ["y"], ["z"], keepdims=0)], "g", [h.make_tensor_value_info("x", T.FLOAT, [3])],
        [h.make_tensor_value_info("z", T.FLOAT, []), h.make_tensor_value_info("sums", T.FLOAT, stacked),
         h.make_tensor_value_info("y", T.FLOAT, state)],
        [h.make_tensor("trips", T.INT64, [], [3]), h.make_tensor("w", T.FLOAT, [1], [1.5]),
         h.make_tensor("one", T.FLOAT, [1], [1.0])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("declared", [(None, None, None), ([3], [1], [3, 1]), ([3], [7], [9]), ([4], [2, 2], [3, 4])])
def test_loop_states_are_stacked_by_what_they_are(declared, grows):
    model = ot.load(loop(*declared, grows))
    plain = ot.load(loop(None, None, None, grows))
    out = ot.Session(plain).run({"x": X})
    for of in ("z", "sums"):
        one = {"cotangent": np.ones_like(out[of])}
        got = ot.gradients(model, {"x": X}, of=of, wrt=["x", "w"], **one)
        want = ot.gradients(plain, {"x": X}, of=of, wrt=["x", "w"], **one)
        for name in want:
            np.testing.assert_array_equal(got[name], want[name])
    # z = sum of x w^3 (all that stay), and the ones that were appended
    kept = X if grows else X[1:]
    assert np.isclose(ot.gradients(model, {"x": X}, of="z", wrt=["w"])["w"][0],
                      (kept * 3 * 1.5**2).sum() + (2 * 1.5 + 1 if grows else 0), rtol=1e-5)


def prepared(text, loss="mse"):
    return ot.prepare(ot.parse(HEAD + text), loss=loss, optimizer=ot.SGD(lr=0.1))


def test_a_declared_size_that_nothing_proves_is_no_size_of_the_target():
    m = prepared("g (float[N,1,H,W] x) => (float[N,1,960,960] y) <float[1] w = {0.5}> { y = Mul(x, w) }")
    t = ot.Trainer(m)
    x = np.ones((2, 1, 8, 8), np.float32)
    assert t.step({"x": x, "label": 0 * x}).loss == pytest.approx(0.25)


def test_a_proven_size_stays_one():
    m = prepared("g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> { y = MatMul(x, w) }")
    with pytest.raises(ot.DataError, match="dimension 1 is 2 instead of 3"):
        ot.Trainer(m).step({"x": np.ones((2, 4), np.float32), "label": np.ones((2, 2), np.float32)})


@pytest.mark.parametrize("loss", ["mse", "l1", "huber", "bce_logits", "hinge"])
@pytest.mark.parametrize("shape", [(4, 1), (1, 3), (1, 1)])
def test_a_target_is_never_repeated(loss, shape):
    t = ot.Trainer(prepared("g (float[N,M] x) => (float[N,M] y) <float[1] w = {0.5}> { y = Mul(x, w) }", loss))
    x = np.ones((4, 3), np.float32)
    with pytest.raises(ot.DataError, match=r"\[4,3\]"):
        t.step({"x": x, "label": np.ones(shape, np.float32)})
    assert np.isfinite(t.step({"x": x, "label": np.ones((4, 3), np.float32)}).loss)


def test_a_training_written_by_hand_may_repeat_what_it_likes():
    m = onnx.load_from_string(prepared("g (float[N,M] x) => (float[N,M] y) <float[1] w = {0.5}> { y = Mul(x, w) }")
                              .proto())
    del m.metadata_props[:]
    t = ot.Trainer(ot.load(m.SerializeToString()))
    assert np.isfinite(t.step({"x": np.ones((4, 3), np.float32), "label": np.ones((4, 1), np.float32)}).loss)
