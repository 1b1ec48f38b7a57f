"""Everything that stands against a conversion, collected and said at once with the user's file and line."""

import os
import re
import traceback

import torch

from ..errors import ModelError

_OURS = os.path.dirname(os.path.abspath(__file__))
_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]+)\n\s*([^\n]*)')


def _is_user(path):
    path = os.path.abspath(path)
    return not path.startswith(_TORCH + os.sep) and not path.startswith(_OURS + os.sep)


def place(node):
    """"file:line in function: text" of the innermost line of the user's code behind an FX node, or ""."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    for path, line, where, text in reversed(frames):
        if _is_user(path):
            return f"{path}:{line} in {where.strip()}: {text.strip()}"
    return ""


def place_of_error(error):
    """The same for an exception: its innermost frame in the user's code."""
    for f in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_user(f.filename) and "site-packages" not in f.filename:
            return f"{f.filename}:{f.lineno} in {f.name}: {f.line}"
    for f in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_user(f.filename):
            return f"{f.filename}:{f.lineno} in {f.name}: {f.line}"
    return ""


class Obstacles:
    def __init__(self):
        self.items = []  # (what, place, fix)

    def add(self, what, where="", fix=""):
        item = (what, where, fix)
        if item not in self.items:
            self.items.append(item)

    def __bool__(self):
        return bool(self.items)

    def raise_(self, code="OT1601"):
        """One error that names them all; does nothing when there are none."""
        if not self.items:
            return
        n = len(self.items)
        lines = []
        for k, (what, where, fix) in enumerate(self.items):
            head = f"  {k + 1}. " if n > 1 else "  "
            lines.append(head + what + (f"\n       at {where}" if where else "") + (f"\n       change: {fix}" if fix else ""))
        title = "the module cannot be converted" + (f", {n} obstacles:" if n > 1 else ":")
        raise ModelError(title + "\n" + "\n".join(lines), code)


def check_module(module, obstacles, role="module"):
    """What can be seen without running: lazy layers, half precision, quantized or sparse or meta tensors."""
    from torch.nn.parameter import UninitializedTensorMixin

    lazy = [n for n, p in list(module.named_parameters()) + list(module.named_buffers()) if isinstance(p, UninitializedTensorMixin)]
    if lazy:
        obstacles.add(f"lazy parameters without a shape: {', '.join(lazy)}", fix="run the module once on a batch before converting it")
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
    for kind, names in by_type.items():
        more = "" if len(names) <= 4 else f" and {len(names) - 4} more"
        fix = "module.float() before converting" if "half" in kind else ""
        obstacles.add(f"{role} with {kind}: {', '.join(names[:4])}{more}", fix=fix)


class autograd_functions:
    """Within this context every call of a torch.autograd.Function is noted: its backward is Python and not in the graph."""

    def __init__(self, obstacles):
        self.obstacles = obstacles

    def __enter__(self):
        base, obstacles = torch.autograd.Function, self.obstacles
        self.before = base.__dict__.get("apply")
        original = base.apply.__func__

        def apply(cls, *args, **kwargs):
            if not cls.__module__.startswith("torch."):
                stack = [f for f in traceback.extract_stack()[:-1] if _is_user(f.filename)]
                at = f"{stack[-1].filename}:{stack[-1].lineno} in {stack[-1].name}: {stack[-1].line}" if stack else ""
                obstacles.add(f"torch.autograd.Function {cls.__qualname__}: its backward is Python code that a file cannot carry", at,
                              "write it with ordinary operators (detach() for parts without gradient)")
            return original(cls, *args, **kwargs)

        base.apply = classmethod(apply)
        return self

    def __exit__(self, *exc):
        if self.before is None:
            del torch.autograd.Function.apply
        else:
            torch.autograd.Function.apply = self.before
