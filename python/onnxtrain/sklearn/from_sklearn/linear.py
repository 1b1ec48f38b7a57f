"""Linear models whose solver leaves no state behind: LogisticRegression, Ridge, LinearSVC and their like. Weights of
the main graph, and the loss of the estimator for `ot.prepare`, which trains on with a named optimizer."""

import numpy as np

from .mlp import mean_of_rows
from .target import class_table

CLASSIFIERS = ("LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV", "LinearSVC")
REGRESSORS = ("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
              "BayesianRidge", "ARDRegression", "HuberRegressor", "LinearSVR", "PoissonRegressor", "GammaRegressor",
              "TweedieRegressor")


def state(e):
    """{name: array}: [K, F] and [K], as scikit-learn computes with them."""
    w = np.atleast_2d(e.coef_)
    b = np.atleast_1d(np.asarray(e.intercept_, w.dtype))
    return {"coef_": w, "intercept_": np.broadcast_to(b, (len(w),)).copy()}


def obstacles(e, who):
    kind = type(e).__name__
    if hasattr(e.coef_, "toarray"):
        who.refuse("its coefficients are sparse", "estimator.densify()")
    if kind.startswith("LogisticRegression") and getattr(e, "multi_class", "deprecated") == "ovr" \
            and len(e.classes_) > 2:
        who.refuse("multi_class='ovr'", "multinomial, the default")
    if kind == "TweedieRegressor" and not has_log_link(e) and e.power != 0:
        who.refuse(f"link='identity' with power={e.power}", "link='log'")


def power_of(e):
    """Of a generalized linear model's variance, or None."""
    return {"PoissonRegressor": 1, "GammaRegressor": 2}.get(type(e).__name__, getattr(e, "power", None))


def has_log_link(e):
    """Whether predictions are the exponential of the scores."""
    power = power_of(e)
    return power is not None and (getattr(e, "link", "auto") == "log" or getattr(e, "link", "auto") == "auto"
                                  and power > 0)


def scores(g, e, x):
    return g.Add(g.MatMul(x, g.Transpose("coef_", perm=[1, 0])), "intercept_")


def trained(e):
    """Names of the weights that an optimizer changes."""
    return ["coef_", "intercept_"] if getattr(e, "fit_intercept", True) else ["coef_"]


def loss(g, e, z, y, weight):
    """The estimator's loss without its penalty, a mean over rows. z: its scores [n, K]; y: raw."""
    kind = type(e).__name__
    if hasattr(e, "classes_"):
        signed = not kind.startswith("LogisticRegression")
        table = np.where(np.eye(len(e.classes_), dtype=bool), 1.0, -1.0 if signed else 0.0)
        table = table[:, 1:] if len(e.classes_) == 2 else table
        rows = class_table(g, y, e.classes_, g.real(table))
        each = _classifier_loss(g, e, kind, z, rows)
    else:
        rows = y if len(np.atleast_2d(e.coef_)) > 1 else g.Unsqueeze(y, [1])
        each = _regressor_loss(g, e, kind, z, rows)
    return mean_of_rows(g, g.sum(each, [1]), weight)


def _classifier_loss(g, e, kind, z, rows):
    if kind == "LinearSVC":
        over = g.Max(g.real(0), g.Sub(g.real(1), g.Mul(rows, z)))
        return over if e.loss == "hinge" else g.Mul(over, over)
    if kind.startswith("RidgeClassifier"):
        r = g.Sub(z, rows)
        return g.Mul(r, r)
    if len(e.classes_) == 2:
        return g.Sub(g.Softplus(z), g.Mul(rows, z))
    return g.Neg(g.Mul(rows, g.LogSoftmax(z, axis=1)))


def _regressor_loss(g, e, kind, z, rows):
    r = g.Sub(z, rows)
    if kind == "LinearSVR":
        over = g.Max(g.real(0), g.Sub(g.Abs(r), g.real(e.epsilon)))
        return over if e.loss == "epsilon_insensitive" else g.Mul(over, over)
    if kind == "HuberRegressor":
        size, edge = g.Div(g.Abs(r), g.real(e.scale_)), g.real(e.epsilon)
        square = g.Mul(size, size)
        line = g.Sub(g.Mul(g.real(2 * e.epsilon), size), g.Mul(edge, edge))
        return g.Where(g.Less(size, edge), square, line)
    if has_log_link(e):
        return _deviance(g, power_of(e), z, rows)
    return g.Mul(g.Mul(r, r), g.real(0.5))


def _deviance(g, power, z, rows):
    """Half the deviance of a Tweedie distribution at exp(z), without what does not depend on z."""
    if power == 1:
        return g.Sub(g.Exp(z), g.Mul(rows, z))
    if power == 2:
        return g.Add(z, g.Mul(rows, g.Exp(g.Neg(z))))
    first = g.Mul(g.Exp(g.Mul(z, g.real(2 - power))), g.real(1 / (2 - power)))
    second = g.Mul(g.Exp(g.Mul(z, g.real(1 - power))), g.real(1 / (1 - power)))
    return g.Sub(first, g.Mul(rows, second))

