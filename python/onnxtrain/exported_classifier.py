"""Classifiers as scikit-learn's exporters write them: a label, and probabilities or scores beside it, perhaps packed
into maps by ZipMap. Where the scores are, and which class each of their columns stands for."""

from dataclasses import dataclass

import numpy as np

from .graph import read_graphs

_ML = "ai.onnx.ml"
_FLOATS = (1, 10, 11, 16)  # element types of ONNX


@dataclass(frozen=True)
class Exported:
    scores: str  # the tensor [rows, classes]
    output: str  # the output of the file that holds it: the tensor itself, or maps
    classes: np.ndarray  # one per column

    def table(self, value):
        """Scores as a matrix, whatever form the output has."""
        if isinstance(value, np.ndarray):
            return value
        return np.array([[row[c] for c in self.classes.tolist()] for row in value], np.float64)


def exported(model):
    """The Exported of a model whose first output is a label; None for other models."""
    graph = read_graphs(model).main
    maker = {o: n for n in graph.nodes for o in n.outputs if o}
    if len(graph.outputs) < 2 or _is_float(graph, graph.outputs[0]):
        return None
    for name in graph.outputs[1:]:
        made = _origin(name, maker)
        packed = made is not None and made.kind == (_ML, "ZipMap")
        scores = made.inputs[0] if packed else name
        if not packed and not _is_float(graph, scores):
            continue
        classes = _labels(made) if packed else None
        if classes is None:
            classes = _classes(graph, maker, graph.outputs[0])
        return None if classes is None else Exported(scores, name, classes)
    return None


def _is_float(graph, name):
    known = graph.types.get(name)
    return known is not None and known.dtype in _FLOATS


def _origin(name, maker):
    """The node behind a value, past those that change nothing."""
    node = maker.get(name)
    while node is not None and node.op in ("Identity", "Cast", "Reshape", "Squeeze", "Flatten"):
        node = maker.get(node.inputs[0])
    return node


def _labels(node):
    """Class labels in the attributes of a node."""
    for key in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
        if node.attrs.get(key):
            return np.array(node.attrs[key], object if key.endswith("strings") else np.int64)
    return None


def _classes(graph, maker, label):
    node = _origin(label, maker)
    if node is None:
        return None
    if node.op in ("ArrayFeatureExtractor", "Gather"):
        data = node.inputs[0]
        while data in maker and maker[data].op in ("Cast", "Identity"):
            data = maker[data].inputs[0]
        return np.asarray(graph.constants[data]).reshape(-1) if data in graph.constants else None
    return _labels(node)
