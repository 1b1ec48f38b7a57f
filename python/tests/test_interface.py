"""The Python interface line by line: every name, argument, default and kind of result that scripts rely on."""

import inspect
import os
import signal
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import helper

import onnxtrain as ot
from models import feeds, mlp, rows, two_heads


# ---- load, Model
def test_load(path):
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes())):
        assert isinstance(ot.load(source), ot.Model)
    model = ot.load(path)
    assert model.inputs == ["x"] and model.outputs == ["logits"]
    assert list(model.parameters) == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert isinstance(model.parameters["fc1.weight"], np.ndarray) and model.parameters["fc1.weight"].dtype == np.float32
    assert isinstance(model.proto(), bytes)
    onnx.checker.check_model(onnx.load_from_string(model.proto()))


def test_summary_is_text(path):
    text = ot.prepare(path).summary()
    assert isinstance(text, str) and repr(text) == str(text)
    for word in ("x", "logits", "float[N,3]", "4 initializers", "training 0", "label"):
        assert word in text


def test_save_keeps_everything(path, tmp_path):
    model = ot.load(path)
    model.parameters["fc1.bias"] = np.arange(16, dtype=np.float32)
    model.save(tmp_path / "again.onnx")
    again = ot.load(tmp_path / "again.onnx")
    np.testing.assert_array_equal(again.parameters["fc1.bias"], np.arange(16))
    with pytest.raises(KeyError):
        again.parameters["nothing"]


def test_parse():
    model = ot.parse('<ir_version: 8, opset_import: ["": 17]> double (float[N] x) => (float[N] y) { y = Add (x, x) }')
    assert ot.Session(model).run({"x": np.float32([1, 2])})["y"].tolist() == [2, 4]


# ---- Trainer
def test_trainer_signature():
    p = inspect.signature(ot.Trainer).parameters
    assert list(p)[:3] == ["model", "seed", "threads"] and p["seed"].default == 0


def test_step_result(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.1)), seed=0, threads=2)
    r = t.step(feeds())
    assert type(r.loss) is float and isinstance(r.outputs, dict)
    assert float(r.outputs["loss"]) == pytest.approx(r.loss)
    assert t.step_count == 1 and t.step(feeds(), which=0).loss < r.loss and t.step_count == 2
    with pytest.raises(ot.Error):
        t.step(feeds(), which=1)


def test_state_read_and_write(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.01)))
    assert {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc1.weight.exp_avg", "T"} <= set(t.state)
    new = np.full((3, 16), 0.25, np.float32)
    t.state["fc2.weight"] = new
    np.testing.assert_array_equal(t.state["fc2.weight"], new)
    np.testing.assert_array_equal(t.model().parameters["fc2.weight"], new)
    t.state["fc2.weight"][:] = 7  # what was read is a copy
    np.testing.assert_array_equal(t.state["fc2.weight"], new)
    with pytest.raises(KeyError):
        t.state["nothing"] = new
    with pytest.raises(ot.Error):
        t.state["fc2.weight"] = np.zeros((2, 2), np.float32)
    with pytest.raises(TypeError):
        del t.state["T"]


def test_rate(path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.5)))
    assert t.lr == pytest.approx(0.5)
    t.lr = 0.0
    before = t.state["fc1.weight"]
    t.step(feeds())
    np.testing.assert_array_equal(t.state["fc1.weight"], before)


def test_save_and_export(path, tmp_path):
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.AdamW(lr=0.01)))
    for _ in range(3):
        t.step(feeds())
    t.save(tmp_path / "last.train.onnx")
    t.export(str(tmp_path / "model.onnx"))
    for name in ("last.train.onnx", "model.onnx"):
        onnx.checker.check_model(onnx.load(tmp_path / name), full_check=True)
    assert not ot.load(tmp_path / "model.onnx").trainable
    again = ot.Trainer(tmp_path / "last.train.onnx")
    assert [again.step(feeds()).loss for _ in range(3)] == [t.step(feeds()).loss for _ in range(3)]


# ---- Session
def test_session_run(path):
    s = ot.Session(path)
    x, _ = rows(5)
    out = s.run({"x": x})
    assert list(out) == ["logits"] and out["logits"].shape == (5, 3)
    assert list(s.run({"x": x}, outputs=["logits"])) == ["logits"] and list(s.run({"x": x}, "logits")) == ["logits"]
    with pytest.raises(ot.Error):
        s.run({"x": x}, outputs=["nothing"])


