"""Runs the file against Keras on the examples, always: outputs, loss, statistics, gradients, one optimizer step. A file
that differs is not returned."""

import functools
import warnings

import numpy as np

from ...converters.compare import Comparison, Sensitivity
from ...converters.fixed_random import without_randomness
from ...converters.onnx_file import Graph, Info, Model, remove_dead
from ...converters.onnx_file import Training as Section
from ...errors import ConversionError, ModelError
from ...model import load
from ...session import Session
from ...trainer import Trainer
from ..shared import versions
from . import exact
from . import reference as references
from .training import RATE


def check(request, call, built):
    """The loaded ot.Model; raises ModelError that names the first tensor that differs."""
    state, file, training, reference = built.state, built.file, built.training, built.reference
    compare = Comparison("Keras", functools.partial(_sensitivity, request, call, built))
    try:
        made = load(file.model.encode())
        gradients = _forward(call, built, compare)
        if training is not None:
            if reference.gradients is None and "finite differences" in request.check:
                _slopes(request, call, state, gradients, reference.loss, compare)
            _update(request, state, file, training, gradients, reference, compare)
        _warn(compare.lost, state)
        return made
    except ConversionError:
        raise
    except ModelError as e:
        raise ModelError(f"the file that was made does not run: {e.message}", e.code, e.hint) from e


def _warn(lost, state):
    """Says which results in float32 are nothing but rounding, in Keras as here."""
    trained = [e.name for e in state.weights if e.trainable]
    names = [trained[k] for kind, k in lost if kind == "gradient"]
    if names:
        others = f" and of {len(names) - 1} other weights" if len(names) > 1 else ""
        warnings.warn(f"on these examples float32 has no right digit in the gradient of '{names[0]}'{others}, in Keras "
                      "as here: the model was compared in float64. Larger batches or images help", stacklevel=2)


def _forward(call, built, compare):
    """Outputs, loss, statistics, gradients; {name: gradient of the file}."""
    _inference(call, built.file, built.reference, compare)
    if built.training is None:
        return {}
    return _step(call, built.state, built.file, built.training, built.reference, compare)


def _sensitivity(request, call, built):
    def changed(units, model=request.model, call=call):
        return references.compute(model, call, built.training is not None, units).arrays()

    def forward_agrees(wide_call, wide):
        noise = Sensitivity(wide.reference.arrays(), lambda units: changed(units, call=wide_call))
        _forward(wide_call, wide, Comparison("Keras in float64", lambda: noise))

    plain = built.reference.arrays()
    return Sensitivity(plain, changed, lambda: exact.proven(request, call, built, forward_agrees), proves=True)


def _fixed(graph, extra=(), drop=()):
    nodes, _ = without_randomness(graph.nodes, versions.PLACE)
    outputs = [o for o in graph.outputs if o.name not in drop] + list(extra)
    return Graph(graph.name, nodes, graph.inputs, outputs, graph.initializers, graph.infos)


def _inference(call, file, reference, compare):
    m = file.model
    model = load(Model(_fixed(m.graph), m.opsets, [], m.functions).encode())
    got = Session(model).run({s.name: s.example for s in call.inputs if s.name in model.inputs})
    for k, name in enumerate(file.outputs):
        compare.same(f"output '{name}' of the inference form", got[name], reference.outputs[k], ("output", k))


def _step(call, state, file, training, reference, compare):
    """Loss, outputs, statistics and gradients of one step; {name: gradient of the file}."""
    m = file.model
    section = m.training[0]
    trained = {e.name for e in state.weights if e.trainable} | {e.name for e in training.entries} | {RATE}
    kept = [(k, v) for k, v in section.update if k not in trained]
    dropped = {v for k, v in section.update if k in trained}
    wanted = _gradient_infos(state, training, file)
    algorithm = _fixed(section.algorithm, wanted, dropped)
    algorithm.nodes = _needed(m.graph.nodes, algorithm, kept)
    reads = {o.name for o in algorithm.outputs}
    remove_dead([*m.graph.nodes, *algorithm.nodes], reads)
    algorithm.initializers = {n: a for n, a in algorithm.initializers.items() if n in reads}
    model = load(Model(_fixed(m.graph), m.opsets, [Section(algorithm, kept)], m.functions).encode())
    trainer = Trainer(model, seed=0)
    step = trainer.step({s.name: s.example for s in call.fed() if s.name in reads})
    compare.same("the loss", np.asarray(step.outputs[file.loss], reference.loss.dtype), reference.loss, ("loss", ""))
    for k, name in enumerate(file.outputs):
        if name in file.train_outputs:
            compare.same(f"output '{name}' in training", step.outputs[file.train_outputs[name]],
                         reference.train_outputs[k], ("train", k))
    _statistics(state, trainer, reference, compare)
    return _gradients(state, training, file, step, reference, compare)


