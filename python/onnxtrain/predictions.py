"""What `predict` gives: outputs row by row, as scores, probabilities or names of classes."""

import json

import numpy as np

from .errors import UnknownNameError, UsageError

_CLASS_LOSSES = ("cross_entropy", "nll")


class _Output:
    """One output: its name, names of its classes, and what it was trained with."""

    def __init__(self, model, name, metadata):
        description = next(o for o in model._description["outputs"] if o["name"] == name)
        self.name, self.made_by = name, description.get("made_by", "")
        self.names = model.learnt.get(name) if model.learnt else model.classes
        try:
            self.loss = json.loads(metadata.get("onnxtrain.losses", "{}")).get(name, "")
        except (ValueError, AttributeError):  # the file's word, not ours
            self.loss = ""
        if not self.loss and metadata.get("onnxtrain.output", name) == name:
            self.loss = metadata.get("onnxtrain.loss", "")

    def has_classes(self, z):
        """One score per class, or one for two classes."""
        if z.ndim != 2 or z.dtype.kind != "f":
            return False
        if z.shape[1] == 1:
            return self.loss in ("bce", "bce_logits")
        return self.loss in _CLASS_LOSSES or (not self.loss and bool(self.names))

    def probabilities(self, z):
        if not self.has_classes(z) and not self.loss.startswith("bce"):
            return None
        if self.made_by in ("Softmax", "Sigmoid") or self.loss == "bce":
            return z
        if self.loss == "bce_logits":
            return 0.5 * (1 + np.tanh(0.5 * z))
        p = np.exp(z - z.max(1, keepdims=True))
        return p / p.sum(1, keepdims=True)

    def labels(self, z):
        if not self.has_classes(z):
            return None
        number = z.argmax(1) if z.shape[1] > 1 else (self.probabilities(z)[:, 0] > 0.5).astype(np.int64)
        if self.names and len(self.names) >= max(2, z.shape[1]):
            return np.array(self.names, dtype=object)[number]
        return number


def predicted(model, run, metadata, output=None, proba=False, labels=False):
    """run(name): the rows of an output. A model that learns several columns gives {column: rows}, any other the rows
    of its first output, or of `output`."""
    if proba and labels:
        raise UsageError("proba=True and labels=True: one of them", "OT1152", "labels=True")
    if output is not None and output not in model.outputs:
        raise UnknownNameError("output", output, model.outputs)
    several = output is None and model.learnt and set(model.learnt) <= set(model.outputs)
    names = list(model.learnt) if several else [output or model.outputs[0]]
    found = {}
    for name in names:
        rows = found[name] = run(name)
        if not (proba or labels):
            continue
        known = _Output(model, name, metadata)
        made = known.probabilities(rows) if proba else known.labels(rows)
        if made is None and not several:
            raise UsageError(f"output '{name}' holds no scores of classes", "OT1152",
                             "predict(x) gives the output as it is")
        found[name] = rows if made is None else made
    return found if several else found[names[0]]
