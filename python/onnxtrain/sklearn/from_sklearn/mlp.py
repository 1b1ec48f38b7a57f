"""One partial_fit of MLPClassifier and MLPRegressor as nodes: a loop over the mini-batches, backpropagation and the
update of adam or sgd written out, then what scikit-learn does at the end of an epoch.

The gradient is not the derivative of the reported loss (the squared loss is a mean over the outputs too, its gradient
is not; logarithms are clipped in the value alone), so it is written as scikit-learn computes it.
"""

from dataclasses import dataclass, field

import numpy as np

from .nodes import BOOL, DOUBLE, INT64
from .target import class_table, kind_of

BATCH = 200  # rows of scikit-learn's batch_size="auto"


@dataclass
class Step:
    """What a step reads and assigns: initial values of its own state, new values by name, the loss."""

    initial: dict = field(default_factory=dict)  # name -> array
    update: dict = field(default_factory=dict)  # state variable -> value
    inputs: list = field(default_factory=list)  # (name, element type, shape) besides the model's
    loss: str = ""


def weights(e):
    """{name: array} of the weights, coefficients first, as the optimizer lists them."""
    return ({f"coefs_{k}": w for k, w in enumerate(e.coefs_)}
            | {f"intercepts_{k}": w for k, w in enumerate(e.intercepts_)})


def moments(e):
    """{name: array} of the optimizer's arrays: (weight, m, v) names follow from those of the weights."""
    o, names = e._optimizer, list(weights(e))
    if e.solver == "adam":
        return dict(zip([n + ".m" for n in names], o.ms)) | dict(zip([n + ".v" for n in names], o.vs))
    return dict(zip([n + ".velocity" for n in names], o.velocities))


def activation(g, x, kind):
    return {"identity": lambda: x, "relu": lambda: g.Relu(x), "tanh": lambda: g.Tanh(x), "exp": lambda: g.Exp(x),
            "logistic": lambda: g.Sigmoid(x), "softmax": lambda: g.Softmax(x, axis=1)}[kind]()


def forward(g, e, x, names):
    """Values of all layers, the input first, and the last one before its activation. names: {weight: value}."""
    layers, last = [x], len(e.coefs_) - 1
    for k in range(last + 1):
        z = g.Add(g.MatMul(layers[-1], names[f"coefs_{k}"]), names[f"intercepts_{k}"])
        layers.append(activation(g, z, e.out_activation_ if k == last else e.activation))
    return layers, z


def is_multilabel(e):
    return hasattr(e, "classes_") and e._label_binarizer.y_type_.startswith("multilabel")


def target_type(e, dtype):
    """Element type and shape of y."""
    several = ["n", e.n_outputs_] if e.n_outputs_ > 1 else ["n"]
    if not hasattr(e, "classes_"):
        return dtype, several
    return (INT64, ["n", e.n_outputs_]) if is_multilabel(e) else (kind_of(e.classes_, None), ["n"])


def target_rows(g, e, y, dtype):
    """y as rows [n, outputs] of numbers."""
    if is_multilabel(e):
        return g.cast(y, dtype)
    if not hasattr(e, "classes_"):
        return y if e.n_outputs_ > 1 else g.Unsqueeze(y, [1])
    table = np.eye(len(e.classes_)) if len(e.classes_) > 2 else np.array([[0.0], [1.0]])
    return class_table(g, y, e.classes_, g.constant(table.astype(dtype)))


def target(g, e, step, sample_weight, dtype):
    """The target as the rows that are compared with the output, [n, outputs]."""
    y = g.names.claim("y")
    step.inputs.append((y, *target_type(e, dtype)))
    rows = target_rows(g, e, y, dtype)
    weight = None
    if sample_weight:
        weight = g.names.claim("sample_weight")
        step.inputs.append((weight, dtype, ["n"]))
    return rows, weight


