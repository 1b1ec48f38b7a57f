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
            schedule=None, accumulate=1, mode="train", lowered=False, reset=False, seed=0, append=False,
            batch=0):
    """Inference model -> training model (loss, gradients, optimizer and state are in the file).

    append: one more training section behind those that the model has (a GAN's second player).
    batch: a number in place of the open first dimension of the inputs, for lowering."""
    recipe = {
        "losses": loss_specs(loss, label), "optimizer": optimizer_spec(optimizer), "schedule": schedule_spec(schedule),
        "freeze": [freeze] if isinstance(freeze, str) else list(freeze),
        "only": [only] if isinstance(only, str) else list(only or ()),
        "clip_norm": clip_norm or 0, "clip_value": clip_value or 0, "accumulate": accumulate, "mode": mode,
        "lowered": lowered, "reset": reset, "seed": seed, "append": append, "batch": batch,
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


class History:
    """What `fit` gave: `.epochs` is a list of dicts, `history["loss"]` the values over epochs."""

    def __init__(self, result):
        self.epochs, self.best_epoch, self.interrupted = result["epochs"], result["best_epoch"], result["interrupted"]

    def __getitem__(self, key):
        return [e[key] for e in self.epochs]

    def __len__(self):
        return len(self.epochs)

    def __repr__(self):
        return f"<history: {len(self.epochs)} epochs, best {self.best_epoch}>"


def _columns(x, y=None):
    columns = dict(x) if isinstance(x, dict) else {"x": x}
    if isinstance(y, dict):
        columns.update(y)
    elif y is not None:
        columns["y"] = y
    return columns


def resume(path, threads=0):
    """A trainer that goes on where a run folder or a checkpoint stopped: `ot.resume("runs/cnn").fit(x, y, epochs=6)`."""
    return Trainer(None, _native_trainer=_native.resume(os.fspath(path), threads))


class Trainer:
    """Steps a training model: `t.step({"x": xb, "label": yb}).loss`."""

    def __init__(self, model, seed=0, threads=0, *, _native_trainer=None):
        self._t = _native_trainer or _native.Trainer(as_model(model)._m, seed, threads)
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
        """A checkpoint: a training ONNX file with state, position, seeds and checksums."""
        self._t.save(os.fspath(path))

    def fit(self, x, y=None, valid=0.0, epochs=10, batch_size=32, out=None, steps=0, patience=0, shuffle=True,
            save_every=0, on_epoch=None):
        """Epochs over arrays; returns a History. x: an array or {input: array}; y: an array or {target: array};
        valid: a fraction, or (x, y). on_epoch(dict) may return True to stop."""
        names, values = feed_lists(_columns(x, y))
        options = {"epochs": epochs, "batch": batch_size, "steps": steps, "patience": patience, "shuffle": shuffle,
                   "save_every": save_every}
        if out is not None:
            options["out"] = os.fspath(out)
        valid_names, valid_values = [], []
        if isinstance(valid, (tuple, list)):
            valid_names, valid_values = feed_lists(_columns(*valid))
        elif valid:
            options["valid"] = float(valid)
        call = None if on_epoch is None else (lambda text: bool(on_epoch(json.loads(text))))
        result = json.loads(self._t.fit(names, values, valid_names, valid_values, json.dumps(options), call))
        return History(result)

    def evaluate(self, x, y=None, batch_size=256):
        """Loss and metrics on the inference form of the model, as a dict."""
        names, values = feed_lists(_columns(x, y))
        return json.loads(self._t.evaluate(names, values, batch_size))

    def export(self, path):
        """Inference ONNX with the current weights."""
        self.model().export(os.fspath(path))
