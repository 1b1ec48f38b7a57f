"""The small networks of the cases: as ONNX text, and as formulas on the arithmetic of the suite."""

import numpy as np

from . import arithmetic as A

F4 = np.float32


def numbers(shape, seed, scale=1.0):
    """Normal numbers with 10 significant bits: exact in float16 too, and the same in every element type."""
    got = np.random.default_rng(seed).standard_normal(shape) * scale
    return (np.round(got * 128) / 128).astype(F4)


class Mlp:
    """x [N,3] -> tanh(x W1 + b1) -> scores [N,3]."""

    text = """main (float[N,3] x) => (float[N,3] scores) {
        h0 = Gemm(x, W1, b1)  h = Tanh(h0)  scores = Gemm(h, W2, b2) }"""
    shapes = {"W1": (3, 4), "b1": (4,), "W2": (4, 3), "b2": (3,)}
    inputs, output = ["x"], "scores"

    def state(self, seed=1):
        return {k: numbers(s, seed + i, 0.5) for i, (k, s) in enumerate(self.shapes.items())}

    def forward(self, p, feeds):
        return A.tanh(A.value(feeds["x"]) @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]

    def data(self, k, rows=5):
        return {"x": numbers((rows, 3), 100 + k)}


class Line:
    """x [N,2] -> y [N,1] = x w + b."""

    text = "main (float[N,2] x) => (float[N,1] y) { y = Gemm(x, w, b) }"
    shapes = {"w": (2, 1), "b": (1,)}
    inputs, output = ["x"], "y"

    def state(self, seed=1):
        return {"w": F4([[0.5], [-1.25]]), "b": F4([0.25])}

    def forward(self, p, feeds):
        return A.value(feeds["x"]) @ p["w"] + p["b"]

    def data(self, k, rows=4):
        return {"x": numbers((rows, 2), 300 + k)}


def labels(k, rows, classes=3):
    return np.random.default_rng(500 + k).integers(0, classes, rows).astype(np.int64)


def targets(k, shape):
    return numbers(shape, 700 + k)


def cross_entropy(scores, label, weights=None, ignore=None, reduction="mean", smoothing=0.0):
    """SoftmaxCrossEntropyLoss of the standard; with `smoothing`, PyTorch's label smoothing."""
    return nll(A.log_softmax(scores, 1), label, weights, ignore, reduction, smoothing)


def nll(log_p, label, weights=None, ignore=None, reduction="mean", smoothing=0.0):
    classes = log_p.shape[1]
    kept = np.ones(label.shape) if ignore is None else (label != ignore).astype(float)
    at = np.where(kept > 0, label, 0)
    w = np.ones(classes) if weights is None else np.asarray(weights, float)
    hot = np.moveaxis(np.eye(classes)[at] * (w[at] * kept)[..., None], -1, 1)
    per = -(log_p * hot).sum(1)
    if smoothing:
        shape = (1, classes) + (1,) * (log_p.a.ndim - 2)
        uniform = -(log_p * w.reshape(shape)).sum(1) * kept
        per = per * (1 - smoothing) + uniform * (smoothing / classes)
    if reduction == "none":
        return per
    whole = per.sum()
    applied = float((w[at] * kept).sum())
    return whole if reduction == "sum" else whole / (applied or 1.0)


def gradients_of(loss_of, state, names):
    """(loss, {name: gradient}) of `loss_of({name: Value})`."""
    p = {k: A.value(v) for k, v in state.items()}
    loss = loss_of(p)
    return loss.a, dict(zip(names, A.gradients(loss, [p[n] for n in names])))
