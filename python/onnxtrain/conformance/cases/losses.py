"""Losses: the operators of the standard with their options, and those that `prepare` composes."""

import numpy as np

from ...prepared import prepare
from ...recipe import SGD, losses
from .. import arithmetic as A
from ..case import STEPS, node_case, steps_case
from ..files import Section, node_file, training_file
from ..networks import F4, Line, Mlp, cross_entropy, gradients_of, labels, nll, numbers, targets

CATEGORY = "losses"
WEIGHTS = F4([0.5, 2.0, 1.25])
RATE = 0.25


def descent(name, about, model, net, loss_of, feeds, rule="", **more):
    """10 steps of gradient descent on a loss."""
    start = net.state()

    def step(s, f, k):
        loss, g = gradients_of(lambda p: loss_of(net.forward(p, f), f), s, list(net.shapes))
        return {"loss": loss}, {p: (A.value(s[p]) - RATE * A.value(g[p])).a for p in net.shapes}

    return steps_case(name, CATEGORY, about, model, step, start, feeds, rule=rule, **more)


def hand_written(net, loss, target, extra=None):
    """A file whose step is `loss` (text), Gradient and X - R * G in plain operators."""
    params = list(net.shapes)
    sizes = {p: ",".join(map(str, s)) for p, s in net.shapes.items()}
    zs = net.inputs + [target.split()[-1]]
    text = f"""step ({target}) => (float loss, {", ".join(f"float[{sizes[p]}] {p}_new" for p in params)}) {{
        {loss}
        {", ".join("g_" + p for p in params)} = training.Gradient<xs = [{", ".join(f'"{p}"' for p in params)}],
            zs = [{", ".join(f'"{z}"' for z in zs)}], y = "loss">({", ".join(params + zs)})
        {" ".join(f"s_{p} = Mul(g_{p}, R) {p}_new = Sub({p}, s_{p})" for p in params)} }}"""
    return training_file(
        net.text, net.state(), Section(text, {p: f"{p}_new" for p in params}, {"R": F4(RATE)} | (extra or {}))
    )


def standard():
    """SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss in the step of a file."""
    net = Mlp()
    feeds = [net.data(k) | {"label": labels(k, 5)} for k in range(STEPS)]
    some = [f | {"label": np.where(np.arange(5) == k % 5, -1, f["label"])} for k, f in enumerate(feeds)]
    options = {
        "mean": {},
        "sum": {"reduction": "sum"},
        "weights": {"weights": WEIGHTS},
        "ignore": {"ignore": -1},
        "weights_ignore": {"weights": WEIGHTS, "ignore": -1},
        "sum_weights_ignore": {"weights": WEIGHTS, "ignore": -1, "reduction": "sum"},
    }
    for kind, op, before, formula in (
        ("sce", "SoftmaxCrossEntropyLoss", "", cross_entropy),
        (
            "nll",
            "NegativeLogLikelihoodLoss",
            "lp = LogSoftmax<axis = 1>(scores)",
            lambda s, t, **o: nll(A.log_softmax(s, 1), t, **o),
        ),
    ):
        for label, o in options.items():
            set_ = [f'reduction = "{o["reduction"]}"'] if "reduction" in o else []
            set_ += [f"ignore_index = {o['ignore']}"] if "ignore" in o else []
            reads = ("lp" if before else "scores") + ", label" + (", weights" if "weights" in o else "")
            text = f"{before} loss = {op}{'<' + ', '.join(set_) + '>' if set_ else ''}({reads})"
            model = hand_written(net, text, "int64[N] label", {"weights": WEIGHTS} if "weights" in o else None)
            yield descent(
                f"{kind}_{label}",
                f"{op}, {label.replace('_', ', ')}",
                model,
                net,
                lambda out, f, o=o, formula=formula: formula(out, f["label"], **o),
                some if "ignore" in o else feeds,
            )
    text = """per = SoftmaxCrossEntropyLoss<reduction = "none">(scores, label) w = Mul(per, per)
        loss = ReduceMean<keepdims = 0>(w)"""
    yield descent(
        "sce_none",
        "SoftmaxCrossEntropyLoss, one loss per row, squared",
        hand_written(net, text, "int64[N] label"),
        net,
        lambda out, f: A.square(cross_entropy(out, f["label"], reduction="none")).mean(),
        feeds,
    )
    every = [f | {"label": np.full(5, -1)} if k % 3 == 1 else f for k, f in enumerate(feeds)]
    text = "loss = SoftmaxCrossEntropyLoss<ignore_index = -1>(scores, label)"
    yield descent(
        "sce_everything_ignored",
        "a batch in which every label is ignored: loss 0, gradient 0",
        hand_written(net, text, "int64[N] label"),
        net,
        lambda out, f: cross_entropy(out, f["label"], ignore=-1),
        every,
        rule="G16",
    )
    text = """per, lp = SoftmaxCrossEntropyLoss(scores, label) p = Exp(lp) q = Mul(p, lp)
        e = ReduceSum<keepdims = 0>(q) loss = Add(per, e)"""

    def with_entropy(out, f):
        lp = A.log_softmax(out, 1)
        return nll(lp, f["label"]) + (A.exp(lp) * lp).sum()

    yield descent(
        "sce_log_prob",
        "the second output of SoftmaxCrossEntropyLoss takes part in the loss",
        hand_written(net, text, "int64[N] label"),
        net,
        with_entropy,
        feeds,
    )


