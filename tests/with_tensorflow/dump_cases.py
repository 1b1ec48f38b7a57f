"""Writes the ONNX backend node tests as one file that an environment without the package onnx can read (.venv has onnx,
.venv-tf has TensorFlow).

    .venv/bin/python tests/with_tensorflow/dump_cases.py OUT.pickle [PART_OF_A_NAME]
"""

import pickle
import sys
import warnings

from onnx.backend.test.loader import load_model_tests


def main(out, part=""):
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for c in load_model_tests(kind="node"):
            if part in c.name and c.model is not None:
                found[c.name] = (c.model.SerializeToString(), c.data_sets, c.rtol, c.atol)
    with open(out, "wb") as f:
        pickle.dump(found, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
