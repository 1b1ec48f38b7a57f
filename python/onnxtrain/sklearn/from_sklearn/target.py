"""The target `y` as scikit-learn takes it: raw labels of any kind, or numbers."""

import numpy as np

from .encode import index_of
from .nodes import INT64, TEXT


def kind_of(classes, who):
    """Element type of the labels."""
    classes = np.asarray(classes)
    if classes.dtype.kind in "OU":
        if not all(isinstance(c, str) for c in classes):
            who.refuse("its classes are objects that are neither numbers nor texts")
        return TEXT
    if classes.dtype.kind not in "iufb":
        who.refuse(f"its classes have the type {classes.dtype}")
    return classes.dtype


def class_table(g, y, classes, rows):
    """For every label of y [n] its row of `rows` [K, ...]; a label that is none of the classes has no row."""
    number = kind_of(classes, None)
    column = g.Unsqueeze(y, [1])
    if number == TEXT:
        index = index_of(g, column, list(classes), "text", len(classes))
    else:
        same = g.cast(g.Equal(column, g.constant(np.asarray(classes)[None])), INT64)
        index = g.Where(g.Equal(g.sum(same, [1]), 0), len(classes), g.ArgMax(same, axis=1, keepdims=0))
    return g.node("Gather", [rows, index], axis=0, name="y_must_hold_known_classes")
