"""Fully connected layers beside PyTorch, product by product: forward, gradient of the input, of the weights.

    .venv/bin/python bench/linear.py --torch ~/torch/bin/python          # an interpreter that has torch
    .venv/bin/python bench/linear.py --torch ~/torch/bin/python --inputs 512 --outputs 1,2,10 --batch 1,32,256

Every layer is trained for a moment by `onnxtrain bench`, the times of its three products are taken from the trace; PyTorch
runs the same three. Least times of interleaved rounds, in microseconds; a ratio above 1 means that onnxtrain is faster.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from conv import LEAST

ROOT = Path(__file__).resolve().parent.parent
PASSES = ("forward", "input", "weights")

TORCH = LEAST + """
UNIT = 1e6
for line in sys.stdin:
    rows, inputs, outputs, seconds = json.loads(line)
    x, w, b, dy = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs), torch.randn(rows, outputs)
    with torch.no_grad():
        r = dict(forward=least(lambda: torch.nn.functional.linear(x, w, b), seconds), input=least(lambda: dy.mm(w), seconds), weights=least(lambda: dy.t().mm(x), seconds))
    print(json.dumps(r), flush=True)
"""


def model(rows, inputs, outputs, path):
    """scale * x -> fully connected"""
    rng = np.random.default_rng(0)
    arr = lambda name, *shape: numpy_helper.from_array((rng.standard_normal(shape) * 0.1).astype("f"), name)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "scale"], ["a"]), helper.make_node("Gemm", ["a", "w", "bias"], ["y"], transB=1, name="case")],
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, outputs])],
        [arr("scale", inputs), arr("w", outputs, inputs), arr("bias", outputs)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def ours(binary, case, folder, threads, seconds):
    path = folder / "case.onnx"
    model(*case, path)
    cmd = [binary, "bench", path, "--mode", "train", "--loss", "mse", "--optimizer", "sgd", "--batch", case[0], "--threads", threads, "--seconds", seconds]
    subprocess.run([str(a) for a in [*cmd, "--trace", folder / "t"]], check=True, stdout=subprocess.DEVNULL)
    least = {}
    for e in json.loads((folder / "t.training.json").read_text())["traceEvents"]:
        if e["name"].startswith("Gemm "):
            key = (e["cat"] != "forward", e["name"])  # the gradient of the input is made before that of the weights
            least[key] = min(e["dur"], least.get(key, math.inf))
    return dict(zip(PASSES, (least[k] for k in sorted(least))))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(v) for v in text.split(",")]
    a.add_argument("--torch", default=sys.executable, help="a Python that has torch")
    a.add_argument("--binary", default=str(ROOT / "build/release/onnxtrain"))
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=float, default=0.04, help="per measurement")
    a.add_argument("--batch", type=numbers, default=[1, 8, 32, 256])
    a.add_argument("--inputs", type=numbers, default=[64, 512, 2048])
    a.add_argument("--outputs", type=numbers, default=[1, 2, 3, 10])
    o = a.parse_args()
    peer = subprocess.Popen([o.torch, "-c", TORCH, str(o.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'batch x inputs -> outputs':26}" + "".join(f"{p + ', us':>12} {'torch':>8} {'ratio':>6}" for p in PASSES))
    with tempfile.TemporaryDirectory() as folder:
        for case in [(b, i, n) for i in o.inputs for n in o.outputs for b in o.batch]:
            mine, theirs = {}, {}
            for _ in range(o.rounds):
                peer.stdin.write(json.dumps([*case, o.seconds]) + "\n")
                peer.stdin.flush()
                line = peer.stdout.readline()
                if not line:
                    raise SystemExit("PyTorch's process ended early; its message is above")
                for best, got in ((theirs, json.loads(line)), (mine, ours(o.binary, case, Path(folder), o.threads, o.seconds))):
                    best.update({p: min(got[p], best.get(p, math.inf)) for p in PASSES})
            cells = "".join(f"{mine[p]:12.2f} {theirs[p]:8.2f} {theirs[p] / mine[p]:5.2f}x" for p in PASSES)
            print(f"{case[0]:5} x {case[1]:5} -> {case[2]:5}    {cells}", flush=True)


if __name__ == "__main__":
    main()
