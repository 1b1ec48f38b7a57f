"""The functions of a module: inference, one step per training section, all of them in order, initialization."""

from dataclasses import replace

import tensorflow as tf

from ...errors import ModelError
from ...graph import needed, reads
from ..shared.dtypes import FROM_ONNX
from ..shared.state import with_state
from .layout import BROKEN, Value
from .module import traced
from .ops.sequence import Sequence, from_ragged, to_ragged
from .rewrite import put_together
from .run import GRADIENT, Run
from .variables import every_graph


class Functions:
    """Makes the tf.functions of one file."""

    def __init__(self, graphs, problems, seed):
        self.graphs, self.problems, self.seed = graphs, problems, seed
        self.module, self.made = None, []
        self.sections = [_Section(graphs, k) for k in range(len(graphs.sections))]
        self.random = any(n.op in _RANDOM for g in every_graph(graphs) for n in g.nodes)
        main = graphs.main
        self.infer = self._function(self._infer, {n: self._spec(main, n) for n in main.inputs})

    def _function(self, body, specs):
        f = traced(body, specs)
        self.made.append(f)
        return f

    def make_counter(self):
        if self.random:
            self.module.random_counter = tf.Variable(0, dtype=tf.int64, trainable=False, name="random_counter")

    def _spec(self, graph, name):
        t = graph.types.get(name)
        if t is None or t.dtype not in FROM_ONNX:
            raise ModelError(f"input '{name}' has an element type that TensorFlow lacks", "OT1711")
        shape = None if t.shape is None else [d if isinstance(d, int) else None for d in t.shape]
        return tf.TensorSpec(shape, FROM_ONNX[t.dtype], name)

    # ---- running
    def _run(self, graphs, feeds, cut=()):
        values = {name: lambda v=v: Value(v.read_value()) for name, v in self.module.stored.items()}
        values.update({name: _given(v) for name, v in feeds.items()})
        return Run(graphs, values, self.problems, self.seed, self._counter, cut)

    def _counter(self):
        return self.module.random_counter.read_value()

    def _count(self):
        if self.random:
            self.module.random_counter.assign_add(1)

    def _infer(self, feeds):
        main = self.graphs.main
        run = self._run([main], feeds)
        run.add(put_together(main.nodes, [main], main.outputs), main.outputs)
        out = {o: _result(run.read(o)) for o in main.outputs}
        self._count()
        return out if len(out) != 1 else next(iter(out.values()))

    def _step(self, section, feeds):
        """Computes everything first, then assigns: every read sees the old values."""
        run = self._run([section.algorithm, self.graphs.main], feeds, section.cut)
        run.add(section.nodes, section.wanted)
        out = {o: _result(run.read(o)) for o in section.results}
        news = {k: run.read(v) for k, v in section.update.items()}
        loss = run.read(section.loss) if section.loss else None
        if not any(v is BROKEN for v in news.values()):
            for name, new in news.items():
                self.module.variable(name).assign(tf.identity(new.plain))
        self._count()
        if loss is not None:
            out.pop(section.loss, None)
            out = {"loss": _result(loss), **out}
        return out

    # ---- functions
    def steps(self):
        """{attribute: tf.function}: train_step, and train_step_0, ... when there are several sections."""
        if not self.sections:
            return {}
        made = {}
        all_specs = {}
        for k, s in enumerate(self.sections):
            specs = {n: self._spec(g, n) for n, g in s.inputs.items()}
            all_specs.update(specs)
            if len(self.sections) > 1:
                made[f"train_step_{k}"] = self._function(lambda feeds, s=s: self._step(s, feeds), specs)
        made["train_step"] = self._function(self._all_steps, all_specs)
        return made

    def _all_steps(self, feeds):
        """One step of every section in order. Losses of further sections are `loss_1`, ..."""
        out = {}
        for k, s in enumerate(self.sections):
            got = self._step(s, {n: v for n, v in feeds.items() if n in s.inputs})
            if k and "loss" in got:
                got[f"loss_{k}"] = got.pop("loss")
            out = {**got, **out}
        return out

    def initialize(self):
        """Every variable as it was stored, then the file's initialization."""
        stored = {name: v.numpy() for name, v in self.module.stored.items()}
        bound = {k for s in self.graphs.sections for k in (*s.update, *s.initial)}
        start = {k: stored[k] for k in bound if k in stored}

        def run(_):
            for name, array in start.items():
                self.module.variable(name).assign(tf.constant(array))
            for s in self.graphs.sections:
                inner = Run([s.initialization], {}, self.problems, self.seed, self._counter)
                inner.add(s.initialization.nodes, list(s.initial.values()))
                for name, value in s.initial.items():
                    v = inner.read(value)
                    if v is not BROKEN:
                        self.module.variable(name).assign(v.plain)
            self._count()
            return tf.constant(True)

        return self._function(run, {})

    def trace(self):
        for f in self.made:
            f.get_concrete_function()

    def model_of(self, model):
        """() -> the ot.Model with the state that the variables have now."""
        module = self.module
        return lambda: with_state(model, module.stored)


_RANDOM = {"Dropout", "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
           "Multinomial"}


def _given(x):
    return from_ragged(x, x.shape.rank - 1) if isinstance(x, tf.RaggedTensor) else Value(tf.convert_to_tensor(x))


def _result(v):
    if v is BROKEN:
        return tf.zeros([])
    return to_ragged(v) if isinstance(v, Sequence) else tf.identity(v.plain)


class _Section:
    """What a step of one training section computes, gives and assigns."""

    def __init__(self, graphs, index):
        section, main = graphs.sections[index], graphs.main
        self.algorithm, self.update = section.algorithm, dict(section.update)
        self.nodes = [_with_y(n) for n in [*main.nodes, *section.algorithm.nodes]]
        values = set(self.update.values())
        self.results = [o for o in section.algorithm.outputs if o not in values]
        self.loss = _loss(section.algorithm)
        self.wanted = list(dict.fromkeys([*self.results, *self.update.values(), *([self.loss] if self.loss else [])]))
        live = needed(self.nodes, self.wanted)
        named = {v for n in live if n.kind == GRADIENT for v in (*n.inputs, *n.attrs["xs"])}
        self.nodes = put_together(live, [section.algorithm, main], {*self.wanted, *named})
        read = {v for n in live for v in reads(n)} | set(self.wanted)
        every = {**{n: main for n in main.inputs}, **{n: section.algorithm for n in section.algorithm.inputs}}
        self.inputs = {n: g for n, g in every.items() if n in read}
        self.cut = {v for n in live if n.kind == GRADIENT for v in (*n.attrs["xs"], *(n.attrs.get("zs") or []))}


def _with_y(n):
    """A Gradient reads what it names, the tensor that is differentiated too."""
    if n.kind != GRADIENT:
        return n
    return replace(n, inputs=[*n.inputs, n.attrs["y"]])


def _loss(algorithm):
    """The output `loss`, or else the first floating-point scalar."""
    if "loss" in algorithm.outputs:
        return "loss"
    for o in algorithm.outputs:
        t = algorithm.types.get(o)
        if t is not None and t.shape == () and t.dtype in (1, 10, 11, 16):
            return o
    return None
