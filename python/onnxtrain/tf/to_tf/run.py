"""Runs nodes of a file while a tf.function is traced: names -> values."""

import numpy as np
import tensorflow as tf

from ...graph import TRAINING, needed
from ..shared.dtypes import as_array
from .gradient import gradient
from .layout import BROKEN, Value
from .ops.sequence import Sequence
from .ops.table import Unsupported, View, find

GRADIENT = (TRAINING, "Gradient")
_FOLD_LIMIT = 1 << 16  # elements of a result that is computed while tracing


class Run:
    """One trace. `values`: {name: Value, or a function that reads it}; constants are made when they are read."""

    def __init__(self, graphs, values, problems, seed=0, counter=None, cut=()):
        """graphs: the file's Graphs whose constants and types are visible; cut: names that a Gradient cuts at; counter:
        () -> the tensor that random numbers depend on."""
        self.graphs, self.values, self.problems = graphs, dict(values), problems
        self.seed, self._counter, self.cut = seed, counter, set(cut)
        self.nodes = []  # all nodes that are visible, for Gradient

    def counter(self):
        return self._counter()

    # ---- values
    def read(self, name):
        v = self.values.get(name)
        if v is None:
            v = self.values[name] = self._constant(name)
        elif callable(v):
            v = self.values[name] = v()
        return v

    def _constant(self, name):
        for g in self.graphs:
            if name in g.constants:
                return constant(g.constants[name], name)
        raise Unsupported(f"'{name}' is made by nothing that TensorFlow can run")

    def known_shape(self, name):
        """What the file says of a value's shape."""
        for g in self.graphs:
            t = g.types.get(name)
            if t is not None and t.shape is not None:
                return tf.TensorShape([d if isinstance(d, int) else None for d in t.shape])
        return None

    # ---- nodes
    def add(self, nodes, wanted):
        """Runs the nodes that `wanted` depends on."""
        self.nodes = nodes
        for n in needed(nodes, wanted, self.values):
            self.node(n)

    def node(self, n):
        try:
            got = gradient(self, n) if n.kind == GRADIENT else self._compute(n)
        except Unsupported as e:
            self.problems.add(n, str(e))
            got = None
        except (ValueError, TypeError, tf.errors.OpError, NotImplementedError, LookupError) as e:
            self.problems.add(n, f"TensorFlow: {_first_line(e)}")
            got = None
        self._keep(n, got)

    def _compute(self, n):
        entry = find(n.kind)
        if entry is None:
            where = f" of domain '{n.domain}'" if n.domain else ""
            raise Unsupported(f"there is no TensorFlow form of operator {n.op}{where}")
        inputs = [self.read(v) if v else None for v in n.inputs]
        if any(v is BROKEN for v in inputs):
            return None
        view = View(n, self, inputs)
        known = entry.pure and all(v is None or getattr(v, "static", None) is not None for v in inputs)
        if known and inputs:
            folded = self._fold(n, entry, inputs)
            if folded is not None:
                return folded
        if any(isinstance(v, Sequence) for v in inputs) and not entry.values:
            raise Unsupported("it reads a sequence")
        return entry.run(view, *(inputs if entry.values else [None if v is None else v.plain for v in inputs]))

    def _fold(self, n, entry, inputs):
        """What follows from constants is computed now."""
        with tf.init_scope():
            eager = [None if v is None else Value(tf.constant(as_array(v.static)), static=v.static) for v in inputs]
            got = entry.run(View(n, self, eager), *(eager if entry.values else
                                                    [None if v is None else v.plain for v in eager]))
        got = got if isinstance(got, tuple) else (got,)
        arrays = []
        for g in got:
            t = g.plain if isinstance(g, Value) else g
            if not isinstance(t, tf.Tensor) or not hasattr(t, "numpy") or t.shape.num_elements() > _FOLD_LIMIT:
                return None
            arrays.append(t.numpy())
        return tuple(constant(np.asarray(a)) for a in arrays)

    def _keep(self, n, got):
        if got is None:
            got = tuple(BROKEN for _ in n.outputs)
        got = got if isinstance(got, tuple) else (got,)
        for name, v in zip(n.outputs, got):
            if not name:
                continue
            if isinstance(v, tf.Tensor):
                v = Value(v)
            if isinstance(v, Value) and v is not BROKEN:
                v = self._typed(name, v, n)
            self.values[name] = v

    def _typed(self, name, v, n):
        if v._first is not None and v.static is None:
            shape = self.known_shape(name)
            if shape is not None:
                try:
                    v._first.set_shape(shape)
                except ValueError:
                    self.problems.add(n, f"it gives shape {v._first.shape}, the file says {shape}")
        return Value(v.plain) if name in self.cut else v

    # ---- bodies of control flow
    def capture(self, n):
        """Values that bodies read are made before, in the order of the file: what is made inside stays inside."""
        for a in n.attrs.values():
            if hasattr(a, "captures"):
                for name in a.captures():
                    v = self.read(name)
                    if v is BROKEN:
                        raise Unsupported(f"it reads '{name}', which a refused node makes")
                    if isinstance(v, Value):
                        self.values[name] = Value(v.plain, static=v.static) if v.made_last else v

    def body(self, graph, inputs=(), inline=False):
        """Results of a subgraph as Values."""
        outside = dict(self.values) if inline else {k: _outer(v) for k, v in self.values.items()}
        inner = Run([graph, *self.graphs], outside, self.problems, self.seed, self._counter)
        for name in [*graph.inputs, *(o for n in graph.nodes for o in n.outputs), *graph.constants]:
            inner.values.pop(name, None)
        inner.values.update(zip(graph.inputs, inputs))
        inner.add(graph.nodes, graph.outputs)
        made = [inner.read(o) for o in graph.outputs]
        if not inline and any(v is BROKEN for v in made):
            raise Unsupported("its body cannot run")
        return made

    def outputs_of(self, graph, first, state, last=()):
        """TensorSpecs of a body's results: traced once aside."""
        specs = []

        def given(spec):
            return Value(tf.zeros([1 if d is None else d for d in spec.shape], spec.dtype))

        with tf.Graph().as_default():
            inputs = [given(s) for s in first]
            for v in state:
                if isinstance(v, Sequence):
                    rank = v.shapes.shape[1]
                    inputs.append(Sequence(tf.zeros([0], v.flat.dtype), tf.ones([0, rank or 1], tf.int64)))
                else:
                    inputs.append(Value(tf.compat.v1.placeholder(v.plain.dtype, v.plain.shape)))
            inputs += [Value(tf.compat.v1.placeholder(s.dtype, s.shape)) for s in last]
            aside = Run([graph, *self.graphs], _placeholders(self, graph), self.problems, self.seed,
                        lambda: tf.constant(0, tf.int64))
            aside.values.update(zip(graph.inputs, inputs))
            aside.add(graph.nodes, graph.outputs)
            for o in graph.outputs:
                v = aside.read(o)
                if v is BROKEN:
                    raise Unsupported("its body cannot run")
                specs.append(None if isinstance(v, Sequence) else tf.TensorSpec(v.plain.shape, v.plain.dtype))
        return specs


def _placeholders(run, graph):
    made = {}
    for name in graph.captures():
        v = run.read(name)
        if isinstance(v, Sequence):
            made[name] = Sequence(tf.compat.v1.placeholder(v.flat.dtype, v.flat.shape),
                                  tf.compat.v1.placeholder(tf.int64, v.shapes.shape))
        elif v is BROKEN or v.static is not None:
            made[name] = v if v is BROKEN else constant(v.static)
        else:
            made[name] = Value(tf.compat.v1.placeholder(v.plain.dtype, v.plain.shape))
    return made


def _outer(v):
    """A value as a body sees it: what the body makes of it stays there."""
    return Value(v.plain, static=v.static) if isinstance(v, Value) and v is not BROKEN and not v.made_last else v


def constant(array, name=""):
    """A Value of a constant of the file."""
    if array is None:
        raise Unsupported(f"'{name}' has an element type that TensorFlow lacks")
    array = np.asarray(array)
    try:
        return Value(tf.constant(as_array(array)), static=array)
    except (TypeError, ValueError) as e:
        raise Unsupported(f"'{name}': {_first_line(e)}") from None


def _first_line(e):
    return (str(e).strip() or type(e).__name__).splitlines()[0][:300]
