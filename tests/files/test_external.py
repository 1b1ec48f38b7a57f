"""External data of more than 2 GB: mapped, not copied. The file is sparse, so it takes no room on the disk."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parent))
from measured import command  # noqa: E402

ROWS, COLUMNS = 9000, 65536  # 2.36 GB of float32


def large_model(folder):
    with open(folder / "large.data", "wb") as f:
        f.truncate(ROWS * COLUMNS * 4)
        f.seek((ROWS - 1) * COLUMNS * 4)
        f.write(np.arange(COLUMNS, dtype=np.float32).tobytes())
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "large.data"), ("offset", "0"), ("length", str(ROWS * COLUMNS * 4))):
        w.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "i"], ["y"])], "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", COLUMNS])])
    graph.initializer.append(w)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), folder / "large.onnx")
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
