"""Normalisation layers."""

import torch

from .base import Unsupported, Value, inexact, lower, static
from .reduce import count_of


def _filled(c, n, value, dtype):
    return c.e.const(torch.full([n], value, dtype=dtype))


# ---- in float64 the operators' attributes, which are float32, would change epsilon and momentum: by plain nodes
def _moments(c, x, axes):
    """x without its mean, its variance, its mean."""
    mean = c.reduce("Mean", x, axes, True)
    apart = c.op("Sub", x, mean)
    return apart, c.reduce("Mean", c.op("Mul", apart, apart), axes, True), mean


def _scaled(c, apart, var, eps, w, b):
    y = c.op("Div", apart, c.op("Sqrt", c.op("Add", var, c.num(float(eps), var))))
    y = y if w is None else c.op("Mul", y, w)
    return y if b is None else c.op("Add", y, b)


def _by_channel(c, v, rank):
    return None if v is None else c.reshape(v, [-1] + [1] * (rank - 2))


@lower("aten.layer_norm", "aten.native_layer_norm")
def layer_norm(c, a):
    x, shape = a.input, a.normalized_shape
    many = c.operator.endswith("native_layer_norm")
    if not all(isinstance(s, int) for s in shape):
        raise Unsupported("layer_norm over an open size")
    w = a.weight if a.weight is not None else c.e.const(torch.ones(list(shape), dtype=x.dtype))
    if inexact(x, a.eps):
        y = _scaled(c, *_moments(c, x, list(range(-len(shape), 0)))[:2], a.eps, a.weight, a.bias)
    else:
        y = c.op("LayerNormalization", x, w, a.bias, axis=-len(shape), epsilon=float(a.eps))
    return (y, None, None) if many else y


@lower("aten.rms_norm", "aten._fused_rms_norm")
def rms_norm(c, a):
    x = a.input
    many = "fused" in c.operator
    eps = a.eps if a.eps is not None else torch.finfo(x.dtype).eps
    axes = list(range(-len(a.normalized_shape), 0))
    mean = c.reduce("Mean", c.op("Mul", x, x), axes, True)
    y = c.op("Div", x, c.op("Sqrt", c.op("Add", mean, c.num(float(eps), x))))
    y = y if a.weight is None else c.op("Mul", y, a.weight)
    return (y, None) if many else y


@lower("aten.group_norm", "aten.native_group_norm")
def group_norm(c, a):
    many = c.operator.endswith("native_group_norm")
    x = a.input
    groups = a.num_groups if a.num_groups is not None else a.group
    channels = static(x.shape[1])
    if channels is None:
        raise Unsupported("group_norm over an open number of channels")
    if inexact(x, a.eps):
        parts = c.op("Reshape", x, c.e.ints([0, groups, -1]))
        y = c.op("Reshape", _scaled(c, *_moments(c, parts, [2])[:2], a.eps, None, None), c.op("Shape", x))
        for kind, v in (("Mul", a.weight), ("Add", a.bias)):
            y = y if v is None else c.op(kind, y, _by_channel(c, v, len(x.shape)))
        return (y, None, None) if many else y
    w = a.weight if a.weight is not None else _filled(c, channels, 1, x.dtype)
    b = a.bias if a.bias is not None else _filled(c, channels, 0, x.dtype)
    y = c.op("GroupNormalization", x, w, b, num_groups=groups, epsilon=float(a.eps))
    return (y, None, None) if many else y


def _affine(c, a, x):
    channels = static(x.shape[1])
    w = a.weight if a.weight is not None else _filled(c, channels, 1, x.dtype)
    b = a.bias if a.bias is not None else _filled(c, channels, 0, x.dtype)
    return w, b


def _inference(c, a, x):
    if inexact(x, a.eps):
        mean, var, w, b = (_by_channel(c, v, len(x.shape)) for v in (a.running_mean, a.running_var, a.weight, a.bias))
        return _scaled(c, c.op("Sub", x, mean), var, a.eps, w, b)
    w, b = _affine(c, a, x)
    return c.op("BatchNormalization", x, w, b, a.running_mean, a.running_var, epsilon=float(a.eps))


