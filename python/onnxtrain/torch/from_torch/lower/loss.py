"""Losses."""

import math

from .base import Unsupported, lower, static

MEAN, SUM = 1, 2
_NAMES = {0: "none", 1: "mean", 2: "sum"}


def reduced(c, x, reduction):
    if reduction == MEAN:
        return c.reduce("Mean", x, None, False)
    return c.reduce("Sum", x, None, False) if reduction == SUM else x


@lower("aten.mse_loss")
def mse(c, a):
    x, y = c.common(a.self, a.target)
    d = c.op("Sub", x, y)
    return reduced(c, c.op("Mul", d, d), a.reduction)


@lower("aten.l1_loss")
def l1(c, a):
    x, y = c.common(a.self, a.target)
    return reduced(c, c.op("Abs", c.op("Sub", x, y)), a.reduction)


def _huber(c, a, delta, scale):
    """0.5 d^2 below delta, delta (|d| - delta/2) above; all times `scale`."""
    x, y = c.common(a.self, a.target)
    d = c.op("Sub", x, y)
    size = c.op("Abs", d)
    near = c.op("Mul", c.op("Mul", d, d), c.num(0.5 * scale, d))
    far = c.op("Mul", c.op("Sub", size, c.num(0.5 * delta, d)), c.num(delta * scale, d))
    return reduced(c, c.where(c.op("Less", size, c.num(delta, d)), near, far), a.reduction)


@lower("aten.huber_loss")
def huber(c, a):
    return _huber(c, a, float(a.delta), 1.0)


@lower("aten.smooth_l1_loss")
def smooth_l1(c, a):
    return l1(c, a) if a.beta == 0 else _huber(c, a, float(a.beta), 1.0 / float(a.beta))


# ---- classes
def _classes_last(x):
    return len(x.shape) == 1


@lower("aten.nll_loss", "aten.nll_loss_nd", "aten.nll_loss2d", "aten.nll_loss_forward", "aten.nll_loss2d_forward")
def nll(c, a):
    many = c.operator.endswith("forward")
    x, t = a.self, a.target
    if _classes_last(x):
        x, t = c.unsqueeze(x, [0]), c.reshape(t, [1])
    y = c.op("NegativeLogLikelihoodLoss", x, t, a.weight, reduction=_NAMES[a.reduction], ignore_index=a.ignore_index)
    if _classes_last(a.self) and a.reduction == 0:
        y = c.squeeze(y, [0])
    return (y, None) if many else y


@lower("aten.cross_entropy_loss")
def cross_entropy(c, a):
    x, t = a.self, a.target
    bare = _classes_last(x)
    if bare:
        x = c.unsqueeze(x, [0])
        x.shape = [1, *a.self.shape]
        t = c.unsqueeze(c.reshape(t, []) if not t.dtype.is_floating_point else t, [0])
    if t.dtype.is_floating_point:
        return _soft_targets(c, a, x, t)
    smoothing = float(a.label_smoothing or 0)
    if smoothing == 0:
        y = c.op("SoftmaxCrossEntropyLoss", x, t, a.weight, reduction=_NAMES[a.reduction], ignore_index=a.ignore_index)
        return c.squeeze(y, [0]) if bare and a.reduction == 0 else y
    return _smoothed(c, a, x, t, smoothing)


def _smoothed(c, a, x, t, smoothing):
    classes = static(x.shape[1])
    if classes is None:
        raise Unsupported("label smoothing over an open number of classes")
    logs = c.op("LogSoftmax", x, axis=1)
    nll = c.op("NegativeLogLikelihoodLoss", logs, t, a.weight, reduction="none", ignore_index=a.ignore_index)
    open_ = c.op("Not", c.op("Equal", t, c.tensor(a.ignore_index, t.dtype)))
    live = c.tensor(open_, x.dtype)
    weighted, share = logs, live
    if a.weight is not None:
        weighted = c.op("Mul", logs, c.reshape(a.weight, [classes] + [1] * (len(x.shape) - 2)))
        share = c.op("Mul", c.op("Gather", a.weight, c.where(open_, t, c.tensor(0, t.dtype)), axis=0), live)
    flat = c.op("Mul", c.op("Neg", c.reduce("Sum", weighted, [1], False)), live)
    each = c.op("Add", c.op("Mul", nll, c.num(1 - smoothing, x)), c.op("Mul", flat, c.num(smoothing / classes, x)))
    if a.reduction == MEAN:
        return c.op("Div", c.reduce("Sum", each), c.reduce("Sum", share))
    return reduced(c, each, a.reduction)


def _soft_targets(c, a, x, t):
    classes, smoothing = static(x.shape[1]), float(a.label_smoothing or 0)
    if smoothing:
        t = c.op("Add", c.op("Mul", t, c.num(1 - smoothing, t)), c.num(smoothing / classes, t))
    terms = c.op("Mul", c.op("LogSoftmax", x, axis=1), t)
    if a.weight is not None:
        terms = c.op("Mul", terms, c.reshape(a.weight, [classes] + [1] * (len(x.shape) - 2)))
    each = c.op("Neg", c.reduce("Sum", terms, [1], False))
    return reduced(c, each, a.reduction)


