"""Choices and loops of keras.ops. A choice computes both ways and takes one, in what is assigned too."""

from ...shared import versions
from ..values import Traced
from .elementwise import broadcast
from .table import operation

_STEPS = 256

@operation("Cond")
def cond(t, op, pred, true_fn, false_fn):
    if not t.is_symbolic(pred):
        return true_fn() if bool(versions.to_numpy(pred)) else false_fn()
    before = dict(t.scope.state_mapping)
    yes = true_fn()
    after_yes = dict(t.scope.state_mapping)
    t.scope.state_mapping.clear()
    t.scope.state_mapping.update(before)
    no = false_fn()
    after_no = dict(t.scope.state_mapping)
    condition = t.cast(t.value(pred), "bool")

    def choose(a, b):
        if a is b or a is None or isinstance(a, Traced) and isinstance(b, Traced) and a.onnx == b.onnx:
            return a
        a, b = t.value(a), t.value(b)
        return broadcast(t, [condition, a, b], lambda *v: t.e.op("Where", *v), a.dtype, a.shape)

    by_id = {id(e.variable): e for e in t.state.entries}
    for key in {**after_yes, **after_no}:
        stored = by_id[key].traced() if key in by_id else before.get(key)
        a, b = after_yes.get(key, stored), after_no.get(key, stored)
        t.scope.state_mapping[key] = choose(a, b)
    return versions.map_structure(choose, yes, no) if yes is not None else None


@operation("ForiLoop")
def fori_loop(t, op, init_val):
    """A loop of a known number of steps is written out."""
    lower, upper, body = op.lower, op.upper, op.body_fun
    if any(t.is_symbolic(v) for v in (lower, upper)) or int(versions.to_numpy(upper)) - int(
            versions.to_numpy(lower)) > _STEPS:
        return t.refuse("keras.ops.fori_loop over a number of steps that is open or large")
    value = init_val
    for i in range(int(versions.to_numpy(lower)), int(versions.to_numpy(upper))):
        value = body(i, value)
    return value


@operation("AssociativeScan")
def loop(t, op, *_, **__):
    return t.refuse(f"keras.ops.{type(op).__name__} runs a function of its own in a loop",
                    fix="keras.ops.scan, keras.ops.map, or a layer of Keras (RNN, TimeDistributed)")
