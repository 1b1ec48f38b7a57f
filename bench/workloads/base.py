"""What a workload is: a network, its batch, its optimizer. Data and first weights come from fixed seeds, so every peer
trains the same numbers. Needs numpy alone.

Workloads are timed with a tiny learning rate: thousands of steps on one batch must not converge, or gradients become
denormal numbers and the time measures those. `for_check()` gives the same workload with a real learning rate and
without dropout; the runner compares losses on it.
"""

import dataclasses
from collections.abc import Callable
from functools import cached_property

import numpy as np

from workloads.shapes import Shapes


@dataclasses.dataclass(frozen=True)
class Optimizer:
    kind: str  # sgd, adam or adamw
    lr: float
    check_lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    @property
    def moments(self):
        """State tensors per parameter."""
        return 2 if self.kind != "sgd" else int(self.momentum > 0)


def sgd(check_lr=1e-1):
    return Optimizer("sgd", 1e-6, check_lr)


def momentum(check_lr=1e-2, weight_decay=0.0):
    return Optimizer("sgd", 1e-7, check_lr, momentum=0.9, weight_decay=weight_decay)


def adam(check_lr=1e-3):
    return Optimizer("adam", 1e-8, check_lr)


def adamw(check_lr=1e-4):
    return Optimizer("adamw", 1e-8, check_lr, weight_decay=0.01)


@dataclasses.dataclass(frozen=True)
class Workload:
    id: str
    name: str
    title: str  # batch and optimizer, for tables
    network: Callable  # network(layers, x, dropout) -> logits; the methods of `layers` are those of shapes.Shapes
    input_shape: tuple
    classes: int
    optimizer: Optimizer
    vocabulary: int = 0  # above 0: the input is token numbers
    dropout: float = 0.0
    label_per_token: bool = False
    tolerance: float = 1e-3  # of losses beside another engine; deep networks amplify rounding

    def for_check(self):
        return dataclasses.replace(self, dropout=0.0,
                                   optimizer=dataclasses.replace(self.optimizer, lr=self.optimizer.check_lr))

    def build(self, layers, x):
        return self.network(layers, x, self.dropout)

    @cached_property
    def shapes(self):
        found = Shapes(input_has_gradient=self.vocabulary > 0)
        found.logits = self.build(found, tuple(self.input_shape))
        return found

    def data(self):
        """-> (x, labels)"""
        rng = np.random.default_rng(1234)
        if self.vocabulary:
            x = rng.integers(0, self.vocabulary, self.input_shape).astype(np.int64)
        else:
            x = rng.standard_normal(self.input_shape, dtype=np.float32)
        labels = self.input_shape if self.label_per_token else self.input_shape[:1]
        return x, rng.integers(0, self.classes, labels).astype(np.int64)

    def parameters(self):
        """name -> first value, in PyTorch's names and layouts, in the order of the network."""
        rng = np.random.default_rng(7)
        return {p.name: first_value(p, rng) for p in self.shapes.parameters}

    def running(self):
        """name -> first value of batch normalization's running mean and variance."""
        return {p.name: first_value(p, None) for p in self.shapes.running}

    def cost(self):
        """Parameters, floating point operations of a step, bytes that the optimizer must move."""
        count = sum(int(np.prod(p.shape)) for p in self.shapes.parameters)
        return {"parameters": count, "forward_flops": self.shapes.forward_flops, "step_flops": self.shapes.step_flops,
                "optimizer_bytes": 4 * count * (3 + 2 * self.optimizer.moments)}


def first_value(p, rng):
    if p.kind in ("one", "zero"):
        return np.full(p.shape, float(p.kind == "one"), np.float32)
    if p.kind == "embedding":
        return 0.02 * rng.standard_normal(p.shape, dtype=np.float32)
    fan = p.fan or int(np.prod(p.shape[1:]))
    bound = (6.0 / fan) ** 0.5 if p.kind == "conv" else fan**-0.5
    return rng.uniform(-bound, bound, p.shape).astype(np.float32)
