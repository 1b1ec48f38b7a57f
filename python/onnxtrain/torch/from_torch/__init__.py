"""`from_torch`: a live PyTorch training as a file. conversion.py has the stages in order."""

import inspect
import sys
import types

from ...errors import ModelError


def _needs_torch():
    for package in ("torch", "onnx"):
        try:
            __import__(package)
        except ImportError as e:
            raise ModelError(f"the PyTorch converter needs the package '{package}'", "OT1607",
                             "pip install 'onnxtrain[torch]'") from e


def from_torch(module, inputs, targets=None, loss=None, optimizer=None, scheduler=None, dynamic_batch=True):
    """A PyTorch module, with its loss, optimizer and scheduler as they stand now, as an ot.Model.

    `inputs` and `targets` are example tensors (a tensor, a tuple or a dict): graph inputs are named like forward's
    arguments, targets `target` (or `target_0`, ..., or the dict's keys). `loss` is called as loss(outputs, targets).
    Without loss and optimizer the result is an inference model. One training step of the file is one step of optimizer
    and scheduler. The first dimension of inputs and targets is left open unless dynamic_batch is False. The file is
    compared with PyTorch before it is returned; nothing of the module, the optimizer or the random state changes.
    """
    _needs_torch()
    from .conversion import convert

    return convert(module, inputs, targets, loss, optimizer, scheduler, dynamic_batch)


class _Package(types.ModuleType):
    """`onnxtrain.torch.from_torch` was a function before it was a package: it can still be called."""

    def __call__(self, *args, **kwargs):
        return from_torch(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
sys.modules[__name__].__signature__ = inspect.signature(from_torch)
