"""Operators that the library does not know, run by another runtime: docs/fallback.md.

    ot.fallback("onnxruntime", custom_ops=["libmine.so"])     # for models that are read from now on
    ot.register_op("my.domain", "Twist", gradient=twist_gradient)"""

import json
import os

import numpy as np

from . import _native
from .errors import UsageError
from .values import from_native, to_native

_gradients = {}


class OnnxRuntime:
    """Partitions as sessions of onnxruntime, kept by their bytes."""

    name = "onnxruntime"

    def __init__(self, custom_ops=()):
        try:
            import onnxruntime
        except ImportError:
            raise UsageError("the fallback needs the package onnxruntime, which is not installed", "OT1781",
                             "pip install onnxruntime") from None
        self.ort, self.sessions = onnxruntime, {}
        self.custom_ops = [os.fspath(p) for p in custom_ops]
        for path in self.custom_ops:
            if not os.path.isfile(path):
                raise UsageError(f"there is no library of operators '{path}'", "OT1781")

    def session(self, model):
        if model not in self.sessions:
            options = self.ort.SessionOptions()
            options.log_severity_level = 4
            for path in self.custom_ops:
                options.register_custom_ops_library(path)
            self.sessions[model] = self.ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return self.sessions[model]

    def compute(self, model, about, arrays):
        """Arrays in the order of the partition's inputs to arrays in the order of its outputs."""
        first = json.loads(about)[0]
        if first["gradient"]:  # it comes alone
            return _gradient(first, _gradients[first["domain"], first["type"].removesuffix("_grad")], arrays)
        session = self.session(model)
        return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})

    # ---- called by the library
    def run(self, model, about, inputs):
        arrays = [np.asarray(from_native(v)) for v in inputs]
        return [to_native(np.asarray(a), f"result {k}") for k, a in enumerate(self.compute(model, about, arrays))]

    def has_gradient(self, domain, op):
        return (domain, op) in _gradients


def _gradient(node, function, arrays):
    """dX of every input; an input without one gets zeros."""
    n = node["outputs"]  # one per input of the operator
    outputs = (len(arrays) - n) // 2
    inputs, results, dys = arrays[:n], arrays[n:n + outputs], arrays[n + outputs:]
    got = function(inputs, results, dys, **node["attributes"])
    got = list(got) if isinstance(got, (list, tuple)) else [got]
    if len(got) != n:
        raise ValueError(f"the gradient of {node['domain']}.{node['type'].removesuffix('_grad')} returned {len(got)} "
                         f"arrays for {n} inputs")
    made = [np.zeros_like(x) if g is None else np.asarray(g, x.dtype) for g, x in zip(got, inputs)]
    for k, (g, x) in enumerate(zip(made, inputs)):
        if g.shape != x.shape:
            raise ValueError(f"the gradient of input {k} is {list(g.shape)}, the input is {list(x.shape)}")
    return made


RUNTIMES = {"onnxruntime": OnnxRuntime}


def open_runtime(name, custom_ops=()):
    if name not in RUNTIMES:
        raise UsageError(f"there is no fallback '{name}'; known: {', '.join(RUNTIMES)}", "OT1781")
    return RUNTIMES[name](custom_ops)


def fallback(name="onnxruntime", custom_ops=()):
    """From now on, operators that the library does not know run in this runtime; None: they are an error again.

    custom_ops: libraries of operators for it. They run code: only what you name here is loaded, never what a file
    asks for. Models that were read before stay as they are."""
    _native.set_fallback(None if name is None else open_runtime(name, custom_ops))


def register_op(domain, type, gradient):
    """The gradient of an operator that another runtime runs.

    gradient(inputs, outputs, dys, **attributes): lists of arrays; returns one array per input, or None for zeros."""
    if not callable(gradient):
        raise UsageError("gradient is not a function", "OT1781")
    _gradients[(domain, type)] = gradient
