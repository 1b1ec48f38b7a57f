"""From a live module to functional FX graphs: one in training mode with the loss, one in evaluation mode.

Nothing of the user's module changes: a copy of its structure is traced that shares the tensors; torch.export computes
with fake tensors only.
"""

import copy
import os
import traceback

import torch
from torch.overrides import TorchFunctionMode

from ..errors import ModelError
from . import inplace, versions
from .lower import TABLE, key_of
from .obstacles import Obstacles, autograd_functions, place_of_error
from .structure import flatten_outputs


def structural_copy(module, with_buffers=False, memo=None):
    """A copy whose parameters (and buffers, unless `with_buffers`) are the same tensors, or those that `memo` names."""
    memo = memo if memo is not None else {id(p): p for p in module.parameters()}
    for sub in module.modules():
        for t in list(sub.__dict__.values()):
            if isinstance(t, torch.Tensor):
                memo.setdefault(id(t), t)
    for b in module.buffers():
        memo[id(b)] = b.detach().clone() if with_buffers else b
    return copy.deepcopy(module, memo)


def set_mode(module, training):
    """train() or eval(); a module made from an exported program has one form only and keeps it."""
    try:
        return module.train(training)
    except NotImplementedError:
        return module


class Wrapper(torch.nn.Module):
    """Calls the module and the loss on a flat list of tensors; gives [loss] + outputs as a flat list."""

    def __init__(self, module, loss, call, training):
        super().__init__()
        self.module = module
        if isinstance(loss, torch.nn.Module):
            self.loss = loss
        else:
            self.__dict__["loss"] = loss
        self.__dict__["call"], self.__dict__["with_loss"] = call, training
        names = []  # filled while tracing; a closure, because export restores attributes
        self.__dict__["note"], self.__dict__["names_seen"] = names.__setitem__, lambda: names

    def forward(self, flat):
        args, kwargs = self.call.arguments(flat)
        out = self.module(*args, **kwargs)
        found = flatten_outputs(out)
        self.note(slice(None), [n for n, _ in found])
        tensors = [t for _, t in found]
        if not self.with_loss:
            return tensors
        return [compute_loss(self.loss, out, self.call.target(flat)), *tensors]


def compute_loss(loss, out, target):
    if loss is None:  # the module computes it
        value = out if isinstance(out, torch.Tensor) else out["loss"] if isinstance(out, dict) else getattr(out, "loss", None)
    elif target is None:
        value = loss(out) if _takes_one(loss) else loss(out, None)
    else:
        value = loss(out, target)
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.dtype.is_floating_point:
        kind = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ModelError(f"the loss gave {kind}, not one floating-point number", "OT1608",
                         "loss(outputs, targets) must return a scalar tensor; reduction='mean' or 'sum'")
    return value if value.dim() == 0 else value.reshape(())


def _takes_one(f):
    import inspect

    try:
        p = inspect.signature(f.forward if isinstance(f, torch.nn.Module) else f).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(x.default is x.empty and x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD) for x in p) <= 1


class Draw:
    """One random number that Python code asks for, to skip a layer by chance (layerdrop): a graph cannot, unless the
    chance is none or certain."""

    def __init__(self, obstacles):
        self.obstacles = obstacles

    def _compare(self, p, below):
        p = float(p)
        if 0 < p < 1:
            stack = [f for f in traceback.extract_stack() if not f.filename.startswith(os.path.dirname(__file__))]
            self.obstacles.add(f"a branch is taken by chance (probability {p:g})", f"{stack[-1].filename}:{stack[-1].lineno}: {stack[-1].line}",
                               "set layerdrop to 0")
        return below == (p >= 1)

    def __lt__(self, p):
        return self._compare(p, True)

    __le__ = __lt__

    def __gt__(self, p):
        return self._compare(p, False)

    __ge__ = __gt__

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = lambda x: torch.rand(()) if isinstance(x, Draw) else x  # noqa: E731
        return func(*[plain(a) for a in args], **{k: plain(v) for k, v in (kwargs or {}).items()})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.rand(()), name)


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"):
    setattr(Draw, _name, lambda self, o, n=_name: getattr(torch.rand(()), n)(o))


