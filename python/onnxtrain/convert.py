"""`onnxtrain convert IN OUT`: files between ONNX, PyTorch, Keras and TensorFlow. Also
`python -m onnxtrain.convert`."""

import argparse
import importlib
import logging
import os
import sys
import warnings

from .errors import Error, ModelError, UsageError
from .hints import for_shell

_KINDS = {".onnx": "onnx", ".pt": "torch", ".pth": "torch", ".pt2": "program", ".keras": "keras", ".h5": "h5",
          ".hdf5": "h5"}
_TARGETS = ("torch", "state_dict", "program", "onnx", "keras", "h5", "savedmodel")
_SIDES = {  # kind -> (module that converts files of it, extra that it needs)
    "torch": ("torch.to_torch.convert_files", "torch"), "state_dict": ("torch.to_torch.convert_files", "torch"),
    "program": ("torch.to_torch.convert_files", "torch"), "keras": ("keras.convert_files", "keras"),
    "h5": ("keras.convert_files", "keras"), "savedmodel": ("tf.convert_files", "tf"),
}


def kind_of(path):
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return "savedmodel"
        raise UsageError(f"the folder '{path}' holds no saved_model.pb", "OT1732",
                         "name a file, or the folder of a SavedModel")
    kind = _KINDS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise UsageError(f"'{path}' is none of {', '.join(_KINDS)}", "OT1732", "its suffix says what it is")
    return kind


def parser():
    p = argparse.ArgumentParser(prog="onnxtrain convert", description=__doc__)
    p.add_argument("source", metavar="IN", help="a model: .onnx, .pt (written by convert), .pt2 (torch.export.save), "
                                                  ".keras, .h5, a folder with saved_model.pb")
    p.add_argument("target", metavar="OUT")
    p.add_argument("--to", choices=_TARGETS,
                   help="torch: everything; state_dict: weights for the original class; program: torch.export's, "
                        "inference; keras, h5: a compiled Keras model; savedmodel: a folder for "
                        "TensorFlow; default from OUT's suffix")
    p.add_argument("--verify", action="store_true", help="run one step on both sides and print the largest difference")
    return p


def main(argv=None):
    a = parser().parse_args(argv)
    try:
        if not os.path.exists(a.source):
            raise ModelError(f"there is no file '{a.source}'", "OT4001",
                             f"look for it:  ls {os.path.dirname(a.source) or '.'}")
        folder = os.path.dirname(os.path.abspath(a.target))
        if os.path.isdir(a.target) and a.to != "savedmodel":
            raise UsageError(f"'{a.target}' is a folder", "OT1732",
                             "name a file: onnxtrain convert model.train.onnx model.pt")
        if not os.path.isdir(folder):
            raise UsageError(f"'{a.target}' cannot be written: there is no folder '{folder}'", "OT1732",
                             f"mkdir -p {folder}")
        wanted = a.to or kind_of(a.target)
        have = kind_of(a.source)
        if (have == "onnx") == (wanted == "onnx"):
            raise UsageError(f"'{a.source}' is already {have}" if have == "onnx" == wanted else
                             f"one side of convert is ONNX; '{a.source}' is {have}, '{a.target}' {wanted}", "OT1732",
                             "onnxtrain convert model.train.onnx model.pt")
        module, extra = _SIDES[have if wanted == "onnx" else wanted]
        try:
            side = importlib.import_module(f".{module}", __package__)
            _quiet()
            return side.convert(a.source, have, a.target, wanted, a.verify)
        except ImportError as e:
            raise UsageError(f"converting needs the package '{e.name}', which {sys.executable} does not have", "OT1733",
                             f"{sys.executable} -m pip install 'onnxtrain[{extra}]'; or name another interpreter in "
                             f"ONNXTRAIN_PYTHON") from None
    except Error as e:
        print(e, file=sys.stderr)
        return 2 if isinstance(e, UsageError) else 3
    except OSError as e:
        print(UsageError(f"'{str(e.filename or a.target).removesuffix('.part')}': {e.strerror or e}", "OT1732"),
              file=sys.stderr)
        return 2


def _quiet():
    """What torch says to its developers while it reads and exports; what matters to the user is in our own words."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    logging.getLogger("torch.export").setLevel(logging.CRITICAL)


if __name__ == "__main__":
    for_shell()
    sys.exit(main())
