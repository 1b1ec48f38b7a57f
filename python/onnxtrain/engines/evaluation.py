"""Validation in the engine that makes the steps, and what is checked of an engine's answers."""

import numpy as np

from ..errors import DataError, Error, OpenSizesError

EVALUATION = -1  # OT_EVALUATION: what validation computes
SCORES = "onnxtrain_scores"


class EngineFailed(RuntimeError):
    """Something that an engine must not do."""


class CannotEvaluate(Exception):
    """The inference form has no step for this engine; the text says why."""


def sizes_of(given):
    dims = {k: v.shape for k, v in given.items() if v.ndim}
    return tuple(sorted(dims.items())), dims


def image_sizes(model, given):
    """(key, sizes of a step for these feeds): all open, but height and width of images that the model resizes itself.
    A batch of a training has one size, mostly the network's own: the step then has nothing to resize."""
    dims = {}
    if "onnxtrain.image" in model.info.get("metadata", {}):
        for i in model.info["inputs"]:
            shape = i.get("shape") or []
            if len(shape) == 4 and np.ndim(given.get(i["name"])) == 4:
                dims |= {d: n for d, n in zip(shape[2:], np.shape(given[i["name"]])[2:]) if isinstance(d, str)}
    return tuple(sorted(dims.items())), dims or None


def fitting(file, given):
    """The step's feeds among these; an error of the data where a runtime would fail in words of its own, or repeat
    and ignore values without any."""
    feeds, sizes = {}, {}
    for k in file.data:
        if k not in given:
            raise DataError(f"input '{k}' was not given", "OT2113", f"add an array '{k}' to the feeds")
        feeds[k] = value = given[k]
        wanted, have = file.shape_of(k), list(np.shape(value))
        if value.dtype != file.type_of(k):
            raise DataError(f"input '{k}' is {value.dtype}, the step wants {file.type_of(k)}", "OT2111",
                            f"convert it in Python: x.astype(numpy.{file.type_of(k)})")
        if wanted is None:
            continue
        if len(wanted) != len(have) or any(isinstance(a, int) and a != b for a, b in zip(wanted, have)):
            raise DataError(f"input '{k}' has the shape {have}, the step wants {wanted}", "OT2111",
                            "give an array of that shape")
        for name, n in zip(wanted, have):
            first = sizes.setdefault(name, (n, k)) if isinstance(name, str) and name != "?" else (n, k)
            if first[0] != n:
                raise DataError(f"'{first[1]}' and '{k}' have different sizes: {first[0]} and {n} (dimension '{name}' "
                                "of both)", "OT2165", "give as many rows of one as of the other")
        _in_range(file, k, value)
    return feeds


def _in_range(file, name, value):
    limits = file.range_of(name)
    if not limits or not value.size:
        return
    beyond = (value < limits["least"]) | (value > limits["most"])
    if "ignored" in limits:
        beyond &= value != limits["ignored"]
    if beyond.any():
        raise DataError(f"{value[beyond][0]} in input '{name}' is out of range: {limits['least']} to {limits['most']}",
                        "OT2104", "class numbers and rows of a table count from 0")


def runner_of(engine, made):
    """What an engine's `compile` returned, if it can be driven."""
    lost = [k for k in ("step", "state", "set_state") if not callable(getattr(made, k, None))]
    if lost:
        raise EngineFailed(f"{engine.name} returned no runner for the step: {type(made).__name__} has no "
                           f"{' and no '.join(lost)}")
    return made


def by_name(got, what):
    """What a runner returned as {name: array of numbers}."""
    if not isinstance(got, dict):
        raise EngineFailed(f"its {what} returned {type(got).__name__}, not arrays by name")
    for k, v in got.items():
        try:
            kind = np.asarray(v).dtype
        except ValueError:
            raise EngineFailed(f"it returned '{k}' as {type(v).__name__} that is no array") from None
        if kind.kind in "OSUcMm":
            shown = type(v).__name__ if kind.kind == "O" else kind
            raise EngineFailed(f"it returned '{k}' as {shown}, not as numbers")
    return got


def checked(file, feeds, got):
    """What a runner returned, if it is what the step's manifest says of its outputs for these feeds."""
    by_name(got, "step")
    sizes = {}
    for k, v in feeds.items():
        sizes |= {d: n for d, n in zip(file.shape_of(k) or [], np.shape(v)) if isinstance(d, str) and d != "?"}
    for k in file.plain:
        if k not in got:
            raise EngineFailed(f"it did not return the output '{k}'")
        wanted, have = file.shape_of(k), list(np.shape(got[k]))
        if k == file.loss or wanted is None:
            continue
        wanted = [sizes.get(d, d) for d in wanted]
        if len(wanted) != len(have) or any(isinstance(a, int) and a != b for a, b in zip(wanted, have)):
            raise EngineFailed(f"it returned '{k}' with the shape {have}, the step says {wanted}")
    return got


def lend(section, runner, names):
    """State of a section for another runner of the engine, on the device where the engine can do that."""
    if not names:
        return
    if hasattr(runner, "borrow") and type(runner) is type(section.runner):
        runner.borrow(section.runner, names)
    else:
        now = section.runner.state()
        runner.set_state({k: now[k] for k in names})


class Evaluation:
    """The inference form in the driver's engine. The state is that of the steps, on the device where it can stay."""

    def __init__(self, driver):
        self.driver, self.fixed = driver, driver.fixed
        self.compiled = {}  # shapes -> [section, changes of the state that it has seen]

    def __call__(self, given):
        d, entry = self.driver, self._entry(given)
        r = entry[0]
        if entry[1] != d.changes:
            self._give_state(r)
            entry[1] = d.changes
        got = r.step(given)
        named = {"loss": r.file.loss, "scores": SCORES if SCORES in got else None}
        return {k: np.asarray(got[name]) for k, name in named.items() if name}

    def _entry(self, given):
        self.fixed = self.fixed or self.driver.fixed
        if not self.fixed:
            try:
                return self._made(*image_sizes(self.driver.model, given))
            except OpenSizesError:
                self.fixed = True
            except Error as e:
                raise CannotEvaluate(first_line(e)) from None
        try:
            return self._made(*sizes_of(given))
        except Error as e:
            raise CannotEvaluate(first_line(e)) from None

    def _made(self, key, dims):
        if key not in self.compiled:
            try:
                self.compiled[key] = [self.driver.made(EVALUATION, dims), None]
            except Error:
                raise
            except Exception as e:  # noqa: BLE001  whatever the runtime says: this library can evaluate
                raise CannotEvaluate(f"{self.driver.engine.name} refuses the inference form: "
                                     f"{first_line(e)[:300]}") from None
        return self.compiled[key]

    def _give_state(self, r):
        wanted, runners = set(r.states), self.driver.current or []
        for one in runners:  # sections share what they change after every step
            mine = [k for k in one.states if k in wanted and k in one.fed]
            lend(one, r.runner, mine)
            wanted -= set(mine)
        r.runner.set_state({k: self.driver.values[k] for k in wanted if k in self.driver.values})


def first_line(e):
    return str(e).splitlines()[0]


def kept_here(e):
    """An error of ours about a training that an engine cannot run, with what can."""
    if not isinstance(e, Error):
        return e
    return type(e)(e.message, e.code, "this library trains it:  --engine native")
