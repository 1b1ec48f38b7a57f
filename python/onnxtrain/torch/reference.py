"""What PyTorch itself computes on the examples, with dropout off and random numbers replaced by fixed ones.

The file is run with the same replacements (selfcheck.py), so both sides can be compared exactly.
"""

import inspect
import math

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .capture import compute_loss, set_mode, structural_copy
from .obstacles import Obstacles, autograd_functions
from .shelf import Shelf
from .structure import flatten_outputs

_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "feature_dropout", "feature_dropout_"}
MIDDLE = 0.5  # what stands for a random number: uniform in [0, 1), and in deviations for a normal one


class Fixed(TorchFunctionMode):
    """Dropout keeps everything; random numbers are the middle of their range."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if "alpha_dropout" in name:
            return _alpha_dropout(*args, **kwargs)
        if name in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if name in ("rrelu", "rrelu_"):
            return _rrelu(*args, **kwargs)
        if name == "scaled_dot_product_attention":
            args = list(args)
            if len(args) > 4:
                args[4] = 0.0
            kwargs.pop("dropout_p", None)
            return func(*args, **kwargs)
        if name == "multi_head_attention_forward":
            bound = inspect.signature(func).bind(*args, **kwargs)
            bound.arguments["dropout_p"] = 0.0
            return func(*bound.args, **bound.kwargs)
        if name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and len(args) >= 9:
            args = list(args)
            args[5 if isinstance(args[3], bool) else 6] = 0.0  # packed sequences have their sizes before
            return func(*args, **kwargs)
        fixed = _RANDOM.get(name)
        return func(*args, **kwargs) if fixed is None else fixed(func, args, kwargs)


def _alpha_dropout(input, p=0.5, train=False, inplace=False, training=False):
    """The mean of what is kept and what is replaced: the file's own mask without chance."""
    if not (train or training) or p == 0:
        return input
    low, keep = -1.7580993408473766, 1 - p
    scale = (keep + low * low * keep * p) ** -0.5
    return (input * keep + p * low) * scale - scale * low * p


def _rrelu(input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    return torch.where(input > 0, input, input * (lower + upper) * MIDDLE)


def _filled(value):
    def f(func, args, kwargs):
        return func(*args, **kwargs).detach().fill_(value)

    return f


def _in_place(value_of):
    def f(func, args, kwargs):
        x = args[0]
        with torch.no_grad():
            x.fill_(value_of(*args[1:], **kwargs))
        return x

    return f


def _normal(func, args, kwargs):
    mean, std = (list(args) + [kwargs.get("mean", 0.0), kwargs.get("std", 1.0)])[:2]
    if isinstance(mean, torch.Tensor) or isinstance(std, torch.Tensor):
        return mean + MIDDLE * std
    return func(*args, **kwargs).fill_(mean + MIDDLE * std)


def _randint(func, args, kwargs):
    y = func(*args, **kwargs)
    numbers = [a for a in args if isinstance(a, int)]
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2] if numbers else (kwargs.get("low", 0), kwargs["high"])
    return y.fill_(min(math.floor((low + high) / 2), high - 1))


