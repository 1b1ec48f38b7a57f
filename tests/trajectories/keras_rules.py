"""Keras' update rules as torch optimizers, for small_dump.py: epsilon stands elsewhere than in PyTorch's."""

import math

import torch


class _Rule(torch.optim.Optimizer):
    def __init__(self, params, **settings):
        super().__init__(params, dict(self.defaults_of, **settings, t=0))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            g["t"] += 1
            for p in g["params"]:
                self.update(p, p.grad, g, self.state[p])


def _slot(state, name, like, value=0.0):
    return state.setdefault(name, torch.full_like(like, value))


class Adam(_Rule):
    defaults_of = dict(betas=(0.9, 0.999), eps=1e-7, weight_decay=0.0, amsgrad=False)

    def update(self, p, grad, g, state):
        b1, b2 = g["betas"]
        m, v = _slot(state, "m", p), _slot(state, "v", p)
        p.sub_(p * g["weight_decay"] * g["lr"])
        m.add_((grad - m) * (1 - b1))
        v.add_((grad * grad - v) * (1 - b2))
        most = v
        if g["amsgrad"]:
            most = _slot(state, "most", p)
            torch.maximum(most, v, out=most)
        p.sub_(m * (g["lr"] * math.sqrt(1 - b2 ** g["t"]) / (1 - b1 ** g["t"])) / (most.sqrt() + g["eps"]))


class RMSprop(_Rule):
    defaults_of = dict(alpha=0.9, eps=1e-7, momentum=0.0, centered=False)

    def update(self, p, grad, g, state):
        v = _slot(state, "v", p)
        v.mul_(g["alpha"]).add_((1 - g["alpha"]) * grad * grad)
        below = v + g["eps"]
        if g["centered"]:
            a = _slot(state, "a", p)
            a.mul_(g["alpha"]).add_((1 - g["alpha"]) * grad)
            below = v - a * a + g["eps"]
        way = g["lr"] * grad * torch.rsqrt(below)
        if g["momentum"] > 0:
            b = _slot(state, "b", p)
            way = b.mul_(g["momentum"]).add_(way)
        p.sub_(way)


class Adagrad(_Rule):
    defaults_of = dict(eps=1e-7, initial_accumulator_value=0.1)

    def update(self, p, grad, g, state):
        a = _slot(state, "a", p, g["initial_accumulator_value"])
        a.add_(grad * grad)
        p.sub_(g["lr"] * grad / torch.sqrt(a + g["eps"]))


class Softsign(_Rule):
    """small_cases.RULE_FILE."""
    defaults_of = {}

    def update(self, p, grad, g, state):
        m = _slot(state, "m", p)
        m.mul_(0.9).add_(grad)
        p.sub_(g["lr"] * torch.nn.functional.softsign(m))
