"""What stands between the training loop and an engine: steps for the shapes that come, one state for all of them."""

import json

import numpy as np

from ..errors import Error
from ..model import Model
from ..steps import step_options
from ..values import from_native, to_native
from . import Step, open_engine


class EngineFailed(RuntimeError):
    """Something that an engine must not do."""


class Driver:
    """begin, step, state, undo: what `Trainer` and the command line call."""

    def __init__(self, spec, threads=0):
        self.engine, self.device = open_engine(spec)
        self.threads = threads
        self.model, self.sections, self.count = None, 0, 0
        self.compiled = {}  # shapes -> a runner per section
        self.fixed = bool(getattr(self.engine, "fixed_shapes", False))
        self.values = {}  # state variables; out of date while `current` has newer ones
        self.current = None
        self.outputs = {}

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
        if self.current is not None:
            self._give(self.current, self.values)
        for r in (self.current or []):
            self._count(r)

    def step(self, feeds):
        given = {k: np.asarray(from_native(v)) for k, v in feeds.items()}
        runners = self._runners(given)
        if runners is not self.current:
            self._switch(runners)
        loss, self.outputs = float("nan"), {}
        for r in runners:
            wanted = {k: given[k] for k in r.file.data if k in given}
            missing = [k for k in r.file.data if k not in given]
            if missing:
                raise EngineFailed(f"input '{missing[0]}' was not given")
            self._feed_state(r, given)
            got = r.runner.step(wanted)
            lost = [k for k in r.file.plain if k not in got]
            if lost:
                raise EngineFailed(f"it did not return the output '{lost[0]}'")
            self.outputs |= got
            if r.file.loss:
                value = np.asarray(got[r.file.loss])
                if value.size != 1:
                    raise EngineFailed(f"its loss '{r.file.loss}' has the shape {list(value.shape)}, not one number")
                loss = float(value.reshape(()))
            if len(runners) > 1:
                self._share(r, runners)
        self.count += 1
        return loss

    def state(self):
        self._collect()
        return [(k, to_native(v, k)) for k, v in self.values.items()]

    def undo(self):
        runners = self.current or []
        if len(runners) != 1 or not hasattr(runners[0].runner, "undo"):
            return False
        runners[0].runner.undo()
        self.count -= 1
        return True

    # ---- steps and their state
    def _runners(self, given):
        if not self.fixed:
            try:
                return self._compile((), None)
            except Error as e:
                if e.code not in ("OT1205", "OT1206", "OT1260"):
                    raise
                self.fixed = True  # some shape must be a number: one step for each that comes
        dims = {k: v.shape for k, v in given.items() if v.ndim}
        return self._compile(tuple(sorted(dims.items())), dims)

    def _compile(self, key, dims):
        if key not in self.compiled:
            made = []
            for k in range(self.sections):
                options = step_options(runtime=getattr(self.engine, "runtime", None), dims=dims)
                step, manifest = self.model._m.make_step(k, options)
                section = json.loads(manifest)["sections"][0]
                file = Step(step.bytes(False), section)
                file.state = {n: self.values[n] for n in file.states if n in self.values}
                file.state |= {n: np.float32(self.count) for n in file.inputs("counter")}
                made.append(_Section(file, self.engine.compile(file, self.device, threads=self.threads)))
            self.compiled[key] = made
        return self.compiled[key]

    def _switch(self, runners):
        self._collect()
        self.current = runners
        self._give(runners, self.values)
        for r in runners:
            self._count(r)

    def _give(self, runners, values):
        for r in runners:
            r.runner.set_state({k: values[k] for k in r.file.states if k in values})

    def _count(self, r):
        """The counter of random numbers goes with the steps made, whoever made them."""
        counters = r.file.inputs("counter")
        if counters:
            r.runner.set_state({k: np.float32(self.count) for k in counters})

    def _feed_state(self, r, given):
        """A state variable that is fed has that value in this step; what the step makes of it is assigned
        (ruling G5)."""
        fed = {k: given[k] for k in r.file.states if k in given}
        if fed:
            r.runner.set_state(fed)

    def _share(self, one, runners):
        fresh = one.runner.state()
        fed = {to for targets in one.file.feedback.values() for to in targets}
        for other in runners:
            if other is not one:
                other.runner.set_state({k: fresh[k] for k in other.file.states if k in fed and k in fresh})

    def _collect(self):
        for r in self.current or []:
            fed = {to for targets in r.file.feedback.values() for to in targets}
            now = r.runner.state()
            lost = sorted(k for k in fed if k in self.values and k not in now)
            if lost:
                raise EngineFailed(f"it did not return the state variable '{lost[0]}'")
            for k, v in now.items():
                if k in self.values and k in fed:
                    self.values[k] = np.array(v)


class _Section:
    def __init__(self, file, runner):
        self.file, self.runner = file, runner
