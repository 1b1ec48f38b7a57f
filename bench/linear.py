"""Linear layers beside PyTorch, GEMM by GEMM: forward, gradient of the input, weight gradient.

    .venv/bin/python bench/linear.py                       # PyTorch from bench/setup.sh torch, or --torch PYTHON
    .venv/bin/python bench/linear.py --inputs 512 --outputs 1,2,10 --batch 1,32,256

Every layer is trained for a moment by `onnxtrain bench`, the times of its three GEMMs are taken from the trace; PyTorch
runs the same three. Least times of interleaved rounds, in microseconds; a ratio above 1 means that onnxtrain is faster.
"""

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from harness.graph import GraphBuilder
from harness.kernels import PASSES, TorchKernels, arguments, least_of, trace


def model(rows, inputs, outputs):
    """scale * x -> linear"""
    rng, b = np.random.default_rng(0), GraphBuilder()
    scale, w, bias = (b.weight((rng.standard_normal(shape) * 0.1).astype("f"))
                      for shape in ((inputs,), (outputs, inputs), (outputs,)))
    y = b.node("Gemm", b.node("Mul", "x", scale), w, bias, transB=1, name="case")
    return b.model({"x": (TensorProto.FLOAT, [rows, inputs])}, y, [rows, outputs])


def ours(case, folder, o):
    path = folder / "case.onnx"
    onnx.save(model(*case), path)
    least = {}
    for e in trace(o, path, "mse", case[0], folder):
        if e["name"].startswith("Gemm "):
            key = (e["cat"] != "forward", e["name"])  # the gradient of the input is made before the weight gradient
            least[key] = min(e["dur"], least.get(key, math.inf))
    return dict(zip(PASSES, (least[k] for k in sorted(least)), strict=True))


def numbers(text):
    return [int(v) for v in text.split(",")]


def main():
    p = arguments(__doc__, seconds=0.04)
    p.add_argument("--batch", type=numbers, default=[1, 8, 32, 256])
    p.add_argument("--inputs", type=numbers, default=[64, 512, 2048])
    p.add_argument("--outputs", type=numbers, default=[1, 2, 3, 10])
    o = p.parse_args()
    peer = TorchKernels(o)
    print(f"{'batch x inputs -> outputs':26}" + "".join(f"{p + ', us':>12} {'torch':>8} {'ratio':>6}" for p in PASSES))
    with tempfile.TemporaryDirectory() as folder:
        for inputs, outputs, batch in itertools.product(o.inputs, o.outputs, o.batch):
            case = (batch, inputs, outputs)
            theirs, mine = least_of(o.rounds, lambda case=case: peer.times(linear=case, seconds=o.seconds),
                                    lambda case=case: ours(case, Path(folder), o))
            theirs = {name: t * 1e6 for name, t in theirs.items()}
            cells = "".join(f"{mine[p]:12.2f} {theirs[p]:8.2f} {theirs[p] / mine[p]:5.2f}x" for p in PASSES)
            print(f"{batch:5} x {inputs:5} -> {outputs:5}    {cells}", flush=True)
    peer.close()


if __name__ == "__main__":
    main()
