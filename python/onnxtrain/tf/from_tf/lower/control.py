"""Calls are written out; If and While become ONNX's If and Loop."""

import tensorflow as tf

from ..values import Sym, Unsupported, info
from .lists import TensorList, list_sym
from .table import op


@op("PartitionedCall", "StatefulPartitionedCall")
def call(n):
    graph = n.walk.function(n.op, "f", [s.shape for s in n.inputs])
    return n.walk.inline(graph, n.inputs)


@op("If", "StatelessIf")
def branch(n):
    condition, given = n[0], n.inputs[1:]
    shapes = [s.shape for s in given]
    sides = {key: n.walk.function(n.op, key, shapes) for key in ("then_branch", "else_branch")}
    if condition.static is not None:
        return n.walk.inline(sides["then_branch" if bool(condition.static) else "else_branch"], given)
    for s in given:
        if s.resource is None:
            n.w.plain(s)  # what both branches read is made before them

    def body(key):
        def write():
            got = n.walk.inside(sides[key], [s.copy() for s in given])
            if any(s.resource is not None for s in got):
                raise Unsupported("a branch gives a list or a variable")
            names = [n.e.node("Identity", [n.w.plain(s)], named=[n.e.claim("branch")])[0] for s in got]
            return [], [info(v, s.dtype, s.shape) for v, s in zip(names, got)]

        return n.w.body(key, write)

    graphs = {key: body(key) for key in sides}
    flag = n.w.plain(condition) if condition.dtype == tf.bool else n.e.cast(n.w.plain(condition), "bool")
    names = n.e.node("If", [flag], len(n.op.outputs), named=[n.e.claim("if") for _ in n.op.outputs], **graphs)
    return [n.out(name, k) for k, name in enumerate(names)]


@op("While", "StatelessWhile")
def loop(n):
    return _Loop(n).write()


class _Loop:
    """Loop variables that the body hands on unchanged are read from outside; a list that gets one element per step in
    order is a scan output; all others are carried."""

    def __init__(self, n):
        self.n, self.given = n, n.inputs
        shapes = [t.shape for t in n.op.outputs]
        self.condition = n.walk.function(n.op, "cond", shapes)
        self.body = n.walk.function(n.op, "body", shapes)
        self.same, self.scans, self.carried = set(), {}, []
        counters = {k for k in range(len(self.given)) if self._is_counter(k)}
        for k, s in enumerate(self.given):
            if _source(self.body.outputs[k]) is self.body.inputs[k]:
                self.same.add(k)
            elif isinstance(s.resource, TensorList) and self._item(k, counters) is not None:
                self.scans[k] = self._item(k, counters)
            elif s.resource is not None and not isinstance(s.resource, TensorList):
                raise Unsupported("a variable is exchanged in a loop")
            else:
                self.carried.append(k)
        if any(isinstance(self.given[k].resource, TensorList) for k in self.carried):
            raise Unsupported("its body writes a list other than one element per step in order")

    def _is_counter(self, k):
        """Counts 0, 1, 2, ..."""
        start = self.given[k].static
        made = _source(self.body.outputs[k])
        if start is None or start.ndim or int(start) != 0 or made.op.type not in ("AddV2", "Add"):
            return False
        a, b = (_source(t) for t in made.op.inputs)
        a, b = (a, b) if a is self.body.inputs[k] else (b, a)
        one = tf.get_static_value(b)
        return a is self.body.inputs[k] and one is not None and one == 1

    def _item(self, k, counters):
        """What the body writes as the next element of list k, or None."""
        made = _source(self.body.outputs[k]).op
        handle = self.body.inputs[k]
        readers = [o for o in _readers(handle) if o is not made]
        if readers or not made.inputs or _source(made.inputs[0]) is not handle or self.given[k].resource.stacked:
            return None
        if made.type == "TensorListPushBack":
            return made.inputs[1]
        places = [self.body.inputs[c] for c in counters]
        if made.type == "TensorListSetItem" and any(_source(made.inputs[1]) is p for p in places):
            return made.inputs[2]
        return None

    def _inner(self, values):
        """Syms of all loop variables: {k: Sym} of the carried ones, the others as they are outside."""
        return [values[k] if k in values else s.copy() for k, s in enumerate(self.given)]

    def _holds(self, values, inside):
        run = self.n.walk.inside if inside else self.n.walk.inline
        got = run(self.condition, self._inner(values))[0]
        return self.n.w.plain(got)

    def write(self):
        n = self.n
        for k in self.same:
            s = self.given[k]
            n.w.plain(s) if s.resource is None else None
            if isinstance(s.resource, TensorList) and s.resource.stacked is not None:
                n.w.plain(s.resource.stacked)
        start = [n.w.plain(self.given[k]) for k in self.carried]
        first = self._holds({k: self.given[k].copy() for k in self.carried}, False)
        results = {}

        def write():
            step, flag = n.e.claim("step"), n.e.claim("go_on")
            names = {k: n.e.claim("carried") for k in self.carried}
            inner = {k: Sym(names[k], dtype=self.body.inputs[k].dtype, shape=self._shape(k)) for k in self.carried}
            got, items = n.walk.inside(self.body, self._inner(inner), list(self.scans.values()))
            new = {k: got[k] for k in self.carried}
            again = self._holds({k: s.copy() for k, s in new.items()}, True)
            outputs = [info(_named(n, again, "again"), tf.bool, [])]
            for k in self.carried:
                outputs.append(info(_named(n, n.w.plain(new[k]), "carried_on"), new[k].dtype, self._shape(k)))
            for k, s in zip(self.scans, items):
                outputs.append(info(_named(n, n.w.plain(s), "element"), s.dtype, s.shape))
                results[k] = s
            inputs = [info(step, tf.int64, []), info(flag, tf.bool, [])]
            inputs += [info(names[k], self.body.inputs[k].dtype, self._shape(k)) for k in self.carried]
            return inputs, outputs

        graph = n.w.body("body", write)
        count = len(self.carried) + len(self.scans)
        names = n.e.node("Loop", [None, first, *start], count, named=[n.e.claim("loop") for _ in range(count)],
                         body=graph)
        return self._results(names, results)

    def _shape(self, k):
        """The shape of a carried variable: where the start and the body's result agree."""
        made = tf.TensorShape(self.n.op.outputs[k].shape)
        return made if made.rank is not None else self.given[k].shape

    def _results(self, names, items):
        n, made = self.n, []
        place = {k: names[i] for i, k in enumerate([*self.carried, *self.scans])}
        for k, s in enumerate(self.given):
            if k in self.same:
                made.append(s.copy())
            elif k in self.scans:
                shape = tf.TensorShape([None]).concatenate(items[k].shape)
                made.append(list_sym(TensorList(n.w.sym(place[k], items[k].dtype, shape), dtype=items[k].dtype)))
            else:
                made.append(n.out(place[k], k))
        return made


def _named(n, name, wanted):
    """A body's result must be made in the body."""
    return n.e.node("Identity", [name], named=[n.e.claim(wanted)])[0]


def _source(t):
    """Where a tensor comes from, through Identity."""
    while t.op.type == "Identity":
        t = t.op.inputs[0]
    return t


def _readers(t):
    """Operations that read a tensor, through Identity; those that only hand it on do not count."""
    found = []
    for o in t.consumers():
        found += _readers(o.outputs[0]) if o.type == "Identity" else [o]
    return found
