"""Operators of training: the standard's optimizers, and Detach of our own domain."""

import torch

from ....graph import OWN, TRAINING
from .table import op


@op("Detach", domain=OWN)
def detach(n):
    return lambda x: x.detach()


def _groups(args, state):
    """R, T, then all X, all G, all state."""
    rate, counter, *rest = args
    count = len(rest) // (2 + state)
    columns = [rest[k * count:(k + 1) * count] for k in range(2 + state)]
    return rate, counter, list(zip(*columns))


def _join(results):
    return tuple(v for column in zip(*results) for v in column)


@op("Momentum", domain=TRAINING)
def momentum(n):
    alpha, beta, norm = n.get("alpha"), n.get("beta"), n.get("norm_coefficient")
    nesterov = n.get("mode") == "nesterov"

    def run(*args):
        rate, t, columns = _groups(args, 1)
        out = []
        for x, g, v in columns:
            g = norm * x + g
            v1 = alpha * v + torch.where(t > 0, beta, 1.0).to(x.dtype) * g
            out.append((x - rate * (g + alpha * v1 if nesterov else v1), v1))
        return _join(out)

    return run


@op("Adagrad", domain=TRAINING)
def adagrad(n):
    decay, eps, norm = n.get("decay_factor", 0.0), n.get("epsilon", 0.0), n.get("norm_coefficient", 0.0)

    def run(*args):
        rate, t, columns = _groups(args, 1)
        out = []
        for x, g, h in columns:
            g = norm * x + g
            h1 = h + g * g
            out.append((x - (rate / (1 + t * decay)).to(x.dtype) * g / (torch.sqrt(h1) + eps), h1))
        return _join(out)

    return run


@op("Adam", domain=TRAINING)
def adam(n):
    alpha, beta, eps = n.get("alpha", 0.9), n.get("beta", 0.999), n.get("epsilon", 0.0)
    norm, post = n.get("norm_coefficient", 0.0), n.get("norm_coefficient_post", 0.0)

    def run(*args):
        rate, t, columns = _groups(args, 2)
        power = t.to(torch.float64)
        fix = torch.where(t > 0, torch.sqrt(1 - beta ** power) / (1 - alpha ** power), 1.0)
        out = []
        for x, g, v, h in columns:
            g = norm * x + g
            v1, h1 = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
            x1 = x - (rate * fix).to(x.dtype) * v1 / (torch.sqrt(h1) + eps)
            out.append(((1 - post) * x1, v1, h1))
        return _join(out)

    return run
