"""Shared by all Python tests."""

import onnx
import pytest

from models import mlp


@pytest.fixture
def path(tmp_path):
    """A file with a small classifier: x [N,4] -> logits [N,3]."""
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"
