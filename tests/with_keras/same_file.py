"""Converts models under the backend of KERAS_BACKEND with fixed weights and prints a digest of each file's graph and
tensors: python same_file.py SEMANTICS NAME...   With `semantics` fixed, every backend gives the same."""

import hashlib
import json
import os
import sys

import keras
import numpy as np

import round_trip as trips
from onnxtrain.graph import Graph, read_graphs
from onnxtrain.keras.from_keras import from_keras


def digest(name, semantics):
    model, x, y = trips.fresh(name, "adamw")
    rng = np.random.default_rng(5)
    numbers = [np.abs(rng.standard_normal(w.shape)) * 0.3 + 0.05 for w in model.get_weights()]
    model.set_weights([a.astype(w.dtype) for a, w in zip(numbers, model.get_weights())])
    graphs = read_graphs(from_keras(model, x, y, semantics=semantics))
    h = hashlib.sha256()
    for g in (graphs.main, graphs.sections[0].algorithm):
        _add(h, g)
    return h.hexdigest()[:16]


def _add(h, graph):
    """Nodes and tensors, those of bodies too."""
    h.update(json.dumps([list(graph.inputs), list(graph.outputs)]).encode())
    for n in graph.nodes:
        bodies = {k: v for k, v in sorted(n.attrs.items()) if isinstance(v, Graph)}
        attrs = {k: v.tolist() if hasattr(v, "tolist") else str(v) for k, v in sorted(n.attrs.items())
                 if k not in bodies}
        h.update(json.dumps([n.op, n.inputs, n.outputs, attrs]).encode())
        for key, body in bodies.items():
            h.update(key.encode())
            _add(h, body)
    for c in graph.constants:
        h.update(c.encode() + np.asarray(graph.constants[c]).tobytes())


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name in sys.argv[2:]:
        try:
            print(name, digest(name, sys.argv[1]), flush=True)
        except Exception as e:  # noqa: BLE001 - the table goes on
            print(name, "refused", str(e).strip().split("\n")[0][:200], flush=True)
    print("backend", keras.backend.backend())
