"""Attributes of our objects: a name that they do not have is an error that says what was meant.

    t = ot.Trainer(...)
    t.learning_rat = 1e-4      # ot.UsageError and AttributeError: did you mean 'learning_rate'?

A misspelt name would otherwise become a new attribute that nobody reads. Classes that users derive are theirs: they
set what they like.
"""

import difflib
import inspect

from .errors import UnknownAttributeError

# what the same thing is called here: class -> {name of other libraries: line to type}
_OTHERS = {
    "Model": {
        "optimizer": "model.compile(optimizer=ot.AdamW(lr=1e-4)), or model.trainer().lr = 1e-4",
        "loss": "model.compile(loss='mse')",
        "lr": "model.trainer().lr = 1e-4",
        "learning_rate": "model.trainer().lr = 1e-4",
        "weights": "model.parameters['NAME'] = array",
        "get_weights": "dict(model.parameters)",
        "set_weights": "model.parameters['NAME'] = array",
        "state_dict": "dict(model.parameters)",
        "load_state_dict": "model.parameters['NAME'] = array",
        "trainable_weights": "model.weights()",
        "train": "model.fit(x, y)",
        "eval": "model.evaluate(x, y)",
        "metadata": "model.info['metadata']",
        "parameters": "model.parameters['NAME'] = array",
    },
    "Trainer": {
        "optimizer": "trainer.lr = 1e-4",
        "state": "trainer.state['NAME'] = array, or trainer.state.update({'NAME': array})",
        "weights": "trainer.state['NAME'] = array",
        "parameters": "trainer.state['NAME'] = array",
        "train": "trainer.fit(x, y)",
        "train_step": "trainer.step({'x': x, 'label': y})",
        "eval": "trainer.evaluate(x, y)",
        "epochs": "trainer.fit(x, y, epochs=10)",
        "batch_size": "trainer.fit(x, y, batch_size=32)",
    },
}


def _is_ours(cls):
    return cls.__module__.partition(".")[0] == __package__


def names_of(thing):
    """The public attributes of an object, those of its class first."""
    cls = type(thing)
    own = [n for n in dir(cls) if not n.startswith("_") and hasattr(cls, n)]
    return list(dict.fromkeys([*own, *getattr(cls, "__dataclass_fields__", ()),
                               *(n for n in vars(thing) if not n.startswith("_"))]))


def refuse(thing, name):
    """Raises the error for a name that is no attribute."""
    words = _word(thing, name)
    known = names_of(thing)
    if words is None:
        lower = {n.lower(): n for n in known}
        near = difflib.get_close_matches(name.strip("_").lower(), lower, 1, 0.6)
        words = f"did you mean '{lower[near[0]]}'?" if near else None
    data = [n for n in known if not callable(getattr(type(thing), n, None))]
    raise UnknownAttributeError(f"{type(thing).__name__} has no attribute '{name}'", "OT1166",
                                words or f"it has {', '.join(data or known)}")


def _word(thing, name):
    return next((w for c in type(thing).__mro__ if (w := _OTHERS.get(c.__name__, {}).get(name))), None)


def _check(thing, name, value):
    """What the class has under this name may be set, a method or a read-only property may not."""
    cls = type(thing)
    there = inspect.getattr_static(cls, name, None)
    if isinstance(there, property) and there.fset is None:
        raise UnknownAttributeError(f"'{name}' of {cls.__name__} can be read only", "OT1166",
                                    _word(thing, name) or "make a new object with it")
    if inspect.isfunction(there) and not callable(value):
        raise UnknownAttributeError(f"'{name}' of {cls.__name__} is a method, it is called, not assigned", "OT1166",
                                    f"{cls.__name__.lower()}.{name}(...)")


class Elsewhere:
    """A name that other libraries have: who reads it is told what to type here."""

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, thing, owner=None):
        if thing is None:
            raise AttributeError(self._name)
        refuse(thing, self._name)


def elsewhere(cls):
    """Gives a class that is Checked the names of other libraries."""
    for name in _OTHERS[cls.__name__]:
        if name not in vars(cls):
            there = Elsewhere()
            there.__set_name__(cls, name)
            setattr(cls, name, there)
    return cls


class Checked:
    """A base class whose objects take the attributes that the class says, and no others. Attributes that are set in
    __init__ alone are named in `_attributes`."""

    _attributes = ()

    def __setattr__(self, name, value):
        if name[:1] != "_" and _is_ours(type(self)):
            cls = type(self)
            if hasattr(cls, name):
                _check(self, name, value)
            elif not (name in cls._attributes or name in getattr(cls, "__dataclass_fields__", ())):
                refuse(self, name)
        object.__setattr__(self, name, value)

    def __dir__(self):  # without Elsewhere
        return [n for n in object.__dir__(self) if n in vars(self) or hasattr(type(self), n)]


class Closed(Checked):
    """The same for names that are read. A class with __getattr__ reads all its attributes more slowly: a tenth of the
    step of a tiny network, so Trainer is Checked alone."""

    def __getattr__(self, name):  # only what is not found in any other way
        if name[:1] == "_" or not _is_ours(type(self)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        refuse(self, name)
