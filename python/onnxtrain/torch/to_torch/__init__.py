"""`to_torch`: a file as a PyTorch training. build.py has the stages in order."""

from .build import to_torch
from .state_dict import torch_state_dict
from .training import TorchTraining

__all__ = ["TorchTraining", "to_torch", "torch_state_dict"]
