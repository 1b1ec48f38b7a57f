"""One partial_fit of SGDClassifier, SGDRegressor and Perceptron as nodes: a Scan over the rows, one update each.

More than two classes are one-vs-all problems that share rows and counter: one row of W and one entry of b per problem.
"""

import numpy as np

from .mlp import Step
from .nodes import DOUBLE
from .target import class_table, kind_of

MAX_SLOPE = 1e12  # scikit-learn clips the derivative of the loss
SPARSE_INTERCEPT_DECAY = 0.01


def is_classifier(e):
    return hasattr(e, "classes_")


def averaging(e):
    """First row that is averaged; 0: none is."""
    return int(getattr(e, "average", 0))


def state(e):
    """{name: array} of what a step changes: [K, F], [K] and the counter. Averages and plain weights are apart."""
    def table(a):
        return np.atleast_2d(a)

    if averaging(e):
        return {"coef_": table(e._standard_coef), "intercept_": np.atleast_1d(e._standard_intercept),
                "average_coef": table(e._average_coef), "average_intercept": np.atleast_1d(e._average_intercept),
                "t_": np.float64(e.t_)}
    return {"coef_": table(e.coef_), "intercept_": np.atleast_1d(e.intercept_), "t_": np.float64(e.t_)}


def held(e):
    """What the main graph reads of it: with averages all, because the counter says which of them predicts."""
    return state(e) if averaging(e) else {n: v for n, v in state(e).items() if n != "t_"}


def weights(g, e):
    """Values [F, K] and [K] that predict."""
    w, b = "coef_", "intercept_"
    if averaging(e):
        active = g.GreaterOrEqual(g.Sub("t_", np.float64(1)), np.float64(averaging(e)))
        w, b = g.Where(active, "average_coef", w), g.Where(active, "average_intercept", b)
    own = state(e)["coef_"].dtype
    return g.Transpose(w, perm=[1, 0]), b if state(e)["intercept_"].dtype == own else g.cast(b, own)


def obstacles(e, who):
    if getattr(e, "class_weight", None) == "balanced":
        who.refuse("class_weight='balanced': scikit-learn's partial_fit does not take it", "a dict of weights")
    if averaging(e) and e.penalty in ("l1", "elasticnet"):
        who.refuse(f"average with penalty={e.penalty!r}: scikit-learn truncates its average afterwards",
                   "penalty='l2' or average=False")
    if e.learning_rate not in ("constant", "optimal", "invscaling", "adaptive"):
        who.refuse(f"learning_rate={e.learning_rate!r}")


def partial_fit(g, e, features, sample_weight, sparse):
    step = Step()
    own = state(e)["coef_"].dtype
    g.names.taken |= {*state(e), "learning_rate"}
    step.initial = {n: v for n, v in state(e).items() if n not in held(e)}
    step.initial["learning_rate"] = np.float64(e.eta0)
    y, weight = _target(g, e, step, own, sample_weight)
    return _scan(g, e, step, features, y, weight, own, sparse)


def _target(g, e, step, own, sample_weight):
    """y as rows [n, K] of what the loss compares with, and the weights [n] of the rows."""
    y = g.names.claim("y")
    if is_classifier(e):
        low = 0.0 if e.loss == "log_loss" else -1.0
        table = np.where(np.eye(len(e.classes_), dtype=bool), 1.0, low)
        table = table[:, 1:] if len(e.classes_) == 2 else table
        step.inputs.append((y, kind_of(e.classes_, None), ["n"]))
        rows = class_table(g, y, e.classes_, g.constant(table))
    else:
        step.inputs.append((y, own, ["n"]))
        rows = g.cast(g.Unsqueeze(y, [1]), DOUBLE)
    if not sample_weight:
        return rows, g.ConstantOfShape(g.Shape(rows, start=0, end=1), value=np.ones(1))
    weight = g.names.claim("sample_weight")
    step.inputs.append((weight, own, ["n"]))
    return rows, g.cast(weight, DOUBLE)


