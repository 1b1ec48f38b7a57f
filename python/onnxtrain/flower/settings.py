"""Keys of Flower's run configuration, and what is given as a value or as a function of Flower's Context."""

import os
from dataclasses import dataclass

import numpy as np

from ..errors import DataError, UsageError
from ..model import as_model

TRAVEL = ("all", "trainable")
# key -> (field, default, least value)
_NUMBERS = {"num-server-rounds": ("rounds", 3, 1), "local-epochs": ("epochs", 1, 1), "batch-size": ("batch", 32, 1),
            "seed": ("seed", 0, 0)}


@dataclass
class Settings:
    rounds: int = 3
    epochs: int = 1
    batch: int = 32
    seed: int = 0
    round_timeout: float = 3600.0
    travel: str = "all"
    export: str = ""


def read(config):
    """Settings from a run configuration; keys of other parts of the app are theirs."""
    made = Settings()
    for key, (name, default, least) in _NUMBERS.items():
        value = config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{key} of the run configuration is {value!r}: it is a whole number of at least {least}",
                             "OT5081", f"{key} = {default}")
        setattr(made, name, value)
    timeout = config.get("round-timeout", made.round_timeout)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise UsageError(f"round-timeout of the run configuration is {timeout!r}: it is a number of seconds", "OT5081",
                         "round-timeout = 3600")
    made.round_timeout = float(timeout)
    made.travel = config.get("travel", made.travel)
    if made.travel not in TRAVEL:
        raise UsageError(f"travel of the run configuration is {made.travel!r}: all (everything that the training "
                         "changes) or trainable (the parameters alone)", "OT5080", 'travel = "all"')
    made.export = config.get("export", made.export)
    if not isinstance(made.export, str) or (made.export and not made.export.endswith(".onnx")):
        raise UsageError(f"export of the run configuration is {made.export!r}: it is the path of an .onnx file",
                         "OT5081", 'export = "averaged.onnx"')
    return made


def given(what, context):
    """A value, or what a function of the Context makes of it."""
    return what(context) if callable(what) and not isinstance(what, os.PathLike) else what


def training_file(file, context):
    """The training model, or an error that says what is missing."""
    model = as_model(given(file, context))
    if not model.trainable:
        raise UsageError("the file carries no training: Flower's apps train what a training file says", "OT5082",
                         'ot.prepare("model.onnx", ...).save("model.train.onnx")')
    return model


def rows(data, context):
    """(x, y, number of rows) of what was given as `data` or `valid`."""
    value = given(data, context)
    if isinstance(value, (str, os.PathLike)):
        with np.load(value, allow_pickle=False) as file:
            value = {name: file[name] for name in file.files}
    x, y = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    first = next(iter(x.values()), ()) if isinstance(x, dict) else x
    try:
        count = len(first)
    except TypeError:
        raise DataError(f"a client's rows are arrays or tables, not {type(first).__name__}: their number is its weight "
                        "in the average", "OT5084", "data=lambda context: (x, y)") from None
    if not count:
        raise DataError("a client without rows cannot train", "OT5084", "data=lambda context: (x, y)")
    return x, y, count
