"""The file against scikit-learn, always: what it predicts, and one partial_fit. A file that differs is not returned."""

import copy
import warnings

import numpy as np

from ...converters.compare import Comparison, Sensitivity
from ...errors import UsageError
from ...session import Session
from ...trainer import Trainer
from ..shared.state import last
from . import mlp, sgd

ROWS = 7


def random_rows(inputs, dtype):
    """Rows that the estimator takes, as scikit-learn wants them: a matrix, or a table with named columns."""
    rng = np.random.default_rng(0)

    def column(sample):
        if sample.values is not None:
            return [sample.values[k] for k in rng.integers(len(sample.values), size=ROWS)]
        return (sample.center + sample.scale * rng.normal(size=ROWS)).astype(dtype)

    made = [[column(s) for s in b.samples] for b in inputs.blocks]
    if inputs.names:
        import pandas

        return pandas.DataFrame({n: list(c[0]) for n, c in zip(inputs.names, made)})
    matrix = np.array(made[0], object).T
    return matrix if inputs.blocks[0].kind == "text" else matrix.astype(dtype)


def feeds(inputs, X, dtype, wanted):
    """The same rows by the names of the file's inputs."""
    if not inputs.names:
        return {"X": np.asarray(X, object if inputs.blocks[0].kind == "text" else dtype)}
    return {b.value: np.asarray(X[n], object if b.kind == "text" else dtype).reshape(-1, 1)
            for n, b in zip(inputs.names, inputs.blocks) if b.value in wanted}


def check(model, estimator, family, inputs, dtype, X, sample_weight):
    """Raises when the file computes something else. X: rows of the user, or None."""
    given = X is not None
    X = random_rows(inputs, dtype) if X is None else X[:4 * ROWS]
    fed = feeds(inputs, X, dtype, model.inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = _predictions(estimator, X, model.outputs)
            features = _features(estimator, X)
        except ValueError as e:
            if given:
                raise
            raise UsageError(f"no random rows could be made for the self-check: scikit-learn says {e}", "OT1761",
                             "give some: ot.from_sklearn(estimator, X=some_rows)") from None
        _check_predictions(model, fed, want)
        if family in ("mlp", "sgd"):
            _check_step(model, last(estimator), family, fed, features, sample_weight)


def _predictions(e, X, outputs):
    methods = {"label": "predict", "prediction": "predict", "probabilities": "predict_proba",
               "scores": "decision_function"}
    found = {n: getattr(e, methods[n])(X) for n in outputs if hasattr(e, methods.get(n, ""))}
    return {n: np.asarray(v.toarray() if hasattr(v, "toarray") else v) for n, v in found.items()}


def _features(e, X):
    while type(e).__name__ == "Pipeline":
        X = e[:-1].transform(X) if len(e.steps) > 1 else X
        e = e.steps[-1][1]
    return X


def _check_predictions(model, fed, want):
    got = Session(model).run(fed)
    compare = Comparison("scikit-learn", lambda: None)
    sure = None
    for name in sorted(want, key=lambda n: n == "label"):
        if name == "label":
            rows = slice(None) if sure is None else sure
            compare.same("output 'label'", got[name].astype(want[name].dtype)[rows], want[name][rows])
            continue
        there = want[name].astype(got[name].dtype)  # the file has the element type of the weights throughout
        compare.same(f"output '{name}'", got[name], there, floor=1.0)
        sure = _sure(there)


def _sure(scores):
    """Rows whose label does not hang on the last bits."""
    eps = 1e3 * np.finfo(scores.dtype).eps
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.abs(scores.reshape(len(scores))) > eps * max(1.0, float(np.abs(scores).max()))
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2] > eps * np.maximum(1.0, np.abs(best).max(1))


def target_for(e, rows, dtype):
    """Targets of any kind that the estimator knows."""
    rng = np.random.default_rng(1)
    if hasattr(e, "classes_"):
        if getattr(getattr(e, "_label_binarizer", None), "y_type_", "").startswith("multilabel"):
            return rng.integers(0, 2, size=(rows, e.n_outputs_))
        y = np.asarray(e.classes_)[rng.integers(len(e.classes_), size=rows)]
        return y
    shape = (rows, e.n_outputs_) if getattr(e, "n_outputs_", 1) > 1 else (rows,)
    y = rng.poisson(2.0, shape) if getattr(e, "loss", "") == "poisson" else rng.normal(size=shape)
    return y.astype(dtype)


def state_after(e, family):
    """{state variable: array} of an estimator."""
    if family == "sgd":
        return sgd.state(e)
    found = mlp.weights(e) | mlp.moments(e)
    return found | {"t_": np.int64(e.t_), "best_loss_": np.float64(e.best_loss_), "loss_": np.float64(e.loss_),
                    "no_improvement_count": np.int64(e._no_improvement_count)}


def _check_step(model, e, family, fed, features, sample_weight):
    rows = features.shape[0]
    number = mlp.moments(e) if family == "mlp" else sgd.state(e)
    dtype = next(iter(number.values())).dtype
    y = target_for(e, rows, dtype)
    weight = np.linspace(0.5, 1.5, rows).astype(dtype) if sample_weight else None

    def after(units=0):
        other = copy.deepcopy(e).set_params(shuffle=False, verbose=0)
        if units:
            _change(other, family, units)
        other.partial_fit(features, y, **({} if weight is None else {"sample_weight": weight}))
        return {("state", n): np.asarray(v) for n, v in state_after(other, family).items()}

    plain = after()
    trainer = Trainer(model)
    trainer.step({**fed, "y": y, **({} if weight is None else {"sample_weight": weight})})
    compare = Comparison("scikit-learn", lambda: Sensitivity(plain, after))
    for (kind, name), want in plain.items():
        compare.same(f"'{name}' after one partial_fit", np.asarray(trainer.state[name]).reshape(want.shape), want,
                     (kind, name), floor=1e-3)


def _change(e, family, units):
    """Every weight of an estimator moves by so many units in the last place."""
    rng = np.random.default_rng(units)
    arrays = [*e.coefs_, *e.intercepts_] if family == "mlp" else [e.coef_, getattr(e, "_standard_coef", e.coef_)]
    for a in arrays:
        a += np.spacing(np.abs(a)) * rng.integers(-units, units + 1, size=a.shape)
