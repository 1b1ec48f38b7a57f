"""Calls are written out; If and While become ONNX's If and Loop."""

import numpy as np
import tensorflow as tf

from ..values import Sym, Unsupported, info
from .lists import TensorList, list_sym, stacked_of
from .table import op


@op("PartitionedCall", "StatefulPartitionedCall")
def call(n):
    graph = n.walk.function(n.op, "f", [s.shape for s in n.inputs])
    return n.walk.inline(graph, n.inputs)


@op("If", "StatelessIf")
def branch(n):
    condition, given = n[0], n.inputs[1:]
    shapes = [s.shape for s in given]
    sides = [n.walk.function(n.op, key, shapes) for key in ("then_branch", "else_branch")]
    if condition.static is not None:
        return n.walk.inline(sides[0 if bool(condition.static) else 1], given)
    _make(n, given)
    flag = n.w.plain(condition) if condition.dtype == tf.bool else n.e.cast(n.w.plain(condition), "bool")
    names = _if(n, flag, *(_side(n, graph, given) for graph in sides))
    return [n.out(name, k) for k, name in enumerate(names)]


@op("Case", "StatelessCase")
def case(n):
    """One If in the other; a number that is no branch's takes the last."""
    index, given = n[0], n.inputs[1:]
    sides = [n.walk.function_named(f.name, [s.shape for s in given]) for f in n.op.get_attr("branches")]
    if index.static is not None:
        k = int(index.static)
        return n.walk.inline(sides[k if 0 <= k < len(sides) else -1], given)
    _make(n, given)
    at = n.w.int64(index)

    def choose(k):
        """Names of the results when none of the branches before k is meant."""
        if k == len(sides) - 2:
            rest = _side(n, sides[-1], given)
        else:
            def write():
                return [], [info(v, t.dtype, t.shape) for v, t in zip(choose(k + 1), n.op.outputs)]

            def rest():
                return n.w.body("case", write)

        here = n.e.op("Equal", at, n.e.const(np.array(k, np.int64)))
        return _if(n, here, _side(n, sides[k], given), rest)

    if len(sides) == 1:
        return n.walk.inline(sides[0], given)
    return [n.out(name, k) for k, name in enumerate(choose(0))]


def _make(n, given):
    """What several branches read is made before them."""
    for s in given:
        if s.resource is None:
            n.w.plain(s)


def _side(n, graph, given):
    """() -> the body of one branch."""
    def write():
        got = n.walk.inside(graph, [s.copy() for s in given])
        if any(s.resource is not None for s in got):
            raise Unsupported("a branch gives a list or a variable")
        names = [n.e.node("Identity", [n.w.plain(s)], named=[n.e.claim("branch")])[0] for s in got]
        return [], [info(v, s.dtype, s.shape) for v, s in zip(names, got)]

    return lambda: n.w.body("branch", write)


def _if(n, flag, then, otherwise):
    return n.e.node("If", [flag], len(n.op.outputs), named=[n.e.claim("if") for _ in n.op.outputs],
                    then_branch=then(), else_branch=otherwise())


@op("While", "StatelessWhile")
def loop(n):
    return _Loop(n).write()


