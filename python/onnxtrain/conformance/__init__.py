"""The conformance suite for ONNX Training (docs/training-conformance.md).

    from onnxtrain import conformance
    conformance.export("suite")                          # the cases as files
    score = conformance.run(engine="onnxruntime")        # or backend="onnx.reference", or nothing: this library
    print(score.line)

Expected values come from float64 arithmetic of its own (arithmetic.py), never from the library."""

import fnmatch
import json
import os
import sys
from pathlib import Path

from ..errors import UsageError

try:
    import ml_dtypes  # noqa: F401
    import onnx  # noqa: F401
except ImportError as e:
    missing = UsageError(
        f"the conformance suite needs the package '{e.name}', which is not installed", "OT1803", f"pip install {e.name}"
    )
    if sys.argv[:1] == ["-m"]:  # as a command: an answer, no trace
        print(missing, file=sys.stderr)
        sys.exit(2)
    raise missing from None

from . import case as _case
from . import score as _score
from .cases import all_cases
from .page import page  # noqa: F401
from .targets import NotThere, target, version_of  # noqa: F401


def _some(cases, only):
    if not cases:
        raise UsageError(f"no case is called '{only}'", "OT1804", "--only 'adam_*'")
    return cases


def export(folder, only=None):
    """Writes the suite into a new or empty folder; the names of its cases."""
    folder = Path(os.fspath(folder))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"'{folder}' exists and is not an empty folder", "OT1801", f"onnxtrain conformance export {folder}-1"
        )
    cases = _some(all_cases(only or "*"), only)
    folder.mkdir(parents=True, exist_ok=True)
    for c in cases:
        _case.write(c, folder)
    listed = [{"name": c.name, "category": c.category, "kind": c.kind, "rule": c.rule, "about": c.about} for c in cases]
    about = {"suite": "onnx-training", "version": _case.VERSION, "cases": listed}
    (folder / "suite.json").write_text(json.dumps(about, indent=1) + "\n")
    return [c.name for c in cases]


def read(folder):
    """The cases of a folder that `export` wrote."""
    path = Path(os.fspath(folder)) / "suite.json"
    try:
        about = json.loads(path.read_text())
        version = about["version"]
        names = [c["name"] for c in about["cases"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"'{folder}' holds no conformance suite", "OT1802", f"onnxtrain conformance export {folder}"
        ) from None
    if version.split(".")[0] != _case.VERSION.split(".")[0]:
        raise UsageError(f"the suite in '{folder}' has version {version}, this program reads {_case.VERSION}", "OT1802")
    try:
        return [_case.read(path.parent / n) for n in names]
    except (OSError, ValueError, KeyError) as e:
        raise UsageError(
            f"the suite in '{folder}' is damaged: {e}", "OT1802", "onnxtrain conformance export NEW-FOLDER"
        ) from None


def run(folder=None, engine=None, backend=None, only=None, progress=None):
    """Runs the suite of a folder, or a fresh one, on an engine or backend; a `Score`."""
    on = target(engine, backend)
    only = only or "*"
    cases = [c for c in read(folder) if fnmatch.fnmatch(c.name, only)] if folder else all_cases(only)
    return _score.run(_some(cases, only), on, version_of(on.name), progress)
