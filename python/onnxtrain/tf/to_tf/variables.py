"""Which tensors of a file become variables: what a step assigns, what is differentiated, frozen weights."""

from dataclasses import dataclass

import tensorflow as tf

from ...errors import ModelError
from ...graph import TRAINING, Graph
from ..shared.dtypes import as_array
from ..shared.names import distinct, legal_variable_name
from .ops.table import find

_SMALL = 16  # elements: a frozen tensor up to this size stays a constant


@dataclass(frozen=True)
class Stored:
    trained: list  # names in the file's order
    others: list
    tensors: dict  # name -> numpy array


def stored_tensors(model, graphs):
    """Stored of a file. Without training everything that looks like a weight may learn."""
    initializers = set(model.parameters) | {c for s in graphs.sections for c in s.algorithm.constants}
    bound = {k for s in graphs.sections for k in (*s.update, *s.initial)}
    gradients = [n for g in every_graph(graphs) for n in g.nodes if n.kind == (TRAINING, "Gradient")]
    wanted = {x for n in gradients for x in n.attrs["xs"]}
    settings, statistics = _uses(graphs)
    rate = graphs.metadata.get("onnxtrain.rate", "")
    trained, others, tensors = [], [], {}
    for g in [graphs.main, *(s.algorithm for s in graphs.sections)]:
        for name in g.constants:
            if name in tensors or name not in initializers:
                continue
            content = g.constants[name]
            weight = content is not None and content.dtype.kind == "f" and name not in settings
            large = weight and (content.size > _SMALL or not graphs.sections and content.ndim > 0)
            if name in bound or name in wanted or large or name in statistics or _is_rate(name, rate):
                tensors[name] = content
                learns = name in wanted or not graphs.sections and weight and name not in statistics
                (trained if learns else others).append(name)
    return Stored(trained, others, tensors)


def _is_rate(name, rate):
    """A learning rate that no schedule assigns can be set all the same."""
    return bool(rate) and (name == rate or name.startswith(rate + "."))


def every_graph(graphs):
    """Every graph of the file, bodies included."""
    pending = [graphs.main, *(g for s in graphs.sections for g in (s.algorithm, s.initialization))]
    while pending:
        g = pending.pop()
        yield g
        pending += [a for n in g.nodes for a in n.attrs.values() if isinstance(a, Graph)]


def _uses(graphs):
    """(names of tensors that are sizes, axes, bounds; names of running statistics)."""
    settings, statistics = set(), set()
    for g in every_graph(graphs):
        for n in g.nodes:
            entry = find(n.kind)
            if entry is not None:
                settings.update(v for k, v in enumerate(n.inputs) if k in entry.settings)
            if n.op == "BatchNormalization":
                statistics.update(n.inputs[3:5])
    return settings, statistics


def make_variables(module, stored):
    """The tf.Variables, as attributes of the module."""
    names = distinct([*stored.trained, *stored.others], legal_variable_name)
    module.renamed = {n: made for n, made in names.items() if n != made}
    for name, made in names.items():
        array = stored.tensors[name]
        learns = name in stored.trained
        try:
            v = tf.Variable(as_array(array), trainable=learns, name=made)
        except (TypeError, ValueError) as e:
            reason = str(e).splitlines()[0]
            raise ModelError(f"initializer '{name}' cannot be a variable of TensorFlow: {reason}", "OT1711") from None
        (module.parameters if learns else module.state)[name] = v