def _scan(g, e, step, features, y, weight, own, sparse):
    problems, count = state(e)["coef_"].shape
    b = g.body(DOUBLE)
    pen = e.penalty if e.penalty in ("l1", "elasticnet") else None
    carried = {"w": (own, [problems, count]), "b": (DOUBLE, [problems]), "t": (DOUBLE, [])}
    start = {"w": "coef_", "b": g.cast("intercept_", DOUBLE), "t": "t_"}
    if averaging(e):
        carried |= {"aw": (own, [problems, count]), "ab": (DOUBLE, [problems])}
        start |= {"aw": "average_coef", "ab": g.cast("average_intercept", DOUBLE)}
    if pen:
        carried |= {"u": (DOUBLE, []), "q": (own, [problems, count])}
        zeros = np.zeros((problems, count), own)
        start |= {"u": g.constant(np.float64(0)), "q": g.constant(zeros)}
    inside = {n: b.names.claim(f"{n}_row") for n in carried}
    row = {n: b.names.claim(n) for n in ("x_row", "y_row", "weight_row")}
    made, loss = _row(b, e, inside, row, own, sparse)
    ends = [(row["x_row"], own, [count]), (row["y_row"], DOUBLE, [problems]), (row["weight_row"], DOUBLE, [])]
    graph = b.graph("one_row", [(inside[n], *carried[n]) for n in carried] + ends,
                    [(made[n], *carried[n]) for n in carried] + [(loss, DOUBLE, [])])
    out = g.node("Scan", [*(start[n] for n in carried), features, y, weight], outputs=len(carried) + 1, body=graph,
                 num_scan_inputs=3, name="rows")
    end = dict(zip(carried, out))
    step.loss = g.ReduceMean(out[-1], keepdims=0)
    step.update = {"coef_": end["w"], "t_": end["t"]}
    _intercepts(g, e, step, end)
    return step


def _row(g, e, now, row, own, sparse):
    """The update of one row, in scikit-learn's order; g has float64 numbers."""
    def wide(v):
        return v if own == DOUBLE else g.cast(v, DOUBLE)

    def narrow(v):
        return v if own == DOUBLE else g.cast(v, own)

    w, x, y = wide(now["w"]), wide(row["x_row"]), row["y_row"]
    p = g.Add(g.sum(g.Mul(w, x), [1]), now["b"])
    rate = _rate(g, e, now["t"])
    loss, slope = LOSSES[e.loss](g, e, y, p)
    slope = g.Clip(slope, g.real(-MAX_SLOPE), g.real(MAX_SLOPE))
    change = g.Mul(g.Neg(g.Mul(rate, slope)), g.Mul(_class_weight(g, e, y), row["weight_row"]))
    ratio = {"l2": 0.0, "l1": 1.0}.get(e.penalty, float(e.l1_ratio if e.l1_ratio is not None else 0))
    if e.penalty in ("l2", "elasticnet", "l1"):
        w = g.Mul(w, g.Max(g.real(0), g.Sub(g.real(1), g.Mul(rate, g.real((1 - ratio) * e.alpha)))))
    w = g.Add(w, g.Mul(g.Unsqueeze(change, [1]), x))
    made = {"b": now["b"], "t": g.Add(now["t"], g.real(1))}
    if e.fit_intercept:
        made["b"] = g.Add(now["b"], g.Mul(change, g.real(SPARSE_INTERCEPT_DECAY)) if sparse else change)
    if averaging(e):
        seen = g.Add(g.Sub(now["t"], g.real(averaging(e))), g.real(1))
        active = g.GreaterOrEqual(seen, g.real(1))
        aw = wide(now["aw"])
        made["aw"] = narrow(g.Where(active, g.Add(aw, g.Div(g.Sub(w, aw), seen)), aw))
        ab = now["ab"]
        made["ab"] = g.Where(active, g.Add(ab, g.Div(g.Sub(made["b"], ab), seen)), ab)
    if e.penalty in ("l1", "elasticnet"):
        made["u"] = g.Add(now["u"], g.Mul(rate, g.real(ratio * e.alpha)))
        w, made["q"] = _truncated(g, w, wide(now["q"]), made["u"], x if sparse else None)
        made["q"] = narrow(made["q"])
    made["w"] = narrow(w)
    return made, g.Mul(g.ReduceMean(loss, keepdims=0), g.real(1))


def _truncated(g, w, q, u, x):
    """The cumulative l1 penalty (Tsuruoka, Tsujii, Ananiadou 2009); sparse rows touch only their own features."""
    zero = g.real(0)
    down = g.Max(zero, g.Sub(w, g.Add(u, q)))
    up = g.Min(zero, g.Add(w, g.Sub(u, q)))
    cut = g.Where(g.Greater(w, zero), down, g.Where(g.Less(w, zero), up, w))
    if x is not None:
        cut = g.Where(g.Equal(x, zero), w, cut)
    return cut, g.Add(q, g.Sub(cut, w))


def _rate(g, e, t):
    if e.learning_rate == "optimal":
        typical = np.sqrt(1.0 / np.sqrt(e.alpha))
        start = 1.0 / (typical * e.alpha)
        return g.Div(g.real(1), g.Mul(g.real(e.alpha), g.Add(t, g.real(start - 1))))
    if e.learning_rate == "invscaling":
        return g.Div("learning_rate", g.Pow(t, g.real(e.power_t)))
    return "learning_rate"


