"""Exceptions: one class per kind of failure, each with .code and .hint."""

import difflib

from .hints import in_python


class Error(Exception):
    """Something failed; `code` is like "OT1203", `hint` says what to do (may be empty)."""

    def __init__(self, message, code="OT9001", hint=""):
        message, hint = in_python(message), in_python(hint)
        self.message, self.code, self.hint = message, code, hint
        text = f"error[{code}]: {message}"
        super().__init__(text + (f"\n  help: {hint}" if hint else ""))

    def __str__(self):
        return self.args[0]


class UsageError(Error, ValueError):
    """A wrong argument."""


class UnknownNameError(UsageError, KeyError):
    """A name that a mapping does not have: an ot.UsageError, and a KeyError for code that expects one."""

    def __init__(self, what, name, known):
        near = difflib.get_close_matches(str(name), list(known), 1, 0.6)
        some = ", ".join(f"'{k}'" for k in list(known)[:6])
        super().__init__(f"there is no {what} named '{name}'", "OT1122",
                         f"did you mean '{near[0]}'?" if near else f"there are {some or 'none'}")


class UnknownAttributeError(UsageError, AttributeError):
    """An attribute that an object does not have: an ot.UsageError, and an AttributeError for code that expects one."""

    def __init__(self, message, code="OT1166", hint=""):
        Error.__init__(self, message, code, hint)
        self.name = None  # of AttributeError: its own suggestions stay away


class ModelError(Error):
    """The model file or graph is at fault."""


class NoLossError(ModelError):
    """No loss fits the model, or none can be chosen by `auto`."""


class OpenSizesError(ModelError):
    """A step cannot be made while sizes of the model are open; with fixed sizes it may be possible."""


class ConversionError(ModelError):
    """A converter has no form for something, or its self-check found a difference."""


class DataError(Error, ValueError):
    """The data does not fit."""


class DivergedError(Error):
    """A loss, gradient or weight became NaN or infinite."""


class CheckpointError(Error):
    """A checkpoint is damaged or does not fit."""


_BY_STATUS = {2: UsageError, 3: ModelError, 4: DataError, 5: DivergedError, 7: CheckpointError}
_BY_CODE = {"OT1238": NoLossError, "OT1205": OpenSizesError, "OT1206": OpenSizesError, "OT1260": OpenSizesError}


def for_status(status, code):
    """The class of an error of the library."""
    return _BY_CODE.get(code) or _BY_STATUS.get(status, Error)
