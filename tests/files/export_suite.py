"""Writes every model of the ONNX backend suite into a folder, for the round-trip test:

    .venv/bin/python tests/files/export_suite.py /tmp/suite
    ONNXTRAIN_MODELS=/tmp/suite build/release/onnxtrain_tests --gtest_filter='OnnxFiles.*'
"""

import pathlib
import sys

import onnx
from onnx.backend.test.loader import load_model_tests


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = case.model
            if model is None and case.model_dir:
                model = onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            if model is not None:
                (folder / f"{case.name}.onnx").write_bytes(model.SerializeToString())
                count += 1
    print(f"{count} models in {folder}")


if __name__ == "__main__":
    main()