def partial_fit(g, e, features, sample_weight, kept):
    """The Step. features: the value [n, F] that the weights read; kept: how many losses of steps the file keeps."""
    step = Step()
    held = weights(e)
    grads = next(iter(moments(e).values())).dtype  # float64 targets make all of it float64
    y, weight = target(g, e, step, sample_weight, grads)
    step.initial |= moments(e)
    adam = e.solver == "adam"
    o = e._optimizer
    step.initial["learning_rate"] = np.float64(o.learning_rate_init if adam else o.learning_rate)
    step.initial["t_"] = np.int64(e.t_)
    step.initial["best_loss_"] = np.float64(e.best_loss_)
    step.initial["no_improvement_count"] = np.int64(e._no_improvement_count)
    step.initial["loss_"] = np.float64(e.loss_)
    carried = [*held, *moments(e)]
    if adam:
        step.initial["t"] = np.int64(o.t)
        carried.append("t")
    for name in step.initial:
        if name not in g.names.taken:
            g.names.claim(name)
    new, loss = _loop(g, e, features, y, weight, carried, step, grads)
    step.update |= new
    rows = g.rows_of(features)
    step.loss = g.Div(loss, g.cast(rows, DOUBLE))
    _epoch_ends(g, e, step, rows)
    if kept:
        _keep_loss(g, step, kept)
    return step


def _keep_loss(g, step, kept):
    """loss_curve_: a state variable has one shape for good, so the losses go round in a buffer of that many."""
    step.initial |= {"loss_curve_": np.zeros(kept), "loss_count": np.int64(0)}
    for name in ("loss_curve_", "loss_count"):
        if name not in g.names.taken:
            g.names.claim(name)
    place = g.Unsqueeze(g.Mod("loss_count", kept), [0])
    curve = g.ScatterElements("loss_curve_", place, g.Unsqueeze(step.loss, [0]))
    step.update |= {"loss_curve_": curve, "loss_count": g.Add("loss_count", 1)}


def _loop(g, e, features, y, weight, carried, step, grads):
    """The mini-batches; new values of what is carried, and the loss summed over rows."""
    rows = g.rows_of(features)
    size = BATCH if e.batch_size == "auto" else int(e.batch_size)
    batch = g.Max(g.Min(rows, size), 1)
    trips = g.Div(g.Sub(g.Add(rows, batch), 1), batch)
    b = g.body(grads)
    begin = b.Mul(b.names.claim("batch_number"), batch)
    trip = b.nodes[-1].inputs[0]
    end = b.Unsqueeze(b.Min(b.Add(begin, batch), rows), [0])
    begin = b.Unsqueeze(begin, [0])

    def some(value):
        return b.Slice(value, begin, end, [0])

    inside = {n: b.names.claim(n + "_in") for n in carried}
    types = {n: (step.initial | weights(e))[n] for n in carried}
    made, loss = _batch(b, e, some(features), some(y), some(weight) if weight else None, inside, grads)
    count = b.Sub(end, begin)
    total_in = b.names.claim("loss_sum_in")
    total = b.Add(total_in, b.Mul(b.cast(loss, DOUBLE), b.Squeeze(b.cast(count, DOUBLE), [0])))
    going = b.names.claim("going")
    still = b.Identity(going)
    ios = [(inside[n], made[n], np.asarray(types[n]).dtype, list(np.shape(types[n]))) for n in carried]
    ios.append((total_in, total, DOUBLE, []))
    graph = b.graph("mini_batch", [(trip, INT64, []), (going, BOOL, []), *[(i, t, s) for i, _, t, s in ios]],
                    [(still, BOOL, []), *[(o, t, s) for _, o, t, s in ios]])
    out = g.node("Loop", [trips, "", *carried, np.float64(0)], outputs=len(carried) + 1, body=graph,
                 name="mini_batches")
    return dict(zip(carried, out)), out[-1]


