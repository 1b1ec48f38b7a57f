"""One round trip: five steps in PyTorch, from_torch, five steps here, to_torch, five steps in PyTorch, against fifteen
there.

The last five run twice: with what to_torch made, and with the original class and optimizer after they loaded its state.
A difference is the largest over losses, parameters, buffers and the optimizer's state, relative to the largest element
of the tensor. Where it exceeds 1e-5 it is compared with the noise of float32 itself: the same tensor's difference
between PyTorch in float32 and PyTorch in float64 (a gradient that is 0 in exact arithmetic, such as that of an
attention's key bias, becomes a step of the size of the rate in Adam's division)."""

import copy
import json
import warnings
from dataclasses import dataclass

import numpy as np
import onnx
import torch

import onnxtrain as ot
from from_settings import OPTIMIZERS, SCHEDULERS
from from_zoo import ARCHITECTURES
from onnxtrain.torch.from_torch import trace as tracing

EXACT, NOISE = 1e-5, 10


@dataclass
class Trip:
    difference: float
    where: str
    noise: float = None  # of float32 there, where the difference exceeds EXACT
    optimizer: str = ""  # classes that to_torch gave
    scheduler: str = ""

    @property
    def good(self):
        return self.difference <= EXACT or (self.noise is not None and self.difference <= NOISE * self.noise)


def feeds_of(inputs, targets, names):
    flat = (
        list(inputs.values()) if isinstance(inputs, dict) else list(inputs) if isinstance(inputs, tuple) else [inputs]
    )
    if targets is not None:
        flat.append(targets)
    return {n: t.numpy() for n, t in zip(names, flat)}


def call(module, inputs):
    return (
        module(**inputs)
        if isinstance(inputs, dict)
        else module(*inputs)
        if isinstance(inputs, tuple)
        else module(inputs)
    )


def torch_steps(module, optimizer, inputs, targets, loss, n, scheduler=None):
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        value = loss(call(module, inputs), targets)
        value.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(float(value.detach()))
    return losses


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-3)) if b.size else 0.0


def converted(value, dtype):
    """Floating-point tensors of any container, and modules, in another type."""
    if isinstance(value, dict):
        return {k: converted(v, dtype) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(converted(v, dtype) for v in value)
    floating = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    return value.to(dtype) if floating or isinstance(value, torch.nn.Module) else value


class Architecture:
    """A module with its example batch that starts again for every optimizer. Its traces, which no optimizer changes,
    are made once."""

    def __init__(self, make, seed=0, dtype=None):
        self.make, self.seed, self.traces, self._exact = make, seed, {}, None
        torch.manual_seed(seed)
        parts = (ARCHITECTURES[make] if isinstance(make, str) else make)()
        self.module, self.inputs, self.targets, self.loss = parts if dtype is None else converted(tuple(parts), dtype)
        self.initial = copy.deepcopy(self.module.state_dict())

    def start(self, opt, scheduler=None):
        """(module, inputs, targets, loss, optimizer, scheduler) before the first step."""
        self.module.load_state_dict(self.initial)
        self.module.train().zero_grad()
        optimizer = OPTIMIZERS[opt](list(self.module.parameters()))
        return (
            self.module,
            self.inputs,
            self.targets,
            self.loss,
            optimizer,
            SCHEDULERS[scheduler](optimizer) if scheduler else None,
        )

    @property
    def exact(self):
        """The same in float64."""
        self._exact = self._exact or Architecture(self.make, self.seed, torch.float64)
        return self._exact

    def from_torch(self, *args):
        inner = tracing.trace

        def trace(module, loss, call, training, dynamic, obstacles):
            if training not in self.traces:
                self.traces[training] = inner(module, loss, call, training, dynamic, obstacles)
            return self.traces[training]

        tracing.trace = trace
        try:
            return ot.from_torch(*args)
        finally:
            tracing.trace = inner


def start(arch, opt):
    return Architecture(arch).start(opt)


def info_of(model):
    """What from_torch wrote down."""
    return json.loads(
        {p.key: p.value for p in onnx.ModelProto.FromString(model.proto()).metadata_props}["onnxtrain.torch"]
    )


def tensors_of(module, optimizer):
    """Parameters, buffers and the optimizer's state by name."""
    names = {id(p): n for n, p in module.named_parameters()}
    found = {n: t.detach().numpy().copy() for n, t in [*module.named_parameters(), *module.named_buffers()]}
    for p, state in optimizer.state.items():
        found |= {
            f"{names[id(p)]}: {k}": v.detach().numpy().copy() for k, v in state.items() if isinstance(v, torch.Tensor)
        }
    return found


def results_of(losses, module, optimizer):
    return {"loss": losses, **tensors_of(module, optimizer), "rate": [float(g["lr"]) for g in optimizer.param_groups]}


def trip(arch, opt, scheduler=None):
    """The Trip of an architecture (a name, a function or an Architecture) with an optimizer, and a scheduler that is
    converted in its middle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trip(arch if isinstance(arch, Architecture) else Architecture(arch), opt, scheduler)


def _trip(arch, opt, scheduler):
    m, x, t, f, o, s = arch.start(opt, scheduler)
    wanted = results_of(torch_steps(m, o, x, t, f, 15, s), m, o)
    m, x, t, f, o, s = arch.start(opt, scheduler)
    first = torch_steps(m, o, x, t, f, 5, s)
    model = arch.from_torch(m, x, t, f, o, s)
    info = info_of(model)
    trainer = ot.Trainer(model, seed=0)
    feeds = feeds_of(x, t, info["inputs"] + info["targets"])
    first += [trainer.step(feeds).loss for _ in range(5)]
    made = ot.to_torch(trainer)
    m.load_state_dict(ot.torch_state_dict(trainer), strict=True)
    o.load_state_dict(copy.deepcopy(made.optimizer.state_dict()))  # torch would share the tensors
    if s is not None:
        s.load_state_dict(copy.deepcopy(made.scheduler.state_dict()))
    again = torch_steps(made.module.train(), made.optimizer, x, t, made.loss, 5, made.scheduler)
    results = [
        results_of(first + torch_steps(m, o, x, t, f, 5, s), m, o),
        results_of(first + again, made.module, made.optimizer),
    ]
    missing = set(wanted) - set(results[0]) | set(results[0]) - set(wanted)
    if missing:
        return Trip(np.inf, f"missing or new: {sorted(missing)[:3]}")
    kinds = type(made.optimizer).__name__, "" if s is None else type(made.scheduler).__name__
    apart = {n: max(distance(r[n], wanted[n]) for r in results if n in r) for n in wanted}
    worst = max(apart, key=apart.get)
    if apart[worst] <= EXACT:
        return Trip(apart[worst], worst, None, *kinds)
    m, x, t, f, o, s = arch.exact.start(opt, scheduler)
    exact = results_of(torch_steps(m, o, x, t, f, 15, s), m, o)
    noise = {n: distance(wanted[n], exact[n]) for n in wanted}
    worst = max((n for n in apart if apart[n] > EXACT), key=lambda n: apart[n] / max(noise[n], EXACT / NOISE))
    return Trip(apart[worst], worst, noise[worst], *kinds)
