"""Names for nested inputs, targets and outputs: flat lists of tensors with a way back.

`tensor` is the framework's class of tensors. A dict gives its keys as names, a tuple its positions, a dataclass or
named tuple its fields; inner names are joined by underscores."""

import copy
import dataclasses
from collections.abc import Mapping


class Leaf:
    """A tensor's place in the flat list."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


def flatten(x, name, out, tensor):
    """Tensors of a nested value, appended to `out` as (name, tensor); returns the value with Leaf in their place."""
    if isinstance(x, tensor):
        out.append((name, x))
        return Leaf(len(out) - 1)
    if isinstance(x, Mapping):
        return {k: flatten(v, _inner(name, k), out, tensor) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        made = [flatten(v, _position(name, k), out, tensor) for k, v in enumerate(x)]
        return type(x)(*made) if _is_named(x) else type(x)(made)
    if _is_dataclass(x):
        return _with_fields(x, {f: flatten(getattr(x, f), _inner(name, f), out, tensor) for f in _fields(x)})
    return x


def rebuild(structure, tensors):
    """The inverse of flatten, with new tensors."""
    if isinstance(structure, Leaf):
        return tensors[structure.index]
    if isinstance(structure, Mapping):
        return {k: rebuild(v, tensors) for k, v in structure.items()}
    if isinstance(structure, (tuple, list)):
        made = [rebuild(v, tensors) for v in structure]
        return type(structure)(*made) if hasattr(structure, "_fields") else type(structure)(made)
    if _is_dataclass(structure):
        return _with_fields(structure, {f: rebuild(getattr(structure, f), tensors) for f in _fields(structure)})
    return structure


def flatten_outputs(x, tensor):
    """(name, tensor) of everything a module returns; what is neither tensor nor container of tensors is left out."""
    found = []

    def visit(v, name):
        if isinstance(v, tensor):
            found.append((name, v))
        elif isinstance(v, Mapping):
            for k, w in v.items():
                visit(w, _inner(name, k))
        elif _is_dataclass(v) or _is_named(v):
            for f in _fields(v):
                visit(getattr(v, f), _inner(name, f))
        elif isinstance(v, (tuple, list)):
            for k, w in enumerate(v):
                visit(w, _position(name, k))

    visit(x, "output" if isinstance(x, tensor) else "")
    return found


def _inner(name, key):
    return f"{name}_{key}" if name else str(key)


def _position(name, k):
    return f"{name}_{k}" if name else f"output_{k}"


def _is_dataclass(x):
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def _is_named(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _fields(x):
    return [f.name for f in dataclasses.fields(x)] if dataclasses.is_dataclass(x) else list(x._fields)


def _with_fields(x, fields):
    """A dataclass with other fields; neither __init__ nor __post_init__ run."""
    made = copy.copy(x)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
