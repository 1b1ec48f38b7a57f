"""The optimizer's step as nodes: Keras' own code runs once on the gradients' values. Rule, clipping, decay, averages,
accumulation, constraints and schedule are what Keras says they are."""

from dataclasses import dataclass

import keras
import numpy as np

from ..shared import versions
from .trace import Gradients, _assigned
from .tracer import Tracer
from .values import Traced

RATE, COUNTER = "learning_rate", "T"


@dataclass
class Training:
    optimizer: object  # the live one, or a built copy when it was never built
    gradients: Gradients
    entries: list  # of the optimizer's variables, in their order
    rate: float | None  # of a schedule now; None: a variable
    assigned: dict  # name -> Traced after the step
    next_rate: object = None


def built_optimizer(optimizer, variables):
    """The optimizer, or a built copy of one that has not yet been built: nothing of the user's changes."""
    if optimizer.built:
        return optimizer
    made = type(optimizer).from_config(optimizer.get_config())
    for key in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):
        if hasattr(optimizer, key):
            setattr(made, key, getattr(optimizer, key))
    made.build(variables)
    return made


def optimizer_variables(optimizer):
    """All of its state in Keras' order, without the learning rate of a schedule."""
    found = list(optimizer.variables)
    for extra in ("_u_product",):  # Nadam's, in some versions not among the variables
        v = getattr(optimizer, extra, None)
        if versions.is_variable(v) and all(v is not f for f in found):
            found.append(v)
    return found


def add_entries(optimizer, state, emitter):
    """Entries for the optimizer's state: slots in the layout of their weight, under their paths."""
    by_weight = {e.name.replace("/", "_"): e for e in state.weights}
    entries = []
    for v in optimizer_variables(optimizer):
        if v is optimizer._iterations:
            entries.append(state.add(v, emitter.claim_reserved(COUNTER), dtype="int64"))
        elif v is optimizer._learning_rate:
            entries.append(state.add(v, emitter.claim_reserved(RATE)))
        else:
            weight = _weight_of(v, optimizer, by_weight, state)
            layout = weight.layout if weight is not None and tuple(v._shape) == tuple(weight.variable._shape) else None
            entries.append(state.add(v, emitter.claim(_slot_name(v, weight, optimizer)), layout))
    return entries


def _weight_of(v, optimizer, by_weight, state):
    """The weight that a slot belongs to: slots are called path_with_underscores_KIND."""
    name = v.name
    fits = [w for w in optimizer._trainable_variables if name.startswith(w.path.replace("/", "_") + "_")
            and tuple(w._shape) == tuple(v._shape)]
    same = [w for w in fits if len(w.path) == max(len(f.path) for f in fits)]
    if not same:
        return None
    if len(same) > 1:  # weights of one path: by their order
        peers = [u for u in optimizer.variables if u.name == name]
        k = next(i for i, u in enumerate(peers) if u is v)
        return state.by_id.get(id(same[min(k, len(same) - 1)]))
    return state.by_id.get(id(same[0]))


def _slot_name(v, weight, optimizer):
    if weight is None:
        return v.path if v.path else v.name
    kind = v.name[len(weight.variable.path.replace("/", "_")) + 1:]
    return f"{weight.name}/{kind}"


def add_training(model, optimizer, emitter, state, forward, gradients, obstacles, semantics):
    entries = add_entries(optimizer, state, emitter)
    rate = None
    scheduled = not versions.is_variable(optimizer._learning_rate)
    if scheduled:
        rate = float(versions.to_numpy(optimizer._learning_rate(np.array(_iterations(optimizer), np.int64))))
        emitter.claim_reserved(RATE)
    tracer = Tracer(emitter, state, obstacles, semantics, True)
    tracer.stops = False  # nothing is differentiated here
    with tracer.running() as t, versions.optimizer_in_trace(optimizer):
        for name, value in forward.assigned.items():  # what the forward pass has assigned stands
            entry = next(e for e in state.entries if e.name == name)
            t.assign(entry.variable, value)
        if scheduled:
            vars(optimizer)["_get_current_learning_rate"] = lambda: Traced(RATE, (), keras.config.floatx())
        try:
            order = [v for v in optimizer._trainable_variables]
            grads = [_gradient(t, state.by_id[id(v)], gradients) for v in order]
            pairs = [(g, v) for g, v in zip(grads, order) if g is not None]
            emitter.hint = "update"
            versions.apply(optimizer, [g for g, _ in pairs], [v for _, v in pairs])
            assigned = _assigned(t, state)
            next_rate = None
            if scheduled:
                emitter.hint = "schedule"
                counter = t.value(optimizer._iterations)
                next_rate = t.cast(t.value(optimizer._learning_rate(counter)), keras.config.floatx())
        finally:
            vars(optimizer).pop("_get_current_learning_rate", None)
    obstacles.raise_()
    return Training(optimizer, gradients, entries, rate, assigned, next_rate)


def _iterations(optimizer):
    return int(versions.variable_array(optimizer._iterations))


def _gradient(t, entry, gradients):
    if entry.name in gradients.dense:
        return entry.traced().like(gradients.dense[entry.name])
    if entry.name not in gradients.rows:
        return None
    values, places = [], []
    width = list(entry.variable._shape[1:])
    for v, i in gradients.rows[entry.name]:
        values.append(t.e.op("Reshape", v, t.e.ints([-1, *width])))
        places.append(t.e.op("Reshape", i, t.e.ints([-1, 1])))
    rows = [parts[0] if len(parts) == 1 else t.e.op("Concat", *parts, axis=0) for parts in (values, places)]
    return entry.traced().rows(*rows, t.dense)
