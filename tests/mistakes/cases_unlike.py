"""Data unlike that of the training: other units, bytes instead of numbers, validation rows that are known."""

import numpy as np
from cases_more import table
from mistake import Mistake as M

from workshop import both, npz, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
N = TRAIN.format("v.npz")
R = "onnxtrain train --resume run --epochs 3 "


def rows(change):
    """v.csv: every row's fields, changed."""
    return table(lambda t: [t[0], *[",".join(change(k, line.split(","))) for k, line in enumerate(t[1:])]])


def times(n):
    return rows(lambda k, f: [*[str(float(v) * n) for v in f[:4]], f[4]])


def P(name, typed, code, says, fix=None, then=None, plant=None):
    return M(name, typed, code, says, fix, then, plant, python=True)


BYTES = both(npz("v.npz", x=lambda: (x() * 20 + 100).astype(np.uint8), y=lambda: y()),
             npz("w.npz", x=lambda: (x() * 20 + 100).astype(np.uint8).astype(np.float32), y=lambda: y()))
CASES = [
    M("other units for eval", "onnxtrain eval csv-run --data v.csv", 0, ["OT3129", "'a'", "in the training"],
      plant=times(1000)),
    M("other units for predict", "onnxtrain predict csv-run --data v.csv", 0, ["OT3129", "'a'"], plant=times(1000)),
    M("smaller units for eval", "onnxtrain eval csv-run --data v.csv", 0, ["OT3129"], plant=times(0.001)),
    M("other units for validation", TRAIN.format("data.csv") + "--valid v.csv", 0, ["OT3129", "validation data"],
      plant=times(1000)),
    M("bytes, then numbers", N + "-q && onnxtrain eval o --data w.npz", 0, ["OT3129", "column 0 of 'x'"], plant=BYTES),
    M("numbers, then bytes", TRAIN.format("w.npz") + "-q && onnxtrain predict o --data v.npz", 0, ["OT3129"],
      plant=BYTES),
    M("other units for a resumed run", R + "--data v.npz", 0, ["OT3129"],
      plant=npz("v.npz", x=lambda: x() * 1000, y=lambda: y())),
    M("a quarter of the validation rows is known", TRAIN.format("data.csv") + "--valid v.csv", 0,
      ["OT3112", "20 of 80"],
      plant=table(lambda t: [t[0], *t[1:21], *[line.replace(",", "1,", 1) for line in t[1:61]]])),
    P("bytes, then numbers, Python", "m = ot.load('mlp.onnx').compile(); u = (x * 20 + 100).astype('u1')\n"
      "m.fit(u, y, epochs=1); m.predict(u.astype('f4'))", 0, ["OT3129"]),
    P("other units for evaluate", "m = ot.load('mlp.onnx').compile(); m.fit(x, y, epochs=1); m.evaluate(x * 1000, y)",
      0, ["OT3129"]),
]
