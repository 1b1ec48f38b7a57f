"""Hostile model files: refused in words, without a crash, a hang, much memory or a look outside the folder."""

import os
import resource
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest

from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import hostile_models  # noqa: E402

CLI = Path(__file__).parents[2] / ".venv" / "bin" / "onnxtrain"
PEAK_MIB = 256
CPU_SECONDS = 20  # the aim is 2 s of wall time on a quiet machine; this only tells a hang from a slow machine
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


def command(*args):
    """(exit code, text, peak MiB)."""
    env = dict(os.environ, ONNXTRAIN_MEMORY_LIMIT=str(200 << 20))
    p = subprocess.Popen([str(CLI), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)))
    watch = threading.Timer(120, p.kill)
    watch.start()
    text = p.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    watch.cancel()
    return p.returncode, text, usage.ru_maxrss / 1024


def feeds(data):
    out = {}
    try:
        inputs = onnx.load_from_string(data).graph.input
    except Exception:  # not even a message
        return out
    for v in inputs:
        t = v.type.tensor_type
        shape = [d.dim_value for d in t.shape.dim]
        out[v.name] = np.full(shape, "a" * 30) if t.elem_type == onnx.TensorProto.STRING else np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(t.elem_type))
    return out


@pytest.mark.parametrize("group,name,data,at_load", FILES, ids=[f[1] for f in FILES])
def test_refused(folder, group, name, data, at_load):
    path = folder / f"{name}.onnx"
    path.write_bytes(data)
    npz = folder / f"{name}.npz"
    np.savez(npz, **feeds(data))
    for args in (["check", path], ["run", path, "--inputs", npz, "-o", folder / "out.npz"]):
        code, text, peak = command(*args)
        assert code in (0, 3, 4), f"{args[0]}: exit {code}\n{text}"
        assert peak < PEAK_MIB, f"{args[0]}: {peak:.0f} MiB"
        if code:
            assert "error[OT" in text, text
        elif name not in hostile_models.HARMLESS:
            assert args[0] == "check" and not at_load, f"{args[0]} accepted it:\n{text}"
