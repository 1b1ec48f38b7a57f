"""What a run folder made from Python keeps beside checkpoints and metrics: how `fit` was called and, when small,
on what.

So `ot.resume("runs/cnn").fit(epochs=6)` needs nothing else.
"""

import json
import os

import numpy as np

from . import _native
from .errors import DataError, UsageError

KEPT_BYTES = 32 << 20  # larger data is not copied into the run folder
_IN_THIS_PROCESS = {}  # folder -> (data, validation data) of the last run whose data was too large to copy


def _write(path, write):
    """All of the file or the one before."""
    temporary = f"{path}.tmp.{os.getpid()}"
    try:
        with open(temporary, "wb") as f:
            write(f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def set_aside(folder):
    """A run that is in the folder goes into earlier-001, ..., with what Python keeps beside it."""
    kept = os.fsdecode(_native.run_folder(folder))
    for name in ("fit.json", "data.npz") if kept else ():
        if os.path.exists(os.path.join(folder, name)):
            os.replace(os.path.join(folder, name), os.path.join(kept, name))


def remember(folder, settings, data, valid_data):
    os.makedirs(folder, exist_ok=True)
    _IN_THIS_PROCESS.clear()
    _write(
        os.path.join(folder, "fit.json"),
        lambda f: f.write(json.dumps(settings, indent=1, default=lambda v: v.item()).encode() + b"\n"),
    )
    path = os.path.join(folder, "data.npz")
    arrays = {f"train/{k}": v for k, v in data.items()} | {f"valid/{k}": v for k, v in valid_data.items()}
    if sum(v.nbytes for v in arrays.values()) <= KEPT_BYTES and all(v.dtype.kind in "biufc" for v in arrays.values()):
        _write(path, lambda f: np.savez(f, **arrays))
        return
    _IN_THIS_PROCESS[os.path.realpath(folder)] = (data, valid_data)
    if os.path.exists(path):
        os.remove(path)


def recall(folder):
    path = os.path.join(folder, "fit.json")
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as f:
            settings = json.load(f)
        return {k: settings[k] for k in ("batch_size", "valid", "shuffle") if k in settings}
    except (ValueError, TypeError) as e:
        raise DataError(f"'{path}' is damaged: {e}", "OT4202",
                        "remove it and give x, y, valid and batch_size again") from e


def recall_data(folder):
    """(data, None, validation data or None) that the run was trained on."""
    if folder is None:
        raise UsageError("fit needs data", "OT1155", "t.fit(x, y, epochs=3)")
    kept = _IN_THIS_PROCESS.get(os.path.realpath(folder))
    path = os.path.join(folder, "data.npz")
    if kept is None and os.path.exists(path):
        try:
            with np.load(path, allow_pickle=False) as f:
                kept = tuple({k.split("/", 1)[1]: f[k] for k in f.files if k.startswith(p)}
                             for p in ("train/", "valid/"))
        except (ValueError, OSError, KeyError) as e:
            raise DataError(f"'{path}' is damaged: {e}", "OT4202", "give the data again: fit(x, y, epochs=...)") from e
    if kept is None:
        raise UsageError(f"run '{folder}' does not hold its data", "OT1155",
                         f"give it again: fit(x, y, epochs=...); a run of the command line resumes with: onnxtrain train --resume {folder}")
    return kept[0], None, ({**kept[1]},) if kept[1] else None
