"""What stands between the training loop and an engine: steps for the shapes that come, one state for all of them."""

import json
import warnings

import numpy as np

from ..errors import Error, OpenSizesError
from ..model import Model
from ..steps import step_options
from ..values import from_native, to_native
from . import Step, open_engine
from .evaluation import (
    CannotEvaluate,
    EngineFailed,
    Evaluation,
    by_name,
    first_line,
    image_sizes,
    kept_here,
    lend,
    runner_of,
    sizes_of,
)
from .sections import EngineSection, NativeSection

COUNTERS = 1 << 23  # a step's counter of random numbers begins again there


def _warn(code, text):
    warnings.warn(f"[{code}] {text}", stacklevel=2)


class Driver:
    """begin, step, state, undo, evaluate: what `Trainer` and the command line call."""

    def __init__(self, spec, threads=0, warn=_warn):
        self.engine, self.device = open_engine(spec)
        self.threads, self.warn = threads, warn
        self.model, self.sections, self.count, self.seed = None, 0, 0, 0
        self.compiled = {}  # shapes -> a runner per section
        self.fixed = bool(getattr(self.engine, "fixed_shapes", False))
        self.values = {}  # state variables; out of date while `current` has newer ones
        self.current = None
        self.outputs = {}
        self.changes = 0  # of the state
        self.native = set()  # sections that the engine refuses
        self.evaluation, self.refused = Evaluation(self), None

    # ---- called by the loop
    def begin(self, native, step):
        model = Model(native)
        if self.model is None:
            self.model, self.sections = model, len(model.info["training"])
        names = [b["key"] for t in model.info["training"] for b in t["update_binding"]]
        self.values |= {n: np.array(from_native(native.initializer(n))) for n in dict.fromkeys(names)}
        rate = model.info.get("metadata", {}).get("onnxtrain.rate")
        there = [i["name"] for part in (model.info, *model.info["training"]) for i in part["initializers"]]
        if rate in there:
            self.values[rate] = np.array(from_native(native.initializer(rate)))
        self.count = int(step)
        self.seed = int(model.info.get("metadata", {}).get("onnxtrain.seed", 0))
        self.changes += 1
        if self.current is not None:
            self._give(self.current, self.values)
            self._count(self.current)

    def step(self, feeds):
        given = {k: np.asarray(from_native(v)) for k, v in feeds.items()}
        runners = self._runners(given)
        if runners is not self.current:
            self._switch(runners)
        loss, self.outputs = float("nan"), {}
        for r in runners:
            self._feed_state(r, given)
            got = r.step(given)
            self.outputs |= got
            if r.loss:
                value = np.asarray(got[r.loss])
                if value.size != 1:
                    raise EngineFailed(f"its loss '{r.loss}' has the shape {list(value.shape)}, not one number")
                loss = float(value.reshape(()))
            if len(runners) > 1:
                self._share(r, runners)
        self.count += 1
        self.changes += 1
        return loss

    def evaluate(self, feeds):
        """(why it cannot, or None; [("loss", value), ("scores", value)] of these rows in the inference form."""
        if self.refused is None:
            given = {k: np.asarray(from_native(v)) for k, v in feeds.items()}
            try:
                return None, [(k, to_native(v, k)) for k, v in self.evaluation(given).items()]
            except CannotEvaluate as e:
                self.refused = str(e)
        return self.refused, []

    def state(self):
        self._collect()
        return [(k, to_native(v, k)) for k, v in self.values.items()]

    def undo(self):
        runners = self.current or []
        if len(runners) != 1 or not hasattr(runners[0].runner, "undo"):
            return False
        runners[0].runner.undo()
        self.count -= 1
        self.changes += 1
        return True

    # ---- steps and their state
    def _runners(self, given):
        if not self.fixed:
            try:
                return self._compile(*image_sizes(self.model, given))
            except OpenSizesError:
                self.fixed = True  # some shape must be a number: one step for each that comes
            except Error:
                raise
            except Exception:  # noqa: BLE001  the runtime refuses open sizes, or the step whatever its sizes
                if self.sections > 1:
                    raise
                self.fixed = True
        return self._compile(*sizes_of(given))

    def _compile(self, key, dims):
        if key not in self.compiled:
            self.compiled[key] = self._sections(dims)
        return self.compiled[key]

    def _sections(self, dims):
        """Every section in the engine; with several, those that it refuses in this library."""
        made, why = [], {}
        for k in range(self.sections):
            try:
                made.append(self.made(k, dims))
            except Exception as e:  # noqa: BLE001  ours, or whatever the runtime says
                sizes_may_help = not self.fixed and isinstance(e, OpenSizesError)
                if sizes_may_help or self.sections == 1 or len(why) == self.sections - 1:
                    raise (e if sizes_may_help else kept_here(e)) from None
                why[k] = first_line(e)
                made.append(NativeSection(self.model, k))
        for k, text in why.items():
            if k not in self.native:
                self.warn("OT4514", f"training section {k} runs in this library, {self.engine.name} refuses it: {text}")
        self.native |= set(why)
        return made

    def made(self, section, dims):
        """A section, or EVALUATION, compiled for these sizes (None: open ones)."""
        options = step_options(runtime=getattr(self.engine, "runtime", None), dims=dims)
        step, manifest = self.model._m.make_step(section, options)
        file = Step(step.bytes(False), json.loads(manifest)["sections"][0])
        file.state = {n: self.values[n] for n in file.states if n in self.values}
        file.state |= {n: self._counter(1) for n in file.inputs("counter")}
        return EngineSection(file, runner_of(self.engine, self.engine.compile(file, self.device, threads=self.threads)))

    def _switch(self, runners):
        self._collect()
        self.current = runners
        self._give(runners, self.values)
        self._count(runners)

    def _counter(self, sections):
        """Where random numbers are after the steps so far: by the seed, and one place further for every section that
        draws (sections share the counter)."""
        return np.float32((self.seed * 2654435761 // 256 + self.count * sections) % COUNTERS)

    def _count(self, runners):
        at = self._counter(sum(bool(r.counters) for r in runners))
        for r in runners:
            r.count(self.count, at)

    def _give(self, runners, values):
        for r in runners:
            r.runner.set_state({k: values[k] for k in r.states if k in values})

    def _feed_state(self, r, given):
        """A state variable that is fed has that value in this step; what the step makes of it is assigned
        (ruling G5)."""
        fed = {k: given[k] for k in r.states if k in given}
        if fed:
            r.runner.set_state(fed)

    def _share(self, one, runners):
        """What a section changed is what the others read next."""
        for other in runners:
            if other is not one:
                lend(one, other.runner, [k for k in other.states if k in one.fed])

    def _collect(self):
        for r in self.current or []:
            fed = r.fed
            now = by_name(r.runner.state(), "state")
            lost = sorted(k for k in fed if k in self.values and k not in now)
            if lost:
                raise EngineFailed(f"it did not return the state variable '{lost[0]}'")
            for k, v in now.items():
                if k in self.values and k in fed:
                    self.values[k] = np.array(v)

