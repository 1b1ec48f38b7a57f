"""The standard's optimizer operators (ai.onnx.preview.training) in keras.ops, many tensors per node."""

from keras import ops

from ...graph import TRAINING
from .ops import operator


def _tensors(v, node, columns):
    """R, T and one list per column: parameters, gradients, state."""
    rest = node.inputs[2:]
    n = len(rest) // columns
    groups = [[v[name] for name in rest[k * n:(k + 1) * n]] for k in range(columns)]
    return v[node.inputs[0]], v[node.inputs[1]], list(zip(*groups))


def _write(v, node, results):
    """[(new parameter, new state...)] in the operator's order of outputs."""
    for k, column in enumerate(zip(*results)):
        for i, value in enumerate(column):
            v.set(node.outputs[k * len(results) + i], value)


def _regularized(x, g, node):
    factor = node.attrs.get("norm_coefficient", 0.0)
    return g + factor * x if factor else g


@operator("Momentum", domain=TRAINING)
def momentum(v, node, training):
    rate, t, tensors = _tensors(v, node, 3)
    alpha, beta = node.attrs["alpha"], node.attrs["beta"]
    share = ops.where(ops.greater(t, 0), ops.cast(beta, "float32"), 1.0)
    results = []
    for x, g, m in tensors:
        g = _regularized(x, g, node)
        new = alpha * m + ops.cast(share, x.dtype) * g
        step = g + alpha * new if node.attrs.get("mode") == "nesterov" else new
        results.append((x - ops.cast(rate, x.dtype) * step, new))
    _write(v, node, results)


@operator("Adagrad", domain=TRAINING)
def adagrad(v, node, training):
    rate, t, tensors = _tensors(v, node, 3)
    results = []
    for x, g, h in tensors:
        g = _regularized(x, g, node)
        r = ops.cast(rate, x.dtype) / (1 + ops.cast(t, x.dtype) * node.attrs.get("decay_factor", 0.0))
        new = h + g * g
        results.append((x - r * g / (ops.sqrt(new) + node.attrs.get("epsilon", 1e-6)), new))
    _write(v, node, results)


@operator("Adam", domain=TRAINING)
def adam(v, node, training):
    rate, t, tensors = _tensors(v, node, 4)
    a = node.attrs
    alpha, beta, post = a.get("alpha", 0.9), a.get("beta", 0.999), a.get("norm_coefficient_post", 0.0)
    results = []
    for x, g, m, h in tensors:
        g = _regularized(x, g, node)
        m, h = alpha * m + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        n, r = ops.cast(t, x.dtype), ops.cast(rate, x.dtype)
        fixed = r * ops.sqrt(1 - ops.power(ops.cast(beta, x.dtype), n)) / (1 - ops.power(ops.cast(alpha, x.dtype), n))
        r = ops.where(ops.greater(t, 0), fixed, r)
        results.append(((1 - post) * (x - r * m / (ops.sqrt(h) + a.get("epsilon", 1e-6))), m, h))
    _write(v, node, results)
