"""Trains ONNX models."""

from ._native import version as _version

__version__ = _version()
