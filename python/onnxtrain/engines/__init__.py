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

from ..errors import UsageError
from .step import Step as Step

BUILT_IN = {
    "onnxruntime": ".onnxruntime_engine",
    "openvino": ".openvino_engine",
    "iree": ".iree_engine",
    "tinygrad": ".tinygrad_engine",
}
_INSTALL = {"onnxruntime": "onnxruntime", "openvino": "openvino", "iree": "iree-base-compiler iree-base-runtime onnx",
            "tinygrad": "tinygrad"}


def names():
    """Names of all engines that could be used: those here, and those of installed packages."""
    found = {e.name for e in importlib.metadata.entry_points(group="onnxtrain.engines")}
    return sorted(found | set(BUILT_IN))


def find(name):
    """The engine of this name; an error that says what there is."""
    for entry in importlib.metadata.entry_points(group="onnxtrain.engines"):
        if entry.name == name:
            return _loaded(name, lambda entry=entry: entry.load()())
    if name not in BUILT_IN:
        raise UsageError(f"there is no engine '{name}'", "OT1270", f"known: native, {', '.join(names())}")
    return _loaded(name, lambda: importlib.import_module(BUILT_IN[name], __name__).Engine())


def _loaded(name, load):
    try:
        return load()
    except ModuleNotFoundError as e:
        raise UsageError(f"the engine {name} needs the package '{e.name}', which is not installed", "OT1271",
                         f"pip install {_INSTALL.get(name, e.name)}") from None
    except Exception as e:  # noqa: BLE001  whatever a package does when it is imported
        raise UsageError(f"the engine {name} cannot be loaded: {type(e).__name__}: {e}", "OT1271",
                         "install its package again, or train without it:  --engine native") from None


def _devices(engine, name):
    """The names of its devices; an error where it has none, or cannot say."""
    try:
        there = list(engine.devices())
    except Exception as e:  # noqa: BLE001  whatever its driver says
        raise UsageError(f"the engine {name} cannot say its devices: {type(e).__name__}: {e}", "OT1272",
                         "this library trains without one:  --engine native") from None
    if not there:
        raise UsageError(f"the engine {name} finds no device on this machine", "OT1272",
                         "this library trains without one:  --engine native")
    return there


def open_engine(spec):
    """"onnxruntime:cuda" -> (engine, device); a device that is not there is an error with what is.
    An engine that is not registered may be given itself."""
    if not isinstance(spec, str):
        if not callable(getattr(spec, "devices", None)) or not callable(getattr(spec, "compile", None)):
            raise UsageError(f"an engine is a name, or an object with `devices` and `compile`, not "
                             f"{type(spec).__name__}", "OT1270", f"known: native, {', '.join(names())}")
        return spec, _devices(spec, getattr(spec, "name", type(spec).__name__))[0]
    name, _, device = spec.partition(":")
    if name == "native":
        raise UsageError(f"this library computes on the CPU and has no device '{device}'", "OT1272", "--engine native")
    engine = find(name)
    there = _devices(engine, name)
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
