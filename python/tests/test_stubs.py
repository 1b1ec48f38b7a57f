"""The type stub names what the package has, with the same arguments."""

import ast
import inspect
import pathlib

import pytest

import onnxtrain as ot

TREE = ast.parse((pathlib.Path(ot.__file__).parent / "__init__.pyi").read_text())
TOP = {n.name: n for n in TREE.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}


def arguments(node):
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return names + [x.arg for x in (a.vararg, a.kwarg) if x]


def runtime(function):
    return [n for n in inspect.signature(function).parameters if not n.startswith("_")]


@pytest.mark.parametrize("name", ot.__all__)
def test_public_name(name):
    if name not in TOP and ("torch" in name or "keras" in name):
        pytest.skip("a converter")
    assert name in TOP, "missing in __init__.pyi"
    thing, node = getattr(ot, name), TOP[name]
    if isinstance(node, ast.FunctionDef):
        if arguments(node) == ["args", "kwargs"]:
            return
        assert arguments(node) == runtime(thing)
        return
    for member in node.body:
        if not isinstance(member, ast.FunctionDef):
            continue
        real = inspect.getattr_static(thing, member.name)
        if isinstance(real, property):
            continue
        function = real.__func__ if isinstance(real, staticmethod) else real
        assert arguments(member) == runtime(function), member.name


def test_public_methods_are_all_there():
    for name in ("Model", "Trainer", "Session", "OnnxClassifier", "OnnxRegressor"):
        own = {m.name for n in (name, "_Estimator") for m in TOP[n].body if isinstance(m, ast.FunctionDef)}
        own |= {m.target.id for m in TOP[name].body if isinstance(m, ast.AnnAssign)}
        cls = getattr(ot, name)
        public = {m for m in dir(cls) if not m.startswith("_") and hasattr(cls, m)}
        assert public <= own, public - own
