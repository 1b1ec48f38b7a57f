"""What stands in the way of a trace while it runs: functions with a form of their own, looks at values, single random
numbers."""

import contextlib
import traceback

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from . import packed_sequences
from .decompositions import DECOMPOSITIONS
from .obstacles import place_here


@contextlib.contextmanager
def unchecked_distributions():
    """torch.distributions look at all their arguments to check them, unless told otherwise."""
    from torch.distributions import Distribution

    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


class Draw:
    """One random number that Python code asks for, to skip a layer at random (layerdrop): a graph cannot, unless the
    probability is 0 or 1."""

    def __init__(self, obstacles):
        self.obstacles = obstacles

    def _compare(self, p, below):
        p = float(p)
        if 0 < p < 1:
            self.obstacles.add(f"a branch is taken at random (probability {p:g})", place_here(), "set layerdrop to 0")
        return below == (p >= 1)

    def __lt__(self, p):
        return self._compare(p, True)

    __le__ = __lt__

    def __gt__(self, p):
        return self._compare(p, False)

    __ge__ = __gt__

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = lambda x: torch.rand(()) if isinstance(x, Draw) else x
        return func(*[plain(a) for a in args], **{k: plain(v) for k, v in (kwargs or {}).items()})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.rand(()), name)


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"):
    setattr(Draw, _name, lambda self, o, n=_name: getattr(torch.rand(()), n)(o))


class Traceable(TorchFunctionMode):
    """While tracing: torch.rand of a single number is a Draw, functions of DECOMPOSITIONS are decomposed, Python code
    that reads the value of a tensor is watched.

    A read that torch.export cannot answer ends the trace. To find the other obstacles too, it is done again with
    `answers`, what the first trace could answer: every other read is noted and answered by 1, and by 0 when the same
    line reads again, so that loops end."""

    def __init__(self, obstacles, modules, answers=None):
        super().__init__()
        self.obstacles, self.modules, self.again = obstacles, modules, answers is not None
        self.answers, self.asked = answers or {}, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.rand and not self._sizes(args, kwargs):
            return Draw(self.obstacles)
        if name in _VALUE_READS and args and isinstance(args[0], torch.Tensor):
            return self._value_read(name, func, args, kwargs)
        if name == "register_hook" and isinstance(args[0], torch.Tensor):
            self.obstacles.add(
                "a hook on a gradient is Python code that a file cannot carry",
                place_here(self.modules),
                "remove the hook",
            )
            return None
        if func is torch.autograd.grad:
            self.obstacles.add("forward differentiates by itself (torch.autograd.grad)", place_here(self.modules),
                               "leave it out: a step has the gradient of the loss alone")
        if getattr(func, "__self__", None) is torch.Tensor.data:
            if name == "__get__":
                return args[0].detach()
            if not args[0].requires_grad and args[0].shape == args[1].shape and args[0].dtype == args[1].dtype:
                return args[0].detach().copy_(args[1].detach())
            self.obstacles.add(
                "forward puts another tensor in the place of a stored one (x.data = ...)",
                place_here(self.modules),
                "compute with the new tensor instead of storing it; a buffer can be written to with copy_()",
            )
        of_packed = packed_sequences.form(func, args, kwargs)
        if of_packed is not None:
            return of_packed()
        form = DECOMPOSITIONS.get(func)
        return func(*args, **kwargs) if form is None else form(*args, **kwargs)

    def _value_read(self, name, func, args, kwargs):
        at = tuple((f.filename, f.lineno) for f in traceback.extract_stack()[-8:-1])
        if at in self.answers:
            return self.answers[at]
        if not self.again:
            value = func(*args, **kwargs)
            if isinstance(value, (bool, int, float)):
                self.answers[at] = value
            return value
        self.obstacles.add(
            f"Python {_VALUE_READS[name]}",
            place_here(self.modules),
            "replace a branch by torch.where, a number by the tensor itself; or decide it outside of forward",
        )
        self.asked[at] = self.asked.get(at, 0) + 1
        if self.asked[at] > _MOST_READS:
            raise RuntimeError("a loop over the values of tensors")
        return _instead(name, args[0], 1 if self.asked[at] == 1 else 0)

    @staticmethod
    def _sizes(args, kwargs):
        size = kwargs.get("size", args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)
        return list(size) if isinstance(size, (tuple, list)) else [size]


_VALUE_READS = {"__bool__": "branches on the value of a tensor", "item": "reads the value of a tensor (item)",
          "__float__": "reads the value of a tensor (float)", "__int__": "reads the value of a tensor (int)",
          "__index__": "reads the value of a tensor (as an index)", "tolist": "reads the values of a tensor (tolist)",
          "numpy": "computes with the values of a tensor outside of torch (numpy)"}


_MOST_READS = 50  # looks of one line, after which a loop is taken to have no end


def _instead(name, tensor, number):
    """Something to go on with."""
    if name in ("tolist", "numpy"):
        sizes = [s if isinstance(s, int) and not isinstance(s, torch.SymInt) else s.node.hint for s in tensor.shape]
        ones = np.full(sizes, number, str(tensor.dtype)[6:])
        return ones if name == "numpy" else ones.tolist()
    kind = {"__bool__": bool, "__float__": float, "__int__": int, "__index__": int}.get(name)
    return (kind or (float if tensor.dtype.is_floating_point else bool if tensor.dtype == torch.bool else int))(number)