class _Loop:
    """Loop variables that the body hands on unchanged are read from outside. A list that gets one element per step in
    order, or keeps the last one, is a scan output. All others are carried, lists as one tensor."""

    def __init__(self, n):
        self.n, self.given = n, n.inputs
        shapes = [t.shape for t in n.op.outputs]
        self.condition = n.walk.function(n.op, "cond", shapes)
        self.body = n.walk.function(n.op, "body", shapes)
        self.same, self.scans, self.carried = set(), {}, []
        self.counters = {k for k in range(len(self.given)) if self._is_counter(k)}
        for k, s in enumerate(self.given):
            if _source(self.body.outputs[k]) is self.body.inputs[k]:
                self.same.add(k)
            elif isinstance(s.resource, TensorList) and self._item(k) is not None:
                self.scans[k] = self._item(k)
            elif s.resource is not None and not isinstance(s.resource, TensorList):
                raise Unsupported("a variable is exchanged in a loop")
            else:
                self.carried.append(k)

    def _is_counter(self, k):
        """Counts 0, 1, 2, ..."""
        start = self.given[k].static
        made = _source(self.body.outputs[k])
        if start is None or start.ndim or int(start) != 0 or made.op.type not in ("AddV2", "Add"):
            return False
        a, b = (_source(t) for t in made.op.inputs)
        a, b = (a, b) if a is self.body.inputs[k] else (b, a)
        one = self._number(b)
        return a is self.body.inputs[k] and one is not None and one == 1

    def _number(self, t):
        """The value of a tensor of the body where it is the same in every step and known; loops over tf.range get
        their step from outside."""
        for k, mine in enumerate(self.body.inputs):
            if t is mine:
                return self.given[k].static if _source(self.body.outputs[k]) is mine else None
        return tf.get_static_value(t)

    def _item(self, k):
        """(what the body writes as the next element of list k, whether only the last one is kept), or None."""
        made, handle, reserved = _source(self.body.outputs[k]).op, self.body.inputs[k], self.given[k].resource
        readers = [o for o in _readers(handle) if o is not made]
        if readers or not made.inputs or _source(made.inputs[0]) is not handle or reserved.stacked is not None:
            return None
        if made.type == "TensorListPushBack":
            return made.inputs[1], False
        if made.type != "TensorListSetItem":
            return None
        if any(_source(made.inputs[1]) is self.body.inputs[c] for c in self.counters):
            return made.inputs[2], False
        count, at = reserved.count, tf.get_static_value(made.inputs[1])
        alone = count is not None and count.static is not None and int(count.static) == 1
        return (made.inputs[2], True) if alone and at is not None and int(at) == 0 else None

    def _inner(self, values):
        """Syms of all loop variables: {k: Sym} of the carried ones, the others as they are outside."""
        return [values[k] if k in values else s.copy() for k, s in enumerate(self.given)]

    def _holds(self, values, inside):
        run = self.n.walk.inside if inside else self.n.walk.inline
        return self.n.w.plain(run(self.condition, self._inner(values))[0])

    def _stacked(self, k, s):
        """The tensor that stands for a carried variable: a list as one."""
        return stacked_of(self.n, s.resource) if isinstance(s.resource, TensorList) else s

    def _sym(self, k, tensor):
        """The inverse."""
        made = self.given[k].resource
        return list_sym(TensorList(tensor, made.count, made.shape, tensor.dtype)) if made is not None else tensor

    def write(self):
        n = self.n
        for s in self.given:  # what the body reads from outside is made before it
            inner = s.resource.stacked if isinstance(s.resource, TensorList) else s if s.resource is None else None
            if inner is not None:
                n.w.plain(inner)
        start = {k: self._stacked(k, self.given[k]) for k in self.carried}
        names = [n.w.plain(s) for s in start.values()]
        first = self._holds({k: self._sym(k, s.copy()) for k, s in start.items()}, False)
        elements = {}
        graph = n.w.body("body", lambda: self._body(start, elements))
        count = len(self.carried) + len(self.scans)
        made = n.e.node("Loop", [None, first, *names], count, named=[n.e.claim("loop") for _ in range(count)],
                        body=graph)
        return self._results(made, start, elements)

    def _body(self, start, elements):
        n = self.n
        step, flag = n.e.claim("step"), n.e.claim("go_on")
        names = {k: n.e.claim("carried") for k in self.carried}
        shapes = {k: self._shape(k, s) for k, s in start.items()}
        inner = {k: self._sym(k, Sym(names[k], dtype=s.dtype, shape=shapes[k])) for k, s in start.items()}
        wanted = [*(self.body.outputs[k] for k in self.carried), *(t for t, _ in self.scans.values())]
        got = n.walk.inside(self.body, self._inner(inner), wanted)
        new = {k: self._stacked(k, s) for k, s in zip(self.carried, got)}
        again = self._holds({k: self._sym(k, s.copy()) for k, s in new.items()}, True)
        outputs = [info(_named(n, again, "again"), tf.bool, [])]
        for k, s in new.items():
            outputs.append(info(_named(n, n.w.plain(s), "carried_on"), s.dtype, shapes[k]))
        for k, s in zip(self.scans, got[len(new):]):
            outputs.append(info(_named(n, n.w.plain(s), "element"), s.dtype, s.shape))
            elements[k] = s
        inputs = [info(step, tf.int64, []), info(flag, tf.bool, [])]
        return inputs + [info(names[k], start[k].dtype, shapes[k]) for k in self.carried], outputs

    def _shape(self, k, start):
        """The shape of a carried variable: what holds before and after a step."""
        if self.given[k].resource is not None:
            return start.shape
        made = tf.TensorShape(self.n.op.outputs[k].shape)
        return made if made.rank is not None else start.shape

    def _results(self, names, start, elements):
        n, made = self.n, []
        place = {k: names[i] for i, k in enumerate([*self.carried, *self.scans])}
        for k, s in enumerate(self.given):
            if k in self.same:
                made.append(s.copy())
            elif k in self.scans:
                item, name = elements[k], place[k]
                if self.scans[k][1]:
                    name = n.e.op("Gather", name, n.e.ints([-1]), axis=0)
                shape = tf.TensorShape([None]).concatenate(item.shape)
                made.append(list_sym(TensorList(n.w.sym(name, item.dtype, shape), dtype=item.dtype)))
            elif s.resource is not None:
                made.append(self._sym(k, n.w.sym(place[k], start[k].dtype, start[k].shape)))
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
