"""Convolutions unlike those of the workloads, node by node beside PyTorch: forward, input gradient, weight gradient.

    .venv/bin/python bench/conv.py                       # PyTorch from bench/setup.sh torch, or --torch PYTHON
    .venv/bin/python bench/conv.py --only dilated --rounds 5

Every case is trained for a moment by `onnxtrain bench` (in a network: a scale before, a pool behind), the times of its
three nodes are taken from the trace; PyTorch runs the same three kernels, in both memory formats, and the faster
counts. Least times of interleaved rounds, in milliseconds; a ratio above 1 means that onnxtrain is faster. What PyTorch
does not have to reorder (its tensors are made in the format it likes) is not counted on either side.
"""

import json
import math
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from harness.graph import GraphBuilder
from harness.kernels import PASSES, TorchKernels, arguments, least_of, trace
from harness.report import geometric_mean


def case(name, n, c, size, m, k, s=1, p=None, d=1, g=1, transposed=False, extra=0):
    def full(v):
        return list(v) if isinstance(v, (list, tuple)) else [v] * len(size)

    k, s, d, extra = full(k), full(s), full(d), full(extra)
    p = [(a - 1) * b // 2 for a, b in zip(k, d, strict=True)] if p is None else full(p)
    weight = [c, m // g, *k] if transposed else [m, c // g, *k]
    return {"name": name, "n": n, "c": c, "size": list(size), "m": m, "k": k, "s": s, "p": p, "d": d, "g": g,
            "transposed": transposed, "extra": extra, "weight": weight}


CASES = [
    case("vgg 3x3 64@112", 2, 64, (112, 112), 64, 3),
    case("vgg 3x3 512@14", 2, 512, (14, 14), 512, 3),
    case("3x3 96->208@14", 8, 96, (14, 14), 208, 3),
    case("3x3 48->48@15 odd", 8, 48, (15, 15), 48, 3),
    case("3x3 valid 40->24@33", 4, 40, (33, 33), 24, 3, p=0),
    case("3x3 12->12@64 few", 4, 12, (64, 64), 12, 3),
    case("3x3 512@4 batch 2", 2, 512, (4, 4), 512, 3),
    case("3x3 stride 2 96->192@28", 8, 96, (28, 28), 192, 3, 2),
    case("stem 3x3 stride 2 3->32@128", 4, 3, (128, 128), 32, 3, 2, p=1),
    case("stem 4x4 stride 4 3->96@128", 4, 3, (128, 128), 96, 4, 4, p=0),
    case("patch 16x16 3->192@224", 4, 3, (224, 224), 192, 16, 16, p=0),
    case("stem 7x7 1->32@64", 8, 1, (64, 64), 32, 7, 2, p=3),
    case("last 3x3 64->3@64", 4, 64, (64, 64), 3, 3),
    case("last 1x1 64->2@128", 2, 64, (128, 128), 2, 1),
    case("5x5 20->50@12", 32, 20, (12, 12), 50, 5, p=0),
    case("5x5 48->64@28", 4, 48, (28, 28), 64, 5),
    case("7x7 32->32@28", 4, 32, (28, 28), 32, 7),
    case("1x7 160@17", 4, 160, (17, 17), 160, (1, 7)),
    case("3x1 64@32", 8, 64, (32, 32), 64, (3, 1)),
    case("1x1 832->48@7", 8, 832, (7, 7), 48, 1),
    case("1x1 100->333@13", 8, 100, (13, 13), 333, 1),
    case("1x1 stride 2 256->512@28", 4, 256, (28, 28), 512, 1, 2, p=0),
    case("dilated 2 3x3 64@32", 4, 64, (32, 32), 64, 3, d=2),
    case("dilated 12 3x3 128->64@33", 2, 128, (33, 33), 64, 3, d=12),
    case("resnext 3x3 g32 128@28", 4, 128, (28, 28), 128, 3, g=32),
    case("resnext 3x3 g32 512@14 stride 2", 4, 512, (14, 14), 512, 3, 2, g=32),
    case("resnext 3x3 g32 256@28", 4, 256, (28, 28), 256, 3, g=32),
    case("regnet 3x3 g10 240@14", 4, 240, (14, 14), 240, 3, g=10),
    case("shufflenet 1x1 g3 240->240@28", 4, 240, (28, 28), 240, 1, g=3),
    case("groups 4 3x3 64->96@20", 4, 64, (20, 20), 96, 3, g=4),
    case("groups 8 5x5 40->80@16", 4, 40, (16, 16), 80, 5, g=8),
    case("depthwise 3x3 64@56", 4, 64, (56, 56), 64, 3, g=64),
    case("depthwise 5x5 240@14", 8, 240, (14, 14), 240, 5, g=240),
    case("depthwise 7x7 96@28", 4, 96, (28, 28), 96, 7, g=96),
    case("depthwise 3x3 stride 2 100@30", 4, 100, (30, 30), 100, 3, 2, g=100),
    case("depthwise x2 3x3 32->64@28", 8, 32, (28, 28), 64, 3, g=32),
    case("depthwise dilated 2 64@32", 4, 64, (32, 32), 64, 3, d=2, g=64),
    case("transposed 2x2 stride 2 128->64@16", 4, 128, (16, 16), 64, 2, 2, p=0, transposed=True),
    case("transposed 4x4 stride 2 256->128@8", 8, 256, (8, 8), 128, 4, 2, p=1, transposed=True),
    case("transposed 3x3 64->64@16", 8, 64, (16, 16), 64, 3, transposed=True),
    case("transposed 3x3 stride 2 32->16@32", 4, 32, (32, 32), 16, 3, 2, p=1, transposed=True, extra=1),
    case("transposed 4x4 100->256@1", 32, 100, (1, 1), 256, 4, 1, p=0, transposed=True),
    case("1d 3 64@256", 8, 64, (256,), 64, 3),
    case("1d 9 dilated 4 32@1000", 4, 32, (1000,), 32, 9, d=4),
    case("1d wave 10 stride 5 1->128@4000", 2, 1, (4000,), 128, 10, 5, p=0),
    case("1d depthwise 31 144@200", 4, 144, (200,), 144, 31, g=144),
    case("3d 3 16->32@16", 2, 16, (16, 16, 16), 32, 3),
    case("3d 3 stride 2 32@8x28x28", 1, 32, (8, 28, 28), 32, 3, 2),
    case("3d 1x3x3 48@4x16x16", 2, 48, (4, 16, 16), 48, (1, 3, 3)),
    case("3d first 3->16@8x56x56", 1, 3, (8, 56, 56), 16, 3),
]


def flops(v):
    size = v["size"] if v["transposed"] else [
        (a + 2 * p - d * (k - 1) - 1) // s + 1
        for a, p, d, k, s in zip(v["size"], v["p"], v["d"], v["k"], v["s"], strict=True)]
    return 2 * v["n"] * math.prod(size) * math.prod(v["weight"])


def model(v):
    """scale * x -> convolution -> mean over the image -> linear"""
    rng, b = np.random.default_rng(0), GraphBuilder()

    def weight(*shape):
        return b.weight((rng.standard_normal(shape) * 0.1).astype("f"))

    more = {"output_padding": v["extra"]} if v["transposed"] else {}
    scaled = b.node("Mul", "x", weight(v["c"], *[1] * len(v["size"])))
    y = b.node("ConvTranspose" if v["transposed"] else "Conv", scaled, weight(*v["weight"]), name="case",
               kernel_shape=v["k"], strides=v["s"], pads=v["p"] * 2, dilations=v["d"], group=v["g"], **more)
    y = b.node("Gemm", b.node("Flatten", b.node("GlobalAveragePool", y)), weight(10, v["m"]), transB=1)
    return b.model({"x": (TensorProto.FLOAT, [v["n"], v["c"], *v["size"]])}, y, [v["n"], 10])


def pass_of(event, transposed):
    """Which of the three kernels a node of the trace is."""
    op = event["name"].split()[0]
    if transposed and op == "Conv" and event["cat"] == "backward":  # the gradient of a transposed convolution's input
        return "input"
    return {"Conv": "forward", "ConvTranspose": "forward", "ConvGradX": "input", "ConvGradW": "weights"}.get(op)


def ours(v, folder, o):
    """pass -> (ms, kernel)"""
    path, least = folder / "case.onnx", {}
    onnx.save(model(v), path)
    for e in trace(o, path, "cross_entropy", v["n"], folder):
        kind = pass_of(e, v["transposed"])
        if kind:
            least[kind] = min(least.get(kind, (math.inf, "")), (e["dur"] / 1e3, e["args"]["impl"]))
    return least


def main():
    p = arguments(__doc__, seconds=0.1)
    p.add_argument("--only", default="", help="cases whose name contains this")
    p.add_argument("--json", default="", help="write the times to this file")
    o = p.parse_args()
    peer, rows = TorchKernels(o), []
    print(f"{'case':38} {'MFLOP':>7}   "
          + "".join(f"{p + ', ms':>12} {'torch':>8} {'ratio':>6} {'kernel':>9}" for p in PASSES))
    with tempfile.TemporaryDirectory() as folder:
        for v in CASES:
            if o.only not in v["name"]:
                continue
            theirs, mine = least_of(o.rounds, lambda v=v: peer.times(conv=v, seconds=o.seconds),
                                    lambda v=v: ours(v, Path(folder), o))
            theirs = {name: t * 1e3 for name, t in theirs.items()}
            rows.append({"name": v["name"], "flops": flops(v), "onnxtrain": mine, "torch": theirs})
            cells = "".join(f"{mine[p][0]:12.3f} {theirs[p]:8.3f} {theirs[p] / mine[p][0]:5.2f}x {mine[p][1]:>9}"
                            for p in PASSES)
            print(f"{v['name']:38} {flops(v) / 1e6:7.0f}   {cells}", flush=True)
    peer.close()
    ratios = sorted((r["torch"][p] / r["onnxtrain"][p][0], r["name"], p) for r in rows for p in PASSES)
    print(f"geometric mean {geometric_mean(r[0] for r in ratios):.2f}x; below 1: {sum(r[0] < 1 for r in ratios)} of "
          f"{len(ratios)}; worst:")
    for r, name, kind in ratios[:12]:
        print(f"  {r:.2f}x {name}, {kind}")
    if o.json:
        Path(o.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
