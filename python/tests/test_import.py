"""The package loads and trains alone and beside other libraries that carry ONNX, protobuf or OpenMP, in any order."""

import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys

import pytest

TRAIN_FILE = pathlib.Path(__file__).resolve().parents[2] / "examples/linear/linear.train.onnx"
PEERS = [n for n in ("onnx", "onnxruntime", "torch", "tensorflow") if importlib.util.find_spec(n)]

# One small piece of work of each library after all of them are loaded, ours in the middle of it.
WORK = {
    "onnx": "onnx.checker.check_model(onnx.load(FILE))",
    "onnxruntime": "onnxruntime.InferenceSession(FILE, providers=['CPUExecutionProvider']).run(None, {'x': x})",
    "torch": "torch.nn.functional.linear(torch.from_numpy(x), torch.ones(2, 3, requires_grad=True)).sum().backward()",
    "tensorflow": "tensorflow.reduce_sum(tensorflow.matmul(x, tensorflow.ones((3, 2)))).numpy()",
    "onnxtrain": """
t = onnxtrain.Trainer(FILE, threads=2)
losses = [t.step({'x': x, 'target': x[:, :1]}).loss for _ in range(20)]
assert losses[-1] < losses[0], losses""",
}
REPORT = """
maps = {line[line.index('/'):].strip() for line in open('/proc/self/maps') if '/' in line}
runtimes = sorted(m for m in maps if any(n in m for n in ('/libgomp', '/libomp', '/libiomp')))
print(json.dumps({'losses': losses, 'runtimes': runtimes}))
"""


def orders():
    yield ("onnxtrain",)
    if len(PEERS) <= 2:
        yield from itertools.permutations(("onnxtrain", *PEERS))
        return
    # all orders of two, and ours first, in the middle and last among all
    for peer in PEERS:
        yield from itertools.permutations(("onnxtrain", peer))
    for at in range(len(PEERS) + 1):
        yield (*PEERS[:at], "onnxtrain", *PEERS[at:])
        yield (*PEERS[::-1][:at], "onnxtrain", *PEERS[::-1][at:])


def run(order):
    code = ["import json, numpy as np", "import " + ", ".join(order), f"FILE = {str(TRAIN_FILE)!r}",
            "x = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)"]
    code += [WORK[name] for name in order] + [WORK[name] for name in order[::-1]] + [REPORT]
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def alone():
    return run(("onnxtrain",))


@pytest.mark.parametrize("order", dict.fromkeys(orders()), ids=" ".join)
def test_import_order(order, alone):
    """Every order loads, works, and trains to the same numbers."""
    assert run(order)["losses"] == alone["losses"]


def test_one_openmp_runtime_of_our_own(alone):
    assert len(alone["runtimes"]) <= 1, alone["runtimes"]
