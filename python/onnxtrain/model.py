"""A model: what is in the file, without running it."""

import inspect
import json
import os
import warnings
from collections.abc import Mapping

import numpy as np

from . import _native
from .arguments import check_ending, refuse_unknown
from .attributes import Closed
from .batches import whole
from .data import Text, by_name, columns, is_batches, is_text, known_keys
from .errors import UnknownNameError, UsageError
from .predictions import predicted
from .tables import split
from .text import rule_of
from .values import copied, from_native, to_native

_METRICS = ("accuracy", "mae", "perplexity", "rmse", "top5")
_EVALUATED = ("auc", "f1", "precision", "r2", "recall")


class _Parameters(Closed, Mapping):
    """name -> array of the model's initializers; assigning writes back into the model."""

    def __init__(self, model):
        self._model = model

    def _names(self):
        return self._model._initializer_names()

    def __getitem__(self, name):
        if name not in self._names():
            raise UnknownNameError("initializer", name, self._names())
        return copied(from_native(self._model._m.initializer(name)), f"parameters[{name!r}]")

    def __setitem__(self, name, value):
        if name not in self._names():
            raise UnknownNameError("initializer", name, self._names())
        model = self._model
        model._m.set_initializer(name, to_native(value, name))
        model._session = None
        if model._trainer is not None and name in model._trainer.state:
            model._trainer.state[name] = value

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())


class _Text(str):
    """A text that a prompt shows as it is, without quotes and escapes."""

    def __repr__(self):
        return str(self)


def fixed_batch(model):
    """The number of rows that the file fixes; 0 when any will do."""
    sizes = {i["shape"][0] for i in model._description["inputs"] if i.get("shape")}
    return sizes.pop() if len(sizes) == 1 and isinstance(next(iter(sizes)), int) else 0


def all_rows(model, x, output):
    """One output of a model for every row of x."""
    from .session import Session

    return rows_through(Session(model), model, x, 256, output)


def warn_unlike(model, piece):
    """Says so when rows are unlike those that the model was trained on (other units, another scale)."""
    known = model._trained_by or model._m
    texts = [t for t in (known.unlike(k, v) for k, v in piece.items() if not isinstance(v, np.ndarray)) if t]
    for text in texts[:1]:
        warnings.warn(f"[OT3129] {text}", UserWarning, stacklevel=5)
    return bool(texts)


def rows_through(session, model, x, batch_size, output=None):
    """An output (the first unless told) for every row, piece by piece; x fits as in `fit` (type, scale of images,
    shape)."""
    x, _ = split(x, None, model.inputs)
    if is_batches(x):
        x = {k: v for k, v in whole(x, None, model.inputs, ())[0].items() if k in model.inputs}
    given = columns(by_name(x, model.features, model.inputs, model.columns, model.text), text=True)
    known_keys(given, model.inputs)
    if list(given) == ["x"] and model.inputs and "x" not in model.inputs:
        given = {model.inputs[0]: given["x"]}
    if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise UsageError(f"batch_size is {batch_size!r}, it is a whole number from 1 on", "OT1152", "batch_size=256")
    rows, wanted, parts, said = len(next(iter(given.values()), ())), output or model.outputs[0], [], False
    fixed = fixed_batch(model)
    batch_size = fixed or batch_size
    for i in range(0, max(rows, 1), batch_size):
        here = {k: v[i:i + batch_size] for k, v in given.items()}
        count = len(next(iter(here.values()), ()))
        if 0 < count < fixed:  # the last row again and again; what comes of it is dropped
            here = {k: np.concatenate([v, np.repeat(v[-1:], fixed - count, axis=0)]) for k, v in here.items()}
        piece = {k: v if is_text(v) else model._m.adapt(k, to_native(v, k)) for k, v in here.items()}
        if not said:
            said = warn_unlike(model, piece)
        parts.append(session.run(piece, [wanted])[wanted][:count or None])
    return sum(parts, []) if isinstance(parts[0], list) else np.concatenate(parts)  # maps are lists


