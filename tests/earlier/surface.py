"""What users and their programs name: C functions, commands with their flags, Python names with their arguments."""

import importlib
import inspect
import json
import re
import subprocess
import sys

import replay

# Modules that documents, examples, tests and users' own programs import; what is below onnxtrain.torch is internal.
MODULES = {
    "onnxtrain": (), "onnxtrain.backend": ("OnnxtrainBackend", "OnnxtrainRep"), "onnxtrain.convert": ("main", "parser"),
    "onnxtrain.errors": ("CheckpointError", "DataError", "DivergedError", "Error", "ModelError", "UsageError"),
    "onnxtrain.estimators": ("OnnxClassifier", "OnnxRegressor"),
    "onnxtrain.model": ("Model", "check", "load", "load_mapped", "parse"), "onnxtrain.recipe": ("Schedule", "Term"),
    "onnxtrain.session": ("Session", "gradients"), "onnxtrain.torch": ("from_torch",),
    "onnxtrain.trainer": ("History", "StepResult", "Trainer", "prepare", "resume"),
}
OPTION = re.compile(r"^  ((?:-\w|--[\w-]+)(?:,(?:-\w|--[\w-]+))*)(?: ([A-Z]\S*))?(?: .*)?$")
POSITIONAL = re.compile(r"^  ([A-Z|]+) [A-Z]+", re.M)


def symbols():
    done = subprocess.run(["nm", "-D", "--defined-only", replay.ROOT / "build/release/libonnxtrain.so"],
                          capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    return sorted(n for n in names if n.startswith("ot_"))


def options(command):
    """{flag or positional: {"takes", "default", "choices"}} as `COMMAND --help-all` lists them."""
    text = replay.cli([command, "--help-all"], replay.HERE).stdout
    found = {name: {} for name in POSITIONAL.findall(text)}
    for line in text.splitlines():
        if m := OPTION.match(line):
            flags, value = m.groups()
            kind, _, default = (value or "").partition("=")
            choices = re.search(r"\{(.*)\}", kind)
            described = {"takes": bool(value), "default": default,
                         "choices": {c: "there" for c in choices.group(1).split(",")} if choices else {}}
            found |= {flag: described for flag in flags.split(",")}
    return found


def commands():
    names = set(re.findall(r"^  (\w+)  +\S", replay.cli(["--help"], replay.HERE).stdout, re.M))
    return {name: options(name) for name in sorted(names | {"operators", "completion"})}


def operators():
    """What the standard's operators can do here."""
    found = {}
    for o in json.loads(replay.cli(["operators", "--json"], replay.HERE).stdout):
        if o["domain"] != "ai.onnxtrain":
            can = {k: "yes" for k in ("gradient", "lowered", "random") if o[k]}
            found[f"{o['domain']} {o['name']} {o['since']}"] = can
    return found


def arguments(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    empty = inspect.Parameter.empty
    return [[p.name, str(p.kind.description), None if p.default is empty else repr(p.default)] for p in parameters
            if not p.name.startswith("_")]


def members(thing):
    """Of a class: methods with their arguments, properties, plain values."""
    found = {}
    for name in dir(thing):
        if name.startswith("_") and name not in ("__init__", "__getitem__", "__len__", "__contains__", "__mul__"):
            continue
        value = inspect.getattr_static(thing, name)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if not inspect.isfunction(value):
            found[name] = "value"
        elif value.__module__.startswith("onnxtrain") or name == "__init__":
            found[name] = arguments(value)
    return found


def describe(thing):
    if inspect.isclass(thing):
        return members(thing)
    return arguments(thing) if callable(thing) else "value"


def python():
    """{module: {name: arguments, or members with theirs}}; what is not there is left out."""
    found = {}
    for module, names in MODULES.items():
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            found[module] = {}
            continue
        if module == "onnxtrain":
            names = sorted({*loaded.__all__, "__version__", "__all__"})
        found[module] = {name: describe(getattr(loaded, name)) for name in names if hasattr(loaded, name)}
    return found


if __name__ == "__main__":
    json.dump(python(), sys.stdout)