class LayerDrop(TorchFunctionMode):
    """While tracing: torch.rand of a single number is a Draw."""

    def __init__(self, obstacles):
        super().__init__()
        self.obstacles = obstacles

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.rand and not self._sizes(args, kwargs):
            return Draw(self.obstacles)
        return func(*args, **kwargs)

    @staticmethod
    def _sizes(args, kwargs):
        size = kwargs.get("size", args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)
        return list(size) if isinstance(size, (tuple, list)) else [size]


class Graph:
    """A functional FX graph with what its inputs and outputs are."""

    def __init__(self, program, wrapper):
        self.program, self.graph = program, program.graph_module.graph
        self.signature = program.graph_signature
        self.output_names = list(wrapper.names_seen())


def dynamic_shapes(tensors, dynamic):
    auto = versions.automatic_dimension()
    return ([({0: auto} if dynamic and t.dim() and t.shape[0] > 1 else None) for t in tensors],)


def example_for_export(tensors, dynamic):
    """A batch of one would fix the size: it is traced with two equal rows."""
    tensors = [t.detach() for t in tensors]
    if not dynamic or not tensors[0].dim() or tensors[0].shape[0] != 1:
        return tensors
    return [torch.cat([t, t]) if t.dim() and t.shape[0] == 1 else t for t in tensors]


def trace(module, loss, call, training, dynamic, obstacles):
    """The functional graph of the module (and the loss, in training)."""
    wrapper = Wrapper(module, loss, call, training)
    example = example_for_export(call.tensors, dynamic)
    wrapper.training = training
    noted = Obstacles()
    devices = [torch.device("cuda", k) for k in range(torch.cuda.device_count())] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices), torch.enable_grad(), autograd_functions(noted), LayerDrop(noted):
        try:
            program = versions.export(wrapper, (example,), dynamic_shapes(example, dynamic))
        except ModelError:
            raise
        except Exception as e:
            for what, where, fix in noted.items:
                obstacles.add(what, where, fix)
            _explain(e, dynamic, obstacles)
            obstacles.raise_()
        for what, where, fix in noted.items:
            obstacles.add(what, where, fix)
        program = _functional(program)
    return Graph(program, wrapper)


def _explain(e, dynamic, obstacles):
    """torch.export's refusal in one sentence with the user's line."""
    name, text = type(e).__name__, str(e).strip()
    first = text.split("\n")[0] if text else name
    where = place_of_error(e)
    if "DataDependent" in name or "data-dependent" in text.lower():
        obstacles.add(f"control flow that depends on the values of tensors: {first}", where,
                      "replace the branch by torch.where, or decide it outside of forward")
    elif "Constraint" in name or "dynamic" in first.lower():
        obstacles.add(f"the batch size cannot be left open: {first}", where, "from_torch(..., dynamic_batch=False)")
    else:
        fix = "see whether it goes with a fixed batch size: from_torch(..., dynamic_batch=False)" if dynamic else ""
        obstacles.add(f"torch.export refuses the module ({name}): {first}", where, fix)


def _functional(program):
    if inplace.walkable(program.graph_module):
        return program
    _mark_no_grad(program.graph_module)
    program = versions.functional(program)
    for _ in range(6):  # operators outside of our table, by simpler ones as long as there are some
        table = {}
        for n in program.graph_module.graph.nodes:
            if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload) and key_of(n.target) not in TABLE:
                f = versions.decomposition(n.target)
                if f is not None:
                    table[n.target] = f
        if not table:
            return program
        program = versions.functional(program, table)
    return program


def _mark_no_grad(gm):
    """A detach behind every result of a region without gradients: the functional form forgets the region."""
    for n in list(gm.graph.nodes):
        if n.op != "call_function" or not versions.is_grad_mode_region(n.target) or n.args[0]:
            continue
        for user in list(n.users):
            val = user.meta.get("val")
            if not isinstance(val, torch.Tensor) or not val.dtype.is_floating_point:
                continue
            with gm.graph.inserting_after(user):
                stop = gm.graph.call_function(torch.ops.aten.detach.default, (user,))
            stop.meta.update(user.meta)
            user.replace_all_uses_with(stop, delete_user_cb=lambda u, s=stop: u is not s)
    gm.recompile()