class Model(Closed):
    """An ONNX model, with or without training inside. Made by `ot.load`, `ot.prepare`, `Trainer.model`."""

    def __init__(self, native):
        self._m = native
        self._info = self._described = self._initializers = self._trainer = self._session = self._features = None
        self._compiled = {}
        self._trained_by = None  # the native trainer that knows the rows
        self._used_by = None  # a weak reference to the last Trainer that was made of it

    def __reduce__(self):  # copies and pickles are the file's bytes
        return load, (self.proto(),)

    @property
    def info(self):
        """Everything `onnxtrain info --json` says, as a dict."""
        if self._info is None:
            self._info = dict(self._description, weights=self.weights())
        return self._info

    @property
    def _description(self):
        if self._described is None:
            self._described = json.loads(self._m.info())
        return self._described

    def weights(self, **prepare_options):
        """What every initializer is to a training: a list of dicts with name, dtype, shape, elements, role ("trained",
        "constant", "frozen", "statistics", "no gradient", "other output", "integers", "unused") and the reason.
        Options as in `ot.prepare`."""
        from .prepared import recipe_json

        return json.loads(self._m.weights(recipe_json(**prepare_options)))["weights"]

    def _initializer_names(self):
        if self._initializers is None:
            self._initializers = dict.fromkeys(i["name"] for i in self._description["initializers"])
        return self._initializers

    @property
    def inputs(self):
        return [i["name"] for i in self._description["inputs"]]

    @property
    def outputs(self):
        return [o["name"] for o in self._description["outputs"]]

    @property
    def features(self):
        """Names of the columns that the model was trained on, in order; None when they had none."""
        if self._features is None:
            try:
                self._features = json.loads(self._description["metadata"].get("onnxtrain.features", "null")) or ()
            except ValueError:  # the file's word, not ours
                self._features = ()
        return list(self._features) or None

    @property
    def columns(self):
        """{input: "number", "text" or "date"} of a model whose inputs are columns of a table; None for any other."""
        try:
            kinds = json.loads(self._description["metadata"].get("onnxtrain.columns", "null"))
        except ValueError:
            return None
        tokens = self.text.fed if self.text else set()
        if not isinstance(kinds, dict) or set(kinds) | tokens != set(self.inputs):
            return None
        known = self._description.get("categories", {})
        return {name: Text(known.get(name, ())) if kind == "text" else kind for name, kind in kinds.items()}

    @property
    def text(self):
        """How a model of token ids reads its text column; None for any other."""
        if not hasattr(self, "_text"):
            self._text = rule_of(self._description["metadata"])
        return self._text

    @property
    def learnt(self):
        """{column: names of its classes, or None} of a model that learns several columns; empty for any other."""
        try:
            outputs = json.loads(self._description["metadata"].get("onnxtrain.outputs", "null"))
            classes = json.loads(self._description["metadata"].get("onnxtrain.target_classes", "{}"))
            return {o["output"]: classes.get(o["output"]) for o in outputs or ()}
        except (ValueError, TypeError, KeyError, AttributeError):  # the file's word, not ours
            return {}

    @property
    def classes(self):
        """Names of class 0, 1, ... where the data had names; None otherwise."""
        try:
            names = json.loads(self._description["metadata"].get("onnxtrain.classes", "null"))
        except ValueError:
            return None
        return names if isinstance(names, list) and names else None

    @property
    def parameters(self):
        return _Parameters(self)

    @property
    def trainable(self):
        """True when the file carries its own training."""
        return bool(self._description["training"])

    def summary(self):
        """The model in a few lines: inputs, outputs, parameters, training sections."""
        i = self.info
        lines = [f"opset {i['opsets'].get('ai.onnx', '-')}, IR {i['ir_version']}, {i['nodes']} nodes"]
        lines += [f"  input   {v['name']:24s} {v['type']}" for v in i["inputs"]]
        lines += [f"  output  {v['name']:24s} {v['type']}" for v in i["outputs"]]
        total = sum(p["elements"] for p in i["initializers"])
        lines.append(f"  {len(i['initializers'])} initializers, {total:,} elements")
        roles = {}
        for w in i["weights"]:
            roles.setdefault(w["role"], []).append(w["elements"])
        lines += [f"    {role:12s} {len(sizes)} tensors, {sum(sizes):,} elements" for role, sizes in roles.items()]
        for k, t in enumerate(i["training"]):
            names = ", ".join(v["name"] for v in t["inputs"])
            lines.append(f"  training {k}: {len(t['update_binding'])} state variables, reads also {names or 'nothing'}")
        return _Text("\n".join(lines))

    def __repr__(self):
        training = " (training)" if self.trainable else ""
        return f"<onnxtrain.Model {', '.join(self.inputs)} -> {', '.join(self.outputs)}{training}>"

    def _repr_html_(self):
        """What a notebook shows: inputs, outputs and parameters."""
        import html

        i, cell = self._description, lambda v: html.escape(str(v))
        rows = "".join(f"<tr><td>{kind}</td><td>{cell(v['name'])}</td><td>{cell(v.get('type', ''))}</td></tr>"
                       for kind, part in (("input", "inputs"), ("output", "outputs"), ("parameter", "initializers"))
                       for v in i[part][:40])
        more = max(0, len(i["initializers"]) - 40)
        total = sum(p["elements"] for p in i["initializers"])
        return (f"<p><b>onnxtrain.Model</b>: {i['nodes']} nodes, {len(i['initializers'])} parameters, {total:,} numbers"
                f"{', carries its training' if self.trainable else ''}</p><table><tbody>{rows}</tbody></table>"
                + (f"<p>and {more} more parameters</p>" if more else ""))

    # ---- training in the style of Keras: compile, fit, evaluate, predict
    def compile(self, loss="auto", optimizer=None, metrics=None, **prepare_options):
        """Chooses loss, optimizer and whatever else `ot.prepare` takes. Metrics follow from the targets: accuracy
        for class labels, mae and rmse otherwise; a name in `metrics` is checked when they are computed."""
        from .prepared import prepare, recipe_json

        refuse_unknown("compile", [o for o in prepare_options if o not in inspect.signature(prepare).parameters],
                       prepare)
        recipe_json(loss=loss, optimizer=optimizer, **prepare_options)  # refuses what is no loss or optimizer
        metrics = [metrics] if isinstance(metrics, str) else metrics
        for m in metrics or ():
            if m in _EVALUATED:
                raise UsageError(f"metric '{m}' is always in `evaluate`; in every epoch it is on request", "OT1153",
                                 f"fit(..., metric={m!r})")
            if m not in _METRICS:
                raise UsageError(f"there is no metric '{m}'", "OT1153", f"one of {', '.join(_METRICS)}")
        if self.trainable and (loss != "auto" or optimizer is not None or prepare_options):
            raise UsageError("this model carries its own training: another loss or optimizer does not apply", "OT0004",
                             "take its inference part first: model.export('plain.onnx')")
        self._compiled = dict(prepare_options, loss=loss, optimizer=optimizer)
        self._metrics = tuple(metrics or ())
        self._trainer = None
        return self

    def _recipe_now(self):
        from .prepared import recipe_json

        return recipe_json(**self._compiled)

    def trainer(self, seed=0, threads=0, memory=None, distributed="off", micro_blocks=0, batch_norm=None,
                shard_optimizer=False, reduce_dtype=None, communicator=None, fault_timeout=20):
        """The Trainer behind `fit`; made on first use."""
        from .prepared import prepare_for
        from .trainer import Trainer

        given = {"seed": seed, "threads": threads, "memory": memory, "micro_blocks": micro_blocks,
                 "batch_norm": batch_norm, "shard_optimizer": shard_optimizer, "reduce_dtype": reduce_dtype,
                 "communicator": communicator}
        if self._trainer is None:
            ready = self if self.trainable else prepare_for(self, self._target, **self._compiled)
            self._trainer = Trainer(ready, **given, distributed=distributed, fault_timeout=fault_timeout)
            self._given, self._recipe = given, self._recipe_now()
        elif self._recipe_now() != self._recipe:
            warnings.warn("the optimizer, loss or schedule was changed after training began, and the training goes on "
                          "as it was compiled; help: model.trainer().lr = 1e-4 for another learning rate, or "
                          "model.compile(...) for a new training", UserWarning, stacklevel=3)
        for name, value in given.items():  # what is not said again stays
            if value and value != self._given.get(name, value):
                raise UsageError(f"{name} is {value!r}, but this model trains with {self._given[name]!r} already",
                                 "OT1152", "compile() again starts a new training; or leave it out")
        return self._trainer

    def fit(self, x, y=None, valid=None, epochs=None, batch_size=None, out=None, seed=0, threads=0, memory=None,
            distributed="auto", micro_blocks=0, batch_norm=None, shard_optimizer=False, reduce_dtype=None,
            communicator=None, fault_timeout=20, **options):
        """Trains and keeps the result: `predict`, `parameters`, `save` and `export` see the new weights.
        Arguments as in `Trainer` and `Trainer.fit`; under mpirun all processes train together (every one is given the
        whole data set) unless distributed is "off"."""
        x, y = split(x, y, self.inputs)
        self._target = _one_number_per_row(y)
        t = self.trainer(seed, threads, memory, distributed, micro_blocks, batch_norm, shard_optimizer, reduce_dtype,
                         communicator, fault_timeout)
        self._target = None
        try:
            history = t.fit(x, y, valid=valid, epochs=epochs, batch_size=batch_size, out=out, _model=self, **options)
        finally:  # also when it was interrupted
            self._take_weights(t)
        for m in self._metrics if valid else ():
            self._check_metric(m, [k[len("valid_"):] for k in history.history if k.startswith("valid_")])
        return history

    # _given: what the Trainer was made with; _target: what `fit` was given, for the loss that `auto` chooses
    _metrics, _given, _target = (), {}, None

    @staticmethod
    def _check_metric(name, there):
        if name not in there:
            raise UsageError(f"metric '{name}' does not fit these targets", "OT1153",
                             f"computed are {', '.join(there)}")

    def _take_weights(self, trainer):
        if self.trainable:
            self._m = trainer.model()._m  # the optimizer's state too
        elif "onnxtrain.attribute_weights" in (trained := trainer.model()).info["metadata"]:
            # weights that stand in attributes of the file: what an export writes
            self._m, self._info, self._initializers = _native.load_bytes(trained._m.bytes(True)), None, None
        else:
            for name in set(trainer.state) & set(self.parameters):
                self._m.set_initializer(name, to_native(trainer.state[name], name))
        self._session = self._used_by = None
        self._trained_by = trainer._t
        self._features = tuple(trainer.features or ())

    def evaluate(self, x, y=None, batch_size=256):
        """Loss and metrics as a dict."""
        scores = self.trainer().evaluate(x, y, batch_size)
        for m in self._metrics:
            self._check_metric(m, list(scores))
        return scores

    def predict(self, x, batch_size=256, *, output=None, proba=False, labels=False):
        """The first output (or `output`) for every row of x (an array, {input: array}, batches); x fits as in `fit`. A
        model that learns several columns gives {column: rows}. proba: probabilities of classes instead of scores;
        labels: the class of each row, by its name where the data had names."""
        from .session import Session

        if self._session is None:
            self._session = Session(self)
        trained = self._trainer.model() if self._trainer and (proba or labels) else self
        return predicted(self, lambda name: rows_through(self._session, self, x, batch_size, name), trained, output,
                         proba, labels)

    def proto(self):
        """The file's bytes."""
        return self._m.bytes(False)

    def _warn_if_stale(self, path):
        """A Trainer that was made of this model has weights of its own."""
        trainer = self._used_by() if self._used_by else None
        if trainer is not None and trainer is not self._trainer and trainer._has_trained:
            warnings.warn("the model has the weights from before the training: a Trainer that was made of it has "
                          f"trained since; help: trainer.export({os.fspath(path)!r})", UserWarning, stacklevel=3)

    def save(self, path):
        check_ending(path)
        self._warn_if_stale(path)
        self._m.save(os.fspath(path))

    def export(self, path):
        """Inference ONNX without any training part."""
        check_ending(path)
        self._warn_if_stale(path)
        self._m.export(os.fspath(path))


