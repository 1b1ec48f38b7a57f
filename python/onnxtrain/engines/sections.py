"""Training sections as a driver sees them: compiled by an engine, or kept in this library where the engine refuses."""

import numpy as np

from .evaluation import checked, fitting


class EngineSection:
    """A section's step (`file`) and what runs it."""

    def __init__(self, file, runner):
        self.file, self.runner = file, runner
        self.states, self.fed, self.loss = file.states, file.fed, file.loss
        self.counters = file.inputs("counter")

    def step(self, given):
        """Outputs that are not state, of a step on these feeds."""
        feeds = fitting(self.file, given)
        return checked(self.file, feeds, self.runner.step(feeds))

    def count(self, steps, at):
        """The counter of random numbers goes with the steps made, whoever made them."""
        if self.counters:
            self.runner.set_state({k: at for k in self.counters})


class NativeSection:
    """A section that the engine refuses, made by this library on the same state, with the run's random numbers."""

    counters = ()

    def __init__(self, model, number):
        from ..trainer import Trainer

        described = model.info["training"][number]
        seed = int(model.info.get("metadata", {}).get("onnxtrain.seed", 0))
        self.trainer, self.number = Trainer(model, seed=seed), number
        self.inputs = {i["name"] for part in (model.info, described) for i in part["inputs"]}
        self.fed = {b["key"] for b in described["update_binding"]}
        self.states = list(self.trainer.state)
        self.loss = "loss"
        self.runner = self

    def step(self, given):
        result = self.trainer.step({k: v for k, v in given.items() if k in self.inputs}, self.number)
        return {"loss": np.float64(result.loss)}

    def count(self, steps, at):
        self.trainer._t.step_count = steps

    def state(self):
        return {k: np.array(v) for k, v in self.trainer.state.items()}

    def set_state(self, values):
        for k, v in values.items():
            self.trainer.state[k] = v
