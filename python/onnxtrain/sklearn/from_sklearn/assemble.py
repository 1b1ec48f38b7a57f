"""The file: graphs, initializers, bindings, metadata."""

import numpy as np

from ...converters.metadata import properties
from ...converters.onnx_file import Graph, Info, Model, Training, remove_dead
from ..shared.state import KEY
from .nodes import DOUBLE, stored


def main_model(name, g, inputs, outputs, weights, wanted=()):
    """A model with the main graph alone. weights: {initializer: array}; wanted: values to keep beside the outputs."""
    names = {o[0] for o in outputs} | set(wanted)
    kept = remove_dead(g.nodes, names)
    initializers = weights | {n: v for n, v in g.constants.items() if n in names}
    return Model(Graph(name, kept, [Info(*i) for i in inputs.infos(g.dtype, kept)], [Info(*o) for o in outputs],
                       {n: stored(v) for n, v in initializers.items()}))


def add_training(model, g, step, weights):
    """One training section: a partial_fit."""
    values = weights | step.initial
    bound, outputs = [], [Info(g.named("loss", step.loss), DOUBLE, [])]
    for key, value in step.update.items():
        bound.append((key, g.named(key + "_new", value)))
        outputs.append(Info(bound[-1][1], np.asarray(values[key]).dtype, list(np.shape(values[key]))))
    wanted = {o.name for o in outputs}
    nodes = remove_dead(g.nodes, wanted)
    initializers = step.initial | {n: v for n, v in g.constants.items() if n in wanted}
    algorithm = Graph("partial_fit", nodes, [Info(*i) for i in step.inputs], outputs,
                      {n: np.asarray(v) for n, v in initializers.items()})
    model.training.append(Training(algorithm, bound))


def add_metadata(model, described, output, rate):
    model.metadata |= properties(KEY, described, "custom", output)
    if not rate:
        model.metadata.pop("onnxtrain.rate")
