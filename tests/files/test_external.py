"""External data: read, so that what happens to the file later does not matter; tensors of 256 MiB and more are mapped.
Large files are sparse, so they take no room on the disk."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from onnxtrain.model import load_mapped

sys.path.insert(0, str(Path(__file__).parent))
from measured import command  # noqa: E402

ROWS, COLUMNS = 9000, 65536  # 2.36 GB of float32


def large_model(folder, rows=ROWS, head=False):
    """A table of `rows`, of which a few are taken; with `head` multiplied by a weight in the model's own file."""
    with open(folder / "large.data", "wb") as f:
        f.truncate(rows * COLUMNS * 4)
        f.seek((rows - 1) * COLUMNS * 4)
        f.write(np.arange(COLUMNS, dtype=np.float32).tobytes())
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, COLUMNS], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "large.data"), ("offset", "0"), ("length", str(rows * COLUMNS * 4))):
        w.external_data.add(key=key, value=value)
    nodes = [helper.make_node("Gather", ["w", "i"], ["t" if head else "y"])]
    if head:
        nodes.append(helper.make_node("MatMul", ["t", "head"], ["y"]))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1 if head else COLUMNS])])
    graph.initializer.append(w)
    if head:
        graph.initializer.append(numpy_helper.from_array(np.full((COLUMNS, 1), 1e-6, np.float32), "head"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
              folder / "large.onnx")
    return folder / "large.onnx"


def peak_mib(*args):
    code, text, peak = command(*args)
    assert code == 0, text
    return peak


def test_more_than_2_gb_is_mapped(tmp_path):
    path = large_model(tmp_path)
    np.savez(tmp_path / "in.npz", i=np.array([0, ROWS - 1]))
    assert peak_mib("check", path) < 512
    assert peak_mib("info", path) < 512
    assert peak_mib("run", path, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz") < 512
    y = np.load(tmp_path / "out.npz")["y"]
    assert not y[0].any() and np.array_equal(y[1], np.arange(COLUMNS, dtype=np.float32))


def small_model(folder):
    r = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "c"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 300])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 40])],
        [numpy_helper.from_array(r.standard_normal((300, 40)).astype(np.float32), "w"),
         numpy_helper.from_array(np.ones(40, np.float32), "c")])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(m, folder / "small.onnx", save_as_external_data=True, location="small.data", size_threshold=0)
    return folder / "small.onnx"


def resident_of_files():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("RssFile:"))


def test_files_that_nobody_changes_stay_files(tmp_path):
    w = np.random.default_rng(0).standard_normal((1 << 12, 1 << 12)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g",
                              [helper.make_tensor_value_info("i", TensorProto.INT64, ["N"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1 << 12])],
                              [numpy_helper.from_array(w, "w")])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(m, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    model = load_mapped(tmp_path / "m.onnx")
    (tmp_path / "m.data").unlink()
    before = resident_of_files()
    model.save(tmp_path / "again.onnx")
    assert resident_of_files() - before < 16  # 64 MiB were written
    assert np.array_equal(numpy_helper.to_array(onnx.load(tmp_path / "again.onnx").graph.initializer[0]), w)
    assert np.array_equal(ot.Session(model).run({"i": np.array([5])})["y"][0], w[5])


@pytest.mark.parametrize("how", ["cut", "overwritten"])
def test_what_happens_to_the_file_later_does_not_matter(tmp_path, how):
    path, x = small_model(tmp_path), np.ones((3, 300), np.float32)
    feeds = {"x": x, "label": np.zeros((3, 40), np.float32)}
    w = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    whole = ot.Trainer(ot.prepare(ot.load(path), loss="mse", optimizer="sgd"))
    losses = [whole.step(feeds).loss for _ in range(2)]
    model = ot.load(path)
    size = (tmp_path / "small.data").stat().st_size
    with open(tmp_path / "small.data", "r+b") as f:
        f.truncate(0) if how == "cut" else f.write(bytes(size))
    assert np.allclose(ot.Session(model).run({"x": x})["y"], x @ w + 1, atol=1e-4)
    t = ot.Trainer(ot.prepare(model, loss="mse", optimizer="sgd"))
    assert [t.step(feeds).loss for _ in range(2)] == losses
    model.save(tmp_path / "again.onnx")
    assert np.array_equal(ot.load(tmp_path / "again.onnx").parameters["w"], w)


def test_a_mapped_file_that_is_cut_is_an_error(tmp_path):
    rows = 1100  # 288 MB
    path, feeds = large_model(tmp_path, rows, head=True), {"i": np.array([5, rows - 1])}
    session = ot.Session(ot.load(path))
    trainer = ot.Trainer(ot.prepare(ot.load(path), loss="mse", optimizer="sgd", only=["head"]))
    right = {**feeds, "label": np.zeros((2, 1), np.float32)}
    assert session.run(feeds)["y"][1, 0] > 1 and trainer.step(right).loss > 0
    with open(tmp_path / "large.data", "r+b") as f:
        f.truncate(100_000)
    for use in (lambda: session.run(feeds), lambda: trainer.step(right),  # noqa: F821 - deleted further down
                lambda: trainer.save(tmp_path / "saved.train.onnx"), lambda: ot.load(path)):  # noqa: F821
        with pytest.raises(ot.Error) as e:
            use()
        assert e.value.code in ("OT4005", "OT1011") and "large.data" in str(e.value), e.value
    assert not (tmp_path / "saved.train.onnx").exists()
    del session
    with pytest.raises(ot.Error):
        trainer.step(right)
    del trainer, use
    # nothing of it is left: another model runs
    assert ot.Session(small_model(tmp_path)).run({"x": np.ones((1, 300), np.float32)})["y"].shape == (1, 40)
