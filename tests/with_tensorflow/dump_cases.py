"""Writes the ONNX backend node tests as one file that an environment without the package onnx can read (.venv has onnx,
.venv-tf has TensorFlow).

    .venv/bin/python tests/with_tensorflow/dump_cases.py OUT.pickle [PART_OF_A_NAME]
"""

import pickle
import sys
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

_ARRAY = {onnx.TensorProto: numpy_helper.to_array, onnx.SequenceProto: numpy_helper.to_list,
          onnx.OptionalProto: numpy_helper.to_optional}


def plain(x):
    """Without types of the package onnx, which the reader does not have."""
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return plain(_ARRAY[type(x)](x)) if type(x) in _ARRAY else x


def main(out, part=""):
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for c in load_model_tests(kind="node"):
            if part in c.name and c.model is not None:
                found[c.name] = (c.model.SerializeToString(), plain(c.data_sets), c.rtol, c.atol)
    with open(out, "wb") as f:
        pickle.dump(found, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
