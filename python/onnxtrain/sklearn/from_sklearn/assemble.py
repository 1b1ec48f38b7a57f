"""The ModelProto: graphs, initializers, bindings, metadata."""

import numpy as np
import onnx
from onnx import helper

from ...converters.metadata import properties
from ...converters.protos import remove_dead
from ..shared.state import KEY
from .nodes import DOUBLE, IR, OPSET, info, number_of, tensor


def main_proto(name, g, inputs, outputs, weights, wanted=()):
    """A model with the main graph alone. weights: {initializer: array}; wanted: values to keep beside the outputs."""
    kept = remove_dead(g.nodes, {o[0] for o in outputs} | set(wanted))
    used = {i for n in kept for i in n.input} | {o[0] for o in outputs}
    constants = [c for c in g.constants if c.name in used]
    graph = helper.make_graph(kept, name, [info(*i) for i in inputs.infos(g.number, kept)],
                              [info(*o) for o in outputs],
                              [tensor(v, n) for n, v in weights.items()] + constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR,
                             producer_name="onnxtrain")


def add_training(model, g, step, weights):
    """One training section: a partial_fit."""
    part = onnx.TrainingInfoProto()
    a = part.algorithm
    a.name = "partial_fit"
    values = weights | step.initial
    bound, extra = {}, []
    loss = g.named("loss", step.loss)
    for key, value in step.update.items():
        bound[key] = g.named(key + "_new", value)
        extra.append((bound[key], number_of(np.asarray(values[key]).dtype), list(np.shape(values[key]))))
    wanted = {loss, *bound.values()}
    a.node.extend(remove_dead(g.nodes, wanted))
    a.input.extend(info(*i) for i in step.inputs)
    a.initializer.extend(tensor(v, n) for n, v in step.initial.items())
    a.initializer.extend(c for c in g.constants if c.name in wanted)
    a.output.extend([info(loss, DOUBLE, []), *[info(*o) for o in extra]])
    for key, value in bound.items():
        part.update_binding.add(key=key, value=value)
    model.training_info.append(part)


def add_metadata(model, described, output, rate):
    props = properties(KEY, described, "custom", output)
    if not rate:
        props.pop("onnxtrain.rate")
    for key, value in sorted(props.items()):
        model.metadata_props.add(key=key, value=value)
