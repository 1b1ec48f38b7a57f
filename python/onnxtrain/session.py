"""Inference and gradients by names."""

from collections.abc import Mapping

import numpy as np

from . import _native
from .attributes import Closed
from .errors import ModelError, UsageError
from .limits import limits
from .model import as_model
from .values import from_native, to_native

_FLOATS = ("float", "double", "float16", "bfloat16")


def feed_lists(feeds):
    if not isinstance(feeds, Mapping):
        raise UsageError(f"values are given by the names of inputs, not as {type(feeds).__name__}", "OT1156",
                         "run({'x': x})")
    names = list(feeds)
    return names, [to_native(feeds[n], n) for n in names]


class Session(Closed):
    """Runs a model's inference graph: `Session("m.onnx").run({"x": x})` -> {output name: array}.

    memory ("500M", or bytes), max_loop_trips, time (seconds): what one run may take.
    """

    def __init__(self, model, threads=0, *, memory=None, max_loop_trips=None, time=None):
        self._model = as_model(model)
        self._s = _native.Session(self._model._m, threads, limits(memory, max_loop_trips, time))

    @property
    def model(self):
        """The model that runs."""
        return self._model

    def run(self, feeds, outputs=None):
        names, values = feed_lists(feeds)
        outputs = None if outputs is None else [outputs] if isinstance(outputs, str) else list(outputs)
        if outputs == []:
            return {}
        got = self._s.run(names, values, outputs)
        return dict(zip(outputs if outputs is not None else self._s.output_names, map(from_native, got)))


def _like_output(model, name, value):
    if hasattr(value, "dtype"):
        return value
    kind = next((o.get("dtype") for o in model._description["outputs"] if o["name"] == name), "float")
    return np.asarray(value, {"double": np.float64, "float16": np.float16}.get(kind, np.float32))


def gradients(model, feeds, of=None, wrt=None, cotangent=None, threads=0, *, memory=None,
              max_loop_trips=None, time=None):
    """Gradients of outputs with respect to any tensors -> {name: array}; zeros where nothing flows.

    of: an output name or a list (default: every floating-point output); wrt: inputs, initializers or
    intermediate tensors (default: every floating-point initializer); cotangent: an array, or
    {output: array} (default: ones); memory, max_loop_trips, time: as of Session.
    """
    m = as_model(model)
    if isinstance(of, str):
        of = [of]
    for argument, names in (("of", of), ("wrt", wrt)):
        if names is not None and (isinstance(names, (int, float))
                                  or not isinstance(names, str) and not all(isinstance(n, str) for n in names)):
            raise UsageError(f"{argument} is a name or a list of names, not {names!r}", "OT1158",
                             f"{argument}='{m._description['outputs'][0]['name']}'")
    if of is None and cotangent is not None:
        of = [o["name"] for o in m._description["outputs"] if o.get("dtype") in _FLOATS]
    if wrt is None:
        wrt = [i["name"] for i in m._description["initializers"] if i["dtype"] in _FLOATS]
    elif isinstance(wrt, str):
        wrt = [wrt]
    cotangents = []
    if cotangent is not None:
        if not isinstance(cotangent, dict):
            if len(of) != 1:
                raise UsageError(f"one cotangent for {len(of)} outputs: {', '.join(of)}", "OT1158",
                                 f"cotangent={{'{of[0]}': ...}}, or of='{of[0]}'" if of else "name one: of='y'")
            cotangent = {of[0]: cotangent}
        for name in cotangent:
            if name not in of:
                raise UsageError(
                    f"a cotangent for '{name}', which is not among the outputs asked for: {', '.join(of)}", "OT1158"
                )
        # a plain number has no type of its own: it takes the output's
        cotangents = [to_native(_like_output(m, n, cotangent[n]), n) if n in cotangent else None for n in of]
    if not wrt:
        return {}
    names, values = feed_lists(feeds)
    try:
        got = m._m.gradients(names, values, of, cotangents, list(wrt), threads, limits(memory, max_loop_trips, time))
    except ModelError as e:
        if "cotangent of " not in e.message:
            raise
        raise UsageError(f"a cotangent has another shape than its output: {e.message}", "OT1158",
                         "cotangent=numpy.ones_like(output)") from None
    return dict(zip(wrt, map(from_native, got)))
