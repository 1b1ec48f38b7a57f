"""Trains ONNX models: an ONNX file can carry its own training, and onnxtrain obeys it."""

from ._native import version as _version
from .errors import CheckpointError, DataError, DivergedError, Error, ModelError, UsageError
from .model import Model, check, load
from .recipe import (SGD, Adagrad, Adam, AdamW, Lamb, Lion, OnnxAdagrad, OnnxAdam, OnnxMomentum, RMSprop, Schedule,
                     losses)
from .session import Session, gradients
from .torch import from_torch
from .trainer import History, StepResult, Trainer, prepare, resume

__version__ = _version()

__all__ = [
    "Adagrad", "Adam", "AdamW", "CheckpointError", "DataError", "DivergedError", "Error", "History", "Lamb", "Lion", "Model",
    "ModelError", "OnnxAdagrad", "OnnxAdam", "OnnxMomentum", "RMSprop", "SGD", "Schedule", "Session", "StepResult",
    "Trainer", "UsageError", "check", "from_torch", "gradients", "load", "losses", "prepare", "resume",
]
