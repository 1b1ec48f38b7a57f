"""A model: what is in the file, without running it."""

import json
import os
from collections.abc import Mapping

from . import _native
from .errors import UsageError
from .values import from_native, to_native


class _Parameters(Mapping):
    """name -> array of the model's initializers; assigning writes back into the model."""

    def __init__(self, model):
        self._model = model

    def _names(self):
        return [i["name"] for i in self._model.info["initializers"]]

    def __getitem__(self, name):
        if name not in self._names():
            raise KeyError(name)
        return from_native(self._model._m.initializer(name))

    def __setitem__(self, name, value):
        if name not in self._names():
            raise KeyError(name)
        self._model._m.set_initializer(name, to_native(value, name))

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


class Model:
    """An ONNX model, with or without training inside. Made by `ot.load`, `ot.prepare`, `Trainer.model`."""

    def __init__(self, native):
        self._m = native
        self._info = None

    @property
    def info(self):
        """Everything `onnxtrain info --json` says, as a dict."""
        if self._info is None:
            self._info = json.loads(self._m.info())
        return self._info

    @property
    def inputs(self):
        return [i["name"] for i in self.info["inputs"]]

    @property
    def outputs(self):
        return [o["name"] for o in self.info["outputs"]]

    @property
    def parameters(self):
        return _Parameters(self)

    @property
    def trainable(self):
        """True when the file carries its own training."""
        return bool(self.info["training"])

    def summary(self):
        i = self.info
        lines = [f"opset {i['opsets'].get('ai.onnx', '-')}, IR {i['ir_version']}, {i['nodes']} nodes"]
        lines += [f"  input   {v['name']:24s} {v['type']}" for v in i["inputs"]]
        lines += [f"  output  {v['name']:24s} {v['type']}" for v in i["outputs"]]
        total = sum(p["elements"] for p in i["initializers"])
        lines.append(f"  {len(i['initializers'])} initializers, {total:,} elements")
        for k, t in enumerate(i["training"]):
            lines.append(f"  training {k}: inputs {[v['name'] for v in t['inputs']]}, {len(t['update_binding'])} state variables")
        return "\n".join(lines)

    def __repr__(self):
        return f"<onnxtrain.Model {', '.join(self.inputs)} -> {', '.join(self.outputs)}{' (training)' if self.trainable else ''}>"

    # ---- training in the style of Keras: compile, fit, evaluate, predict
    def compile(self, loss="auto", optimizer=None, metrics=None, **prepare_options):
        """Chooses loss and optimizer; a model that carries its own training needs none. Metrics follow from the
        targets: accuracy for class labels, mae and rmse otherwise."""
        known = {"accuracy", "top5", "mae", "rmse"}
        for m in metrics or ():
            if m not in known:
                raise UsageError(f"there is no metric '{m}'", "OT1153", f"one of {', '.join(sorted(known))}")
        self._compiled = dict(prepare_options, loss=loss, optimizer=optimizer)
        self._trainer = None
        return self

    def trainer(self, seed=0, threads=0):
        """The Trainer behind `fit`; made on first use."""
        from .trainer import Trainer, prepare

        if getattr(self, "_trainer", None) is None:
            ready = self if self.trainable else prepare(self, **getattr(self, "_compiled", {}))
            self._trainer = Trainer(ready, seed=seed, threads=threads)
        return self._trainer

    def fit(self, x, y=None, valid=0.0, epochs=10, batch_size=32, out=None, seed=0, threads=0, **options):
        """Trains on arrays and keeps the result: `predict`, `parameters` and `export` see the new weights."""
        t = self.trainer(seed, threads)
        history = t.fit(x, y, valid=valid, epochs=epochs, batch_size=batch_size, out=out, **options)
        for name in set(t.state) & set(self.parameters):
            self.parameters[name] = t.state[name]
        self._session = None
        return history

    def evaluate(self, x, y=None, batch_size=256):
        return self.trainer().evaluate(x, y, batch_size)

    def predict(self, x, batch_size=256):
        """The first output for every row of x (an array, or {input: array})."""
        import numpy as np

        from .session import Session

        if getattr(self, "_session", None) is None:
            self._session = Session(self)
        feeds = x if isinstance(x, dict) else {self.inputs[0]: np.asarray(x)}
        rows = len(next(iter(feeds.values())))
        parts = [
            self._session.run({k: v[i:i + batch_size] for k, v in feeds.items()}, self.outputs[:1])[self.outputs[0]]
            for i in range(0, max(rows, 1), batch_size)
        ]
        return np.concatenate(parts)

    def proto(self):
        """The file's bytes."""
        return self._m.bytes(False)

    def save(self, path):
        self._m.save(os.fspath(path))

    def export(self, path):
        """Inference ONNX without any training part."""
        self._m.export(os.fspath(path))


def load(path_or_bytes):
    """Reads an ONNX model from a path or from bytes."""
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return Model(_native.load_bytes(bytes(path_or_bytes)))
    return Model(_native.load(os.fspath(path_or_bytes)))


def as_model(x):
    if isinstance(x, Model):
        return x
    if isinstance(x, (str, os.PathLike, bytes, bytearray, memoryview)):
        return load(x)
    if hasattr(x, "SerializeToString"):  # an onnx.ModelProto
        return load(x.SerializeToString())
    raise UsageError(f"expected a model, a path or bytes, got {type(x).__name__}", "OT1151")


def check(path_or_bytes):
    """Every violation of the standard and of the training rules, as a list of dicts; empty when valid."""
    if isinstance(path_or_bytes, Model):
        path_or_bytes = path_or_bytes.proto()
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return json.loads(_native.check_bytes(bytes(path_or_bytes)))
    return json.loads(_native.check_file(os.fspath(path_or_bytes)))
