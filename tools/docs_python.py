#!/usr/bin/env python3
"""The reference of the Python package as Markdown, from signatures and docstrings: tools/docs_python.py > api.md"""

import inspect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import onnxtrain as ot  # noqa: E402
import onnxtrain.callbacks  # noqa: E402


def signature(thing):
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    shown = [p for p in found.parameters.values() if p.name != "self" and not p.name.startswith("_")]
    return str(found.replace(parameters=shown))


def entry(name, thing, level):
    text = inspect.getdoc(thing) or ""
    return f"{'#' * level} {name}\n\n```text\n{name}{signature(thing)}\n```\n\n{text}\n"


def members(name, thing):
    for key, value in vars(thing).items():
        if key.startswith("_"):
            continue
        if inspect.isfunction(value) and value.__doc__:
            yield entry(f"{name}.{key}", value, 4)
        elif isinstance(value, property) and value.__doc__:
            yield f"#### {name}.{key}\n\n{inspect.getdoc(value)}\n"


def main():
    parts = ["# Python reference\n\nMade from the package by `make docs`. [python.md](python.md) is the guide.\n"]
    things = [(name, getattr(ot, name)) for name in sorted(ot.__all__, key=str.lower)]
    things += [(f"callbacks.{n}", c) for n, c in vars(ot.callbacks).items()
               if inspect.isclass(c) and issubclass(c, ot.callbacks.Callback) and not n.startswith("_")]
    for kind, wanted in (("Functions", inspect.isfunction), ("Classes", inspect.isclass)):
        parts.append(f"## {kind}\n")
        for name, thing in things:
            if wanted(thing):
                parts.append(entry(f"ot.{name}", thing, 3))
                if inspect.isclass(thing):
                    parts += members(f"ot.{name}", thing)
    print("\n".join(parts))


if __name__ == "__main__":
    main()
