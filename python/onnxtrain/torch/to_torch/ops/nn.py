"""Convolution, pooling, dropout, losses: torch's own functions wherever they say the same."""

import math

import torch
import torch.nn.functional as F

from .table import Unsupported, op

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_T = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def window_pads(n, size, kernel, strides, dilations):
    """Begin and end pads by `pads` or `auto_pad`."""
    rank, auto = len(kernel), n.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return [0] * (2 * rank)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        low, high = [], []
        for k in range(rank):
            out = -(-size[k] // strides[k])
            total = max((out - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 - size[k], 0)
            small = total // 2
            low.append(small if auto == "SAME_UPPER" else total - small)
            high.append(total - low[-1])
        return low + high
    return list(n.get("pads") or [0] * (2 * rank))


def _flat_pads(pads, rank):
    return [p for k in reversed(range(rank)) for p in (pads[k], pads[k + rank])]


def _steps(n, x, functions, what):
    """(spatial rank, strides, dilations) of a convolution."""
    rank = x.dim() - 2
    if rank not in functions:
        raise Unsupported(f"torch has no {what} over {rank} dimensions")
    return rank, n.get("strides") or [1] * rank, n.get("dilations") or [1] * rank


@op("Conv")
def conv(n):
    groups = n.get("group", 1)

    def run(x, w, b=None):
        rank, strides, dilations = _steps(n, x, _CONV, "convolution")
        pads = window_pads(n, x.shape[2:], w.shape[2:], strides, dilations)
        if pads[:rank] != pads[rank:]:
            x, pads = F.pad(x, _flat_pads(pads, rank)), [0] * rank
        return _CONV[rank](x, w, b, strides, pads[:rank], dilations, groups)

    return run


@op("ConvTranspose")
def conv_transpose(n):
    groups = n.get("group", 1)

    def run(x, w, b=None):
        rank, strides, dilations = _steps(n, x, _CONV_T, "transposed convolution")
        extra, want = list(n.get("output_padding") or [0] * rank), n.get("output_shape")
        natural = [(x.shape[2 + k] - 1) * strides[k] + (w.shape[2 + k] - 1) * dilations[k] + 1 for k in range(rank)]
        auto = n.get("auto_pad", "NOTSET")
        if want is not None or auto in ("SAME_UPPER", "SAME_LOWER"):
            sizes = list(want)[-rank:] if want is not None else [x.shape[2 + k] * strides[k] for k in range(rank)]
            total = [max(natural[k] + extra[k] - sizes[k], 0) for k in range(rank)]
            low = [t - t // 2 if auto != "SAME_UPPER" else t // 2 for t in total]
            if auto == "NOTSET":
                low = [t // 2 for t in total]
            pads = low + [t - p for t, p in zip(total, low)]
            extra = [max(sizes[k] - natural[k], extra[k]) for k in range(rank)]
        else:
            sizes, pads = None, window_pads(n, x.shape[2:], w.shape[2:], strides, dilations)
        if pads[:rank] == pads[rank:] and all(e < max(s, d) for e, s, d in zip(extra, strides, dilations)):
            return _CONV_T[rank](x, w, b, strides, pads[:rank], extra, groups, dilations)
        y = _CONV_T[rank](x, w, None, strides, 0, 0, groups, dilations)
        y = F.pad(y, _flat_pads([-p for p in pads[:rank]] + [e - p for e, p in zip(extra, pads[rank:])], rank))
        return y if b is None else y + b.reshape(1, -1, *[1] * rank)

    return run


def _pool_frame(n, x, kernel):
    """(strides, dilations, pads): end pads grow so that torch's floor mode gives ONNX's number of windows."""
    rank = len(kernel)
    strides, dilations = n.get("strides") or [1] * rank, n.get("dilations") or [1] * rank
    pads = window_pads(n, x.shape[2:], kernel, strides, dilations)
    extra = [0] * rank
    if n.get("ceil_mode", 0):
        for k in range(rank):
            span = dilations[k] * (kernel[k] - 1) + 1
            room = x.shape[2 + k] + pads[k] + pads[k + rank] - span
            count = -(-room // strides[k]) + 1
            if (count - 1) * strides[k] >= x.shape[2 + k] + pads[k]:  # a window that begins beyond the data
                count -= 1
            extra[k] = max((count - 1) * strides[k] - room, 0)
    return strides, dilations, pads, extra


@op("MaxPool")
def max_pool(n):
    kernel, column_major = n.get("kernel_shape"), n.get("storage_order", 0)
    rank = len(kernel)
    if rank not in _MAX:
        raise Unsupported(f"torch has no pooling over {rank} dimensions")

    def run(x):
        strides, dilations, pads, extra = _pool_frame(n, x, kernel)
        y = x if x.dtype.is_floating_point else x.to(torch.float32)
        plain = pads[:rank] == pads[rank:] and not any(extra) and all(2 * p <= k for p, k in zip(pads, kernel))
        if plain and not n.wants(1):
            return _MAX[rank](y, kernel, strides, pads[:rank], dilations).to(x.dtype)
        low, high = pads[:rank], [p + e for p, e in zip(pads[rank:], extra)]
        padded = F.pad(y, _flat_pads(low + high, rank), value=float("-inf"))
        out, index = _MAX[rank](padded, kernel, strides, 0, dilations, return_indices=True)
        if not n.wants(1):
            return out.to(x.dtype)
        return out.to(x.dtype), _positions(index, padded.shape[2:], x.shape, low, column_major)

    return run


def _positions(index, padded, shape, low, column_major):
    """Positions within each padded plane -> positions in the whole tensor."""
    coordinates = []
    for k in reversed(range(len(padded))):
        coordinates.insert(0, index % padded[k] - low[k])
        index = index // padded[k]
    flat = torch.zeros_like(coordinates[0])
    order = reversed(range(len(padded))) if column_major else range(len(padded))
    for k in order:
        flat = flat * shape[2 + k] + coordinates[k]
    plane = math.prod(shape[2:])
    channels = torch.arange(shape[0] * shape[1], device=flat.device).reshape(shape[0], shape[1], *[1] * len(padded))
    return flat + channels * plane


@op("AveragePool")
def average_pool(n):
    kernel, count_pads = n.get("kernel_shape"), bool(n.get("count_include_pad", 0))
    rank = len(kernel)

    def run(x):
        strides, dilations, pads, extra = _pool_frame(n, x, kernel)
        even = pads[:rank] == pads[rank:] and not any(extra) and all(2 * p <= k for p, k in zip(pads, kernel))
        if even and all(d == 1 for d in dilations) and rank in _AVERAGE:
            return _AVERAGE[rank](x, kernel, strides, pads[:rank], False, count_pads)
        ones = torch.ones_like(x[:1, :1])
        if count_pads:  # pads count, the overhang of ceil_mode does not
            x, ones = F.pad(x, _flat_pads(pads, rank)), F.pad(ones, _flat_pads(pads, rank), value=1)
            grow = [0] * rank + extra
        else:
            grow = pads[:rank] + [p + e for p, e in zip(pads[rank:], extra)]
        total = _window_sum(F.pad(x, _flat_pads(grow, rank)), kernel, strides, dilations)
        return total / _window_sum(F.pad(ones, _flat_pads(grow, rank)), kernel, strides, dilations)

    return run


def _window_sum(x, kernel, strides, dilations):
    rank, channels = len(kernel), x.shape[1]
    if rank not in _CONV:
        raise Unsupported(f"torch has no pooling over {rank} dimensions")
    w = torch.ones(channels, 1, *kernel, dtype=x.dtype, device=x.device)
    return _CONV[rank](x, w, None, strides, 0, dilations, channels)


@op("LpPool")
def lp_pool(n):
    kernel, p = n.get("kernel_shape"), n.get("p", 2)
    rank = len(kernel)

    def run(x):
        strides, dilations, pads, extra = _pool_frame(n, x, kernel)
        grow = pads[:rank] + [a + e for a, e in zip(pads[rank:], extra)]
        powers = F.pad(x.abs() ** p, _flat_pads(grow, rank))
        return _window_sum(powers, kernel, strides, dilations) ** (1 / p)

    return run


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n):
    p = n.get("p", 2)

    def run(x):
        d = list(range(2, x.dim()))
        if n.op == "GlobalAveragePool":
            return x.mean(d, keepdim=True)
        if n.op == "GlobalMaxPool":
            return _global_max(x)
        return torch.linalg.vector_norm(x, p, d, keepdim=True)

    return run


def _global_max(x):
    y = x.flatten(2).max(2, keepdim=True)[0]  # one winner takes the whole gradient, as in a pool
    return y.reshape(*x.shape[:2], *[1] * (x.dim() - 2))


@op("MaxUnpool", host=(2,))
def max_unpool(n):
    kernel = n.get("kernel_shape")
    rank = len(kernel)

    def run(x, index, to=None):
        strides, pads = n.get("strides") or [1] * rank, n.get("pads") or [0] * 2 * rank
        natural = [(x.shape[2 + k] - 1) * strides[k] + kernel[k] - pads[k] - pads[k + rank] for k in range(rank)]
        shape = [*x.shape[:2], *natural]
        y = torch.zeros(math.prod(shape), dtype=x.dtype, device=x.device).scatter(0, index.reshape(-1), x.reshape(-1))
        y = y.reshape(shape)
        if to is None:
            return y
        return F.pad(y, [p for k in reversed(range(y.dim())) for p in (0, to[k] - y.shape[k])])

    return run


@op("Dropout", random=True)
def dropout(n):
    forced, fixed = n.get("_training"), n.get("ratio", 0.5)
    ratio, mode = n.constant(1), n.constant(2)
    legacy = n.version < 7 and not n.get("is_test", 0)

    def run(x, r=None, training=None):
        if n.version < 12:
            p, live = fixed, legacy
        else:
            p = 0.5 if r is None else ratio.item() if ratio is not None else r.item()
            live = False if training is None else bool(mode.item() if mode is not None else training.item())
        live = live or bool(forced)
        if n.wants(1):
            mask = (
                torch.rand_like(x, dtype=torch.float32) >= p if live and p > 0 else torch.ones_like(x, dtype=torch.bool)
            )
            return (torch.where(mask, x / (1 - p) if p < 1 else x, torch.zeros_like(x)) if live else x), mask
        return F.dropout(x, p, live)

    return run


@op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(n):
    reduction, ignore = n.get("reduction", "mean"), n.get("ignore_index")

    def run(scores, labels, weights=None):
        loss = _class_loss(F.cross_entropy, scores, labels, weights, reduction, ignore)
        return (loss, F.log_softmax(scores, 1)) if n.wants(1) else loss

    return run


@op("NegativeLogLikelihoodLoss")
def nll(n):
    reduction, ignore = n.get("reduction", "mean"), n.get("ignore_index")
    return lambda logs, labels, weights=None: _class_loss(F.nll_loss, logs, labels, weights, reduction, ignore)


def _class_loss(f, scores, labels, weights, reduction, ignore):
    labels = labels.to(torch.int64)
    index = -100 if ignore is None else ignore
    loss = f(scores, labels, weight=weights, ignore_index=index, reduction=reduction)
    if reduction == "mean" and ignore is not None:  # everything ignored: 0, and no gradient
        return torch.where((labels == ignore).all(), torch.zeros_like(loss), loss) if bool(torch.isnan(loss)) else loss
    return loss