def _needed(main, algorithm, kept):
    reads = {o.name for o in algorithm.outputs} | {v for _, v in kept}
    return remove_dead(algorithm.nodes, reads)


def _gradient_infos(state, training, file):
    e, by_name = file.names, {w.name: w for w in state.weights}
    infos = []
    for name, g in training.gradients.dense.items():
        w = by_name[name]
        shape = [w.variable._shape[a] for a in w.layout or range(len(w.variable._shape))]
        infos.append(Info(e.current(g), w.dtype, shape))
    seen = set()
    for name, pairs in training.gradients.rows.items():
        for g, i in pairs:
            for value, dtype in ((e.current(g), by_name[name].dtype), (e.current(i), "int64")):
                if value not in seen:
                    infos.append(Info(value, dtype, None))
                    seen.add(value)
    return infos


def _statistics(state, trainer, reference, compare):
    """A mean that is 0 in exact arithmetic is rounding: the floor is what the layer's other statistics are like."""
    sizes = {}
    for k, entry in enumerate(state.weights):
        a = reference.assigned.get(k, entry.array())
        if not entry.trainable and a.dtype.kind == "f" and a.size:
            sizes[_owner(entry)] = max(sizes.get(_owner(entry), 0.0), float(np.abs(a).max()))
    for k, entry in enumerate(state.weights):
        if entry.trainable:
            continue
        now = trainer.state[entry.name] if entry.name in trainer.state else entry.array()
        want = reference.assigned.get(k)
        want = entry.back(entry.array()) if want is None else want
        compare.same(f"'{entry.name}' after one step", entry.back(np.asarray(now)), want, ("statistics", k)
                     if k in reference.assigned else None, floor=1e-3 * sizes.get(_owner(entry), 0.0))


def _owner(entry):
    return entry.name.rpartition("/")[0]


def _gradients(state, training, file, step, reference, compare):
    e, found = file.names, {}
    by_name = {w.name: w for w in state.weights}
    for name, g in training.gradients.dense.items():
        found[name] = by_name[name].back(np.asarray(step.outputs[e.current(g)]))
    for name, pairs in training.gradients.rows.items():
        values = [np.asarray(step.outputs[e.current(g)]) for g, _ in pairs]
        places = [np.asarray(step.outputs[e.current(i)]).reshape(-1) for _, i in pairs]
        width = by_name[name].variable._shape[1:]
        found[name] = (np.concatenate([v.reshape(-1, *width) for v in values]), np.concatenate(places),
                       [len(p) for p in places])
    if reference.gradients is None:
        return found
    trained = [w for w in state.weights if w.trainable]
    sizes = [np.abs(g).max() for g in reference.gradients.values() if g is not None and g.size]
    largest = float(max(sizes, default=0.0))
    for k, w in enumerate(trained):
        want = reference.gradients.get(k)
        if w.name in found and want is not None:
            got = found[w.name] if not isinstance(found[w.name], tuple) else _dense(found[w.name], want)
            compare.same(f"the gradient of '{w.name}'", got, want, ("gradient", k), 20, largest * 1e-3)
    return found


def _dense(rows, like):
    made = np.zeros_like(like)
    np.add.at(made, rows[1], rows[0])
    return made


def _slopes(request, call, state, gradients, loss, compare):
    """Keras' numpy backend has no gradients: some elements of each against finite differences of its loss."""
    rng = np.random.default_rng(0)
    for k, w in enumerate([w for w in state.weights if w.trainable]):
        if w.name not in gradients:
            continue
        g = gradients[w.name]
        g = _dense(g, np.zeros(tuple(w.variable._shape), g[0].dtype)) if isinstance(g, tuple) else g
        places = [tuple(int(i) for i in np.unravel_index(int(np.abs(g).argmax()), g.shape))]
        places += [tuple(int(rng.integers(0, n)) for n in g.shape)]
        for place in places:
            _slope(request, call, k, w.name, place, float(g[place]), float(loss), compare)