def _training(c, a, x):
    """Y and the new running statistics; PyTorch keeps the unbiased variance, ONNX's operator the other one."""
    w, b = _affine(c, a, x)
    mean, var = a.running_mean, a.running_var
    keep = mean is not None and a.momentum is not None
    if inexact(x, a.eps, a.momentum if keep else 0):
        return _exact_training(c, a, x, keep)
    if not keep:
        channels = static(x.shape[1])
        mean, var = _filled(c, channels, 0, x.dtype), _filled(c, channels, 1, x.dtype)
    momentum = 1 - float(a.momentum if keep else 0.1)
    names = c.e.node(
        "BatchNormalization", [x, w, b, mean, var], outputs=3, epsilon=float(a.eps), momentum=momentum, training_mode=1
    )
    y, new_mean, new_var = [Value(n, x.dtype) for n in names]
    if not keep:
        return y, None, None
    axes = [k for k in range(len(x.shape)) if k != 1]
    n = count_of(c, x, axes)
    ratio = c.op("Div", n, c.op("Max", c.op("Sub", n, c.num(1.0, x)), c.num(1.0, x)))
    kept = c.op("Mul", var, c.num(momentum, x))
    unbiased = c.op("Sub", c.op("Mul", new_var, ratio), c.op("Mul", kept, c.op("Sub", ratio, c.num(1.0, x))))
    return y, new_mean, unbiased


def _exact_training(c, a, x, keep):
    axes, rank = [k for k in range(len(x.shape)) if k != 1], len(x.shape)
    apart, var, mean = _moments(c, x, axes)
    y = _scaled(c, apart, var, a.eps, _by_channel(c, a.weight, rank), _by_channel(c, a.bias, rank))
    if not keep:
        return y, None, None
    n = count_of(c, x, axes)
    unbiased = c.op("Mul", var, c.op("Div", n, c.op("Max", c.op("Sub", n, c.num(1.0, x)), c.num(1.0, x))))
    share, rest = c.num(float(a.momentum), x), c.num(1 - float(a.momentum), x)
    new = [c.op("Add", c.op("Mul", old, rest), c.op("Mul", c.detach(c.reshape(now, [-1])), share))
           for old, now in ((a.running_mean, mean), (a.running_var, unbiased))]
    return y, *new


@lower("aten.batch_norm", "aten._native_batch_norm_legit_functional", "aten._native_batch_norm_legit_no_training",
       "aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._batch_norm_with_update_functional",
       "aten._batch_norm_no_update", "aten.cudnn_batch_norm")
def batch_norm(c, a):
    name = c.operator.split("::")[1]
    x = a.input
    if static(x.shape[1]) is None:
        raise Unsupported("batch_norm over an open number of channels")
    training = bool(a.training) or name == "_batch_norm_with_update_functional"
    single = name == "batch_norm"
    if not training:
        y = _inference(c, a, x)
        return y if single else (y, None, None, a.running_mean, a.running_var)
    y, mean, var = _training(c, a, x)
    if name == "_batch_norm_with_update_functional":
        return y, None, None, None, mean, var
    return y, None, None, mean, var


@lower("aten.instance_norm")
def instance_norm(c, a):
    if a.running_mean is not None:
        if a.use_input_stats:
            raise Unsupported("InstanceNorm with running statistics")
        return _inference(c, a, a.input)
    x, rank = a.input, len(a.input.shape)
    if inexact(x, a.eps):
        return _scaled(
            c,
            *_moments(c, x, list(range(2, rank)))[:2],
            a.eps,
            _by_channel(c, a.weight, rank),
            _by_channel(c, a.bias, rank),
        )
    w, b = _affine(c, a, x)
    return c.op("InstanceNormalization", x, w, b, epsilon=float(a.eps))


@lower("aten._weight_norm", "aten._weight_norm_interface")
def weight_norm(c, a):
    v, g = a.v, a.g
    axes = None if a.dim == -1 else [k for k in range(len(v.shape)) if k != (a.dim or 0) % len(v.shape)]
    size = c.reduce("L2", v, axes, True)
    y = c.op("Mul", v, c.op("Div", g, size))
    return (y, size) if "interface" in c.operator else y