def _batch(g, e, x, y, weight, names, grads):
    """One mini-batch: new values and its loss."""
    held = weights(e)
    own = e.coefs_[0].dtype

    def wide(v):
        return v if own == grads else g.cast(v, grads)

    layers, _ = forward(g, e, x, {n: names[n] for n in held})
    count = g.cast(g.rows_of(x), grads)
    share = count if weight is None else g.sum(weight, [0])
    loss = _loss(g, e, wide(layers[-1]), y, weight, count, share, np.finfo(e.coefs_[0].dtype).eps)
    square = None
    for k in range(len(e.coefs_)):
        w = wide(names[f"coefs_{k}"])
        part = g.ReduceSum(g.Mul(w, w), keepdims=0)
        square = part if square is None else g.Add(square, part)
    loss = g.Add(loss, g.Div(g.Mul(square, g.real(0.5 * e.alpha)), share))
    delta = g.Sub(wide(layers[-1]), y)
    if weight is not None:
        delta = g.Mul(delta, g.Unsqueeze(weight, [1]))
    gradient = {}
    for k in reversed(range(len(e.coefs_))):
        w = wide(names[f"coefs_{k}"])
        raw = g.Add(g.MatMul(g.Transpose(wide(layers[k]), perm=[1, 0]), delta), g.Mul(w, g.real(e.alpha)))
        gradient[f"coefs_{k}"] = g.Div(raw, share)
        gradient[f"intercepts_{k}"] = g.Div(g.sum(delta, [0]), share)
        if k:
            delta = _derivative(g, e.activation, wide(layers[k]), g.MatMul(delta, g.Transpose(w, perm=[1, 0])))
    update = _adam if e.solver == "adam" else _sgd
    return update(g, e._optimizer, names, gradient, own, grads), loss


def _derivative(g, kind, z, delta):
    one = g.real(1)
    if kind == "relu":
        return g.Where(g.Equal(z, g.real(0)), g.real(0), delta)
    if kind == "tanh":
        return g.Mul(delta, g.Sub(one, g.Mul(z, z)))
    if kind == "logistic":
        return g.Mul(g.Mul(delta, z), g.Sub(one, z))
    return delta


def _loss(g, e, out, y, weight, count, share, eps):
    """The value that scikit-learn reports, without the penalty."""
    def average(values):  # over rows, weighted; a row of outputs
        if weight is not None:
            values = g.Mul(values, g.Unsqueeze(weight, [1]))
        return g.Div(g.sum(values, [0]), share)

    def times_log(a, b):
        return g.Where(g.Equal(a, g.real(0)), g.real(0), g.Mul(a, g.Log(b)))

    kind = "log_loss" if hasattr(e, "classes_") else e.loss
    if kind == "squared_error":
        apart = g.Sub(y, out)
        return g.Mul(g.ReduceMean(average(g.Mul(apart, apart)), keepdims=0), g.real(0.5))
    if kind == "poisson":
        row = g.Add(g.Sub(times_log(y, g.Div(y, out)), y), out)
        return g.ReduceSum(average(row), keepdims=0)
    p = g.Clip(out, g.real(eps), g.real(1 - eps))
    row = times_log(y, p)
    if e.out_activation_ == "logistic":
        one = g.real(1)
        row = g.Add(row, times_log(g.Sub(one, y), g.Sub(one, p)))
    return g.Neg(g.ReduceSum(average(row), keepdims=0))


def loss_of_scores(g, e, z, y, weight):
    """For an optimizer by name (the solver was lbfgs): the loss whose derivative scikit-learn's solvers follow, on the
    output before its activation, without the penalty."""
    rows = target_rows(g, e, y, g.dtype)
    if e.out_activation_ == "softmax":
        each = g.Neg(g.Mul(rows, g.LogSoftmax(z, axis=1)))
    elif e.out_activation_ == "logistic":
        each = g.Sub(g.Softplus(z), g.Mul(rows, z))
    elif e.out_activation_ == "exp":
        each = g.Sub(g.Exp(z), g.Mul(rows, z))
    else:
        apart = g.Sub(z, rows)
        each = g.Mul(g.Mul(apart, apart), g.real(0.5))
    return mean_of_rows(g, g.sum(each, [1]), weight)


