"""Engines: other runtimes that make the steps of a training.

An engine is a small class on one interface, found by the entry point group `onnxtrain.engines` or in this folder:

    class Engine:
        name = "onnxruntime"
        def devices(self): ...                  # ["cpu", "cuda"]: what is there on this machine
        def compile(self, step, device): ...    # a Runner for one training section

    class Runner:
        def step(self, feeds): ...              # one step on these arrays; {output name: array} of what is not state
        def state(self): ...                    # {name: array}, copied from the device
        def set_state(self, values): ...

`step` is a `Step`: an ordinary ONNX model and its manifest (docs/engines.md). The training loop stays the library's."""

import importlib
import importlib.metadata
import json
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import UsageError

BUILT_IN = {
    "onnxruntime": ".onnxruntime_engine",
    "openvino": ".openvino_engine",
    "iree": ".iree_engine",
    "tinygrad": ".tinygrad_engine",
}
_INSTALL = {"onnxruntime": "onnxruntime", "openvino": "openvino", "iree": "iree-base-compiler iree-base-runtime onnx",
            "tinygrad": "tinygrad"}


def _differ(a, b):
    """Two shapes that cannot be the same; names and unknown sizes fit everything."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a, b))


@dataclass
class Step:
    """One training section for a runtime: the model's bytes and what its manifest says."""

    model: bytes
    section: dict
    state: dict = field(default_factory=dict)  # initial values by input name

    def __post_init__(self):
        """A manifest that was changed may name what is not there, or feed a tensor into one of another kind."""
        outputs = {o["name"]: o for o in self.section["outputs"]}
        inputs = {i["name"]: i for i in self.section["inputs"]}
        for f in self.section["feedback"]:
            lost = f["output"] not in outputs and f"output '{f['output']}'" or \
                f["input"] not in inputs and f"input '{f['input']}'"
            if lost:
                raise UsageError(f"the step's manifest feeds '{f['output']}' back to '{f['input']}', but the step has "
                                 f"no {lost}", "OT1773", "export the step again")
            a, b = outputs[f["output"]], inputs[f["input"]]
            if a.get("type") and b.get("type") and a["type"] != b["type"] or _differ(a.get("shape"), b.get("shape")):
                raise UsageError(f"the step's manifest feeds '{f['output']}' ({a.get('type')}{a.get('shape')}) back to "
                                 f"'{f['input']}' ({b.get('type')}{b.get('shape')}): they do not fit", "OT1773",
                                 "export the step again")

    @classmethod
    def of(cls, model, manifest, state):
        section = json.loads(manifest)["sections"][0]
        return cls(model, section, state)

    def inputs(self, *roles):
        return [i["name"] for i in self.section["inputs"] if i["role"] in roles]

    @cached_property
    def data(self):
        return self.inputs("data", "target", "random")

    @cached_property
    def states(self):
        return self.inputs("state", "learning_rate", "counter")

    @cached_property
    def outputs(self):
        return [o["name"] for o in self.section["outputs"]]

    @cached_property
    def loss(self):
        return self.section.get("loss", {}).get("output")

    @cached_property
    def feedback(self):
        """{output: [inputs that it becomes]}"""
        to = {}
        for f in self.section["feedback"]:
            to.setdefault(f["output"], []).append(f["input"])
        return to

    @cached_property
    def plain(self):
        """Outputs that are not state."""
        return [o for o in self.outputs if o not in self.feedback]

    @cached_property
    def _ports(self):
        return {i["name"]: i for i in self.section["outputs"] + self.section["inputs"]}

    @cached_property
    def fed(self):
        """Inputs that an output becomes."""
        return {to for targets in self.feedback.values() for to in targets}

    def type_of(self, name):
        return np.dtype(self._ports[name]["type"])

    def shape_of(self, name):
        return self._ports[name]["shape"]

    def range_of(self, name):
        """Whole numbers that an input may hold, {"least", "most"} and perhaps "ignored"; None: any."""
        return self._ports[name].get("range")


def names():
    """Names of all engines that could be used: those here, and those of installed packages."""
    found = {e.name for e in importlib.metadata.entry_points(group="onnxtrain.engines")}
    return sorted(found | set(BUILT_IN))


def find(name):
    """The engine of this name; an error that says what there is."""
    for entry in importlib.metadata.entry_points(group="onnxtrain.engines"):
        if entry.name == name:
            return entry.load()()
    if name not in BUILT_IN:
        raise UsageError(f"there is no engine '{name}'", "OT1270", f"known: native, {', '.join(names())}")
    try:
        return importlib.import_module(BUILT_IN[name], __name__).Engine()
    except ImportError as e:
        raise UsageError(f"the engine {name} needs the package '{e.name}', which is not installed", "OT1271",
                         f"pip install {_INSTALL[name]}") from None


def open_engine(spec):
    """"onnxruntime:cuda" -> (engine, device); a device that is not there is an error with what is.
    An engine that is not registered may be given itself."""
    if not isinstance(spec, str):
        return spec, spec.devices()[0]
    name, _, device = spec.partition(":")
    engine = find(name)
    there = engine.devices()
    device = device or there[0]
    if device not in there:
        raise UsageError(f"{name} has no device '{device}' on this machine", "OT1272", f"there is: {', '.join(there)}")
    return engine, device


def listed():
    """What `onnxtrain doctor` prints: [(name, devices or None, why not)]."""
    out = []
    for name in names():
        try:
            out.append((name, find(name).devices(), ""))
        except UsageError as e:
            out.append((name, None, str(e).splitlines()[0]))
        except Exception as e:  # noqa: BLE001  a package that is broken must not stop the list
            out.append((name, None, f"{type(e).__name__}: {e}"))
    return out
