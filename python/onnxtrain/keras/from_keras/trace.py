"""Stages of the trace: the inference form, the training form with its loss, the optimizer's step."""

from dataclasses import dataclass, field

import keras

from ...converters.onnx_file import remove_dead
from ...graph import TRAINING
from ..shared import versions
from .call import output_names, pack_targets, pack_weights
from .lower.near_maxima import near_maxima
from .tracer import Tracer
from .values import Traced


@dataclass
class Forward:
    """Nodes are in the emitter; outputs as Traced in Keras' order of axes, by name."""

    outputs: dict
    loss: Traced | None = None
    assigned: dict = field(default_factory=dict)  # name of a variable -> Traced after the step
    tracer: object = None


def _feed(tracer, slots):
    return [Traced(s.name, s.shape, s.dtype) for s in slots]


def trace_forward(model, call, emitter, state, obstacles, semantics, training, step):
    """The model in one mode; with `step` also its loss and what it assigns."""
    tracer = Tracer(emitter, state, obstacles, semantics, training)
    tracer.near_maxima = step and semantics == "tensorflow" and near_maxima(model)
    with tracer.running():
        inputs = keras.tree.pack_sequence_as(call.input_structure, _feed(tracer, call.inputs))
        outputs = model(inputs, training=training)
        names = output_names(model, outputs)
        made = Forward({n: tracer.logical(tracer.value(v)) for n, v in zip(names, keras.tree.flatten(outputs))
                        if v is not None}, tracer=tracer)
        if step:
            made.loss = _loss(model, call, tracer, outputs)
            made.assigned = _assigned(tracer, state)
    for layer in state.layers:
        layer._loss_ids.clear() if hasattr(layer, "_loss_ids") else None
    obstacles.raise_()
    return made


def _loss(model, call, tracer, outputs):
    """As Trainer.compute_loss: the compiled loss, add_loss, regularizers."""
    parts = []
    if versions.compile_loss(model) is not None:
        y = pack_targets(call.target_structure, _feed(tracer, call.targets))
        weights = pack_weights(call.weight_structure, _feed(tracer, call.weights))
        loss = versions.fresh_compile_loss(model)(y, outputs, weights)
        parts += [] if loss is None else [loss]
    added = list(tracer.scope.losses)
    for v in model.trainable_weights:
        if v.regularizer is not None:
            added.append(v.regularizer(v))
    parts += [versions.additional_loss(model, tracer.value(x)) for x in added]
    if not parts:
        tracer.refuse("the model has no loss", fix="model.compile(loss=...)")
    total = tracer.value(parts[0])
    for p in parts[1:]:
        total = total + tracer.value(p)
    if total.rank:
        tracer.refuse(f"the loss is no number but has shape {list(total.shape)}", fix="reduction='sum_over_batch_size'")
    return total


def _assigned(tracer, state):
    found = {}
    for entry in state.entries:
        now = tracer.scope.state_mapping.get(id(entry.variable))
        if isinstance(now, Traced) and now.onnx != entry.name:
            found[entry.name] = tracer.physical(tracer.cast(tracer.dense(now), entry.dtype),
                                                entry.layout or tuple(range(now.rank)))
    return found


@dataclass
class Gradients:
    """Of the trained weights: names of values; rows where TensorFlow has IndexedSlices."""

    dense: dict  # weight -> value
    rows: dict  # weight -> [(gradient of the gathered rows, positions)]


def add_gradients(emitter, forward, state, fed, without):
    """One Gradient node. without: names of weights that Keras has no gradient for."""
    tracer = forward.tracer
    reads = {forward.loss.onnx}
    remove_dead(emitter.main + emitter.algorithm, reads)
    trained = [e for e in state.weights if e.trainable and e.name in reads and e.name not in without]
    rows = {e.name: tracer.rows[id(e.variable)] for e in trained
            if tracer.semantics == "tensorflow" and id(e.variable) in tracer.rows
            and id(e.variable) not in tracer.other_uses}
    # what the forward pass has assigned to a weight is what is differentiated by
    at = {e.name: forward.assigned[e.name].onnx if e.name in forward.assigned else e.name for e in trained}
    names = [e.name for e in trained if e.name not in rows]
    xs = [at[n] for n in names]
    gathered = list(dict.fromkeys(v for pairs in rows.values() for v, _ in pairs))
    if not xs and not gathered:
        return Gradients({}, {})
    behind = {*gathered, *[x for x in xs if x not in names]}
    remove_dead(emitter.main + emitter.algorithm, behind)
    zs = [s.name for s in fed if s.name in reads and s.name not in behind]
    named = [n + "_grad" for n in [*names, *gathered]]
    made = emitter.node("Gradient", [*xs, *gathered, *zs], len(named), TRAINING, named, xs=[*xs, *gathered],
                        zs=zs or None, y=forward.loss.onnx)
    by = dict(zip([*xs, *gathered], made))
    emitter.maker[made[0]].name = "gradient"
    return Gradients({n: by[at[n]] for n in names}, {n: [(by[v], i) for v, i in pairs] for n, pairs in rows.items()})
