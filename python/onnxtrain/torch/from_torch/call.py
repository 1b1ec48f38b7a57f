"""How a module is called: its inputs and targets as a flat list of named tensors, with a way back."""

import functools
from collections.abc import Mapping

import torch

from ...converters import nested
from ...converters.nested import rebuild
from ...errors import UsageError
from ..shared.signature import argument_names

flatten = functools.partial(nested.flatten, tensor=torch.Tensor)
flatten_outputs = functools.partial(nested.flatten_outputs, tensor=torch.Tensor)


class Call:
    """How the module is called: args and kwargs with flat named tensors, and the targets."""

    def __init__(self, module, inputs, targets):
        self.flat = []  # (name, tensor)
        if isinstance(inputs, Mapping):
            self.args, self.kwargs = (), {k: flatten(v, k, self.flat) for k, v in inputs.items()}
        else:
            given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
            names = argument_names(module, len(given))
            self.args, self.kwargs = tuple(flatten(v, n, self.flat) for v, n in zip(given, names)), {}
        self.inputs = len(self.flat)
        if not self.inputs:
            raise UsageError(
                "inputs hold no tensor", "OT1606", "give example tensors:  inputs=torch.randn(8, 3, 32, 32)"
            )
        self.targets = None
        if targets is not None:
            taken = {n.split("_")[0] for n, _ in self.flat}  # forward may have an argument `target` of its own
            name = next(n for n in ("target", "label", "wanted", "targets") if n not in taken or n == "targets")
            self.targets = flatten(targets, "" if isinstance(targets, Mapping) else name, self.flat)
            if len(self.flat) == self.inputs:
                raise UsageError(f"targets hold no tensor ({type(targets).__name__})", "OT1606")
        names = [n for n, _ in self.flat]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise UsageError(
                f"inputs and targets share the name {', '.join(twice)}", "OT1606", "rename a key of the dict"
            )

    @property
    def names(self):
        return [n for n, _ in self.flat]

    @property
    def tensors(self):
        return [t for _, t in self.flat]

    def arguments(self, tensors):
        return tuple(rebuild(a, tensors) for a in self.args), {k: rebuild(v, tensors) for k, v in self.kwargs.items()}

    def target(self, tensors):
        return rebuild(self.targets, tensors) if self.targets is not None else None
