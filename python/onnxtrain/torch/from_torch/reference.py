"""What PyTorch itself computes on the examples, with dropout off and random numbers replaced by fixed ones.

The file is run with the same replacements (converters/deterministic.py), so both sides can be compared exactly.
"""

import inspect
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from ...converters.deterministic import MIDDLE
from ...converters.obstacles import Obstacles
from ...converters.spill import SpilledArrays
from ..shared.dtypes import to_numpy
from .call import flatten_outputs
from .obstacles import autograd_functions
from .trace import compute_loss, set_mode, structural_copy

_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "feature_dropout", "feature_dropout_"}


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
    """The mean of what is kept and what is replaced: the file's own mask without randomness."""
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
    low, high = (
        numbers[:2] if len(numbers) > 1 else (0, *numbers) if numbers else (kwargs.get("low", 0), kwargs["high"])
    )
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


@dataclass(frozen=True)
class Reference:
    """Results of PyTorch: outputs in the inference form, and for a training its loss, outputs, buffers after the step
    and gradients by stored name."""

    outputs: dict
    loss: torch.Tensor | None = None
    train_outputs: dict = field(default_factory=dict)
    buffers: dict = field(default_factory=dict)
    gradients: object = field(default_factory=dict)  # {name: array}

    def arrays(self):
        """{(kind, name): array} of everything that is compared, each made when it is asked for."""
        return _Arrays(self)


class _Arrays(dict):
    def __init__(self, reference):
        tensors = {("output", n): t for n, t in reference.outputs.items()}
        if reference.loss is not None:
            tensors["loss", ""] = reference.loss
            tensors |= {("train", n): t for n, t in reference.train_outputs.items()}
            tensors |= {("gradient", n): None for n in reference.gradients}
            tensors |= {("buffer", n): t for n, t in reference.buffers.items() if t.dtype.is_floating_point}
        super().__init__(tensors)
        self._gradients = reference.gradients

    def __getitem__(self, key):
        return self._gradients[key[1]] if key[0] == "gradient" else to_numpy(super().__getitem__(key))

    def items(self):
        return [(key, self[key]) for key in self]


@dataclass(frozen=True)
class Parameters:
    """How the parameters differ from the module's own. With `jitter` by at most so many units in the last place;
    `exact` computes in float64."""

    jitter: int = 0
    exact: bool = False

    @property
    def changed(self):
        return bool(self.jitter or self.exact)


AS_THEY_ARE = Parameters()


class _Copies:
    """Copies of module and loss for one run: they share the parameters unless those are to be others."""

    def __init__(self, state, how):
        self.state, self.how, self._made = state, how, {}
        self._random = np.random.default_rng(how.jitter)  # torch's own numbers are fixed here

    def of(self, module):
        if not self.how.changed:
            memo = {id(p): self._kept(p) for p in module.parameters()}
            return structural_copy(module, with_buffers=True, memo=memo)
        memo = {}
        for p in module.parameters():
            if p not in self._made:
                self._made[p] = self._changed(p)
            memo[id(p)] = self._made[p]
        copy = structural_copy(module, with_buffers=True, memo=memo)
        return copy.double() if self.how.exact else copy

    def _kept(self, p):
        """The parameter itself, or one to write to where forward does."""
        written = self.state.stored_name(p) in self.state.written
        return torch.nn.Parameter(p.detach().clone(), p.requires_grad) if written else p

    def _changed(self, p):
        if not p.dtype.is_floating_point:
            return p
        if self.how.exact:
            return torch.nn.Parameter(p.detach().double(), p.requires_grad)
        units = self._random.integers(-self.how.jitter, self.how.jitter + 1, tuple(p.shape), np.int8)
        changed = torch.from_numpy(units).to(p).mul_(torch.finfo(p.dtype).eps).add_(1).mul_(p.detach())
        return torch.nn.Parameter(changed, p.requires_grad)


def compute_reference(request, call, state, new_buffers, how=AS_THEY_ARE, examples=None):
    """The Reference of a request. `examples` are others than those of the call, for which no gradients are computed;
    new_buffers: names that a step assigns."""
    tensors = [t.detach() for t in (call.tensors if examples is None else examples)]
    if how.exact:
        tensors = [t.double() if t.dtype.is_floating_point else t for t in tensors]
    copies = _Copies(state, how)
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices), Fixed():
        outputs = _inference(set_mode(copies.of(request.module), False), call, tensors)
        if not request.training:
            return Reference(outputs)
        return _training(request, call, state, new_buffers, copies, tensors, outputs, examples is None)


def _inference(copy, call, tensors):
    args, kwargs = call.arguments(tensors)
    with torch.no_grad():
        return dict(flatten_outputs(copy(*args, **kwargs)))


def _training(request, call, state, new_buffers, copies, tensors, outputs, with_gradients):
    copy = copies.of(request.module)
    if not request.module.training:
        set_mode(copy, True)
    loss = request.loss
    if isinstance(loss, torch.nn.Module) and (copies.how.changed or any(True for _ in loss.buffers())):
        loss = copies.of(loss)
    args, kwargs = call.arguments(tensors)
    with torch.enable_grad(), autograd_functions(Obstacles()):
        out = copy(*args, **kwargs)
        value = compute_loss(loss, out, call.target(tensors))
        train_outputs = {n: t.detach() for n, t in flatten_outputs(out)}
        wanted = _trainable(request, state, copies.how, copy, loss) if with_gradients else {}
        grads = [None] * len(wanted)
        if wanted and value.requires_grad:
            grads = list(torch.autograd.grad(value, list(wanted.values()), allow_unused=True))
    result = value.detach()
    del out, value
    return Reference(outputs, result, train_outputs, _buffers(state, new_buffers, copy, loss),
                     _spilled(list(wanted), grads))


def _spilled(names, grads):
    """{name: array}; empties the list of gradients on the way."""
    spilled = SpilledArrays(sum(g.numel() * g.element_size() for g in grads if g is not None))
    for k, n in enumerate(names):
        g, grads[k] = grads[k], None
        if g is not None:
            spilled.put(n, to_numpy(g.to_dense() if g.layout != torch.strided else g))
    return spilled


def _buffers(state, new_buffers, copy, loss):
    """Buffers after the step, and parameters that forward writes to, by stored name."""
    found = {}
    for prefix, module in (("", copy), (state.loss_prefix, loss)):
        if isinstance(module, torch.nn.Module):
            found |= {prefix + n: b.detach() for n, b in [*module.named_buffers(), *module.named_parameters()]
                      if not isinstance(b, torch.nn.Parameter) or prefix + n in new_buffers}
    return found


def _trainable(request, state, how, copy, loss):
    """Parameters of the optimizer that want a gradient, by stored name; the copy's when it has its own."""
    chosen = {n for g in request.optimizer.param_groups for p in g["params"]
              if p.requires_grad and (n := state.stored_name(p))}
    if not how.changed:
        return {n: state.tensors[n] for n in state.parameters if n in chosen}
    named = dict(copy.named_parameters())
    if isinstance(loss, torch.nn.Module):
        named |= {state.loss_prefix + n: p for n, p in loss.named_parameters()}
    return {n: named[n] for n in state.parameters if n in chosen and n in named}
