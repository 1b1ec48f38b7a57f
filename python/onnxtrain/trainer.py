"""Preparing a model for training, and stepping it in one's own loop."""

import json
import os
from collections.abc import MutableMapping

import numpy as np

from . import _native
from .errors import UsageError
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


class _Outputs(dict):
    """Outputs of a step that is over: without the new values of state variables."""

    def __missing__(self, name):
        raise UsageError(f"output '{name}' of this step is gone: the trainer has made another one", "OT1126",
                         "read it before the next step; state variables are in Trainer.state")


class StepResult:
    """What a step gave: `.loss` (float) and `.outputs` (name -> array).

    New values of state variables are among the outputs until the trainer's next step; afterwards they are
    what `Trainer.state` holds, and asking for them here is an error.
    """

    __slots__ = ("loss", "_trainer", "_serial", "_kept", "_outputs")

    def __init__(self, loss, trainer, serial, kept):
        self.loss = loss
        self._trainer = trainer
        self._serial = serial
        self._kept = kept

    @property
    def outputs(self):
        if not hasattr(self, "_outputs"):
            kept = {name: np.array(self.loss, dtype) if value is None else from_native(value)
                    for name, value, dtype in self._kept}
            native = self._trainer._t
            if self._trainer._serial != self._serial:
                return _Outputs(kept)
            self._outputs = {name: kept[name] if name in kept else from_native(native.output(k))
                             for k, (name, _) in enumerate(native.output_names())}
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
        self._step = self._t.step
        self._serial = 0  # of the last step made here
        self._kept, self._loss_only = {}, {}  # by section: see _find_kept

    def initialize(self):
        """Runs the file's initialization."""
        self._t.initialize()

    def step(self, feeds, which=-1):
        """One step of all training sections in order, or of section `which`."""
        if which is None:
            which = -1
        loss = self._step(feeds, which, 1)
        kept = self._loss_only.get(which)
        if loss is None or kept is None:
            return self._result(feeds, which, 1, loss)
        self._serial += 1
        return StepResult(loss, self, self._serial, kept)

    def steps(self, feeds, n, which=-1):
        """n steps on the same feeds in one call (no Python in between); the result of the last."""
        which = -1 if which is None else which
        return self._result(feeds, which, n, self._step(feeds, which, n))

    def _result(self, feeds, which, n, loss):
        """What is left to do when a step was not the simplest: feeds that are no plain arrays, more outputs."""
        t = self._t
        if loss is None:
            names, values = feed_lists(feeds)
            loss = t.step_values(names, values, which, n)
        self._serial += 1
        if which not in self._kept:
            self._kept[which], simple = self._find_kept(loss)
            if simple is not None:
                self._loss_only[which] = simple
        kept = self._loss_only.get(which)
        if kept is None:
            kept = [(name, t.output(k), None) for k, name in self._kept[which]]
        return StepResult(loss, self, self._serial, kept)

    def _find_kept(self, loss):
        """Which outputs outlive the next step: all but new states, as (index, name). When the loss is the only one
        it need not be copied; then also [(its name, None, its type)]."""
        free = [(k, name) for k, (name, state) in enumerate(self._t.output_names()) if not state]
        if len(free) == 1:
            value = from_native(self._t.output(free[0][0]))
            if isinstance(value, np.ndarray) and value.shape == () and (value == loss or loss != loss):
                return [], [(free[0][1], None, value.dtype)]
        return free, None if free else []

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
        self._serial += 1
        result = json.loads(self._t.fit(names, values, valid_names, valid_values, json.dumps(options), call))
        return History(result)

    def evaluate(self, x, y=None, batch_size=256):
        """Loss and metrics on the inference form of the model, as a dict."""
        names, values = feed_lists(_columns(x, y))
        return json.loads(self._t.evaluate(names, values, batch_size))

    def export(self, path):
        """Inference ONNX with the current weights."""
        self.model().export(os.fspath(path))
