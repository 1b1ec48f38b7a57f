"""Normalisations. BatchNormalization in training form gives the new statistics as the operator defines them."""

import torch
import torch.nn.functional as F

from .table import op


def batch_statistics(x):
    """Mean and population variance per channel, in the precision that torch uses."""
    dims = [0, *range(2, x.dim())]
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    var, mean = torch.var_mean(wide, dims, correction=0)
    return mean, var


@op("BatchNormalization")
def batch_norm(n):
    eps, momentum = n.get("epsilon", 1e-5), n.get("momentum", 0.9)
    if n.version >= 14:
        training = bool(n.get("training_mode", 0))
    else:
        training = not n.get("is_test", 0) if n.version < 7 else any(n.wants(k) for k in range(1, n.outputs))

    def inference(x, scale, bias, mean, var):
        one = x.unsqueeze(1) if x.dim() == 1 else x
        y = F.batch_norm(one, mean.to(x.dtype), var.to(x.dtype), scale.to(x.dtype), bias.to(x.dtype), False, 0.0, eps)
        return y.reshape(x.shape)

    def live(x, scale, bias, mean, var):
        y = _train_mode(x, scale.to(x.dtype), bias.to(x.dtype), eps)
        if not any(n.wants(k) for k in range(1, n.outputs)):
            return y
        with torch.no_grad():
            m, v = (s.to(mean.dtype) for s in batch_statistics(x))
            news = mean * momentum + m * (1 - momentum), var * momentum + v * (1 - momentum)
        return (y, *news, m, v)

    return live if training else inference


def _train_mode(x, scale, bias, eps):
    if x.numel() // max(x.shape[1], 1) > 1:
        return F.batch_norm(x, None, None, scale, bias, True, 0.0, eps)
    view = [1, -1, *[1] * (x.dim() - 2)]  # torch refuses a single value per channel
    return (x - x.mean(0, keepdim=True)) * (eps ** -0.5) * scale.reshape(view) + bias.reshape(view)


@op("LayerNormalization")
def layer_norm(n):
    axis, eps = n.get("axis", -1), n.get("epsilon", 1e-5)

    def run(x, scale, bias=None):
        a = axis + x.dim() if axis < 0 else axis
        shape = x.shape[a:]
        if scale.shape == shape and (bias is None or bias.shape == shape) and not n.wants(1) and not n.wants(2):
            return F.layer_norm(x, shape, scale, bias, eps)
        dims = list(range(a, x.dim()))
        wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
        var, mean = torch.var_mean(wide, dims, correction=0, keepdim=True)
        inverse = torch.rsqrt(var + eps)
        y = ((wide - mean) * inverse).to(x.dtype) * scale
        return (y if bias is None else y + bias), mean, inverse

    return run


@op("RMSNormalization")
def rms_norm(n):
    axis, eps = n.get("axis", -1), n.get("epsilon", 1e-5)

    def run(x, scale):
        a = axis + x.dim() if axis < 0 else axis
        shape = x.shape[a:]
        if scale.shape == shape:
            return F.rms_norm(x, list(shape), scale, eps)
        return F.rms_norm(x, list(shape), None, eps) * scale

    return run


@op("InstanceNormalization")
def instance_norm(n):
    eps = n.get("epsilon", 1e-5)
    return lambda x, scale, bias: F.instance_norm(x, None, None, scale, bias, True, 0.0, eps)


@op("GroupNormalization")
def group_norm(n):
    groups, eps = n.get("num_groups"), n.get("epsilon", 1e-5)

    def run(x, scale, bias):
        if n.version >= 21 or scale.numel() == x.shape[1]:
            return F.group_norm(x, groups, scale, bias, eps)
        each = x.shape[1] // groups  # opset 18: one scale per group
        return F.group_norm(x, groups, scale.repeat_interleave(each), bias.repeat_interleave(each), eps)

    return run


@op("LRN")
def lrn(n):
    alpha, beta, bias, size = n.get("alpha", 1e-4), n.get("beta", 0.75), n.get("bias", 1.0), n.get("size")

    def run(x):
        if size % 2:
            return F.local_response_norm(x, size, alpha, beta, bias)
        # an even window reaches one further to the right
        low, high = (size - 1) // 2, size - 1 - (size - 1) // 2
        squares = F.pad((x * x).movedim(1, -1), (low, high)).unfold(-1, size, 1).sum(-1).movedim(-1, 1)
        return x / (bias + alpha / size * squares) ** beta

    return run


@op("MeanVarianceNormalization")
def mean_variance(n):
    axes = n.get("axes", [0, 2, 3])

    def run(x):
        var, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        return (x - mean) / (torch.sqrt(var) + 1e-9)

    return run
