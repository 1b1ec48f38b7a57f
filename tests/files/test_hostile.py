"""Hostile model files: refused in words, without a crash, a hang, much memory or a look outside the folder."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import hostile_models  # noqa: E402
from measured import command  # noqa: E402

PEAK_MIB = 256
FILES = list(hostile_models.all_files())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("hostile")
    inside = top / "model"
    inside.mkdir()
    (top / "secret.bin").write_bytes(b"\1" * 24)
    (inside / "data.bin").write_bytes(b"\0" * 24)
    (inside / "link.bin").symlink_to("../secret.bin")
    os.mkfifo(inside / "fifo.bin")
    return inside


def feeds(data):
    out = {}
    try:
        inputs = onnx.load_from_string(data).graph.input
    except Exception:  # not even a message
        return out
    for v in inputs:
        t = v.type.tensor_type
        shape = [d.dim_value for d in t.shape.dim]
        out[v.name] = (
            np.full(shape, "a" * 30)
            if t.elem_type == onnx.TensorProto.STRING
            else np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(t.elem_type))
        )
    return out


@pytest.mark.parametrize("group,name,data,at_load", FILES, ids=[f[1] for f in FILES])
def test_refused(folder, group, name, data, at_load):
    path = folder / f"{name}.onnx"
    path.write_bytes(data)
    npz = folder / f"{name}.npz"
    np.savez(npz, **feeds(data))
    for args in (["check", path], ["run", path, "--inputs", npz, "-o", folder / "out.npz"]):
        code, text, peak = command(*args, ONNXTRAIN_MEMORY_LIMIT="200M")
        assert code in (0, 3, 4), f"{args[0]}: exit {code}\n{text}"
        assert peak < PEAK_MIB, f"{args[0]}: {peak:.0f} MiB"
        if code:
            assert "error[OT" in text, text
        elif name not in hostile_models.HARMLESS:
            assert args[0] == "check" and not at_load, f"{args[0]} accepted it:\n{text}"
