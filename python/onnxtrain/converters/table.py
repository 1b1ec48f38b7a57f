"""Tables of operations: a function per operation, entered by a decorator."""

import importlib
import pkgutil


class Table:
    """What the modules beside the table's own module enter. They are imported when something is first looked up."""

    def __init__(self, module):
        """`module`: the `__name__` of the module that holds the table."""
        self.entries = {}
        self._package, self._loaded = module.rpartition(".")[0], False

    def find(self, kind):
        """The entry of an operation, or None."""
        self._load()
        return self.entries.get(kind)

    def kinds(self):
        """All operations that have an entry."""
        self._load()
        return sorted(self.entries)

    def _load(self):
        if not self._loaded:
            self._loaded = True
            for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
                importlib.import_module(f"{self._package}.{module.name}")


def entered_in(table):
    """A decorator that enters a function under each of its names: `@lower("Add", "AddV2")`."""

    def named(*names):
        def enter(f):
            for name in names:
                table[name] = f
            return f

        return enter

    return named
