"""Reductions, arg-reductions, norms along axes, top k."""

import torch

from .table import normal_axes, op, wide


def _l2(x, d, k):
    return torch.linalg.vector_norm(x, 2, d, k)


_REDUCE = {
    "ReduceSum": lambda x, d, k: torch.sum(x, d, keepdim=k, dtype=x.dtype),
    "ReduceMean": lambda x, d, k: _mean(x, d, k), "ReduceMax": lambda x, d, k: _extreme(torch.amax, x, d, k),
    "ReduceMin": lambda x, d, k: _extreme(torch.amin, x, d, k), "ReduceProd": lambda x, d, k: _prod(x, d, k),
    "ReduceL1": lambda x, d, k: torch.sum(x.abs(), d, keepdim=k, dtype=x.dtype),
    "ReduceL2": lambda x, d, k: _in_float(_l2, x, d, k),
    "ReduceSumSquare": lambda x, d, k: torch.sum(x * x, d, keepdim=k, dtype=x.dtype),
    "ReduceLogSum": lambda x, d, k: _in_float(lambda y, d, k: torch.log(torch.sum(y, d, keepdim=k)), x, d, k),
    "ReduceLogSumExp": lambda x, d, k: _in_float(lambda y, d, k: torch.logsumexp(y, d, keepdim=k), x, d, k),
}


def _in_float(f, x, d, k):
    return f(x, d, k) if x.dtype.is_floating_point else f(x.to(torch.float64), d, k).to(x.dtype)


def _mean(x, d, k):
    if x.dtype.is_floating_point:
        return torch.mean(x, d, keepdim=k)
    total, count = torch.sum(x, d, keepdim=k), 1
    for a in d:
        count *= x.shape[a]
    return torch.div(total, count, rounding_mode="trunc").to(x.dtype)


def _extreme(f, x, d, k):
    if x.numel() == 0:  # the identity: the least (greatest) number
        shape = [1 if a in d and k else s for a, s in enumerate(x.shape) if k or a not in d]
        low = f is torch.amax
        if x.dtype == torch.bool:
            return torch.full(shape, not low, dtype=x.dtype, device=x.device)
        if x.dtype.is_floating_point:
            return torch.full(shape, float("-inf") if low else float("inf"), dtype=x.dtype, device=x.device)
        i = torch.iinfo(x.dtype)
        return torch.full(shape, i.min if low else i.max, dtype=x.dtype, device=x.device)
    return f(x, d, keepdim=k)


def _prod(x, d, k):
    for a in sorted(d, reverse=True):
        x = torch.prod(x, a, keepdim=k, dtype=x.dtype)
    return x


@op(*_REDUCE, host=(1,))
def reduce(n):
    f, keep, empty_is_all = _REDUCE[n.op], bool(n.get("keepdims", 1)), not n.get("noop_with_empty_axes", 0)
    fixed = n.get("axes")

    def run(x, axes=None):
        axes = fixed if axes is None else axes
        if not axes:
            if not empty_is_all:
                return _noop(n.op, x)
            axes = range(x.dim())
        d = normal_axes(axes, x.dim())
        if not d:
            return _noop(n.op, x)
        return f(x, d, keep)

    return run


def _noop(name, x):
    """Nothing is reduced: what the operator does to one element."""
    return {
        "ReduceL1": torch.abs,
        "ReduceL2": torch.abs,
        "ReduceSumSquare": torch.square,
        "ReduceLogSum": torch.log,
    }.get(name, lambda v: v)(x)


@op("ArgMax", "ArgMin")
def arg(n):
    axis, keep, last = n.get("axis", 0), bool(n.get("keepdims", 1)), n.get("select_last_index", 0)
    f = torch.argmax if n.op == "ArgMax" else torch.argmin

    def run(x):
        if not last:
            return f(x, axis, keepdim=keep)
        return x.shape[axis] - 1 - f(x.flip(axis), axis, keepdim=keep)

    return run


@op("TopK", host=(1,))
def top_k(n):
    axis, largest = n.get("axis", -1), bool(n.get("largest", 1))
    fixed = n.get("k")

    def run(x, k=None):
        count = fixed if k is None else k[0] if isinstance(k, list) else k
        # torch.topk leaves the order of equal values open; ONNX wants the lower index first
        y, i = torch.sort(wide(x), dim=axis, descending=largest, stable=True)
        return y.narrow(axis, 0, count).to(x.dtype), i.narrow(axis, 0, count)

    return run


@op("LpNormalization")
def lp_normalization(n):
    axis, p = n.get("axis", -1), n.get("p", 2)

    def run(x):
        norm = torch.linalg.vector_norm(x, p, axis, keepdim=True)
        return torch.where(norm == 0, torch.zeros_like(x), x / torch.where(norm == 0, torch.ones_like(norm), norm))

    return run