def _class_weight(g, e, y):
    """[K]: of the positive side where y is positive, else of the negative side."""
    if not is_classifier(e) or e.class_weight is None:
        return g.real(1)
    w = np.array([float(e.class_weight.get(c, 1.0)) for c in e.classes_.tolist()])
    positive, negative = (w[1:], w[:1]) if len(w) == 2 else (w, np.ones_like(w))
    return g.Where(g.Greater(y, g.real(0)), g.real(positive), g.real(negative))


def _intercepts(g, e, step, end):
    """New intercepts. With averages scikit-learn's classifiers assign them by rules of their own: two classes keep
    their plain intercept once averages are on; more classes overwrite the average from the call after that."""
    stored = state(e)["intercept_"]

    def as_stored(v, like=stored):
        return v if like.dtype == DOUBLE else g.cast(v, like.dtype)

    first = averaging(e)
    if not first:
        step.update["intercept_"] = as_stored(end["b"])
        return
    step.update["average_coef"] = end["aw"]
    average, plain = as_stored(end["ab"]), as_stored(end["b"])
    if is_classifier(e):
        several = len(e.classes_) > 2
        before = g.GreaterOrEqual(g.Sub("t_" if several else end["t"], np.float64(1)), np.float64(first))
        plain_new = g.Where(before, "intercept_", plain)
        average = g.Where(before, plain, average) if several else average
        plain = plain_new
    step.update |= {"intercept_": plain, "average_intercept": average}


# ---- losses: (y, p) -> value and derivative by p, [K] each
def _log_loss(g, e, y, p):
    over = g.Log(g.Add(g.real(1), g.Exp(g.Neg(g.Abs(p)))))  # Softplus of float64 is not in every runtime
    value = g.Sub(g.Add(g.Max(p, g.real(0)), over), g.Mul(y, p))
    return value, g.Sub(g.Sigmoid(p), y)


def _hinge(threshold):
    def loss(g, e, y, p):
        z = g.Mul(y, p)
        hit = g.LessOrEqual(z, g.real(threshold))
        return (g.Where(hit, g.Sub(g.real(threshold), z), g.real(0)), g.Where(hit, g.Neg(y), g.real(0)))
    return loss


def _squared_hinge(g, e, y, p):
    z = g.Max(g.real(0), g.Sub(g.real(1), g.Mul(y, p)))
    return g.Mul(z, z), g.Mul(g.Mul(g.real(-2), y), z)


def _modified_huber(g, e, y, p):
    z = g.Mul(y, p)
    apart = g.Sub(g.real(1), z)
    far, done = g.Less(z, g.real(-1)), g.GreaterOrEqual(z, g.real(1))
    value = g.Where(done, g.real(0), g.Where(far, g.Mul(g.real(-4), z), g.Mul(apart, apart)))
    slope = g.Where(far, g.Mul(g.real(-4), y), g.Mul(g.Mul(g.real(-2), apart), y))
    return value, g.Where(done, g.real(0), slope)


def _squared_error(g, e, y, p):
    r = g.Sub(p, y)
    return g.Mul(g.Mul(r, r), g.real(0.5)), r


def _huber(g, e, y, p):
    r, edge = g.Sub(p, y), g.real(e.epsilon)
    size = g.Abs(r)
    inside = g.LessOrEqual(size, edge)
    value = g.Where(inside, g.Mul(g.Mul(r, r), g.real(0.5)),
                    g.Sub(g.Mul(edge, size), g.real(0.5 * e.epsilon * e.epsilon)))
    return value, g.Where(inside, r, g.Mul(edge, g.Sign(r)))


def _epsilon_insensitive(g, e, y, p):
    r = g.Sub(p, y)
    over = g.Sub(g.Abs(r), g.real(e.epsilon))
    hit = g.Greater(over, g.real(0))
    return g.Where(hit, over, g.real(0)), g.Where(hit, g.Sign(r), g.real(0))


def _squared_epsilon_insensitive(g, e, y, p):
    r = g.Sub(p, y)
    over = g.Max(g.real(0), g.Sub(g.Abs(r), g.real(e.epsilon)))
    return g.Mul(over, over), g.Mul(g.Mul(g.real(2), over), g.Sign(r))


LOSSES = {
    "log_loss": _log_loss, "hinge": _hinge(1.0), "perceptron": _hinge(0.0), "squared_hinge": _squared_hinge,
    "modified_huber": _modified_huber, "squared_error": _squared_error, "huber": _huber,
    "epsilon_insensitive": _epsilon_insensitive, "squared_epsilon_insensitive": _squared_epsilon_insensitive,
}
