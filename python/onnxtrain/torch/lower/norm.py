"""Normalisation layers."""

import torch

from .base import Unsupported, Value, lower, static
from .reduce import count_of


def _filled(c, n, value, dtype):
    return c.e.const(torch.full([n], value, dtype=dtype))


@lower("aten.layer_norm", "aten.native_layer_norm")
def layer_norm(c, a):
    x, shape = a.input, a.normalized_shape
    many = c.node.target._schema.name.endswith("native_layer_norm")
    if not all(isinstance(s, int) for s in shape):
        raise Unsupported("layer_norm over an open size")
    w = a.weight if a.weight is not None else c.e.const(torch.ones(list(shape), dtype=x.dtype))
    y = c.op("LayerNormalization", x, w, a.bias, axis=-len(shape), epsilon=float(a.eps))
    return (y, None, None) if many else y


@lower("aten.rms_norm", "aten._fused_rms_norm")
def rms_norm(c, a):
    x = a.input
    many = "fused" in c.node.target._schema.name
    eps = a.eps if a.eps is not None else torch.finfo(x.dtype).eps
    axes = list(range(-len(a.normalized_shape), 0))
    mean = c.reduce("Mean", c.op("Mul", x, x), axes, True)
    y = c.op("Div", x, c.op("Sqrt", c.op("Add", mean, c.num(float(eps), x))))
    y = y if a.weight is None else c.op("Mul", y, a.weight)
    return (y, None) if many else y


@lower("aten.group_norm", "aten.native_group_norm")
def group_norm(c, a):
    many = c.node.target._schema.name.endswith("native_group_norm")
    x = a.input
    groups = a.num_groups if a.num_groups is not None else a.group
    channels = static(x.shape[1])
    if channels is None:
        raise Unsupported("group_norm over an open number of channels")
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
    w, b = _affine(c, a, x)
    return c.op("BatchNormalization", x, w, b, a.running_mean, a.running_var, epsilon=float(a.eps))


def _training(c, a, x):
    """Y and the new running statistics; PyTorch keeps the unbiased variance, ONNX's operator the other one."""
    w, b = _affine(c, a, x)
    mean, var = a.running_mean, a.running_var
    keep = mean is not None and a.momentum is not None
    if not keep:
        channels = static(x.shape[1])
        mean, var = _filled(c, channels, 0, x.dtype), _filled(c, channels, 1, x.dtype)
    momentum = 1 - float(a.momentum if keep else 0.1)
    names = c.e.node("BatchNormalization", [x, w, b, mean, var], outputs=3, epsilon=float(a.eps), momentum=momentum, training_mode=1)
    y, new_mean, new_var = [Value(n, x.dtype) for n in names]
    if not keep:
        return y, None, None
    axes = [k for k in range(len(x.shape)) if k != 1]
    n = count_of(c, x, axes)
    ratio = c.op("Div", n, c.op("Max", c.op("Sub", n, c.num(1.0, x)), c.num(1.0, x)))
    kept = c.op("Mul", var, c.num(momentum, x))
    unbiased = c.op("Sub", c.op("Mul", new_var, ratio), c.op("Mul", kept, c.op("Sub", ratio, c.num(1.0, x))))
    return y, new_mean, unbiased


@lower("aten.batch_norm", "aten._native_batch_norm_legit_functional", "aten._native_batch_norm_legit_no_training", "aten.native_batch_norm",
       "aten._native_batch_norm_legit", "aten._batch_norm_with_update_functional", "aten._batch_norm_no_update", "aten.cudnn_batch_norm")
def batch_norm(c, a):
    name = c.node.target._schema.name.split("::")[1]
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
    w, b = _affine(c, a, a.input)
    return c.op("InstanceNormalization", a.input, w, b, epsilon=float(a.eps))


@lower("aten._weight_norm", "aten._weight_norm_interface")
def weight_norm(c, a):
    v, g = a.v, a.g
    axes = None if a.dim == -1 else [k for k in range(len(v.shape)) if k != (a.dim or 0) % len(v.shape)]
    size = c.reduce("L2", v, axes, True)
    y = c.op("Mul", v, c.op("Div", g, size))
    return (y, size) if "interface" in c.node.target._schema.name else y