def _slope(request, call, k, name, place, got, loss, compare):
    """One element: a step may cross the kink of a ReLU, so that several sizes are tried."""
    for size in (1e-2, 3e-3, 1e-3, 3e-4):
        slope = references.slopes(request.model, call, k, [place], size)[0]
        if abs(slope - got) <= 0.05 * abs(got) + 1e-6 * max(abs(loss), 1) / size:
            return
    compare.differs(f"the gradient of '{name}' at {place}",
                    f"is {got:.4g}, finite differences of Keras' loss give {slope:.4g}")


def _update(request, state, file, training, gradients, reference, compare):
    """The file's optimizer nodes against Keras' optimizer, both on the file's gradients."""
    optimizer, rows = training.optimizer, set(training.gradients.rows)
    foreign = rows if versions.backend_name() != "tensorflow" else set()  # only TensorFlow applies rows
    if foreign and getattr(optimizer, "global_clipnorm", None):
        return
    by_id = {id(v): k for k, v in enumerate(optimizer._trainable_variables)}
    given = {by_id[id(w.variable)]: gradients[w.name] for w in state.weights
             if w.name in gradients and id(w.variable) in by_id and w.name not in foreign}
    start = [(w.variable, reference.assigned[k]) for k, w in enumerate(state.weights)
             if w.trainable and k in reference.assigned]
    want = references.optimizer_step(request.model, optimizer, given, start)
    got = _run_update(state, file, training, gradients)
    for entry in state.entries:
        if id(entry.variable) not in want or not (entry.trainable or entry in training.entries):
            continue
        if any(entry.name == n or entry.name.startswith(n + "/") for n in foreign):
            continue
        there = want[id(entry.variable)].astype(entry.array().dtype)
        now = entry.back(np.asarray(got[entry.name])) if entry.name in got else entry.back(entry.array())
        compare.same(f"'{entry.name}' after one step of {type(optimizer).__name__}", now, there, None, 1.0,
                     _scale(entry))
    if RATE in got and training.rate is not None:
        later = float(np.asarray(optimizer._learning_rate(int(_iterations(optimizer)) + 1)))
        if abs(float(got[RATE]) - later) > 1e-5 * abs(later) + 1e-12:
            compare.differs("the learning rate of the next step", f"is {float(got[RATE]):g}, Keras has {later:g}")


def _iterations(optimizer):
    return versions.variable_array(optimizer._iterations)


def _scale(entry):
    a = entry.array()
    return float(np.abs(a).max()) if a.size and a.dtype.kind == "f" else 0.0


def _run_update(state, file, training, gradients):
    """New values of the optimizer's bindings, from given gradients and the present state."""
    e, m = file.names, file.model
    section = m.training[0]
    keys = {w.name for w in state.weights if w.trainable} | {x.name for x in training.entries} | {RATE}
    bound = {k: v for k, v in section.update if k in keys}
    by_name = {x.name: x for x in state.entries}
    feeds = {x.name: x.array() for x in state.entries}
    if training.rate is not None:
        feeds[RATE] = np.asarray(section.algorithm.initializers[RATE])
    for name, g in training.gradients.dense.items():
        w = by_name[name]
        feeds[e.current(g)] = gradients[name] if w.layout is None else np.ascontiguousarray(
            gradients[name].transpose(w.layout))
    for name, pairs in training.gradients.rows.items():
        values, places, lengths = gradients[name]
        at = 0
        for (g, i), n in zip(pairs, lengths):  # rows of each gather, one after the other
            feeds[e.current(g)], feeds[e.current(i)] = values[at:at + n], places[at:at + n]
            at += n
    given = set(feeds)
    nodes = [n for n in [*m.graph.nodes, *section.algorithm.nodes] if not any(o in given for o in n.outputs)]
    reads = set(bound.values())
    nodes = remove_dead(nodes, reads)
    feeds = {n: v for n, v in feeds.items() if n in reads}
    infos = {o.name: o for o in section.algorithm.outputs}
    graph = Graph("update", nodes, [Info(n, v.dtype, list(v.shape)) for n, v in feeds.items()],
                  [infos[v] for v in dict.fromkeys(bound.values())])
    got = Session(load(Model(graph, m.opsets, [], m.functions).encode())).run(feeds)
    return {k: got[v] for k, v in bound.items()}
