"""Feeds for `convert --verify`: numbers that fit what a file declares."""

import numpy as np

from ..graph import read_graphs
from ..values import numpy_dtype


def input_types(model, section=None):
    """{name: Type} of the main graph's inputs, and of a training section's."""
    graphs = read_graphs(model)
    found = [graphs.main] if section is None else [graphs.main, graphs.sections[section].algorithm]
    return {n: g.types[n] for g in found for n in g.inputs}


def random_feeds(types, names, rng):
    """Numbers that fit the declared inputs: floats around zero, integers 0 or 1, four in place of open dimensions."""
    feeds = {}
    for name in names:
        shape = [size if isinstance(size, int) else 4 for size in types[name].shape or ()]
        dtype = numpy_dtype(types[name].dtype)
        floating = np.issubdtype(dtype, np.floating)
        feeds[name] = (rng.standard_normal(shape) if floating else rng.integers(0, 2, shape)).astype(dtype)
    return feeds


def difference(a, b):
    """The largest difference, relative to the largest element above 1."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / max(1.0, np.abs(a).max())) if a.size else 0.0
