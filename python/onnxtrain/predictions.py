"""What `predict` gives: outputs row by row, as scores, probabilities or names of classes."""

import json

import numpy as np

from .errors import UnknownNameError, UsageError


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def sigmoid(z):
    return 0.5 * (1 + np.tanh(0.5 * z))


class _Output:
    """One output of the model as it was trained; the library says what its numbers are."""

    def __init__(self, model, trained, name, rows):
        names = model.learnt.get(name) if model.learnt else model.classes
        found = json.loads(trained._m.output_meaning(name, list(rows.shape), len(names or ())))
        self.names = names or found["names"]
        self.has_classes, self.threshold = found["classes"], found["threshold"]
        self.to_probabilities = found["probabilities"]

    def probabilities(self, z):
        make = {"none": lambda p: p, "softmax": softmax, "sigmoid": sigmoid}.get(self.to_probabilities)
        return make and make(z)

    def labels(self, z):
        if self.has_classes:
            number = z.argmax(1)
        elif self.threshold is not None:
            number = (z.reshape(len(z)) > self.threshold).astype(np.int64)
        else:
            return None
        if len(self.names) > number.max(initial=0):
            return np.array(self.names, dtype=object)[number]
        return number


def predicted(model, run, trained, output=None, proba=False, labels=False):
    """run(name): the rows of an output. trained: the model with its training. A model that learns several columns gives
    {column: rows}, any other the rows of its first output, or of `output`."""
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
        known = _Output(model, trained, name, rows)
        made = known.probabilities(rows) if proba else known.labels(rows)
        if made is None and not several:
            raise UsageError(f"output '{name}' holds no scores of classes", "OT1152",
                             "predict(x) gives the output as it is")
        found[name] = rows if made is None else made
    return found if several else found[names[0]]
