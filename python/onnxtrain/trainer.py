"""Preparing a model for training, and stepping it in one's own loop."""

import json
import os
from collections.abc import MutableMapping

from . import _native
from .model import Model, as_model
from .recipe import loss_specs, optimizer_spec, schedule_spec
from .session import feed_lists
from .values import from_native, to_native


def prepare(model, loss="auto", optimizer=None, label=None, freeze=(), only=None, clip_norm=None, clip_value=None,
            schedule=None, accumulate=1, mode="train", lowered=False, reset=False, seed=0):
    """Inference model -> training model (loss, gradients, optimizer and state are in the file)."""
    recipe = {
        "losses": loss_specs(loss, label), "optimizer": optimizer_spec(optimizer), "schedule": schedule_spec(schedule),
        "freeze": [freeze] if isinstance(freeze, str) else list(freeze),
        "only": [only] if isinstance(only, str) else list(only or ()),
        "clip_norm": clip_norm or 0, "clip_value": clip_value or 0, "accumulate": accumulate, "mode": mode,
        "lowered": lowered, "reset": reset, "seed": seed,
    }
    return Model(as_model(model)._m.prepare(json.dumps(recipe)))


class StepResult:
    """What a step gave: `.loss` (float) and `.outputs` (name -> array)."""

    __slots__ = ("loss", "_raw", "_outputs")

    def __init__(self, loss, raw):
        self.loss, self._raw, self._outputs = loss, raw, None

    @property
    def outputs(self):
        if self._outputs is None:
            self._outputs = {n: from_native(v) for n, v in self._raw}
        return self._outputs

    def __repr__(self):
        return f"<step: loss {self.loss:.6g}>"


class _State(MutableMapping):
    """name -> array of every state variable; assigning writes it."""

    def __init__(self, native):
        self._t = native

    def __getitem__(self, name):
        if name not in self._names():
            raise KeyError(name)
        return from_native(self._t.get(name))

    def __setitem__(self, name, value):
        if name not in self._names():
            raise KeyError(name)
        self._t.set(name, to_native(value, name))

    def __delitem__(self, name):
        raise TypeError("state variables belong to the file and cannot be removed")

    def _names(self):
        return json.loads(self._t.state_names())

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


class Trainer:
    """Steps a training model: `t.step({"x": xb, "label": yb}).loss`."""

    def __init__(self, model, seed=0, threads=0):
        self._t = _native.Trainer(as_model(model)._m, seed, threads)
        self.state = _State(self._t)

    def initialize(self):
        """Runs the file's initialization."""
        self._t.initialize()

    def step(self, feeds, which=None):
        """One step of all training sections in order, or of section `which`."""
        names, values = feed_lists(feeds)
        loss = self._t.step(names, values, -1 if which is None else which)
        return StepResult(loss, self._t.outputs())

    def steps(self, feeds, n):
        """n steps on the same feeds in one call; the result of the last."""
        names, values = feed_lists(feeds)
        loss = self._t.steps(names, values, n)
        return StepResult(loss, self._t.outputs())

    @property
    def lr(self):
        return self._t.rate

    @lr.setter
    def lr(self, value):
        self._t.rate = float(value)

    @property
    def step_count(self):
        return self._t.step_count

    def model(self):
        """The training model with the current state."""
        return Model(self._t.model())

    def save(self, path):
        self.model().save(os.fspath(path))

    def export(self, path):
        """Inference ONNX with the current weights."""
        self.model().export(os.fspath(path))
