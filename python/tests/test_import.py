"""The package loads alone and beside other libraries that carry ONNX, protobuf or OpenMP."""

import importlib.util
import itertools
import subprocess
import sys

import pytest

PEERS = [n for n in ("onnx", "onnxruntime", "torch", "tensorflow") if importlib.util.find_spec(n)]
ORDERS = [("onnxtrain",)]
ORDERS += [order for p in PEERS for order in itertools.permutations(("onnxtrain", p))]
ORDERS += [tuple(PEERS) + ("onnxtrain",), ("onnxtrain",) + tuple(PEERS)]


@pytest.mark.parametrize("order", dict.fromkeys(ORDERS), ids=" ".join)
def test_import_order(order):
    code = "import " + ", ".join(order) + "; print(onnxtrain.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
