"""An estimator through export, training, export: what the exported file predicts in ONNX Runtime is what the estimator
that comes back predicts in scikit-learn, and its preprocessing is bit for bit what it was."""

import copy
import os
import tempfile
import warnings

import numpy as np
import onnxruntime as ort
import pandas as pd

import onnxtrain as ot

METHODS = {"label": "predict", "prediction": "predict", "probabilities": "predict_proba",
           "scores": "decision_function"}
ort.set_default_logger_severity(3)


def feeds(model, X):
    """Rows by the names of the file's inputs, in their element types."""
    types = {i["name"]: i["dtype"] for i in model.info["inputs"]}

    def as_type(name, v):
        return np.asarray(v, object if types[name] == "string" else np.float64 if types[name] == "double"
                          else np.float32)
    if isinstance(X, pd.DataFrame):
        return {n: as_type(n, X[n]).reshape(-1, 1) for n in types}
    return {"X": as_type("X", X)}


def final(e):
    return e.steps[-1][1] if hasattr(e, "steps") else e


def partial_fit(e, X, y):
    """In scikit-learn: the frozen preprocessing, then the last step in the order of the rows."""
    rows = e[:-1].transform(X) if hasattr(e, "steps") else X
    shuffle = final(e).get_params().get("shuffle", False)
    final(e).set_params(shuffle=False)
    final(e).partial_fit(rows, y)
    final(e).set_params(shuffle=shuffle)


def through(e, X, y, steps=3, rows=40):
    """{what: largest difference} of one estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        e = e.fit(X, y)
        model = ot.from_sklearn(e)
        trainer = ot.Trainer(model)
        there = copy.deepcopy(e)
        own = hasattr(final(e), "partial_fit") and getattr(final(e), "solver", "") != "lbfgs"
        for k in range(steps):
            part = slice(k * rows, (k + 1) * rows)
            xb, yb = X[part], y[part]
            trainer.step({**feeds(model, xb), "y": yb})
            if own:
                partial_fit(there, xb, yb)
        back = ot.to_sklearn(trainer)
        found = {"bits of the preprocessing": float(_changed_bits(e, back))}
        if own:
            found["against partial_fit"] = _difference(there, back, X)
        found["moved"] = _difference(e, back, X)
        found |= _exported(trainer, back, model, X)
    return found


def _exported(trainer, back, model, X):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exported.onnx")
        trainer.export(path)
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        given = {i.name for i in session.get_inputs()}
        got = dict(zip(names, session.run(None, {n: v for n, v in feeds(model, X).items() if n in given})))
    found = {}
    for name in names:
        if not hasattr(back, METHODS.get(name, "")):
            continue
        want = getattr(back, METHODS[name])(X)
        if name == "label":
            found["labels in ONNX Runtime"] = float((got[name] != want).sum())
        else:
            found[f"{name} in ONNX Runtime"] = float(np.abs(got[name] - want).max() / max(1, np.abs(want).max()))
    return found


def _difference(a, b, X):
    method = next(m for m in ("decision_function", "predict_proba", "predict") if hasattr(a, m))
    one, two = getattr(a, method)(X), getattr(b, method)(X)
    return float(np.abs(one - two).max() / max(1, np.abs(one).max()))


def _changed_bits(a, b):
    """How many arrays of the preprocessing differ in any bit."""
    if not hasattr(a, "steps"):
        return 0
    return sum(x.tobytes() != y.tobytes() for (_, s), (_, t) in zip(a.steps[:-1], b.steps[:-1])
               for x, y in zip(_arrays(s), _arrays(t), strict=True))


def _arrays(x):
    if isinstance(x, np.ndarray):
        return [x] if x.dtype != object else [np.array([str(v) for v in x.ravel()])]
    if isinstance(x, (list, tuple)):
        return [a for v in x for a in _arrays(v)]
    if isinstance(x, dict):
        return _arrays(list(x.values()))
    return _arrays(vars(x)) if hasattr(x, "get_params") else []