def _gumbel_softmax(func, args, kwargs):
    """torch's formula with the middle of the noise; a Python function of torch runs without this mode inside."""
    a = inspect.signature(func).bind(*args, **kwargs)
    a.apply_defaults()
    logits, tau, hard, dim = (a.arguments[k] for k in ("logits", "tau", "hard", "dim"))
    soft = ((logits - math.log(math.log(2))) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = torch.zeros_like(logits).scatter(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft


_RANDOM = {
    "gumbel_softmax": _gumbel_softmax,
    "rand": _filled(MIDDLE), "rand_like": _filled(MIDDLE), "randn": _filled(MIDDLE), "randn_like": _filled(MIDDLE),
    "bernoulli": _filled(1.0), "normal": _normal, "randint": _randint, "randint_like": _randint,
    "bernoulli_": _in_place(lambda *a, **k: 1.0),
    "uniform_": _in_place(lambda low=0.0, high=1.0, **k: (k.get("from", low) + k.get("to", high)) / 2),
    "normal_": _in_place(lambda mean=0.0, std=1.0, **k: mean + MIDDLE * std),
    "exponential_": _in_place(lambda lambd=1.0, **k: math.log(2) / lambd),
}


class Reference:
    """outputs (inference form), and for a training: loss, train_outputs, buffers, gradients by stored name.

    With `jitter` parameters differ by at most so many units in the last place; `exact` computes in float64; `examples` are others
    than those of the conversion, for which no gradients are computed."""

    def __init__(self, conversion, jitter=0, exact=False, examples=None):
        self.c, self.jitter, self.exact, self.examples, self.loss = conversion, jitter, exact, examples, None
        self.train_outputs, self.gradients, self.buffers = [], {}, {}
        self._changed, self._chance = {}, np.random.default_rng(jitter)  # torch's own numbers are fixed here
        devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
        with torch.random.fork_rng(devices=devices), Fixed():
            self._inference()
            if conversion.training:
                self._training()
        self._changed = {}

    def _copy(self, module):
        """Shares the parameters unless they are to be others."""
        if not (self.jitter or self.exact):
            return structural_copy(module, with_buffers=True, memo={id(p): self._kept(p) for p in module.parameters()})
        memo = {}
        for p in module.parameters():
            if p not in self._changed:
                self._changed[p] = self._change(p)
            memo[id(p)] = self._changed[p]
        copy = structural_copy(module, with_buffers=True, memo=memo)
        return copy.double() if self.exact else copy

    def _kept(self, p):
        """The parameter itself, or one to write to where forward does."""
        written = self.c.state.stored_name(p) in self.c.state.written
        return torch.nn.Parameter(p.detach().clone(), p.requires_grad) if written else p

    def _change(self, p):
        if not p.dtype.is_floating_point:
            return p
        if self.exact:
            return torch.nn.Parameter(p.detach().double(), p.requires_grad)
        units = self._chance.integers(-self.jitter, self.jitter + 1, tuple(p.shape), np.int8)
        changed = torch.from_numpy(units).to(p).mul_(torch.finfo(p.dtype).eps).add_(1).mul_(p.detach())
        return torch.nn.Parameter(changed, p.requires_grad)

    def _examples(self):
        given = self.c.call.tensors if self.examples is None else self.examples
        return [t.detach().double() if self.exact and t.dtype.is_floating_point else t.detach() for t in given]

    def _inference(self):
        copy = set_mode(self._copy(self.c.module), False)
        args, kwargs = self.c.call.arguments(self._examples())
        with torch.no_grad():
            self.outputs = dict(flatten_outputs(copy(*args, **kwargs)))

    def _training(self):
        c = self.c
        copy = self._copy(c.module)
        if not c.module.training:
            set_mode(copy, True)
        loss = c.loss
        if isinstance(loss, torch.nn.Module) and (self.jitter or self.exact or any(True for _ in loss.buffers())):
            loss = self._copy(loss)
        tensors = self._examples()
        args, kwargs = c.call.arguments(tensors)
        with torch.enable_grad(), autograd_functions(Obstacles()):
            out = copy(*args, **kwargs)
            value = compute_loss(loss, out, c.call.target(tensors))
            self.loss = value.detach()
            self.train_outputs = [(n, t.detach()) for n, t in flatten_outputs(out)]
            wanted = self._trainable(copy, loss) if self.examples is None else {}
            grads = torch.autograd.grad(value, list(wanted.values()), allow_unused=True) if wanted and value.requires_grad else [None] * len(wanted)
        del out, value
        self.gradients, grads = Shelf(sum(g.numel() * g.element_size() for g in grads if g is not None)), list(grads)
        for k, n in enumerate(wanted):
            g, grads[k] = grads[k], None
            if g is not None:
                self.gradients.put(n, g.to_dense() if g.layout != torch.strided else g)
        self.buffers = {}
        for prefix, module in (("", copy), (c.state.loss_prefix, loss)):
            if isinstance(module, torch.nn.Module):
                self.buffers |= {prefix + n: b.detach() for n, b in [*module.named_buffers(), *module.named_parameters()]
                                 if not isinstance(b, torch.nn.Parameter) or prefix + n in c.new_buffers}

    def _trainable(self, copy, loss):
        """Parameters of the optimizer that want a gradient, by stored name; the copy's when it has its own."""
        chosen = {c for g in self.c.optimizer.param_groups for p in g["params"] if p.requires_grad and (c := self.c.state.stored_name(p))}
        if not (self.jitter or self.exact):
            return {n: self.c.state.tensors[n] for n in self.c.state.parameters if n in chosen}
        named = dict(copy.named_parameters())
        if isinstance(loss, torch.nn.Module):
            named |= {self.c.state.loss_prefix + n: p for n, p in loss.named_parameters()}
        return {n: named[n] for n in self.c.state.parameters if n in chosen and n in named}


