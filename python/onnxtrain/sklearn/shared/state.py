"""Which attributes of an estimator are state variables of its file, and how values get back into them."""

import math
import warnings

import numpy as np

KEY = "onnxtrain.sklearn"


def last(estimator):
    """The estimator that predicts: a pipeline's last step."""
    while type(estimator).__name__ == "Pipeline":
        estimator = estimator.steps[-1][1]
    return estimator


def arrays(e, family):
    """Arrays whose values are in the file's state variables."""
    if family in ("mlp", "lbfgs"):
        found = [*e.coefs_, *e.intercepts_]
        o = getattr(e, "_optimizer", None)
        for name in ("ms", "vs", "velocities") if family == "mlp" else ():
            found += getattr(o, name, [])
        return found
    found = [getattr(e, n, None) for n in _LINEAR]
    return [a for a in found if isinstance(a, np.ndarray)]


_LINEAR = ("coef_", "intercept_", "_standard_coef", "_standard_intercept", "_average_coef", "_average_intercept")


def put_back(e, family, values):
    """Fills the holes of an estimator with {state variable: array}."""
    {"mlp": _mlp, "lbfgs": _mlp_weights, "sgd": _sgd, "linear": _linear}[family](e, values)
    columns = e.coefs_[0].shape[0] if hasattr(e, "coefs_") else e.coef_.shape[-1]
    if columns != e.n_features_in_:
        raise ValueError(f"its weights are for {columns} columns, it says that it has {e.n_features_in_}")


def _mlp_weights(e, values):
    for kind in ("coefs_", "intercepts_"):
        held = getattr(e, kind)
        setattr(e, kind, [h.filled(values[f"{kind}{k}"]) for k, h in enumerate(held)])


def _mlp(e, values):
    layers = len(e.coefs_)
    names = [f"coefs_{k}" for k in range(layers)] + [f"intercepts_{k}" for k in range(layers)]
    _mlp_weights(e, values)
    o = e._optimizer
    for kind, suffix in (("ms", ".m"), ("vs", ".v"), ("velocities", ".velocity")):
        if hasattr(o, kind):
            setattr(o, kind, [h.filled(values[n + suffix]) for n, h in zip(names, getattr(o, kind))])
    if e.solver == "adam":
        t, first = int(values["t"]), float(values["learning_rate"])
        o.t, o.learning_rate_init = t, first
        if t:  # of the last update, as scikit-learn notes it
            o.learning_rate = first * np.sqrt(1 - o.beta_2**t) / (1 - o.beta_1**t)
    else:
        o.learning_rate = float(values["learning_rate"])
    rows = int(values["t_"])
    if rows != e.t_:
        e.t_, e.n_iter_, e.loss_ = rows, 1, float(values["loss_"])
        e.loss_curve_ += _losses(values) if "loss_curve_" in values else [e.loss_]
    e.best_loss_, e._no_improvement_count = float(values["best_loss_"]), int(values["no_improvement_count"])


def _losses(values):
    """Losses of the steps, oldest first; nan for those that the buffer no longer has."""
    buffer, count = np.ravel(values["loss_curve_"]), int(values["loss_count"])
    size = len(buffer)
    if count <= size:
        return buffer[:count].tolist()
    warnings.warn(f"the file keeps the losses of its last {size} steps: {count - size} of loss_curve_ are nan; "
                  f"keep more: ot.from_sklearn(estimator, loss_curve={2 * count})", stacklevel=6)
    return [math.nan] * (count - size) + np.roll(buffer, -(count % size)).tolist()


def _linear(e, values):
    e.coef_ = e.coef_.filled(values["coef_"])
    if hasattr(e.intercept_, "filled"):
        e.intercept_ = e.intercept_.filled(values["intercept_"])
    elif getattr(e, "fit_intercept", True):
        e.intercept_ = type(e.intercept_)(np.ravel(values["intercept_"])[0])
    if hasattr(e, "_get_loss"):  # generalized linear models predict with it
        e._base_loss = e._get_loss()


def _sgd(e, values):
    before, e.t_ = e.t_, float(values["t_"])
    if e.t_ != before:
        e.n_iter_ = 1
    first = int(getattr(e, "average", 0))
    if not first:
        e.coef_, e.intercept_ = e.coef_.filled(values["coef_"]), e.intercept_.filled(values["intercept_"])
        return
    e._standard_coef = e._standard_coef.filled(values["coef_"])
    e._standard_intercept = e._standard_intercept.filled(values["intercept_"])
    e._average_coef = e._average_coef.filled(values["average_coef"])
    e._average_intercept = e._average_intercept.filled(values["average_intercept"])
    active = first <= e.t_ - 1
    # the same arrays, not copies: scikit-learn writes through them
    coef = e._average_coef if active else e._standard_coef
    e.coef_ = coef.reshape(e.coef_.shape)
    e.intercept_ = e._average_intercept if active else e._standard_intercept