def nodes():
    """Losses over images: classes along axis 1, more axes behind; the gradient by scores too."""
    scores, label = numbers((2, 3, 2, 2), 61), np.random.default_rng(3).integers(0, 3, (2, 2, 2))
    label[0, 1, 1] = 2
    for name, weights, ignore, reduction in (
        ("mean", None, None, "mean"),
        ("weights_ignore", WEIGHTS, 2, "mean"),
        ("sum", WEIGHTS, None, "sum"),
    ):
        extra = ", float[3] w" if weights is not None else ""
        reads = "scores, label" + (", w" if extra else "")
        zs = '"label"' + (', "w"' if extra else "")
        ignored = f", ignore_index = {ignore}" if ignore else ""
        text = f"""g (float[2,3,2,2] scores, int64[2,2,2] label{extra}) => (float loss, float[2,3,2,2] g) {{
            loss = SoftmaxCrossEntropyLoss<reduction = "{reduction}"{ignored}>({reads})
            g = training.Gradient<xs = ["scores"], zs = [{zs}], y = "loss">({reads}) }}"""
        feeds = {"scores": scores, "label": label} | ({"w": weights} if extra else {})

        def compute(f, weights=weights, ignore=ignore, reduction=reduction):
            x = A.value(f["scores"])
            loss = cross_entropy(x, f["label"], weights, ignore, reduction)
            return {"loss": loss.a, "g": A.gradients(loss, [x])[0]}

        yield node_case(
            f"sce_image_{name}",
            CATEGORY,
            f"SoftmaxCrossEntropyLoss over [2,3,2,2], {name}",
            node_file(text),
            feeds,
            compute,
        )


def huber(d, delta):
    size = A.absolute(d)
    return A.where(size.a.real <= delta, 0.5 * d * d, delta * (size - 0.5 * delta))


def softplus(x):
    return A.maximum(x, 0.0 * x.a) + A.log(1 + A.exp(-A.absolute(x)))


