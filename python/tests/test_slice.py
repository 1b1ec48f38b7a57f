"""The thin way through everything: a graph made here, prepared, trained, saved, resumed, exported."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxtrain as ot
from models import feeds, mlp


def batch(n=32, seed=1):
    return feeds(n, seed)


def reference_step(m, feeds, lr):
    """One step of plain gradient descent on softmax cross-entropy, in float64."""
    w = {i.name: numpy_helper.to_array(i).astype(np.float64) for i in m.graph.initializer}
    x, y = feeds["x"].astype(np.float64), feeds["label"]
    h = x @ w["fc1.weight"].T + w["fc1.bias"]
    a = np.maximum(h, 0)
    z = a @ w["fc2.weight"].T + w["fc2.bias"]
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    dz = p.copy()
    dz[np.arange(len(y)), y] -= 1
    dz /= len(y)
    da = dz @ w["fc2.weight"]
    dh = da * (h > 0)
    grads = {"fc2.weight": dz.T @ a, "fc2.bias": dz.sum(0), "fc1.weight": dh.T @ x, "fc1.bias": dh.sum(0)}
    return loss, {k: v - lr * grads[k] for k, v in w.items()}


def test_inference():
    m = mlp()
    x = batch()["x"]
    w = {i.name: numpy_helper.to_array(i) for i in m.graph.initializer}
    want = np.maximum(x @ w["fc1.weight"].T + w["fc1.bias"], 0) @ w["fc2.weight"].T + w["fc2.bias"]
    got = ot.Session(m.SerializeToString()).run({"x": x})["logits"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_sgd_step_is_exact():
    m, feeds = mlp(), batch()
    loss, want = reference_step(m, feeds, 0.1)
    t = ot.Trainer(ot.prepare(m.SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1)))
    assert t.step(feeds).loss == pytest.approx(loss, rel=1e-5)
    for name, value in want.items():
        np.testing.assert_allclose(t.state[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("optimizer", [ot.SGD(lr=0.1, momentum=0.9), ot.Adam(lr=1e-2), ot.AdamW(lr=1e-2)])
def test_loss_falls_and_training_is_in_the_file(optimizer, tmp_path):
    train = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=optimizer)
    assert ot.check(train) == []
    onnx.checker.check_model(onnx.load_from_string(train.proto()))
    feeds = batch(64)
    t = ot.Trainer(train, seed=3)
    losses = [t.step(feeds).loss for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    # continue from the saved file: the same numbers as without the interruption
    t.save(tmp_path / "mid.train.onnx")
    again = ot.Trainer(ot.load(tmp_path / "mid.train.onnx"), seed=3)
    assert [t.step(feeds).loss for _ in range(5)] == [again.step(feeds).loss for _ in range(5)]
    t.export(tmp_path / "trained.onnx")
    exported = onnx.load(tmp_path / "trained.onnx")
    assert len(exported.training_info) == 0
    onnx.checker.check_model(exported, full_check=True)
    got = ot.Session(tmp_path / "trained.onnx").run({"x": feeds["x"]})["logits"]
    assert (got.argmax(1) == feeds["label"]).mean() > 0.9


def test_threads_do_not_change_bits():
    feeds, results = batch(64), []
    for threads in (1, 2, 4):
        t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2)),
                       threads=threads)
        for _ in range(20):
            t.step(feeds)
        results.append({k: v.tobytes() for k, v in t.state.items()})
    assert results[0] == results[1] == results[2]


def test_gradients_of_anything():
    m, feeds = mlp(), batch(8)
    g = ot.gradients(m.SerializeToString(), {"x": feeds["x"]}, of="logits", wrt=["x", "fc2.bias", "a"])
    np.testing.assert_allclose(g["fc2.bias"], [8, 8, 8], rtol=1e-6)
    assert g["x"].shape == (8, 4) and g["a"].shape == (8, 16)


def test_errors_name_the_input():
    s = ot.Session(mlp().SerializeToString())
    with pytest.raises(ot.DataError, match="'x'.*rank 1 instead of 2"):
        s.run({"x": np.zeros(4, np.float32)})
    with pytest.raises(ot.DataError, match="no input named 'y'; the inputs are 'x'"):
        s.run({"x": np.zeros((1, 4), np.float32), "y": np.zeros(1)})
    with pytest.raises(ot.DataError, match="element type"):
        s.run({"x": np.zeros((1, 4))})
    with pytest.raises(ot.ModelError):
        ot.load(b"not a model")


def test_four_lines(tmp_path):
    m, f = mlp(), batch(512)
    (tmp_path / "mlp.onnx").write_bytes(m.SerializeToString())
    model = ot.load(tmp_path / "mlp.onnx")
    model.compile(loss="auto", optimizer=ot.AdamW(lr=1e-2), metrics=["accuracy"])
    history = model.fit(f["x"], f["label"], valid=0.2, epochs=8, batch_size=32, out=tmp_path / "run")
    model.export(tmp_path / "trained.onnx")
    assert history["valid_accuracy"][-1] > 0.8 and len(history) == 8
    assert (tmp_path / "run/checkpoints/last.train.onnx").exists() and (tmp_path / "run/metrics.csv").exists()
    got = ot.Session(tmp_path / "trained.onnx").run({"x": f["x"]})["logits"]
    np.testing.assert_array_equal(got, model.predict(f["x"]))
    assert model.evaluate(f["x"], f["label"])["accuracy"] == pytest.approx((got.argmax(1) == f["label"]).mean())


def test_resumed_run_is_the_uninterrupted_run(tmp_path):
    f = batch(300)
    train = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    whole = ot.Trainer(train, seed=5)
    whole.fit(f["x"], f["label"], epochs=4, batch_size=32)
    part = ot.Trainer(train, seed=5)
    part.fit(f["x"], f["label"], epochs=4, batch_size=32, steps=17, out=tmp_path / "run")
    rest = ot.resume(tmp_path / "run")
    assert rest.step_count == 17
    rest.fit(f["x"], f["label"], epochs=4, batch_size=32)
    assert rest.step_count == whole.step_count
    for name in whole.state:
        assert whole.state[name].tobytes() == rest.state[name].tobytes(), name


def test_damaged_checkpoint_is_refused(tmp_path):
    t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1)))
    path = tmp_path / "c.train.onnx"
    t.save(path)
    data = bytearray(path.read_bytes())
    weight = t.state["fc1.weight"].tobytes()
    at = bytes(data).index(weight[:32])
    data[at + 5] ^= 0x40
    path.write_bytes(bytes(data))
    with pytest.raises(ot.CheckpointError, match="fc1.weight"):
        ot.resume(path)


def test_evaluation_uses_the_inference_form():
    """Dropout is live in the step and off when the same weights are evaluated."""
    m = mlp(hidden=64)
    relu = m.graph.node[1]
    relu.output[0] = "before"
    ratio = numpy_helper.from_array(np.float32(0.5), "ratio")
    m.graph.initializer.append(ratio)
    m.graph.node.insert(2, helper.make_node("Dropout", ["before", "ratio"], ["a"], "drop"))
    feeds = batch(256)
    t = ot.Trainer(ot.prepare(m.SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.0)), seed=1)
    steps = [t.step(feeds).loss for _ in range(3)]
    assert len(set(steps)) == 3  # another mask each time
    z = ot.Session(m.SerializeToString()).run({"x": feeds["x"]})["logits"].astype(np.float64)
    z -= z.max(1, keepdims=True)
    want = -(z[np.arange(256), feeds["label"]] - np.log(np.exp(z).sum(1))).mean()
    got = t.evaluate(feeds["x"], feeds["label"])["loss"]
    assert got == pytest.approx(want, rel=1e-5)
    assert t.evaluate(feeds["x"], feeds["label"])["loss"] == got
