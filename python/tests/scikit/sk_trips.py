"""One round trip: some calls of partial_fit in scikit-learn, some steps here, some calls there again, against all of
them in scikit-learn; judged by 1e-5 plus ten times scikit-learn's own response to a change of 1e-13 of the weights."""

import copy
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import is_regressor

import onnxtrain as ot

STEPS, ROWS = 6, 24
TOLERANCE, CHANGE, FACTOR = 1e-5, 1e-13, 10


@dataclass(frozen=True)
class Trip:
    difference: float  # largest of any state variable, at any step
    response: float  # of scikit-learn to the change
    loss: float  # largest difference of an MLP's loss_
    back: float  # after two more calls of partial_fit on what came back

    @property
    def ok(self):
        allowed = TOLERANCE + FACTOR * self.response
        return self.difference <= allowed and self.back <= allowed and self.loss <= allowed


def arrays(e):
    """Everything that a partial_fit changes, as arrays."""
    if hasattr(e, "coefs_"):
        o = e._optimizer
        held = [*e.coefs_, *e.intercepts_, *getattr(o, "ms", []), *getattr(o, "vs", []), *getattr(o, "velocities", [])]
        return held + [np.array([e.t_, e._no_improvement_count, getattr(o, "learning_rate", 0.0), e.best_loss_,
                                 getattr(o, "t", 0)], float)]
    held = [e.coef_, e.intercept_, np.array([e.t_])]
    if getattr(e, "average", False):
        held += [e._standard_coef, e._average_coef, e._standard_intercept, e._average_intercept]
    return [np.asarray(a, float) for a in held]


def distance(a, b):
    return max(float(np.abs(np.ravel(x) - np.ravel(y)).max()) for x, y in zip(arrays(a), arrays(b)))


def changed(e, by):
    """The same estimator with every weight moved by `by` times its size."""
    other = copy.deepcopy(e)
    rng = np.random.default_rng(3)
    held = [*other.coefs_, *other.intercepts_] if hasattr(other, "coefs_") else [other.coef_]
    if getattr(other, "average", False):
        held = [other._standard_coef, other._average_coef]
    for w in held:
        w += by * np.maximum(np.abs(w), 1) * rng.choice([-1, 1], size=w.shape)
    return other


def batches(X, y, calls, rows, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    for k in range(calls):
        i = rng.integers(len(X), size=rows + k)
        weight = rng.uniform(0.5, 2, size=len(i)).astype(X.dtype) if weighted else None
        yield X[i], y[i], weight


def fitted(e, X, y, rows):
    """After two calls, in the order of the rows."""
    e.set_params(shuffle=False)
    (x1, y1, _), (x2, y2, _) = batches(X, y, 2, rows, seed=9)
    if is_regressor(e):
        return e.partial_fit(x1, y1).partial_fit(x2, y2)
    if y.ndim == 2:  # partial_fit cannot begin with several labels
        return e.set_params(max_iter=1).fit(x1, y1).partial_fit(x2, y2)
    return e.partial_fit(x1, y1, classes=np.unique(y)).partial_fit(x2, y2)


def trip(e, X, y, rows=ROWS, steps=STEPS, weighted=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trip(e, X, y, rows, steps, weighted)


def _trip(e, X, y, rows, steps, weighted):
    here, other = copy.deepcopy(e), changed(e, CHANGE)
    trainer = ot.Trainer(ot.from_sklearn(e, sample_weight=weighted))
    difference = response = loss = 0.0
    for xb, yb, weight in batches(X, y, steps, rows, weighted=weighted):
        extra = {} if weight is None else {"sample_weight": weight}
        got = trainer.step({"X": xb, "y": yb, **extra}).loss
        here.partial_fit(xb, yb, **extra)
        other.partial_fit(xb, yb, **extra)
        response = max(response, distance(here, other))
        difference = max(difference, distance(here, ot.to_sklearn(trainer)))
        if hasattr(here, "loss_curve_"):
            loss = max(loss, abs(got - here.loss_))
    back = ot.to_sklearn(trainer)
    for xb, yb, _ in batches(X, y, 2, rows, seed=7):
        for one in (back, here, other):
            one.partial_fit(xb, yb)
    response = max(response, distance(here, other))
    return Trip(difference, response, loss, distance(here, back))