def node_model(op, inputs, outputs, domain="", opset=21, **attributes):
    graph = helper.make_graph([helper.make_node(op, [i.name for i in inputs], [o.name for o in outputs], **attributes)],
                              "g", inputs, outputs)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10
    ).SerializeToString()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_types_beyond_numpy(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    number = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19, "uint4": 21, "int4": 22}[name]
    value = np.array([[1, 2], [3, 7]]).astype(getattr(ml_dtypes, name))
    m = node_model("Identity", [helper.make_tensor_value_info("x", number, [2, 2])],
                   [helper.make_tensor_value_info("y", number, [2, 2])])
    got = ot.Session(m).run({"x": value})["y"]
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got.astype(np.float32), value.astype(np.float32))


def test_sequences_and_optionals():
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None)))
    m = node_model("SequenceInsert", [sequence, helper.make_tensor_value_info("x", 1, None)],
                   [helper.make_value_info("t", sequence.type)])
    out = ot.Session(m).run({"s": [np.ones(2, np.float32), np.ones((1, 3), np.float32)], "x": np.float32(5)})["t"]
    assert isinstance(out, list) and [a.shape for a in out] == [(2,), (1, 3), ()]
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))
    m = node_model("OptionalHasElement", [helper.make_value_info("o", optional)],
                   [helper.make_tensor_value_info("b", 9, [])])
    s = ot.Session(m)
    assert not s.run({"o": None})["b"] and s.run({"o": np.ones(2, np.float32)})["b"]
    m = node_model("Identity", [helper.make_value_info("o", optional)], [helper.make_value_info("p", optional)])
    assert ot.Session(m).run({"o": None})["p"] is None


# ---- gradients
def test_gradients(path):
    x, _ = rows(6)
    w2 = ot.load(path).parameters["fc2.weight"].astype(np.float64)
    g = ot.gradients(path, {"x": x})
    assert set(g) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}
    np.testing.assert_allclose(g["fc2.bias"], [6, 6, 6])
    c = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    for cotangent in (c, {"logits": c}):
        g = ot.gradients(path, {"x": x}, of="logits", wrt=["a", "fc2.bias", "x"], cotangent=cotangent)
        np.testing.assert_allclose(g["a"], c @ w2, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(g["fc2.bias"], c.sum(0), rtol=1e-4, atol=1e-5)
        assert g["x"].shape == x.shape


def test_gradients_of_a_training_loss(path):
    """The loss of a training section can be asked for by name; one step of plain descent is minus the gradient."""
    train, f = ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=1.0)), feeds()
    t = ot.Trainer(train)
    before = {n: t.state[n] for n in ("fc1.weight", "fc2.bias")}
    t.step(f)
    g = ot.gradients(train, f, of="loss", wrt=list(before))
    for name, value in before.items():
        np.testing.assert_allclose(g[name], value - t.state[name], rtol=1e-4, atol=1e-6)


def test_gradients_of_several_outputs():
    x, _ = rows(3)
    c = {"scores": np.zeros((3, 3), np.float32), "size": np.ones((3, 1), np.float32)}
    g = ot.gradients(two_heads(), {"x": x}, of=["scores", "size"], wrt="scores.bias", cotangent=c)
    assert list(g) == ["scores.bias"] and (g["scores.bias"] == 0).all()
    g = ot.gradients(two_heads(), {"x": x}, of="size", wrt=["scores.weight", "size.bias"])
    assert (g["scores.weight"] == 0).all() and g["size.bias"] == [3]
    with pytest.raises(ot.UsageError):
        ot.gradients(two_heads(), {"x": x}, cotangent=c["size"])
    with pytest.raises(ot.UsageError):
        ot.gradients(two_heads(), {"x": x}, of="size", cotangent=c)


