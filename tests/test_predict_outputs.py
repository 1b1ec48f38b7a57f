"""predict: every output, to csv, npz, npy and JSON; probabilities; standard input."""

import csv
import io
import json
import sys

import numpy as np
import onnx
import onnx.helper as h
import onnxruntime
import pytest
from onnx import TensorProto as T

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, save  # noqa: E402


def two_outputs():
    """x [N,3] -> scores [N,3] and size [N,1], and a number that belongs to no row."""
    r = np.random.default_rng(0)
    weights = {"w": r.normal(size=(3, 3)), "b": r.normal(size=3), "v": r.normal(size=(3, 1))}
    nodes = [h.make_node("Gemm", ["x", "w", "b"], ["scores"]), h.make_node("MatMul", ["x", "v"], ["size"]),
             h.make_node("ReduceSum", ["size"], ["total"], keepdims=0)]
    outputs = [h.make_tensor_value_info(name, T.FLOAT, shape)
               for name, shape in (("scores", ["N", 3]), ("size", ["N", 1]), ("total", []))]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 3])], outputs,
                     [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def work(tmp_path):
    save(two_outputs(), tmp_path / "m.onnx")
    r = np.random.default_rng(1)
    x = r.normal(size=(50, 3)).astype(np.float32)
    kinds = [("red", "green", "blue")[k] for k in (x @ r.normal(size=(3, 3))).argmax(1)]
    lines = [f"{a},{b},{c},{kind},{a - c}" for (a, b, c), kind in zip(x.tolist(), kinds)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,c,kind,size", *lines]) + "\n")
    (tmp_path / "new.csv").write_text("\n".join(["c,a,b", *(f"{c},{a},{b}" for a, b, c in x[:7].tolist())]) + "\n")
    run = cli("train", "m.onnx", "--data", "d.csv", "--target", "kind", "--drop", "size", "--loss", "cross_entropy",
              "--loss-input", "scores", "--epochs", "3", "--out", "run", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    return tmp_path, x[:7]


def reference(work, x):
    return onnxruntime.InferenceSession(str(work / "run/model.onnx")).run(["scores", "size"], {"x": x})


def test_csv_has_a_column_for_every_output(work):
    folder, x = work
    scores, size = reference(folder, x)
    r = cli("predict", "run", "--data", "new.csv", cwd=folder)
    assert r.returncode == 0, r.stderr
    rows = list(csv.DictReader(io.StringIO(r.stdout)))
    assert list(rows[0]) == ["prediction", "blue", "green", "red", "size"]
    got = np.array([[float(row[c]) for c in ("blue", "green", "red", "size")] for row in rows])
    np.testing.assert_allclose(got, np.hstack([scores, size]), rtol=1e-5, atol=1e-6)
    assert [row["prediction"] for row in rows] == [("blue", "green", "red")[k] for k in scores.argmax(1)]
    assert "output 'total'" in r.stderr and "no value per row" in r.stderr


def test_npz_has_an_array_for_every_output(work):
    folder, x = work
    scores, size = reference(folder, x)
    r = cli("predict", "run", "--data", "new.csv", "-o", "p.npz", "--proba", "--json", cwd=folder)
    assert r.returncode == 0, r.stderr
    with np.load(folder / "p.npz") as p:
        assert set(p.files) == {"scores", "size", "prediction"}
        e = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
        np.testing.assert_allclose(p["scores"], e / e.sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(p["size"], size, rtol=1e-5, atol=1e-6)
        assert p["prediction"].tolist() == [("blue", "green", "red")[k] for k in scores.argmax(1)]
    told = json.loads(r.stdout)
    assert told["rows"] == 7 and told["saved"] == "p.npz" and told["outputs"] == {"scores": [7, 3], "size": [7, 1]}


def test_json_from_standard_input(work):
    folder, x = work
    r = cli("predict", "run", "--data", "-", "--json", cwd=folder, input=(folder / "new.csv").read_text())
    assert r.returncode == 0, r.stderr
    got = json.loads(r.stdout)
    scores, size = reference(folder, x)
    np.testing.assert_allclose(got["outputs"]["scores"], scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["outputs"]["size"], size, rtol=1e-5, atol=1e-6)
    assert got["classes"] == ["blue", "green", "red"] and len(got["prediction"]) == 7


def test_two_losses(work):
    """Probabilities where the loss of an output says that it holds scores."""
    folder, x = work
    text = (folder / "d.csv").read_text()
    for k, name in enumerate(("blue", "green", "red")):
        text = text.replace(name, str(k))
    (folder / "n.csv").write_text(text)
    r = cli("train", "m.onnx", "--data", "n.csv", "--target", "kind,size", "--loss", "scores=cross_entropy:1", "--loss",
            "size=mse:0.5", "--epochs", "2", "--out", "two", cwd=folder)
    assert r.returncode == 0, r.stderr
    r = cli("predict", "two", "--data", "new.csv", "--proba", cwd=folder)
    assert r.returncode == 0, r.stderr
    rows = list(csv.DictReader(io.StringIO(r.stdout)))
    assert list(rows[0]) == ["prediction", "0", "1", "2", "size"]
    np.testing.assert_allclose([sum(float(row[k]) for k in "012") for row in rows], 1, rtol=1e-5)


def test_npy_says_which_output_it_holds(work):
    folder, x = work
    r = cli("predict", "run", "--data", "new.csv", "-o", "p.npy", cwd=folder)
    assert r.returncode == 0 and "'scores' of 2 outputs" in r.stderr
    np.testing.assert_allclose(np.load(folder / "p.npy"), reference(folder, x)[0], rtol=1e-5, atol=1e-6)


def test_a_file_without_any_row_is_refused(tmp_path):
    g = h.make_graph([h.make_node("ReduceSum", ["x"], ["total"], keepdims=0)], "g",
                     [h.make_tensor_value_info("x", T.FLOAT, ["N", 3])],
                     [h.make_tensor_value_info("total", T.FLOAT, [])])
    save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), tmp_path / "s.onnx")
    np.savez(tmp_path / "x.npz", x=np.ones((4, 3), np.float32))
    r = cli("predict", "s.onnx", "--data", "x.npz", cwd=tmp_path)
    assert r.returncode == 4 and "OT2153" in r.stderr and "'total' is [] for 4 rows" in r.stderr


def test_every_report_as_json(tmp_path):
    save(cnn(), tmp_path / "cnn.onnx")
    r = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=r.normal(size=(40, 3, 8, 8)).astype(np.float32), y=r.integers(0, 3, 40))
    for k in ("1", "2"):
        run = cli("train", "cnn.onnx", "--data", "d.npz", "--epochs", k, "--out", "r" + k, "--json", cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert len(lines) == int(k) + 1 and lines[-1]["run"] == "r" + k and lines[-1]["model"] == f"r{k}/model.onnx"
        assert "valid_accuracy" in lines[-1] and [e["epoch"] for e in lines[:-1]] == list(range(1, int(k) + 1))
    def told(*command, code=0):
        run = cli(*command, "--json", cwd=tmp_path)
        assert run.returncode == code, run.stderr
        return json.loads(run.stdout)

    differences = told("diff", "r1", "r2", code=6)
    assert not differences["same"]
    assert any(d.get("name") == "epochs" and d["a"] != d["b"] for d in differences["differences"])
    assert told("diff", "r1", "r1") == {"same": True, "differences": []}
    assert told("export", "r1", "-o", "e.onnx", "--verify") == {"saved": "e.onnx", "relative_difference": 0}
    assert told("prepare", "cnn.onnx", "-o", "t.onnx")["loss"] == "cross_entropy"
    np.savez(tmp_path / "in.npz", x=np.ones((2, 3, 8, 8), np.float32))
    assert next(iter(told("run", "cnn.onnx", "--inputs", "in.npz")["values"].values()))["shape"] == [2, 3]
    assert told("explain", "OT2153")["code"] == "OT2153"
    assert told("doctor")["threads"] >= 1 and "native" in told("doctor")["engines"]
    (tmp_path / "t.csv").write_text("a,b,kind\n" + "".join(f"{k},{k * 7 % 5},{'xy'[k % 2]}\n" for k in range(30)))
    made = told("new", "mlp", "--data", "t.csv", "--target", "kind", "-o", "new.onnx")
    assert made["saved"] == "new.onnx" and set(made["inputs"]) == {"b"} and made["parameters"] > 0