def _one_number_per_row(y):
    """The target as an array, where it is one that `auto` looks at; else None."""
    target = None if y is None or isinstance(y, dict) else np.asarray(y)
    if target is None or target.ndim == 0 or target.dtype.kind not in "biuf" or target.size != len(target):
        return None
    return target


def parse(text):
    """A model written in ONNX's text syntax."""
    return Model(_native.parse(text))


def load_mapped(path):
    """Reads a model whose external files nobody changes while it lives; their data stays there."""
    return Model(_native.load(os.fspath(path), mapped=True))


def load(path_or_bytes):
    """Reads an ONNX model from a path or from bytes."""
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return Model(_native.load_bytes(bytes(path_or_bytes)))
    if hasattr(path_or_bytes, "SerializeToString"):  # an onnx.ModelProto
        return load(path_or_bytes.SerializeToString())
    if not isinstance(path_or_bytes, (str, os.PathLike)):
        raise UsageError(f"load takes a path or bytes, not {type(path_or_bytes).__name__}", "OT1151",
                         'ot.load("model.onnx")')
    return Model(_native.load(os.fspath(path_or_bytes)))


def as_model(x):
    if isinstance(x, Model):
        return x
    if isinstance(x, (str, os.PathLike, bytes, bytearray, memoryview)):
        return load(x)
    if hasattr(x, "SerializeToString"):  # an onnx.ModelProto
        return load(x.SerializeToString())
    raise UsageError(f"expected a model, a path or bytes, got {type(x).__name__}", "OT1151", 'ot.load("model.onnx")')


def check(path_or_bytes):
    """Every violation of the standard and of the training rules, as a list of dicts; empty when valid."""
    if isinstance(path_or_bytes, Model):
        path_or_bytes = path_or_bytes.proto()
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return json.loads(_native.check_bytes(bytes(path_or_bytes)))
    return json.loads(_native.check_file(os.fspath(path_or_bytes)))