# ---- errors, threads, signals
def test_exceptions(path, tmp_path):
    for kind in (ot.ModelError, ot.DataError, ot.DivergedError, ot.CheckpointError, ot.UsageError):
        assert issubclass(kind, ot.Error)
    with pytest.raises(ot.ModelError) as e:
        ot.load(b"not a model")
    assert e.value.code.startswith("OT") and isinstance(e.value.hint, str) and e.value.code in str(e.value)
    with pytest.raises(ot.DataError) as e:
        ot.load(path).compile(loss="cross_entropy").fit(rows(9)[0], np.arange(9) % 3 + 1)
    assert e.value.code == "OT2104" and "y - 1" in e.value.hint
    with pytest.raises(ot.DivergedError):
        ot.load(path).compile(loss="cross_entropy", optimizer=ot.SGD(lr=1e30)).fit(*rows(64), epochs=5)
    with pytest.raises(ot.Error):
        ot.load(tmp_path / "missing.onnx")


def wide():
    return ot.prepare(mlp(inputs=256, hidden=1024, classes=256), loss="mse", optimizer=ot.SGD(lr=1e-3))


def test_gil_is_free_during_steps():
    """While one thread steps, another one gets on with Python."""
    t, x = ot.Trainer(wide(), threads=1), np.zeros((256, 256), np.float32)
    f = {"x": x, "label": x}
    t.step(f)

    def counted_meanwhile():
        counted, done = 0, threading.Event()
        worker = threading.Thread(target=lambda: (t.steps(f, 20), done.set()))
        worker.start()
        while not done.is_set():  # `steps` is one call into the library: with the GIL held nothing is counted
            counted += 1
            time.sleep(0.0001)
        worker.join()
        return counted

    assert any(counted_meanwhile() > 3 for _ in range(20))


def test_threads_share_a_trainer_and_a_session(path):
    """Whoever comes second waits: the sum of the work is the same as from one thread."""
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    alone = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    s, f = ot.Session(path), feeds()
    want, wrong = s.run({"x": f["x"]})["logits"], []

    def work():
        for _ in range(50):
            t.step(f)
            if not (s.run({"x": f["x"]})["logits"] == want).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    for _ in range(200):
        alone.step(f)
    assert not wrong and t.step_count == 200 and t.state["fc1.weight"].tobytes() == alone.state["fc1.weight"].tobytes()


def test_interrupt_saves_and_stops(path, tmp_path):
    x, y = rows(2000)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.SGD(lr=0.01)))
    calls = []

    def on_epoch(entry):
        calls.append(entry["epoch"])
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)  # ignored when the tests were started in the background
    with pytest.raises(KeyboardInterrupt):
        t.fit(x, y, epochs=10_000, batch_size=8, out=tmp_path / "run", on_epoch=on_epoch)
    assert 2 <= len(calls) < 5
    assert ot.resume(tmp_path / "run").step_count == t.step_count
    assert signal.getsignal(signal.SIGINT) is before


def test_callback_stops_and_raises(path):
    x, y = rows(100)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy"))
    assert len(t.fit(x, y, epochs=9, on_epoch=lambda e: e["epoch"] == 2)) == 2
    with pytest.raises(ZeroDivisionError):
        t.fit(x, y, epochs=9, on_epoch=lambda e: 1 / 0)


def test_backend_module():
    import onnxtrain.backend as backend

    x, _ = rows(3)
    m = mlp()
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    prepared = backend.prepare(m).run([x])[0]
    np.testing.assert_array_equal(backend.run_model(m, [x])[0], prepared)
    assert backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])[0].shape == x.shape


def test_results_that_are_kept_stay():
    """Memory of results serves again only when nobody holds them, nor a view of them."""
    session = ot.Session(ot.parse("<ir_version: 8, opset_import: [\"\": 17]> g (float[N,1000] x) => (float[N,1000] y, "
                                  "float[N,1000] z) {\n"
                                  "  y = Neg(x)\n  z = Abs(x)\n}"))
    x = lambda k: np.full((300, 1000), k, np.float32)  # noqa: E731
    kept = [session.run({"x": x(k)}) for k in range(4)]
    views = [r["y"][3:5] for r in kept]
    for k, r in enumerate(kept):
        assert (r["y"] == -k).all() and (r["z"] == k).all()
    del kept, r
    for k in range(4, 20):
        last = session.run({"x": x(k)})
        assert (last["y"] == -k).all() and (last["z"] == k).all()
        last["y"][:] = 7  # the caller's own
    assert all((v == -k).all() for k, v in enumerate(views))
    other = session.run({"x": x(1)[:5]})
    assert other["y"].shape == (5, 1000) and (other["y"] == -1).all() and (last["y"] == 7).all()
