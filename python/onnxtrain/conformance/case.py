"""What a case is, how its expected values and tolerances are computed, and how it lies in a folder.

    NAME/case.json                     kind, category, what it shows, tolerance of every expected tensor
    NAME/model.onnx
    NAME/initialized/output_0.pb       state after the initialization, where the case runs it
    NAME/test_data_set_K/input_0.pb    what step K is fed; the tensors carry their names
    NAME/test_data_set_K/output_0.pb   outputs of step K and state variables after it

A case of kind `node` has one data set and is an ordinary ONNX backend test."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .arithmetic import rounding
from .files import read_tensor, write_tensor

VERSION = "1.0"
STEPS = 10
UNITS = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_RUNS, _MARGIN = 8, 8  # disturbed calculations, and how much farther than the worst of them a result may be


@dataclass
class Case:
    name: str
    category: str
    about: str
    model: bytes
    kind: str = "steps"  # node, steps, refuse, random
    rule: str = ""  # C12, G7: docs/standard.md
    feeds: list = field(default_factory=list)  # {name: array} per step
    expected: list = field(default_factory=list)  # {name: array} per step
    tolerances: list = field(default_factory=list)  # {name: absolute} per step
    which: list = None  # section of each step; None: all of them in order
    initialized: dict = None  # state after the initialization; None: it is not run
    initial_tolerance: dict = field(default_factory=dict)
    checks: list = None  # for random numbers: what must hold (random_checks.py)
    later: object = None  # computes expected values and tolerances

    def finished(self):
        """This case with its expected values."""
        if self.later is not None:
            self.expected, self.tolerances = self.later()
            self.later = None
        return self


def spread(run, unit=UNITS["float32"]):
    """What `run` gives, a list of {name: array}, and the tolerance of each tensor: 8 times the farthest that 8
    runs went whose every operation is wrong by up to `unit`, and at least 8 units of its largest element."""
    exact = run()
    farthest = [{k: 0.0 for k in e} for e in exact]
    for seed in range(_RUNS):
        with rounding(unit, seed):
            for far, want, got in zip(farthest, exact, run()):
                for k in far:
                    if want[k].dtype.kind == "f":
                        far[k] = max(far[k], float(np.max(np.abs(want[k] - got[k]), initial=0)))
    return exact, [{k: _tolerance(far[k], e[k], unit) for k in e} for far, e in zip(farthest, exact)]


def _tolerance(far, want, unit):
    if np.asarray(want).dtype.kind != "f":
        return 0.0
    return float(_MARGIN * (far + unit * np.max(np.abs(want), initial=0)))


def steps_case(name, category, about, model, step, state, feeds, unit=UNITS["float32"], types=None, **more):
    """A trajectory. `step(state, feeds, k) -> (outputs, new state)`: float64, of arrays."""

    def run():
        now, out = {k: np.asarray(v) for k, v in state.items()}, []
        for k, f in enumerate(feeds):
            outputs, now = step(dict(now), f, k)
            out.append({n: np.asarray(v) for n, v in (now | outputs).items()})
        return out

    return Case(
        name, category, about, model, feeds=feeds, later=lambda: _typed(*spread(run, unit), types or {}), **more
    )


def node_case(name, category, about, model, feeds, compute, unit=UNITS["float32"], types=None, **more):
    """One run of an ordinary model. `compute(feeds) -> outputs`."""

    def run():
        return [{k: np.asarray(v) for k, v in compute(feeds).items()}]

    return Case(
        name,
        category,
        about,
        model,
        "node",
        feeds=[feeds],
        later=lambda: _typed(*spread(run, unit), types or {}),
        **more,
    )


def _typed(expected, tolerances, types):
    """In the file's element types; float32 where nothing else is said."""

    def one(k, v):
        if k in types:
            return v.astype(types[k])
        return v.astype(np.float32) if v.dtype.kind == "f" else v

    return [{k: one(k, v) for k, v in e.items()} for e in expected], tolerances


def write(case, folder):
    folder = Path(folder) / case.name
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model)
    about = {
        "version": VERSION,
        "name": case.name,
        "category": case.category,
        "about": case.about,
        "kind": case.kind,
        "steps": len(case.feeds),
    }
    if case.rule:
        about["rule"] = case.rule
    if case.which is not None:
        about["which"] = case.which
    if case.checks is not None:
        about["checks"] = case.checks
    about["initialize"] = case.initialized is not None
    if case.initialized is not None:
        about["initial_tolerance"] = case.initial_tolerance
        _write_all(folder / "initialized", "output", case.initialized)
    about["tolerances"] = case.tolerances
    (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")
    for k, feeds in enumerate(case.feeds):
        _write_all(folder / f"test_data_set_{k}", "input", feeds)
        _write_all(folder / f"test_data_set_{k}", "output", case.expected[k] if case.expected else {})


def _write_all(folder, what, arrays):
    folder.mkdir(exist_ok=True)
    for i, (name, array) in enumerate(arrays.items()):
        write_tensor(folder / f"{what}_{i}.pb", name, array)


def _read_all(folder, what):
    files = sorted(folder.glob(f"{what}_*.pb"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    return dict(read_tensor(p) for p in files)


def read(folder):
    """The case in a folder that `write` made."""
    folder = Path(folder)
    about = json.loads((folder / "case.json").read_text())
    sets = [folder / f"test_data_set_{k}" for k in range(about["steps"])]
    return Case(
        about["name"],
        about["category"],
        about["about"],
        (folder / "model.onnx").read_bytes(),
        about["kind"],
        about.get("rule", ""),
        [_read_all(s, "input") for s in sets],
        [_read_all(s, "output") for s in sets],
        about["tolerances"],
        about.get("which"),
        _read_all(folder / "initialized", "output") if about["initialize"] else None,
        about.get("initial_tolerance", {}),
        about.get("checks"),
    )
