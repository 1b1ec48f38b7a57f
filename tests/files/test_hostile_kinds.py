"""A few of the models of hostile_kinds.py: gradients of gradients that would become millions of nodes, tables."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import hostile_kinds  # noqa: E402
from measured import command  # noqa: E402


def training(depth):
    return next(m for name, m in hostile_kinds.training() if name == f"gradients_of_gradients_{depth}")


def train(path, npz, folder):
    return command("train", path, "--data", npz, "--epochs", 1, "--batch", 4, "--valid", 0, "--out", folder / "run",
                   "-q", "--memory", "128M")


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(4, np.float32))
    return tmp_path / "x.npz"


def test_orders_without_end_are_refused(tmp_path, npz):
    path = tmp_path / "deep.onnx"
    path.write_bytes(training(16).SerializeToString())
    code, text, peak = train(path, npz, tmp_path)
    assert code == 3 and "error[OT1003]" in text and "gradients of gradients" in text, text
    assert peak < 128 + hostile_kinds.PROGRAM_MIB + 160


def test_tables_of_kernels_are_counted(tmp_path, npz):
    name, m = next((n, m) for n, m in hostile_kinds.huge_results() if n == "resize_10000000_known")
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(m.SerializeToString())
    code, text, peak = command("run", path, "--inputs", npz, "--memory", "128M")
    assert code == 3 and "error[OT1401]" in text and "--memory" in text, text
    assert peak < 128 + hostile_kinds.PROGRAM_MIB
    code, text, _ = command("run", path, "--inputs", npz, "--memory", "1G")
    assert code == 0, text


def test_a_fourth_order_trains(tmp_path, npz):
    path = tmp_path / "four.onnx"
    path.write_bytes(training(4).SerializeToString())
    code, text, _ = train(path, npz, tmp_path)
    assert code == 0, text
