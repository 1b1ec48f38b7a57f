"""The inference form of an estimator: label, probabilities and scores, or the prediction, as its methods give them."""

import numpy as np

from . import linear, mlp, sgd
from .nodes import INT64, TEXT
from .target import kind_of


def outputs(g, e, family, x, who):
    """[(name, element type, shape)] of the main graph, and the value of the scores."""
    if family == "mlp":
        return _mlp(g, e, x, who)
    if family == "sgd":
        w, b = sgd.weights(g, e)
        z = g.Add(g.MatMul(x, w), b)
    else:
        z = linear.scores(g, e, x)
    if not hasattr(e, "classes_"):
        value = g.Exp(z) if linear.has_log_link(e) else z
        return _regressor(g, value, np.atleast_2d(e.coef_).shape[0], np.ndim(e.coef_) > 1)[0], z
    return _classifier(g, e, z, who), z


def _regressor(g, z, columns, two_dimensional):
    flat = columns == 1 and not two_dimensional
    value = g.named("prediction", g.Squeeze(z, [1]) if flat else z)
    return [(value, g.dtype, ["n"] if flat else ["n", columns])], z


def _mlp(g, e, x, who):
    names = {n: n for n in mlp.weights(e)}
    layers, z = mlp.forward(g, e, x, names)
    out = layers[-1]
    if not hasattr(e, "classes_"):
        return _regressor(g, out, e.n_outputs_, e.n_outputs_ > 1)[0], z
    if mlp.is_multilabel(e):
        label = g.named("label", g.cast(g.Greater(out, g.real(0.5)), INT64))
        return [(label, INT64, ["n", e.n_outputs_]),
                (g.named("probabilities", out), g.dtype, ["n", e.n_outputs_])], z
    if e.n_outputs_ > 1:
        return [_label(g, e, g.ArgMax(out, axis=1, keepdims=0)), _probabilities(g, e, out)], z
    second = g.Greater(g.Squeeze(out, [1]), g.real(0.5))
    both = g.Concat(g.Sub(g.real(1), out), out, axis=1)
    return [_label(g, e, g.cast(second, INT64)), _probabilities(g, e, both)], z


def _label(g, e, index):
    g.Gather(g.constant(_classes(e), "classes"), index, axis=0)
    return g.rename_last("label"), kind_of(e.classes_, None), ["n"]


def _classes(e):
    c = np.asarray(e.classes_)
    return c.astype(object) if kind_of(c, None) == TEXT else c


def _probabilities(g, e, value):
    return g.named("probabilities", value), g.dtype, ["n", len(e.classes_)]


def _classifier(g, e, z, who):
    if len(e.classes_) == 2:
        flat = g.Squeeze(z, [1])
        index = g.cast(g.Greater(flat, g.real(0)), INT64)
        score = (flat, ["n"])
    else:
        index = g.ArgMax(z, axis=1, keepdims=0)
        score = (z, ["n", len(e.classes_)])
    made = [_label(g, e, index)]
    if hasattr(e, "predict_proba"):
        made.append(_probabilities(g, e, _linear_probabilities(g, e, z)))
    made.append((g.named("scores", score[0]), g.dtype, score[1]))
    return made


def _linear_probabilities(g, e, z):
    one, two = g.real(1), len(e.classes_) == 2
    if getattr(e, "loss", "") == "modified_huber":
        p = g.Mul(g.Add(g.Clip(z, g.real(-1), one), one), g.real(0.5))
        if two:
            return g.Concat(g.Sub(one, p), p, axis=1)
        total = g.sum(p, [1], keepdims=1)
        nothing = g.Equal(total, g.real(0))  # then every class is as likely
        return g.Div(g.Where(nothing, one, p), g.Where(nothing, g.real(len(e.classes_)), total))
    if not two and type(e).__name__.startswith("LogisticRegression"):
        return g.Softmax(z, axis=1)
    if two:
        p = g.Sigmoid(z)
        return g.Concat(g.Sub(one, p), p, axis=1)
    # sigmoids divided by their sum, by way of their logarithms, which do not underflow; where scikit-learn's sigmoids
    # are all 0, every class is as likely
    logs = g.Sub(g.Min(z, g.real(0)), g.Log(g.Add(one, g.Exp(g.Neg(g.Abs(z))))))
    nothing = g.Less(g.ReduceMax(z, [1], keepdims=1), g.real(_last_sigmoid(np.asarray(e.coef_).dtype)))
    return g.Softmax(g.Where(nothing, g.real(0), logs), axis=1)


def _last_sigmoid(dtype):
    """The smallest score whose sigmoid is not 0 in scikit-learn."""
    from scipy.special import expit

    low, high = -1e4, 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if expit(dtype.type(middle)) > 0 else (middle, high)
    return high
