"""Stepping a training model in one's own loop, and epochs over data."""

import json
import os
import warnings
import weakref
from collections.abc import Mapping, MutableMapping

import numpy as np

from . import _native, processes, runs
from .arguments import check_ending, refuse_unknown
from .attributes import Checked, Closed, elsewhere
from .batches import Batches, whole
from .callbacks import Watch
from .data import (
    by_name,
    class_numbers,
    column_names,
    columns,
    fraction,
    is_batches,
    known_keys,
    several_targets,
    some_rows,
    target_names,
)
from .errors import UnknownNameError, UsageError
from .hints import in_python
from .history import History
from .limits import limits
from .model import Model, as_model
from .prepared import options_json
from .prepared import prepare as prepare  # public here too
from .progress import Progress
from .session import feed_lists
from .tables import split
from .values import copied, from_native, to_native


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
            if self._trainer._serial[0] != self._serial:
                return _Outputs(kept)
            self._outputs = {name: kept[name] if name in kept else from_native(native.output(k))
                             for k, (name, _) in enumerate(native.output_names())}
        return self._outputs

    def take(self, name):
        """One output that is no state variable, given away: its memory is not kept here any longer."""
        value, dtype = {known: rest for known, *rest in self._kept}[name]
        self._kept = [entry for entry in self._kept if entry[0] != name]
        return np.array(self.loss, dtype) if value is None else from_native(value)

    def __repr__(self):
        return f"<step: loss {self.loss:.6g}>"


class _State(Closed, MutableMapping):
    """name -> array of every state variable; assigning writes it."""

    def __init__(self, native):
        self._t = native
        self._known = None

    def __getitem__(self, name):
        if name not in self._names():
            raise UnknownNameError("state variable", name, self._names())
        return copied(from_native(self._t.get(name)), f"state[{name!r}]")

    def __setitem__(self, name, value):
        if name not in self._names():
            raise UnknownNameError("state variable", name, self._names())
        self._t.set(name, to_native(value, name))

    def __delitem__(self, name):
        raise TypeError("state variables belong to the file and cannot be removed")

    def _names(self):
        if self._known is None:  # a file's state variables never change
            self._known = dict.fromkeys(json.loads(self._t.state_names()))
        return self._known

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __repr__(self):
        return f"<state: {', '.join(self._names())}>"


def resume(path, threads=0, memory=None, engine="native", isolated=False, max_loop_trips=None, time=None,
           *, distributed="off", micro_blocks=0, communicator=None, fault_timeout=20, batch_norm=None,
           reduce_dtype=None, shard_optimizer=False):
    """A trainer that resumes where a run folder or a checkpoint stopped: `ot.resume("runs/cnn").fit(epochs=6)`.
    Under mpirun: distributed="auto"; that and the arguments behind it are those of `Trainer`."""
    t = Trainer(None, threads=threads, engine=engine, isolated=isolated, distributed=distributed,
                micro_blocks=micro_blocks, communicator=communicator, fault_timeout=fault_timeout,
                batch_norm=batch_norm, reduce_dtype=reduce_dtype, shard_optimizer=shard_optimizer,
                _native_trainer=_native.resume(os.fspath(path), threads, limits(memory, max_loop_trips, time)))
    if os.path.isdir(path):
        t._run = os.fspath(path)
    return t


def _history(text, named=False, rank=0):
    """What `fit` gave; what the library warns about becomes warnings of Python, in rank 0. named: labels came by their
    names."""
    result = json.loads(text)
    for w in result.get("warnings", ()) if rank == 0 else ():
        if named and w["text"].startswith("class numbers:"):
            continue
        text = f"[{w['code']}] {w['text']}" if w["code"] else w["text"]
        fix = in_python(w.get("hint", ""))
        warnings.warn(f"{text}; help: {fix}" if fix else text, UserWarning, stacklevel=4)
    return History(result)


