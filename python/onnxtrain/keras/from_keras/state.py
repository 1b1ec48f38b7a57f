"""Variables under their own names: weights of the model, then the optimizer's. Kernels of convolutions are stored in
ONNX's order of axes; `layout` is the recorded permutation."""

from dataclasses import dataclass

import numpy as np

from ..shared import versions
from .values import Traced


@dataclass(eq=False)
class Entry:
    variable: object
    name: str  # in the file
    layout: tuple | None = None
    trainable: bool = False
    stored_dtype: str | None = None  # where it is not the variable's own

    @property
    def dtype(self):
        return self.stored_dtype or versions.standardize_dtype(self.variable._dtype)

    def array(self):
        """As the file stores it."""
        made = versions.variable_array(self.variable).astype(versions.numpy_dtype(self.dtype), copy=False)
        return made if self.layout is None else np.ascontiguousarray(made.transpose(self.layout))

    def back(self, array):
        """A stored array in Keras' order of axes."""
        return array if self.layout is None else np.ascontiguousarray(array.transpose(np.argsort(self.layout)))

    def traced(self):
        return Traced(self.name, tuple(self.variable._shape), self.dtype, self.layout)


class State:
    def __init__(self, model, emitter):
        self.entries, self.by_id = [], {}
        layouts = kernel_layouts(model)
        names = unique_names(model)
        trainable = {id(v) for v in model.trainable_weights}
        self.weights = []
        for v in model.weights:
            if id(v) not in self.by_id:
                self.weights.append(self.add(v, emitter.claim(names[id(v)]), layouts.get(id(v)), id(v) in trainable))

    def add(self, variable, name, layout=None, trainable=False, dtype=None):
        entry = Entry(variable, name, layout, trainable, dtype)
        self.entries.append(entry)
        self.by_id[id(variable)] = entry
        return entry


def all_layers(model):
    return list(model._flatten_layers(include_self=True, recursive=True))


def kernel_layouts(model):
    """{id of a kernel: order of its axes in the file}."""
    found = {}
    for layer in all_layers(model):
        bases = {c.__name__ for c in type(layer).__mro__ if (c.__module__ or "").startswith("keras.")}
        if "BaseConv" in bases or "BaseConvTranspose" in bases:
            kernel = getattr(layer, "_kernel", None)
            _note(found, kernel if kernel is not None else getattr(layer, "kernel", None), _turned)
        elif "BaseDepthwiseConv" in bases:
            _note(found, getattr(layer, "kernel", None), _deep)
        elif "BaseSeparableConv" in bases:
            _note(found, getattr(layer, "depthwise_kernel", None), _deep)
            _note(found, getattr(layer, "pointwise_kernel", None), _turned)
    return found


def _note(found, kernel, order):
    if versions.is_variable(kernel):
        found[id(kernel)] = order(len(kernel._shape))


def _turned(rank):
    return (rank - 1, rank - 2, *range(rank - 2))


def _deep(rank):
    return (rank - 2, rank - 1, *range(rank - 2))


def unique_names(model):
    """{id: name}: v.path, with the names of the nested models in front where that is not unique."""
    paths = {}
    for v in model.weights:
        paths.setdefault(v.path, {})[id(v)] = v
    owners = {}
    _owners(model, (), owners)
    names = {}
    for path, same in paths.items():
        for key in same:
            chain = owners.get(key, ()) if len(same) > 1 else ()
            names[key] = "/".join([*chain, path])
    return names


def _owners(layer, chain, owners, seen=None):
    import keras

    seen = set() if seen is None else seen
    if id(layer) in seen:
        return
    seen.add(id(layer))
    for v in layer.weights:
        owners[id(v)] = chain if len(chain) >= len(owners.get(id(v), ())) else owners[id(v)]
    for sub in getattr(layer, "_layers", None) or []:
        inner = (*chain, sub.name) if isinstance(sub, keras.Model) else chain
        _owners(sub, inner, owners, seen)
