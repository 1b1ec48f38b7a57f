"""What stands against a conversion from PyTorch: where in the user's code it is, and what can be seen without
running."""

import os
import re
import sys
import traceback

import torch
from torch.nn.parameter import UninitializedTensorMixin

from ...converters.obstacles import INSTEAD, UserCode

_HERE = os.path.dirname(os.path.abspath(__file__))
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]+)\n\s*([^\n]*)')
USER = UserCode(torch)


def within_forward(frames, code_of):
    """Frames, outermost first, from where our wrapper calls the module: not the user's call of from_torch.
    code_of(frame) -> (file, function)."""
    ours = [k for k, f in enumerate(frames) if code_of(f) == (os.path.join(_HERE, "trace.py"), "forward")]
    return frames[ours[-1] + 1:] if ours else frames


def place(node):
    """"file:line in function: text" of the innermost line of the user's code behind an FX node, else its module, else
    ""."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    for path, line, where, text in reversed(frames):
        if USER.has(path):
            return f"{path}:{line} in {where.strip()}: {text.strip()}"
    for path, cls in reversed((node.meta.get("nn_module_stack") or {}).values()):
        name = path.removeprefix("module").removeprefix(".")
        if name:
            return f"module '{name}' ({getattr(cls, '__name__', str(cls).rpartition('.')[2])})"
    return ""


def place_of_error(error, modules=None):
    """The same for an error. `modules`: {id(module): its name}, for code that is torch's alone."""
    return USER.place(list(traceback.walk_tb(error.__traceback__)), modules)


def _code_of(frame):
    code = frame[0].f_code
    return os.path.abspath(code.co_filename), code.co_name


def place_here(modules=None):
    """Where the user's code stands that called this."""
    frames = list(traceback.walk_stack(sys._getframe(1)))[::-1]
    return USER.place(within_forward(frames, _code_of), modules)


def fix_of(reason):
    """What to change for an operator that is refused for this reason."""
    if "depends on data" in reason or "leads out of the graph" in reason:
        return "compute it with masks (torch.where), or outside of forward"
    return "from_torch(..., dynamic_batch=False)" if "open" in reason else INSTEAD


_FIXES = {
    "half": "module.float() before converting",
    "complex": "keep real and imaginary parts as two parameters",
    "quantized": "give the module from before its quantization",
    "sparse": "store it dense: tensor.to_dense()",
    "without data": "module.to_empty(device='cpu') and load_state_dict, or make it outside of torch.device('meta')",
}


def check_module(module, obstacles, role="module"):
    """What can be seen without running: lazy layers, half precision, quantized or sparse or meta tensors."""
    lazy = [
        n
        for n, p in list(module.named_parameters()) + list(module.named_buffers())
        if isinstance(p, UninitializedTensorMixin)
    ]
    if lazy:
        obstacles.add(
            f"lazy parameters without a shape: {', '.join(lazy)}",
            fix="run the module once on a batch before converting it",
        )
    by_type = {}
    for n, p in list(module.named_parameters()) + list(module.named_buffers()):
        if n in lazy:
            continue
        if p.dtype in (torch.float16, torch.bfloat16):
            by_type.setdefault(f"half precision ({str(p.dtype)[6:]})", []).append(n)
        elif p.dtype.is_complex:
            by_type.setdefault("complex numbers", []).append(n)
        elif p.is_quantized:
            by_type.setdefault("quantized tensors", []).append(n)
        elif p.layout != torch.strided:
            by_type.setdefault("sparse tensors", []).append(n)
        elif p.device.type == "meta":
            by_type.setdefault("tensors without data (device meta)", []).append(n)
    _check_code(module, obstacles, role)
    for kind, names in by_type.items():
        more = "" if len(names) <= 4 else f" and {len(names) - 4} more"
        obstacles.add(
            f"{role} with {kind}: {', '.join(names[:4])}{more}", fix=next(f for k, f in _FIXES.items() if k in kind)
        )


def _check_code(module, obstacles, role):
    """Python code and modes that no graph has."""
    if isinstance(module, torch.jit.ScriptModule):
        obstacles.add(f"the {role} is TorchScript", fix="give the Python module that it was made from")
    kinds = "torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized"
    quantized = [n or "(itself)" for n, m in module.named_modules() if type(m).__module__.startswith(kinds)]
    if quantized:
        obstacles.add(f"{role} with quantized layers: {', '.join(quantized)}", fix=_FIXES["quantized"])
    hooked = [
        n for n, p in module.named_parameters() if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None)
    ]
    hooked += [n or "(itself)" for n, m in module.named_modules() if m._backward_hooks or m._backward_pre_hooks]
    if hooked:
        obstacles.add(
            f"{role} with hooks on gradients, which are Python code: {', '.join(hooked)}", fix="remove the hooks"
        )
    for name, m in module.named_modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.momentum is None and m.track_running_stats:
            obstacles.add(
                f"BatchNorm '{name}' with momentum=None, whose running average weighs by the number of batches",
                fix="give it a number, torch's default is 0.1",
            )


def _at_once(function, args):
    """checkpoint(use_reentrant=True) without running anything twice; no gradient goes in where none of the arguments
    wants one."""
    with torch.set_grad_enabled(
        torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
    ):
        return function(*args)


class autograd_functions:
    """Within this context every call of a torch.autograd.Function is noted: its backward is Python and not in the
    graph. What checkpoint() puts off is done at once."""

    def __init__(self, obstacles):
        self.obstacles = obstacles

    def __enter__(self):
        base, obstacles = torch.autograd.Function, self.obstacles
        self.before = base.__dict__.get("apply")
        original = next(vars(c)["apply"] for c in base.__mro__ if "apply" in vars(c))  # from 2.15 on written in C

        def apply(cls, *args, **kwargs):
            if cls.__name__ == "CheckpointFunction":
                return _at_once(args[0], args[2:])
            if not cls.__module__.startswith("torch."):
                obstacles.add(
                    f"torch.autograd.Function {cls.__qualname__}: its backward is Python code that a file cannot carry",
                    place_here(),
                    "write it with ordinary operators (detach() for parts without gradient)",
                )
            return original.__get__(None, cls)(*args, **kwargs)

        base.apply = classmethod(apply)
        return self

    def __exit__(self, *exc):
        if self.before is None:
            del torch.autograd.Function.apply
        else:
            torch.autograd.Function.apply = self.before