def composed():
    """Losses of `prepare`, on regression, probabilities and scores."""
    line, mlp = Line(), Mlp()
    numbers_ = [line.data(k) | {"label": targets(k, (4, 1))} for k in range(STEPS)]
    bits = [f | {"label": F4(np.random.default_rng(k).integers(0, 2, (4, 1)))} for k, f in enumerate(numbers_)]
    signs = [f | {"label": 2 * f["label"] - 1} for f in bits]
    classes = [mlp.data(k) | {"label": labels(k, 5)} for k in range(STEPS)]
    spread_ = [f | {"label": F4(np.tile([0.5, 0.25, 0.25], (5, 1)))} for f in classes]

    def d(out, f):
        return out - f["label"]

    rows = [
        ("mse", losses.MSE(), line, numbers_, lambda o, f: A.square(d(o, f)).mean()),
        ("mse_sum", losses.MSE(reduction="sum"), line, numbers_, lambda o, f: A.square(d(o, f)).sum()),
        ("l1", losses.L1(), line, numbers_, lambda o, f: A.absolute(d(o, f)).mean()),
        ("huber", losses.Huber(), line, numbers_, lambda o, f: huber(d(o, f), 1.0).mean()),
        ("huber_delta", losses.Huber(delta=0.25), line, numbers_, lambda o, f: huber(d(o, f), 0.25).mean()),
        ("bce_logits", losses.BCELogits(), line, bits, lambda o, f: (softplus(o) - o * f["label"]).mean()),
        ("hinge", losses.Hinge(), line, signs, lambda o, f: A.relu(1 - o * f["label"]).mean()),
        (
            "ce_smoothing",
            losses.CrossEntropy(label_smoothing=0.25),
            mlp,
            classes,
            lambda o, f: cross_entropy(o, f["label"], smoothing=0.25),
        ),
        (
            "ce_smoothing_weights",
            losses.CrossEntropy(label_smoothing=0.125, weight=WEIGHTS),
            mlp,
            classes,
            lambda o, f: cross_entropy(o, f["label"], WEIGHTS, smoothing=0.125),
        ),
        (
            "two_terms",
            [(1.0, losses.CrossEntropy()), (0.5, losses.MSE(label="t"))],
            mlp,
            [f | {"t": targets(k, (5, 3))} for k, f in enumerate(classes)],
            lambda o, f: cross_entropy(o, f["label"]) + 0.5 * A.square(o - f["t"]).mean(),
        ),
    ]
    for name, loss, net, feeds, formula in rows:
        model = prepare(node_file(net.text, initializers=net.state()), loss=loss, optimizer=SGD(lr=RATE)).proto()
        yield descent(
            f"loss_{name}", f"{name.replace('_', ' ')}, composed of ordinary operators", model, net, formula, feeds
        )
    yield from on_probabilities(line, mlp, bits, spread_)


class Behind:
    """A network with one more operator at its end."""

    def __init__(self, net, text):
        self.net, self.shapes, self.inputs, self.state = net, net.shapes, net.inputs, net.state
        self.text = net.text.replace(f"{net.output} =", "last =").replace("}", text + " }")
        self.forward = net.forward


def on_probabilities(line, mlp, bits, spread_):
    one = Behind(line, "y = Sigmoid(last)")
    model = prepare(node_file(one.text, initializers=line.state()), loss=losses.BCE(), optimizer=SGD(lr=RATE)).proto()

    def bce(o, f):
        p = A.sigmoid(o)
        return -(f["label"] * A.log(p) + (1 - f["label"]) * A.log(1 - p)).mean()

    yield descent("loss_bce", "binary cross-entropy of a Sigmoid's output", model, one, bce, bits)
    many = Behind(mlp, "scores = LogSoftmax<axis = 1>(last)")
    model = prepare(node_file(many.text, initializers=mlp.state()), loss=losses.KL(), optimizer=SGD(lr=RATE)).proto()

    def kl(o, f):
        t = A.value(f["label"])
        return (t * (A.log(t) - A.log_softmax(o, 1))).mean()

    yield descent("loss_kl", "Kullback-Leibler divergence of a LogSoftmax's output", model, many, kl, spread_)


def cases():
    yield from standard()
    yield from nodes()
    yield from composed()
