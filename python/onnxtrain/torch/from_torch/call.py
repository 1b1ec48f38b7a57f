"""Names for nested inputs, targets and outputs: flat lists of tensors with a way back."""

import copy
import dataclasses
from collections.abc import Mapping

import torch

from ...errors import UsageError
from ..shared.signature import argument_names


class Leaf:
    """A tensor's place in the flat list."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


def flatten(x, name, out, join="_"):
    """Tensors of a nested value, appended to `out` as (name, tensor); returns the value with Leaf in their place."""
    if isinstance(x, torch.Tensor):
        out.append((name, x))
        return Leaf(len(out) - 1)
    if isinstance(x, Mapping):
        made = {k: flatten(v, f"{name}{join}{k}" if name else str(k), out) for k, v in x.items()}
        return made
    if isinstance(x, (tuple, list)):
        made = [flatten(v, f"{name}{join}{k}" if name else f"output_{k}", out) for k, v in enumerate(x)]
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*made)
        return type(x)(made)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = {f.name: f"{name}{join}{f.name}" if name else f.name for f in dataclasses.fields(x)}
        return _with_fields(x, {field: flatten(getattr(x, field), n, out) for field, n in names.items()})
    return x


def _with_fields(x, fields):
    """A dataclass with other fields; neither __init__ nor __post_init__ run."""
    made = copy.copy(x)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def rebuild(structure, tensors):
    """The inverse of flatten, with new tensors."""
    if isinstance(structure, Leaf):
        return tensors[structure.index]
    if isinstance(structure, Mapping):
        return {k: rebuild(v, tensors) for k, v in structure.items()}
    if isinstance(structure, (tuple, list)):
        made = [rebuild(v, tensors) for v in structure]
        return type(structure)(*made) if hasattr(structure, "_fields") else type(structure)(made)
    if dataclasses.is_dataclass(structure) and not isinstance(structure, type):
        fields = [f.name for f in dataclasses.fields(structure)]
        return _with_fields(structure, {name: rebuild(getattr(structure, name), tensors) for name in fields})
    return structure


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


def flatten_outputs(x):
    """(name, tensor) of everything a module returns; what is neither tensor nor container of tensors is left out."""
    found = []

    def visit(v, name):
        if isinstance(v, torch.Tensor):
            found.append((name, v))
        elif isinstance(v, Mapping):
            for k, w in v.items():
                visit(w, f"{name}_{k}" if name else str(k))
        elif dataclasses.is_dataclass(v) and not isinstance(v, type):
            for f in dataclasses.fields(v):
                visit(getattr(v, f.name), f"{name}_{f.name}" if name else f.name)
        elif isinstance(v, tuple) and hasattr(v, "_fields"):
            for k in v._fields:
                visit(getattr(v, k), f"{name}_{k}" if name else k)
        elif isinstance(v, (tuple, list)):
            for k, w in enumerate(v):
                visit(w, f"{name}_{k}" if name else f"output_{k}")

    visit(x, "output" if isinstance(x, torch.Tensor) else "")
    return found