def mean_of_rows(g, each, weight):
    if weight is None:
        return g.ReduceMean(each, keepdims=0)
    return g.Div(g.ReduceSum(g.Mul(each, weight), keepdims=0), g.ReduceSum(weight, keepdims=0))


def _adam(g, o, names, gradient, own, grads):
    """epsilon stands outside the bias correction; the learning rate is a float64, so the update is too."""
    made = {"t": g.Add(names["t"], 1)}
    t = g.cast(made["t"], DOUBLE)

    def correction(beta):
        return g.Sub(np.float64(1), g.Pow(np.float64(beta), t))

    rate = g.Div(g.Mul("learning_rate", g.Sqrt(correction(o.beta_2))), correction(o.beta_1))
    for n, grad in gradient.items():
        made[n + ".m"] = g.Add(g.Mul(names[n + ".m"], g.real(o.beta_1)), g.Mul(grad, g.real(1 - o.beta_1)))
        made[n + ".v"] = g.Add(g.Mul(names[n + ".v"], g.real(o.beta_2)),
                               g.Mul(g.Mul(grad, grad), g.real(1 - o.beta_2)))
        first, root = made[n + ".m"], g.Add(g.Sqrt(made[n + ".v"]), g.real(o.epsilon))
        if grads != DOUBLE:
            first, root = g.cast(first, DOUBLE), g.cast(root, DOUBLE)
        made[n] = _plus(g, names[n], g.Neg(g.Div(g.Mul(rate, first), root)), own, DOUBLE)
    return made


def _sgd(g, o, names, gradient, own, grads):
    """The learning rate is inside the velocity."""
    made = {}
    rate = "learning_rate" if grads == DOUBLE else g.cast("learning_rate", grads)
    for n, grad in gradient.items():
        pull = g.Mul(grad, rate)
        velocity = g.Sub(g.Mul(names[n + ".velocity"], g.real(o.momentum)), pull)
        made[n + ".velocity"] = velocity
        change = g.Sub(g.Mul(velocity, g.real(o.momentum)), pull) if o.nesterov else velocity
        made[n] = _plus(g, names[n], change, own, grads)
    return made


def _plus(g, weight, change, own, wide):
    if own == wide:
        return g.Add(weight, change)
    return g.cast(g.Add(g.cast(weight, wide), change), own)


def _epoch_ends(g, e, step, rows):
    """t_, best_loss_, the count without improvement, and the learning rate of the next call."""
    o, loss = e._optimizer, step.loss
    now = g.Add("t_", rows)
    worse = g.Greater(loss, g.Sub("best_loss_", np.float64(e.tol)))
    count = g.Where(worse, g.Add("no_improvement_count", 1), 0)
    rate = None
    if e.solver == "sgd" and o.lr_schedule == "invscaling":
        power = g.Pow(g.cast(g.Add(now, 1), DOUBLE), np.float64(o.power_t))
        rate = g.Div(np.float64(o.learning_rate_init), power)
    if e.solver == "sgd" and o.lr_schedule == "adaptive":
        limit = np.float64(e.n_iter_no_change)
        slower = g.And(g.Greater(g.cast(count, DOUBLE), limit), g.Greater("learning_rate", np.float64(1e-6)))
        rate = g.Where(slower, g.Div("learning_rate", np.float64(5)), "learning_rate")
        count = g.Where(slower, 0, count)
    step.update |= {"t_": now, "no_improvement_count": count, "best_loss_": g.Min(loss, "best_loss_"), "loss_": loss}
    if rate is not None:
        step.update["learning_rate"] = rate
