"""Loops of keras.ops that run a function of the user's: its code once, as the body of a Scan or a Loop."""

import numpy as np

from ....converters.onnx_file import Graph, Info
from ...shared import versions
from ..values import Traced
from .table import operation


class _Body:
    """Nodes that are written within go into the body. What the code assigns to variables there would be lost."""

    def __init__(self, t, word):
        self.t, self.word, self.nodes = t, word, []

    def __enter__(self):
        e = self.t.e
        self.outer, self.known, self.assigned = e.part, dict(e.known), dict(self.t.scope.state_mapping)
        e.part = self.nodes
        return self

    def __exit__(self, kind, *_):
        e = self.t.e
        e.part, e.known = self.outer, self.known
        now = self.t.scope.state_mapping
        if kind is None and any(v is not self.assigned.get(k) for k, v in now.items()):
            self.t.refuse(f"{self.word} whose function assigns to a variable",
                          fix="assign outside of the loop; or a number of steps that is fixed")

    def inputs(self, values, word):
        """Values that come from outside, one step of each."""
        return [Traced(self.t.e.claim(f"{self.t.e.hint}_{word}_{k}"), s, d) for k, (s, d) in enumerate(values)]

    def outputs(self, values):
        return [v.like(self.t.e.node("Identity", [v.onnx], named=[self.t.e.hint + "_out"])[0]) for v in values]

    def graph(self, inputs, outputs):
        infos = [[Info(v.onnx, v.dtype, list(v.shape)) for v in part] for part in (inputs, outputs)]
        return Graph(self.t.e.hint + "_body", self.nodes, *infos)


def _same(t, made, states, word):
    """What a step makes, in the element types that it was given; shapes must stay."""
    values = [t.logical(t.value(v)) for v in versions.flatten(made)]
    if len(values) != len(states) or any(tuple(a.shape) != tuple(b.shape) for a, b in zip(values, states)):
        t.refuse(f"{word} whose values change their shape")
    return [t.cast(v, s.dtype) for v, s in zip(values, states)]


@operation("Scan")
def scan(t, op, f, init, xs=None, length=None):  # Keras 3.10 gives the length here
    return _scanned(t, f, init, xs, op.reverse, "keras.ops.scan")


def mapped(t, f, xs, word):
    """f of each row of xs, one after the other."""
    return _scanned(t, lambda _, x: (None, f(x)), None, xs, False, word)[1]


@operation("Map")
def map_(t, op, f, xs):
    return mapped(t, f, xs, "keras.ops.map")


@operation("VectorizedMap")
def vectorized_map(t, op, xs):
    return mapped(t, op.function, xs, "keras.ops.vectorized_map")


def _scanned(t, f, init, xs, reverse, word):
    if xs is None:
        return t.refuse(f"{word} over nothing but a number of steps", fix="keras.ops.fori_loop")
    rows = [t.logical(t.value(v)) for v in versions.flatten(xs)]
    first = [t.logical(t.value(v)) for v in versions.flatten(init)] if init is not None else []
    with _Body(t, word) as body:
        states = body.inputs([(s.shape, s.dtype) for s in first], "state")
        steps = body.inputs([(r.shape[1:], r.dtype) for r in rows], "step")
        carried, made = f(versions.pack(init, states) if init is not None else None, versions.pack(xs, steps))
        carried = _same(t, carried, states, word) if init is not None else []
        each = [t.logical(t.value(v)) for v in versions.flatten(made)] if made is not None else []
        outputs = body.outputs([*carried, *each])
    count, turned = len(each), int(bool(reverse))
    names = t.e.node("Scan", [v.onnx for v in [*first, *rows]], len(outputs),
                     body=body.graph([*states, *steps], outputs), num_scan_inputs=len(rows),
                     scan_input_directions=[turned] * len(rows), scan_output_directions=[turned] * count)
    finals = [Traced(n, s.shape, s.dtype) for n, s in zip(names, states)]
    time = rows[0].shape[0]
    ys = [Traced(n, (time, *v.shape), v.dtype) for n, v in zip(names[len(first):], each)]
    return (versions.pack(init, finals) if init is not None else None,
            versions.pack(made, ys) if made is not None else None)


@operation("WhileLoop")
def while_loop(t, op, loop_vars):
    word = "keras.ops.while_loop"
    first = [t.logical(t.value(v)) for v in versions.flatten(loop_vars)]
    most = None if op.maximum_iterations is None else t.e.const(int(op.maximum_iterations), np.int64)

    def called(function, values):
        packed = versions.pack(loop_vars, values)
        return function(*packed) if isinstance(loop_vars, (tuple, list)) else function(packed)

    go_on = t.cast(t.value(called(op.cond, first)), "bool")
    with _Body(t, word) as body:
        counter, before, *states = body.inputs(
            [((), "int64"), ((), "bool"), *[(s.shape, s.dtype) for s in first]], "state")
        made = called(op.body, states)
        made = _same(t, made, states, word)
        again = t.cast(t.value(called(op.cond, made)), "bool")
        outputs = body.outputs([again, *made])
    names = t.e.node("Loop", [most, go_on.onnx, *[v.onnx for v in first]], len(first),
                     body=body.graph([counter, before, *states], outputs))
    return versions.pack(loop_vars, [Traced(n, s.shape, s.dtype) for n, s in zip(names, first)])


@operation("Switch")
def switch(t, op, index, branches, *operands):
    """One choice after the other; numbers outside mean the first or the last."""
    from keras import ops

    if not t.is_symbolic(index):
        k = min(max(int(versions.to_numpy(index)), 0), len(branches) - 1)
        return branches[k](*operands)
    made = branches[-1](*operands)
    for k in range(len(branches) - 2, -1, -1):
        made = ops.cond(ops.less_equal(index, k), lambda k=k: branches[k](*operands), lambda made=made: made)
    return made
