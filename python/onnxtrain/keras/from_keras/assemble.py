"""The file: graphs, initializers, bindings, metadata."""

from dataclasses import dataclass

import keras
import numpy as np

from ...converters import onnx_file
from ...converters.metadata import properties
from ...converters.onnx_file import Graph, Info, Model
from ...graph import OWN, TRAINING
from ..shared import config
from ..shared.metadata import KEY
from .training import RATE


@dataclass
class File:
    model: Model
    outputs: list  # names of the main graph's outputs, in Keras' order
    train_outputs: dict  # name -> name of the training form's output
    loss: str | None
    names: object  # Emitter.current


def _info(name, traced):
    return Info(name, traced.dtype, ["batch" if k == 0 and d is None else d for k, d in enumerate(traced.shape)])


def _slot_info(s):
    return Info(s.name, s.dtype, ["batch" if k == 0 and d is None else d for k, d in enumerate(s.shape)])


def assemble(request, call, state, emitter, inference, step, training):
    e = emitter
    taken, outputs, train_outputs = set(), {}, {}
    for name, v in inference.outputs.items():
        outputs[name] = e.place(v.onnx, name, e.main, taken)
    infos = [_info(outputs[n], v) for n, v in inference.outputs.items()]
    loss, bindings = None, []
    if training is not None:
        e.part = e.algorithm
        loss = e.place(step.loss.onnx, "loss", e.algorithm, taken)
        for name, v in step.outputs.items():
            if e.makes(e.algorithm, v.onnx):
                train_outputs[name] = (e.place(v.onnx, name + "_train", e.algorithm, taken), v)
        bindings = _bindings(e, step, training, {loss, *[v for v, _ in train_outputs.values()]})
    wanted = [loss, *[v for v, _ in train_outputs.values()], *[v for _, v, _ in bindings]] if training else []
    main, algorithm, main_reads, reads = e.split(list(outputs.values()), wanted)
    weights = {s.name: s.array() for s in state.weights}
    given = [s for s in call.inputs if s.name in main_reads or training is None or s.name not in reads]
    graph = Graph(request.model.name or "model", main, [_slot_info(s) for s in given], infos, weights)
    opsets = {"": onnx_file.OPSET}
    if any(n.domain == OWN for n in [*main, *algorithm]):
        opsets[OWN] = 1
    model = Model(graph, opsets)
    if training is not None:
        model.opsets |= {TRAINING: 1, OWN: 1}
        seen = {s.name for s in given}
        inputs = [_slot_info(s) for s in call.fed() if s.name in reads and s.name not in seen]
        own = {s.name: s.array() for s in training.entries}
        if training.rate is not None:
            own[RATE] = np.array(training.rate, keras.config.floatx())
        outs = [Info(loss, step.loss.dtype, [])]
        outs += [_info(n, v) for n, v in train_outputs.values()]
        outs += [Info(value, dtype, shape) for _, value, (dtype, shape) in bindings]
        step_graph = Graph((request.model.name or "model") + "_training", algorithm, inputs, outs, own)
        model.training.append(onnx_file.Training(step_graph, [(k, v) for k, v, _ in bindings]))
    if any(n.op == "Detach" for n in [*main, *algorithm]):
        model.functions.append(_detach())
    info = config.describe(request, call, state, training, list(outputs.values()))
    forms = {v: outputs[n] for n, (v, _) in train_outputs.items()} if training else None
    model.metadata = properties(KEY, info, info.get("loss_name") if training else None, next(iter(outputs.values())),
                                forms)
    first = next(iter(inference.outputs.values()))
    if info.get("loss_name") == "cross_entropy" and first.rank > 1:  # Keras has the classes last
        model.metadata["onnxtrain.class_axis"] = str(first.rank - 1)
    return File(model, list(outputs.values()), {n: v for n, (v, _) in train_outputs.items()}, loss, e)


def _detach():
    from ...converters.functions import Body

    body = Body("Detach", [], ["X"])
    body.output("Y", body["X"])
    return body.function()


def _bindings(e, step, training, outputs):
    """(state variable, value, (element type, shape)); every value is the algorithm's own, bound once and none of its
    other outputs."""
    found, names = [], {}
    merged = {**step.assigned, **training.assigned}
    if training.next_rate is not None:
        merged[RATE] = training.next_rate
    own = {id(n) for n in e.algorithm}
    for key, value in merged.items():
        name = e.current(value.onnx)
        if name in names or name in outputs or id(e.maker.get(name)) not in own:
            name = e.node("Identity", [name], named=[key + "_new"])[0]
            names[name] = name
        else:
            names[name] = e.claim(key + "_new")
        order = value.layout or range(value.rank)
        found.append((key, name, (value.dtype, [value.shape[a] for a in order])))
    e.rename_all({old: new for old, new in names.items() if old != new})
    return [(key, names[name], kind) for key, name, kind in found]
