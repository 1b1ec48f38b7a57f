"""Everything that stands against a conversion, collected and said at once with the user's file and line."""

import linecache
import os
import sysconfig

from ..errors import ConversionError

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the package onnxtrain
_PYTHON = sysconfig.get_path("stdlib")
INSTEAD = "write it with other operators, or compute it outside of the module and give it as an input"


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
            at = f"\n       at {where}" if where else ""
            lines.append(head + what + at + (f"\n       change: {fix}" if fix else ""))
        title = "the module cannot be converted" + (f", {n} obstacles:" if n > 1 else ":")
        raise ConversionError(title + "\n" + "\n".join(lines), code)


class UserCode:
    """Tells the user's files from those of a framework and from ours."""

    def __init__(self, framework):
        """framework: its package."""
        self._foreign = [os.path.dirname(os.path.abspath(framework.__file__)) + os.sep, _OURS + os.sep]

    def has(self, path):
        """Code that was made in memory has no file, but for what was typed at a prompt."""
        if path.startswith("<"):
            return path.startswith(("<ipython-input", "<python-input", "<stdin>"))
        path = os.path.abspath(path)
        if path.startswith(_PYTHON + os.sep) and "-packages" not in path:
            return False
        return bool(path) and not any(path.startswith(f) for f in self._foreign)

    def place(self, frames, modules=None):
        """"file:line in function: text" of the innermost of the frames, outermost first, that is the user's code.
        `modules`: {id(module): its name}, for code that is the framework's alone."""
        lines = [(f.f_code.co_filename, line, f.f_code.co_name) for f, line in frames]
        for foreign in ("site-packages", "\0"):
            for path, line, where in reversed(lines):
                if self.has(path) and foreign not in path:
                    return f"{path}:{line} in {where}: {linecache.getline(path, line).strip()}"
        for f, _ in reversed(frames):
            module = f.f_locals.get("self")
            if (modules or {}).get(id(module)):
                return f"module '{modules[id(module)]}' ({type(module).__name__})"
        return ""
