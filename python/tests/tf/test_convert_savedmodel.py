"""`onnxtrain convert` with SavedModels, and the example."""

import importlib.util
from pathlib import Path

import numpy as np
import tensorflow as tf

import onnxtrain as ot
from onnxtrain import convert

TEXT = """
<ir_version: 10, opset_import: ["" : 22]>
main (float[n, 3] x) => (float[n, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }
"""


def test_there_and_back(tmp_path, capsys):
    ot.prepare(ot.parse(TEXT), loss="mse", optimizer=ot.Adam(lr=0.1)).save(tmp_path / "m.train.onnx")
    folder = tmp_path / "saved"
    assert convert.main([str(tmp_path / "m.train.onnx"), str(folder), "--to", "savedmodel", "--verify"]) == 0
    assert "agree" in capsys.readouterr().out
    loaded = tf.saved_model.load(folder)
    feeds = {"x": np.ones((4, 3), np.float32), "label": np.zeros((4, 2), np.float32)}
    want = [ot.Trainer(ot.load(tmp_path / "m.train.onnx")).step(feeds).loss]
    np.testing.assert_allclose(float(loaded.train_step(**feeds)["loss"]), want[0], rtol=1e-6)
    assert convert.main([str(folder), str(tmp_path / "back.train.onnx"), "--verify"]) == 0
    assert ot.load(tmp_path / "back.train.onnx").trainable


def test_the_example():
    path = Path(__file__).resolve().parents[3] / "examples" / "savedmodel" / "run.py"
    spec = importlib.util.spec_from_file_location("savedmodel_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() < 1e-5


def test_bad_arguments(tmp_path, capsys):
    ot.parse(TEXT).save(tmp_path / "m.onnx")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    assert convert.main([str(tmp_path / "m.onnx"), str(tmp_path / "full"), "--to", "savedmodel"]) == 2
    assert convert.main([str(tmp_path / "full"), str(tmp_path / "o.onnx")]) == 2
    text = capsys.readouterr().err
    assert "not an empty folder" in text and "saved_model.pb" in text
    assert (tmp_path / "full" / "file").read_text() == "x"
