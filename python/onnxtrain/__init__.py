"""Trains ONNX models: an ONNX file can carry its own training, and onnxtrain obeys it."""

from ._native import version as _version
from .errors import CheckpointError, DataError, DivergedError, Error, ModelError, UsageError
from .estimators import OnnxClassifier, OnnxRegressor
from .model import Model, check, load, parse
from .recipe import (SGD, Adagrad, Adam, AdamW, Lamb, Lion, OnnxAdagrad, OnnxAdam, OnnxMomentum, RMSprop, Schedule,
                     losses)
from .session import Session, gradients
from .torch import from_torch
from .trainer import History, StepResult, Trainer, prepare, resume

__version__ = _version()


def to_torch(model_or_trainer):
    """A model or a running Trainer as a PyTorch module, loss, optimizer and scheduler (needs `onnxtrain[torch]`)."""
    from .torch.to_torch import to_torch as convert

    return convert(model_or_trainer)


def torch_state_dict(model_or_trainer):
    """The weights as a state_dict that the original PyTorch class loads with strict=True (needs `onnxtrain[torch]`)."""
    from .torch.to_state import torch_state_dict as convert

    return convert(model_or_trainer)


__all__ = [
    "Adagrad", "Adam", "AdamW", "CheckpointError", "DataError", "DivergedError", "Error", "History", "Lamb", "Lion", "Model",
    "ModelError", "OnnxAdagrad", "OnnxAdam", "OnnxClassifier", "OnnxMomentum", "OnnxRegressor", "RMSprop", "SGD", "Schedule",
    "Session", "StepResult", "Trainer", "UsageError", "check", "from_torch", "gradients", "load", "losses", "parse",
    "prepare", "resume", "to_torch", "torch_state_dict",
]
