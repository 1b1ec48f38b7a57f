"""Arguments that a call does not have: named, with the one that was probably meant."""

import difflib
import inspect
import os

from .errors import UsageError

# endings that say another format than ONNX
_OTHER_FORMATS = (".npz", ".npy", ".csv", ".tsv", ".txt", ".json", ".toml", ".pt", ".pth", ".pt2", ".keras", ".h5",
                  ".hdf5", ".pb", ".tflite", ".safetensors", ".pkl", ".pickle", ".joblib", ".ort", ".zip", ".html")
# names of other libraries
_OTHERS = {"batch": "batch_size", "epoch": "epochs", "n_epochs": "epochs", "num_epochs": "epochs",
           "max_epochs": "epochs", "validation_data": "valid", "validation_split": "valid", "val": "valid",
           "callback": "callbacks", "output": "out", "output_dir": "out", "max_steps": "steps",
           "early_stopping": "patience", "max_time": "time", "lr": "optimizer", "learning_rate": "optimizer",
           "opt": "optimizer", "optim": "optimizer", "criterion": "loss", "clip": "clip_norm",
           "clip_grad_norm": "clip_norm", "scheduler": "schedule", "lr_scheduler": "schedule"}
# what another call takes
_ELSEWHERE = {"class_weight": "compile(loss=ot.losses.CrossEntropy(weight=[1.0, 2.0, 1.0]))",
              "class_weights": "compile(loss=ot.losses.CrossEntropy(weight=[1.0, 2.0, 1.0]))",
              "sample_weight": "a loss of your own with the weights as one more target, "
                               "or rows repeated as often as they count"}
# an example says more than the name
_EXAMPLES = {"optimizer": "optimizer=ot.AdamW(lr=1e-3)"}


def check_ending(path):
    """A model is written as ONNX: a name that says another format is a mistake."""
    stem, ending = os.path.splitext(os.fspath(path))
    if ending.lower() in _OTHER_FORMATS:
        raise UsageError(f"'{os.fspath(path)}': the file would be written as .onnx, its name says {ending}", "OT0011",
                         f"'{stem}.onnx'")


def refuse_unknown(call, unknown, function):
    for name in unknown:
        known = [p for p in inspect.signature(function).parameters if p not in ("self", "unknown") and p[0] != "_"]
        near = difflib.get_close_matches(name, known, 1, 0.6)
        if name in _ELSEWHERE and call == "fit":
            raise UsageError(f"fit has no argument '{name}'", "OT0001", _ELSEWHERE[name])
        meant = _OTHERS.get(name) if _OTHERS.get(name) in known else near[0] if near else None
        raise UsageError(f"{call} has no argument '{name}'", "OT0001",
                         f"did you mean {_EXAMPLES.get(meant, f'{meant}=')}?" if meant
                         else f"it has {', '.join(known)}")
