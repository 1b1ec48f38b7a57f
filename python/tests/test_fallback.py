"""Operators that the library does not know, run by ONNX Runtime inside an otherwise native plan."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot
from onnxtrain import foreign

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
CLI = Path(sys.executable).parent / "onnxtrain"


@pytest.fixture
def fallback():
    ot.fallback("onnxruntime")
    yield
    ot.fallback(None)
    foreign._gradients.clear()


def inverse(name, x, y):
    return helper.make_node("Inverse", [x], [y], domain="com.microsoft", name=name)


def model(nodes, weights=(), functions=()):
    """x [N, 2, 2] -> y [N, 2, 2]"""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 2, 2])],
                              [helper.make_tensor_value_info("y", 1, ["N", 2, 2])],
                              [onnx.numpy_helper.from_array(np.float32(v), k) for k, v in weights])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions).SerializeToString()


def data(n=5):
    rng = np.random.RandomState(0)
    return (rng.randn(n, 2, 2) + 3 * np.eye(2)).astype(np.float32)


def two_neighbours():
    return model([helper.make_node("MatMul", ["x", "w"], ["a"], name="first"), inverse("one", "a", "b"),
                  inverse("two", "b", "c"), inverse("three", "c", "d"),
                  helper.make_node("MatMul", ["d", "v"], ["y"], name="last")],
                 [("w", [[1.0, 0.2], [0.1, 1.0]]), ("v", [[0.5, 0.0], [0.3, 1.0]])])


def test_off_by_default_and_the_error_says_the_flag():
    with pytest.raises(ot.ModelError, match="(?s)com.microsoft.Inverse.*'one'.*'two'.*'three'.*ot.fallback"):
        ot.Session(two_neighbours())
    assert any(p["code"] == "OT1101" for p in ot.check(two_neighbours()))


def test_neighbours_are_one_partition_with_the_numbers_of_onnxruntime(fallback, monkeypatch):
    calls = []
    compute = foreign.OnnxRuntime.compute
    monkeypatch.setattr(foreign.OnnxRuntime, "compute",
                        lambda self, m, about, a: calls.append(about) or compute(self, m, about, a))
    session = ot.Session(two_neighbours())
    want = onnxruntime.InferenceSession(two_neighbours()).run(None, {"x": data()})[0]
    np.testing.assert_allclose(session.run({"x": data()})["y"], want, rtol=1e-5, atol=1e-6)
    assert len(calls) == 1 and calls[0].count("Inverse") == 3
    np.testing.assert_allclose(session.run({"x": data(3)})["y"], want[:3], rtol=1e-5, atol=1e-6)
    assert ot.check(two_neighbours()) == []


def test_training_behind_a_foreign_node_needs_no_gradient_of_it(fallback, tmp_path):
    m = model([inverse("one", "x", "a"), helper.make_node("MatMul", ["a", "v"], ["y"], name="last")],
              [("v", [[0.5, 0.1], [0.3, 1.0]])])
    t = ot.Trainer(ot.prepare(m, loss="mse", optimizer=ot.Adam(lr=0.05)))
    target = np.linalg.inv(data()).astype(np.float32)
    losses = [t.step({"x": data(), "label": target}).loss for _ in range(100)]
    assert losses[-1] < 0.05 * losses[0]
    t.export(tmp_path / "out.onnx")
    kept = onnx.load(tmp_path / "out.onnx")
    assert [n.op_type for n in kept.graph.node] == ["Inverse", "MatMul"]
    got = onnxruntime.InferenceSession(str(tmp_path / "out.onnx")).run(None, {"x": data()})[0]
    np.testing.assert_allclose(got, ot.Session(tmp_path / "out.onnx").run({"x": data()})["y"], rtol=1e-4, atol=1e-5)


def trains_before(m):
    t = ot.Trainer(ot.prepare(m, loss="mse", optimizer=ot.Adam(lr=0.02)))
    target = np.linalg.inv(data() @ np.float32([[1.5, 0.0], [0.0, 0.7]])).astype(np.float32)
    return [t.step({"x": data(), "label": target}).loss for _ in range(60)]


WEIGHT = [("w", [[1.0, 0.2], [0.1, 1.0]])]


def test_a_gradient_that_nobody_said_is_refused_by_name(fallback):
    m = model([helper.make_node("MatMul", ["x", "w"], ["a"]), inverse("the_inverse", "a", "y")], WEIGHT)
    with pytest.raises(ot.Error, match="(?s)the_inverse.*Inverse.*register_op"):
        trains_before(m)


def test_a_step_for_other_runtimes_names_the_foreign_node(fallback, tmp_path):
    m = model([inverse("the_inverse", "x", "a"), helper.make_node("MatMul", ["a", "w"], ["y"])], WEIGHT)
    train = ot.prepare(ot.load(m), loss="mse", optimizer=ot.SGD(lr=0.1))
    with pytest.raises(ot.Error, match="the_inverse.*com.microsoft.*another runtime") as e:
        ot.export_step(train, tmp_path / "step.onnx")
    assert e.value.code == "OT1260"


def inverse_gradient(inputs, outputs, dys):
    t = np.swapaxes(outputs[0], 1, 2)
    return [-t @ dys[0] @ t]


def test_a_registered_gradient(fallback):
    ot.register_op("com.microsoft", "Inverse", gradient=inverse_gradient)
    m = model([helper.make_node("MatMul", ["x", "w"], ["a"]), inverse("the_inverse", "a", "y")], WEIGHT)
    losses = trains_before(m)
    assert losses[-1] < 0.2 * losses[0]
    given, seed = {"x": data(2)}, np.random.RandomState(1).randn(2, 2, 2).astype(np.float32)
    got = ot.gradients(m, given, of="y", wrt=["x", "w"], cotangent=seed)
    session, step = ot.Session(m), 1e-2
    direction = np.random.RandomState(2).randn(2, 2, 2).astype(np.float32)
    up, down = (session.run({"x": given["x"] + s * direction})["y"] for s in (np.float32(step), np.float32(-step)))
    assert np.sum(got["x"] * direction) == pytest.approx(np.sum((up - down) * seed) / (2 * step), rel=2e-2, abs=1e-3)


def test_a_registered_gradient_that_is_wrong_is_said(fallback):
    ot.register_op("com.microsoft", "Inverse", gradient=lambda inputs, outputs, dys: [])
    m = model([helper.make_node("MatMul", ["x", "w"], ["a"]), inverse("the_inverse", "a", "y")], WEIGHT)
    with pytest.raises(ot.Error, match="returned 0 arrays for 1 inputs"):
        trains_before(m)


def test_a_gradient_in_the_file(fallback):
    body = [helper.make_node("Transpose", ["Y"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["t", "dY"], ["a"]),
            helper.make_node("MatMul", ["a", "t"], ["b"]), helper.make_node("Neg", ["b"], ["dX"])]
    f = helper.make_function("com.microsoft", "Inverse_grad", ["X", "Y", "dY"], ["dX"], body,
                             [helper.make_opsetid("", 17)])
    m = model([helper.make_node("MatMul", ["x", "w"], ["a"]), inverse("the_inverse", "a", "y")], WEIGHT, [f])
    losses = trains_before(m)
    assert losses[-1] < 0.2 * losses[0]


def test_mistakes(tmp_path):
    with pytest.raises(ot.UsageError, match="known: onnxruntime"):
        ot.fallback("somewhere")
    with pytest.raises(ot.UsageError, match="there is no library"):
        ot.fallback("onnxruntime", custom_ops=[tmp_path / "none.so"])
    with pytest.raises(ot.UsageError, match="not a function"):
        ot.register_op("a", "b", gradient=3)


def test_an_operator_that_neither_knows(fallback):
    m = model([helper.make_node("Nonsense", ["x"], ["y"], domain="com.microsoft", name="n")])
    with pytest.raises(ot.Error, match="(?s)onnxruntime failed.*Nonsense"):
        ot.Session(m).run({"x": data()})


def test_the_command_line(tmp_path):
    m = model([inverse("one", "x", "a"), helper.make_node("MatMul", ["a", "v"], ["y"], name="last")],
              [("v", [[0.5, 0.1], [0.3, 1.0]])])
    (tmp_path / "m.onnx").write_bytes(m)
    np.savez(tmp_path / "d.npz", x=data(16), label=np.linalg.inv(data(16)).astype(np.float32))

    def run(*arguments):
        return subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path)
    np.savez(tmp_path / "in.npz", x=data())
    without = run("run", "m.onnx", "--inputs", "in.npz", "-o", "o.npz")
    assert without.returncode == 3 and "--fallback onnxruntime" in without.stderr
    done = run("run", "m.onnx", "--inputs", "in.npz", "-o", "o.npz", "--fallback", "onnxruntime")
    assert done.returncode == 0, done.stderr
    want = np.linalg.inv(data()) @ np.float32([[0.5, 0.1], [0.3, 1.0]])
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], want, rtol=1e-4, atol=1e-5)
    done = run("train", "m.onnx", "--data", "d.npz", "--loss", "mse", "--epochs", "2", "--batch", "4", "--valid", "0",
               "--fallback", "onnxruntime", "--progress", "none")
    assert done.returncode == 0, done.stderr
    assert "1 node runs in onnxruntime" in done.stderr + done.stdout
    done = run("run", "m.onnx", "--inputs", "in.npz", "-o", "o.npz", "--fallback", "nothing")
    assert done.returncode == 2 and "known: onnxruntime" in done.stderr
    done = run("run", "m.onnx", "--inputs", "in.npz", "-o", "o.npz", "--custom-ops", "x.so")
    assert done.returncode == 2 and "--fallback onnxruntime" in done.stderr