@elsewhere
class Trainer(Checked):
    """Steps a training model: `t.step({"x": xb, "label": yb}).loss`.

    memory: a limit ("500M", or bytes) for state variables and step together; where they would need more, values
    of the forward pass are computed again in the backward pass: slower, the same numbers.
    max_loop_trips, time: iterations of all loops together and seconds that one step may take.
    engine: "onnxruntime", "openvino:gpu", ...: another runtime makes the steps (docs/engines.md); isolated: in a
    process of its own.
    distributed: "auto": together with the processes that mpirun or srun started: `step` takes this process's rows of
    the batch, in the order of ranks (`rows_of_rank`), `fit` the whole data set; micro_blocks: how many blocks of rows a
    batch is cut into, batch_norm: BatchNormalization by the statistics of each block ("local") or of the whole batch
    ("sync"), reduce_dtype: "bf16" for gradients between processes (other bits then), shard_optimizer: each process
    keeps a part of the optimizer's state, the bits stay the same (then all processes call `save`, `model` and
    `state[...]` together), communicator: of mpi4py (docs/distributed.md).
    """

    def __init__(self, model, seed=0, threads=0, *, memory=None, max_loop_trips=None, time=None, engine="native",
                 isolated=False, distributed="off", micro_blocks=0, communicator=None, fault_timeout=20,
                 batch_norm=None, reduce_dtype=None, shard_optimizer=False, _native_trainer=None):
        for name, value in (("seed", seed), ("threads", threads)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise UsageError(f"{name} is {value!r}, it is a whole number from 0 on", "OT1152", f"{name}=0")
        # a model that was read here is nobody else's: its weights become the trainer's
        self._t = _native_trainer or _native.Trainer(as_model(model)._m, seed, threads,
                                                     limits(memory, max_loop_trips, time),
                                                     take=not isinstance(model, Model))
        self._state = _State(self._t)
        if isinstance(model, Model):
            model._used_by = weakref.ref(self)
        self._run = self._names = self._features = self._known = None  # _run: the folder of the run that is resumed
        self._kinds = self._classes = self._text = None  # columns and class names of the model; {}: it has none
        self._learner = None  # a model that learns several columns
        self._named = False  # labels came by their names
        self._step = self._t.step
        self._serial = [0]  # of the last step made here; a list: attributes are checked when they are set
        self._loss_only = {}  # by section: the loss is the only output beside new states
        self._engine = None
        if engine != "native":
            self.use_engine(engine, threads, isolated)
        if communicator is not None and distributed == "off":
            raise UsageError("a communicator is given, but distributed is \"off\"", "OT5014", 'distributed="auto"')
        if distributed != "off" or micro_blocks or batch_norm or reduce_dtype or shard_optimizer:
            self._distribute(distributed, micro_blocks, communicator, fault_timeout, batch_norm, reduce_dtype,
                             shard_optimizer)

    def _distribute(self, mode, micro_blocks, communicator=None, fault_timeout=20, batch_norm=None, reduce_dtype=None,
                    shard_optimizer=False):
        if mode != "off":
            processes.end_all_on_error()
        self._t.distribute(mode, int(micro_blocks), float(fault_timeout),
                           -1 if communicator is None else communicator.py2f(), batch_norm or "", reduce_dtype or "",
                           bool(shard_optimizer))

    @property
    def rank(self):
        """The number of this process; 0 when it trains alone."""
        return self._t.rank

    @property
    def ranks(self):
        """How many processes train together."""
        return self._t.ranks

    def rows_of_rank(self, n):
        """The slice of a batch of n rows that belongs to this process."""
        return slice(n * self.rank // self.ranks, n * (self.rank + 1) // self.ranks)

    @property
    def traffic(self):
        """(bytes, messages) that this process has sent to the others."""
        return self._t.traffic()

    def use_engine(self, engine, threads=0, isolated=False):
        """Steps are made by this engine from now on; the state goes along."""
        from .engines import driver, serve

        if isolated and not isinstance(engine, str):
            raise UsageError("an engine in a process of its own is named, not given as an object", "OT1270",
                             "register it under the entry point onnxtrain.engines, or leave out isolated=True")
        self._engine = (serve.Isolated if isolated else driver.Driver)(engine, threads)
        self._t.set_engine(self._engine)

    def _input_names(self):
        if self._names is None:
            info = self.model()._description
            targets = dict.fromkeys(v["name"] for t in info["training"] for v in t["inputs"])
            self._names = [v["name"] for v in info["inputs"]], list(targets)
        return self._names

    @property
    def inputs(self):
        """Names of the model's inputs."""
        return self._input_names()[0]

    @property
    def features(self):
        """Names of the columns that it was trained on, in order; None when they had none."""
        if self._features is None:
            self._features = tuple(self.model().features or ())
        return list(self._features) or None

    @property
    def targets(self):
        """Names of what the training reads beside the model's inputs: labels, target values."""
        return self._input_names()[1]

    @property
    def _has_trained(self):
        """True when this trainer has made steps."""
        return self._serial[0] > 0

    def initialize(self):
        """Runs the file's initialization."""
        self._t.initialize()

    def step(self, feeds, which=None):
        """One step of all training sections in order, or of section `which`."""
        kept = self._loss_only.get(which)  # there after a first step: its feeds and `which` were looked at
        if kept is not None and len(feeds) <= len(self._known):
            loss = self._step(feeds, -1 if which is None else which, 1, False)
            if loss is not None:
                serial = self._serial
                serial[0] = n = serial[0] + 1
                return StepResult(loss, self, n, kept)
        return self._checked_step(feeds, which)

    def _checked_step(self, feeds, which):
        if self._known is None or len(feeds) > len(self._known):
            self._check_names(feeds)
        if which is not None and not isinstance(which, (int, np.integer)):
            raise UsageError(f"which is {which!r}, it is the number of a training section", "OT1124", "which=0")
        if self._engine is not None:
            return self._engine_step(feeds, which)
        return self._general_step(feeds, which, 1)

    def _check_names(self, feeds):
        """A feed that nobody reads is said, once per name."""
        inputs, targets = self._input_names()
        if not isinstance(feeds, Mapping):
            pairs = ", ".join(f"{n!r}: {v}" for n, v in zip((*inputs, *targets), "xyzabc"))
            raise UsageError(f"a step takes values by the names of inputs, not {type(feeds).__name__}", "OT1156",
                             f"step({{{pairs}}})")
        if self._known is None:
            self._known = {*inputs, *targets}
        for name in feeds if isinstance(feeds, dict) else ():
            if name not in self._known:
                names = ", ".join(repr(n) for n in (*inputs, *targets))
                warnings.warn(f"[OT2112] nobody reads '{name}': inputs and targets are {names}", stacklevel=3)
                self._known.add(name)

    def _engine_step(self, feeds, which):
        if which is not None and (which != 0 or len(self.model()._description["training"]) > 1):
            raise UsageError("an engine makes a step of all training sections, not of a single one", "OT1277")
        loss = self._t.engine_step(*feed_lists(feeds))
        self._serial[0] += 1
        result = StepResult(loss, self, self._serial[0], [])
        result._outputs = dict(self._engine.outputs)
        return result

    def steps(self, feeds, n, which=None):
        """n steps on the same feeds in one call (no Python in between); the result of the last."""
        if self._engine is not None:
            for _ in range(n - 1):
                self._engine_step(feeds, which)
            return self._engine_step(feeds, which)
        return self._general_step(feeds, which, n)

    def _general_step(self, feeds, which, n):
        """Feeds of any kind, any outputs. Outputs that are not new states outlive the next step."""
        if which is not None and which < 0:
            raise UsageError(f"step({which}): training sections are counted from 0", "OT1124")
        section = -1 if which is None else which
        got = self._step(feeds, section, n, True)
        if got is None:
            got = self._t.step_values(*feed_lists(feeds), section, n, True)
        loss, values = got
        self._serial[0] += 1
        names = [name for name, state in self._t.output_names() if not state]
        if len(names) == 1 and which not in self._loss_only:
            value = from_native(values[0])  # the loss itself need not be copied
            if isinstance(value, np.ndarray) and value.shape == () and value == loss:
                self._loss_only[which] = [(names[0], None, value.dtype)]
        return StepResult(loss, self, self._serial[0], [(name, v, None) for name, v in zip(names, values)])

    @property
    def lr(self):
        """The learning rate, to read and to write."""
        return self._t.rate

    @lr.setter
    def lr(self, value):
        try:
            rate = float(value)
        except (TypeError, ValueError):
            raise UsageError(f"the learning rate is a number, not {value!r}", "OT1152", "t.lr = 1e-3") from None
        if not 0 <= rate < float("inf"):
            raise UsageError(f"the learning rate is a number from 0 on, not {value!r}", "OT1152", "t.lr = 1e-3")
        self._t.rate = rate

    learning_rate = lr

    @property
    def state(self):
        """Every state variable by its name: `t.state["w"]` reads a copy, `t.state["w"] = array` writes it."""
        return self._state

    @property
    def memory(self):
        """Bytes: state_bytes, step_bytes (of the steps made so far), step_bytes_without_limit,
        nodes_computed_twice, peak_process_bytes; with shard_optimizer, from the first step on, also
        optimizer_state_bytes and optimizer_state_bytes_of_rank."""
        return json.loads(self._t.memory())

    @property
    def step_count(self):
        return self._t.step_count

    def model(self):
        """The training model with the current state."""
        return Model(self._t.model())

    def save(self, path):
        """A checkpoint: a training ONNX file with state, position, seeds and checksums."""
        check_ending(path)
        self._t.save(os.fspath(path))

    def export(self, path):
        """Inference ONNX with the current weights."""
        self.model().export(os.fspath(path))

    def fit(self, x=None, y=None, valid=None, epochs=None, batch_size=None, out=None, steps=0, patience=0, shuffle=None,
            save_every=0, on_epoch=None, steps_per_epoch=None, *, time=0, keep=0, check_finite=True, metric=None,
            verbose=None, callbacks=(), _model=None, **unknown):
        """Epochs over data (10 of batch size 32 unless said otherwise); returns a History.

        x: an array, {input: array}, or an iterable of batches (x, y) or {name: array}; y: an array or
        {target: array}; valid: a fraction, or (x, y). on_epoch(dict) may return True to stop. out: a run folder.
        time: seconds; keep: checkpoints of finished epochs that stay; check_finite: stop at NaN and Inf.
        metric: of the validation rows, decides the best epoch and patience ("accuracy", "f1", "rmse", "loss", ...).
        verbose: 1 a progress bar (terminal, notebook) or lines, 2 lines, 0 nothing; None: a bar where somebody looks.
        callbacks: of `ot.callbacks`. Tables: y may name columns of x (pandas, polars, Hugging Face datasets).
        A trainer from `ot.resume(run)` knows data, batch size and folder of its run.
        """
        refuse_unknown("fit", unknown, Trainer.fit)
        if isinstance(valid, (tuple, list)) and len(valid) not in (1, 2):
            raise UsageError(f"valid has {len(valid)} items, it is a fraction or (x, y)", "OT1152",
                             "valid=0.1, or valid=(x_valid, y_valid)")
        if valid is not None and is_batches(valid) and not isinstance(valid, (tuple, list)):
            valid = whole(valid, None, self.inputs, self.targets)
        if valid is not None and not isinstance(valid, (tuple, list)):
            valid = fraction(valid)
        if on_epoch is not None and not callable(on_epoch):
            raise UsageError(f"on_epoch is {on_epoch!r}, it is a function that takes the figures of an epoch", "OT1152",
                             "on_epoch=print")
        out = self._run if out is None else os.fspath(out)
        x, y = split(x, y, self.inputs) if x is not None else (x, y)
        watch = self._watch(verbose, callbacks, epochs, on_epoch, _model)
        batches = data = None
        if x is not None and is_batches(x):
            if y is not None:
                raise UsageError(f"an iterator ({type(x).__name__}) gives x and y together: there is no y beside it",
                                 "OT1157", "arrays, fit(x, y), or batches of both: fit([(x, y)])")
            batches = Batches(x, epochs, steps_per_epoch, self.inputs, self.targets)
            epochs = batches.epochs
        elif steps_per_epoch:
            raise UsageError("steps_per_epoch cuts an iterator into epochs; arrays have their own length", "OT1157",
                             "steps=N")
        names = column_names(x) if batches is None else None
        if names and not self.features and len(self.inputs) == 1:
            self._features = tuple(names)
        options = {"features": self.features, "targets": target_names(y) or None, "epochs": epochs,
                   "batch": batch_size, "steps": steps, "patience": patience, "shuffle": shuffle,
                   "save_every": save_every, "out": out, "keep_data": runs.KEPT_BYTES, "time": time or None,
                   "keep": keep or None, "metric": metric, "check_finite": None if check_finite else False,
                   "progress": 0.1 if watch.callbacks else None}
        if isinstance(valid, float):
            options["valid"] = valid
        # what is not said is the library's to know: from the run that is resumed, or the default
        options = options_json({k: v for k, v in options.items() if v is not None})
        call = (lambda text: watch.heard(json.loads(text))) if on_epoch or watch.callbacks else None
        valid_data = {}
        if isinstance(valid, (tuple, list)):
            valid_data = some_rows(self._columns(*(split(*valid, self.inputs) if len(valid) == 2 else valid)))
        self._serial[0] += 1
        watch.begin()
        if batches is not None:
            try:
                return _history(self._t.fit_batches(batches, *feed_lists(valid_data), options, call), rank=self.rank)
            finally:
                watch.end()
        if x is None:
            data, kept_valid = runs.recall(self._run)
            valid_data = kept_valid if valid is None else valid_data
        else:
            data = some_rows(self._columns(x, y))
        try:
            return _history(self._t.fit(*feed_lists(data), *feed_lists(valid_data), options, call), self._named,
                            self.rank)
        finally:
            watch.end()
            if out and data and self.rank == 0:
                runs.remember(out, data, valid_data)

    def _watch(self, verbose, callbacks, epochs, on_epoch, model):
        if verbose not in (None, 0, 1, 2, True, False, "auto"):
            raise UsageError(f"verbose is {verbose!r}, it must be 0, 1 or 2", "OT1152", "verbose=1")
        verbose = Progress.wanted() if verbose in (None, "auto") else int(verbose)
        every = [callbacks] if hasattr(callbacks, "on_epoch_end") else list(callbacks or ())
        for c in every:
            if isinstance(c, type):
                raise UsageError(f"callbacks holds the class {c.__name__}, not a callback", "OT1152",
                                 f"callbacks=[ot.callbacks.{c.__name__}(...)]")
        if self.rank > 0:  # files and lines come from rank 0
            every = [c for c in every if not getattr(c, "writes", False)]
        elif verbose:
            every.append(Progress(verbose, epochs or 10))
        return Watch(every, model or self, self, on_epoch, epochs or 10, self._run is not None)

    def _columns(self, x, y=None):
        if self._kinds is None:
            model = self.model()
            self._kinds, self._classes, self._text = model.columns or {}, model.classes, model.text
            self._learner = model if model.learnt else None
        if self._learner is not None:
            y = several_targets(y, self._learner, self.targets)
        elif isinstance(y, (list, tuple)) and len(y) == len(self.targets) > 1 and len(y) != len(x):
            y = dict(zip(self.targets, y))  # in the order of the losses
        x = by_name(x, self.features, self.inputs, self._kinds, self._text)
        numbers = class_numbers(y, self._classes)
        self._named = self._learner is not None or numbers is not y
        if numbers is not None and not isinstance(numbers, Mapping) and len(self.targets) == 1 and "y" in self.inputs:
            numbers = {self.targets[0]: numbers}  # a feature is called y
        named = columns(x, numbers, text=bool(self._kinds))
        return known_keys(named, self.inputs, self.targets)

    def evaluate(self, x, y=None, batch_size=256):
        """Loss and metrics on the inference form of the model, as a dict."""
        x, y = whole(*split(x, y, self.inputs), self.inputs, self.targets)
        names, values = feed_lists(some_rows(self._columns(x, y)))
        scores = json.loads(self._t.evaluate(names, values, batch_size))
        for text in scores.pop("warnings", ()):
            warnings.warn(text, UserWarning, stacklevel=3)
        return scores

    def predict(self, x, batch_size=256, *, output=None, proba=False, labels=False):
        """`Model.predict` with the current weights."""
        model = self.model()
        model._features = tuple(self.features or ())
        model._trained_by = self._t
        return model.predict(x, batch_size, output=output, proba=proba, labels=labels)