# ---- probabilities
@lower("aten.binary_cross_entropy")
def bce(c, a):
    x, t = c.common(a.self, a.target)
    floor = c.num(-100.0, x)
    one = c.num(1.0, x)
    yes = c.op("Mul", t, c.op("Max", c.op("Log", x), floor))
    no = c.op("Mul", c.op("Sub", one, t), c.op("Max", c.op("Log", c.op("Sub", one, x)), floor))
    each = c.op("Neg", c.op("Add", yes, no))
    return reduced(c, each if a.weight is None else c.op("Mul", each, a.weight), a.reduction)


@lower("aten.binary_cross_entropy_with_logits")
def bce_logits(c, a):
    x, t = c.common(a.self, a.target)
    one = c.num(1.0, x)
    tail = c.op("Softplus", c.op("Neg", x))  # log(1 + exp(-x))
    if a.pos_weight is None:
        each = c.op("Add", c.op("Mul", c.op("Sub", one, t), x), tail)
    else:
        lift = c.op("Add", c.op("Mul", c.op("Sub", a.pos_weight, one), t), one)
        each = c.op("Add", c.op("Mul", c.op("Sub", one, t), x), c.op("Mul", lift, tail))
    return reduced(c, each if a.weight is None else c.op("Mul", each, a.weight), a.reduction)


@lower("aten.kl_div")
def kl_div(c, a):
    x, t = c.common(a.self, a.target)
    if a.log_target:
        each = c.op("Mul", c.op("Exp", t), c.op("Sub", t, x))
    else:
        zero = c.op("Equal", t, c.num(0.0, t))
        log = c.op("Log", c.where(zero, c.num(1.0, t), t))
        each = c.op("Sub", c.op("Mul", t, log), c.op("Mul", t, x))
    return reduced(c, each, a.reduction)


@lower("aten.soft_margin_loss")
def soft_margin(c, a):
    x, t = c.common(a.self, a.target)
    return reduced(c, c.op("Softplus", c.op("Neg", c.op("Mul", t, x))), a.reduction)


@lower("aten.margin_ranking_loss")
def margin_ranking(c, a):
    x, y = c.common(a.input1, a.input2)
    d = c.op("Mul", c.op("Neg", c.tensor(a.target, x.dtype)), c.op("Sub", x, y))
    return reduced(c, c.op("Relu", c.op("Add", d, c.num(float(a.margin), d))), a.reduction)


@lower("aten.hinge_embedding_loss")
def hinge_embedding(c, a):
    x, t = c.common(a.self, a.target)
    zero = c.num(0.0, x)
    near = c.where(c.op("Equal", t, c.num(1.0, t)), x, zero)
    far = c.where(c.op("Equal", t, c.num(-1.0, t)), c.op("Relu", c.op("Sub", c.num(float(a.margin), x), x)), zero)
    return reduced(c, c.op("Add", near, far), a.reduction)


@lower("aten.poisson_nll_loss")
def poisson(c, a):
    x, t = c.common(a.input, a.target)
    if a.log_input:
        each = c.op("Sub", c.op("Exp", x), c.op("Mul", t, x))
    else:
        each = c.op("Sub", x, c.op("Mul", t, c.op("Log", c.op("Add", x, c.num(float(a.eps), x)))))
    if a.full:
        one = c.num(1.0, t)
        large = c.op("Greater", t, one)
        safe = c.where(large, t, one)
        stirling = c.op("Add", c.op("Sub", c.op("Mul", safe, c.op("Log", safe)), safe),
                        c.op("Mul", c.op("Log", c.op("Mul", safe, c.num(2 * math.pi, t))), c.num(0.5, t)))
        each = c.op("Add", each, c.where(large, stirling, c.num(0.0, t)))
    return reduced(c, each, a.reduction)


@lower("aten.cosine_similarity")
def cosine_similarity(c, a):
    x, y = c.common(a.x1, a.x2)
    axis = [a.dim]
    low = c.num(float(a.eps), x)
    sizes = [c.op("Max", c.reduce("L2", v, axis, True), low) for v in (x, y)]
    return c.reduce("Sum", c.op("Mul", c.op("Div", x, sizes[0]), c.op("Div", y, sizes[1])), axis, False)


@lower("aten.pairwise_distance")
def pairwise_distance(c, a):
    x, y = c.common(a.x1, a.x2)
    d = c.op("Add", c.op("Sub", x, y), c.num(float(a.eps), x))
    if a.p == 2:
        return c.reduce("L2", d, [-1], a.keepdim)
    if a.p == 1:
        return c.reduce("L1", d, [-1], a.keepdim)
    raise Unsupported(f"pairwise_distance with p = {a.p}")
