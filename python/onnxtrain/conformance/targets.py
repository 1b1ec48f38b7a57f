"""What the suite can be run on: this library, an engine under its loop, or an ONNX backend module.

A target has
    node(model, feeds) -> {output: array}
    training(model) -> object with initialize(), step(feeds, which) -> {output: array}, state() -> {name: array}
and raises `NotThere` for what it does not claim to do. Any other exception is a refusal."""

import importlib
import re
import sys

import numpy as np
import onnx

from ..errors import Error, UsageError
from ..model import load
from ..session import Session
from ..trainer import Trainer
from .files import as_training


class NotThere(Exception):
    """The target does not do this: neither right nor wrong."""


class Native:
    """This library."""

    name, reads_files = "native", True

    def node(self, model, feeds):
        return Session(load(model)).run(feeds)

    def training(self, model):
        return _Training(Trainer(load(model)))


class _Training:
    def __init__(self, trainer):
        self.trainer = trainer

    def initialize(self):
        self.trainer.initialize()

    def step(self, feeds, which=None):
        return dict(self.trainer.step(feeds, which).outputs)

    def state(self):
        return {k: np.array(v) for k, v in self.trainer.state.items()}


class Engine:
    """Another runtime under this library's loop: steps are written as portable ONNX files (docs/engines.md).
    The library
    reads the files and refuses what is broken, so those cases say nothing about the engine."""

    reads_files = False

    def __init__(self, spec):
        from ..engines import open_engine

        engine, _ = open_engine(spec)  # an engine or device that is not there is an error now
        self.name, self.spec = spec if isinstance(spec, str) else engine.name, spec

    def node(self, model, feeds):
        return self.training(as_training(model)).step(feeds)

    def training(self, model):
        trainer = Trainer(load(model), engine=self.spec)
        return _EngineTraining(trainer)


_WRITER = re.compile(r"error\[(OT12(?:05|06|47|51|60|77))\]: (.*)")  # codes of the writer of portable steps


class _EngineTraining(_Training):
    def step(self, feeds, which=None):
        try:
            return super().step(feeds, which)
        except Error as e:
            said = _WRITER.search(str(e))
            if said:
                raise NotThere(f"no portable step: {said[2]}") from None  # the engine was not asked
            raise


class Backend:
    """A module of the ONNX backend interface (onnx.backend.base.Backend). `prepare_training(model)` makes it a training
    backend; without it, it is driven through portable steps like an engine."""

    def __init__(self, module):
        self.name = module
        self.module = _module(module)
        self.reads_files = hasattr(self.module, "prepare_training")

    def node(self, model, feeds):
        proto = onnx.ModelProto.FromString(model)
        if not self.reads_files and any(n.domain for n in proto.graph.node):
            return self.training(as_training(model)).step(feeds)
        rep = self.module.prepare(proto)
        got = rep.run([feeds[i.name] for i in proto.graph.input])
        return dict(zip((o.name for o in proto.graph.output), got))

    def training(self, model):
        if self.reads_files:
            return self.module.prepare_training(onnx.ModelProto.FromString(model))
        return _EngineTraining(Trainer(load(model), engine=_BackendEngine(self.module, self.name)))


def _module(name):
    try:
        module = importlib.import_module(name)
    except ImportError as e:
        raise UsageError(
            f"there is no module '{name}': {e}",
            "OT1800",
            "name a module with the function prepare, like onnxruntime.backend",
        ) from None
    if name == "onnx.reference":
        return _Reference(module.ReferenceEvaluator)
    if not callable(getattr(module, "prepare", None)):
        raise UsageError(
            f"the module '{name}' is no ONNX backend: it has no function prepare",
            "OT1800",
            "--backend onnxruntime.backend, onnx.reference, onnxtrain.backend",
        )
    return module


class _Reference:
    """ReferenceEvaluator in the words of a backend."""

    def __init__(self, evaluator):
        self.evaluator = evaluator

    def prepare(self, model, device="CPU"):
        session = self.evaluator(model)

        class Rep:
            def run(self, inputs):
                return session.run(None, dict(zip(session.input_names, inputs)))

        return Rep()


class _BackendEngine:
    """A backend as an engine: arrays in, arrays out, the state kept here."""

    runtime, fixed_shapes = None, False

    def __init__(self, module, name):
        self.module, self.name = module, name

    def devices(self):
        return ["cpu"]

    def compile(self, step, device, threads=0):
        model = onnx.ModelProto.FromString(step.model)
        rep = self.module.prepare(model)
        return _BackendRunner(step, rep, [i.name for i in model.graph.input], [o.name for o in model.graph.output])


class _BackendRunner:
    def __init__(self, step, rep, inputs, outputs):
        self.step_file, self.rep, self.inputs, self.outputs = step, rep, inputs, outputs
        self.now = {}
        self.set_state(step.state)

    def set_state(self, values):
        self.now |= {k: np.array(v, self.step_file.type_of(k)) for k, v in values.items()}

    def state(self):
        return {k: np.array(v) for k, v in self.now.items()}

    def step(self, feeds):
        s = self.step_file
        got = dict(zip(self.outputs, map(np.asarray, self.rep.run([{**self.now, **feeds}[k] for k in self.inputs]))))
        self.now |= {k: got[out] for out, names in s.feedback.items() for k in names}
        return {k: got[k] for k in s.plain}


def target(engine=None, backend=None):
    """From the words of the command line; an engine may be an object, a backend a target of one's own."""
    if backend is not None:
        return Backend(backend) if isinstance(backend, str) else backend
    if engine in (None, "native"):
        return Native()
    return Engine(engine)


def version_of(name):
    """The version of the package that a target comes from, or ""."""
    import importlib.metadata

    first = name.split(":")[0].split(".")[0]
    package = {"native": "onnxtrain", "iree": "iree-base-runtime"}.get(first, first)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", ""))
