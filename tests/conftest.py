"""Shared by the tests of this folder."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))
from cli_models import mlp, save, table  # noqa: E402


@pytest.fixture
def work(tmp_path):
    """A folder with a model and its data."""
    save(mlp(), tmp_path / "mlp.onnx")
    x, y = table(130)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    return tmp_path
