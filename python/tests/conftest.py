"""Shared by all Python tests. .venv-tf has no onnx, so it is imported where it is needed."""

import pytest


@pytest.fixture
def path(tmp_path):
    """A file with a small classifier: x [N,4] -> logits [N,3]."""
    import onnx

    from models import mlp

    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"
