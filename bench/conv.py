"""Convolutions unlike those of the workloads, node by node beside PyTorch: forward, gradient of the input, of the weights.

    .venv/bin/python bench/conv.py --torch ~/torch/bin/python            # an interpreter that has torch
    .venv/bin/python bench/conv.py --torch ~/torch/bin/python --only dilated --rounds 5

Every case is trained for a moment by `onnxtrain bench` (in a network: a scale before, a pool behind), the times of its
three nodes are taken from the trace; PyTorch runs the same three kernels, in both memory formats, and the faster counts.
Least times of interleaved rounds, in milliseconds; a ratio above 1 means that onnxtrain is faster. What PyTorch does not
have to reorder (its tensors are made in the format it likes) is not counted on either side.
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

ROOT = Path(__file__).resolve().parent.parent


def case(name, n, c, size, m, k, s=1, p=None, d=1, g=1, transposed=False, extra=0):
    dims = len(size)
    full = lambda v: list(v) if isinstance(v, (list, tuple)) else [v] * dims
    k, s, d, extra = full(k), full(s), full(d), full(extra)
    p = [(a - 1) * b // 2 for a, b in zip(k, d)] if p is None else full(p)
    return dict(name=name, n=n, c=c, size=list(size), m=m, k=k, s=s, p=p, d=d, g=g, transposed=transposed, extra=extra)


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


def weight_shape(v):
    return [v["c"], v["m"] // v["g"], *v["k"]] if v["transposed"] else [v["m"], v["c"] // v["g"], *v["k"]]


def flops(v):
    weights = math.prod(weight_shape(v))
    if v["transposed"]:
        pixels = math.prod(v["size"])
    else:
        pixels = math.prod((a + 2 * p - d * (k - 1) - 1) // s + 1 for a, p, d, k, s in zip(v["size"], v["p"], v["d"], v["k"], v["s"]))
    return 2 * v["n"] * pixels * weights


def model(v, path):
    """scale * x -> convolution -> mean over the picture -> fully connected"""
    dims, rng = len(v["size"]), np.random.default_rng(0)
    arr = lambda name, *shape: numpy_helper.from_array((rng.standard_normal(shape) * 0.1).astype("f"), name)
    attrs = dict(kernel_shape=v["k"], strides=v["s"], pads=v["p"] * 2, dilations=v["d"], group=v["g"])
    if v["transposed"]:
        attrs["output_padding"] = v["extra"]
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["a"]),
        helper.make_node("ConvTranspose" if v["transposed"] else "Conv", ["a", "w"], ["b"], name="case", **attrs),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "fc"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [v["n"], v["c"], *v["size"]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [v["n"], 10])],
        [arr("scale", v["c"], *[1] * dims), arr("w", *weight_shape(v)), arr("fc", 10, v["m"])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


PASSES = ("forward", "input", "weights")


def pass_of(event):
    """Which of the three kernels a node of the trace is; its operator and the order of its shapes tell."""
    op = event["name"].split()[0]
    return {"Conv": "forward", "ConvTranspose": "forward", "ConvGradX": "input", "ConvGradW": "weights"}.get(op)


def ours(binary, v, folder, threads, seconds):
    path = folder / "case.onnx"
    model(v, path)
    cmd = [binary, "bench", path, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "sgd", "--batch", v["n"], "--threads", threads, "--seconds", seconds]
    subprocess.run([str(a) for a in [*cmd, "--trace", folder / "t"]], check=True, stdout=subprocess.DEVNULL)
    least = {}
    for e in json.loads((folder / "t.training.json").read_text())["traceEvents"]:
        kind = pass_of(e)
        # the gradient of a transposed convolution's input is a Conv in the backward phase
        if v["transposed"] and e["name"].startswith("Conv ") and e["cat"] == "backward":
            kind = "input"
        if kind:
            best = least.get(kind, (math.inf, ""))
            least[kind] = min(best, (e["dur"] / 1e3, e["args"]["impl"]))
    return least


# First lines of a program with torch: the least time of f, in parts of a second (UNIT of them).
LEAST = """
import json, sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
def least(f, seconds):
    f(); best = 1e9; end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        t = time.perf_counter(); f(); best = min(best, time.perf_counter() - t)
    return best * UNIT
"""

TORCH = LEAST + """
UNIT = 1e3
for line in sys.stdin:
    v, seconds = json.loads(line)
    dims, r = len(v["size"]), {}
    formats = [torch.contiguous_format] + {2: [torch.channels_last], 3: [torch.channels_last_3d]}.get(dims, [])
    for fmt in formats:
        x = torch.randn(v["n"], v["c"], *v["size"]).to(memory_format=fmt)
        w = torch.randn(v["wshape"]).to(memory_format=fmt)
        a = (v["s"], v["p"], v["d"], v["transposed"], v["extra"], v["g"])
        with torch.no_grad():
            fwd = lambda: torch.ops.aten.convolution(x, w, None, *a)
            g = torch.randn_like(fwd())
            back = lambda *mask: torch.ops.aten.convolution_backward(g, x, w, None, *a, list(mask))
            got = dict(forward=least(fwd, seconds), input=least(lambda: back(True, False, False), seconds), weights=least(lambda: back(False, True, False), seconds))
        r = {k: min(t, r.get(k, 1e9)) for k, t in got.items()}
    print(json.dumps(r), flush=True)
"""


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--torch", default=sys.executable, help="a Python that has torch")
    a.add_argument("--binary", default=str(ROOT / "build/release/onnxtrain"))
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=float, default=0.1, help="per measurement")
    a.add_argument("--only", default="", help="cases whose name contains this")
    a.add_argument("--json", default="", help="write the times to this file")
    o = a.parse_args()
    peer = subprocess.Popen([o.torch, "-c", TORCH, str(o.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    print(f"{'case':38} {'MFLOP':>7}   " + "".join(f"{p + ', ms':>12} {'torch':>8} {'ratio':>6} {'kernel':>9}" for p in PASSES))
    with tempfile.TemporaryDirectory() as folder:
        for v in CASES:
            if o.only not in v["name"]:
                continue
            mine, theirs = {}, {}
            for _ in range(o.rounds):
                peer.stdin.write(json.dumps([dict(v, wshape=weight_shape(v)), o.seconds]) + "\n")
                peer.stdin.flush()
                line = peer.stdout.readline()
                if not line:
                    raise SystemExit("PyTorch's process ended early; its message is above")
                for k, t in json.loads(line).items():
                    theirs[k] = min(t, theirs.get(k, math.inf))
                for k, t in ours(o.binary, v, Path(folder), o.threads, o.seconds).items():
                    mine[k] = min(t, mine.get(k, (math.inf, "")))
            rows.append(dict(name=v["name"], flops=flops(v), onnxtrain=mine, torch=theirs))
            cells = "".join(f"{mine[p][0]:12.3f} {theirs[p]:8.3f} {theirs[p] / mine[p][0]:5.2f}x {mine[p][1]:>9}" for p in PASSES)
            print(f"{v['name']:38} {flops(v) / 1e6:7.0f}   {cells}", flush=True)
    ratios = sorted((r["torch"][p] / r["onnxtrain"][p][0], r["name"], p) for r in rows for p in PASSES)
    mean = math.exp(sum(math.log(r[0]) for r in ratios) / len(ratios))
    print(f"geometric mean {mean:.2f}x; below 1: {sum(r[0] < 1 for r in ratios)} of {len(ratios)}; worst:")
    for r, name, p in ratios[:12]:
        print(f"  {r:.2f}x {name}, {p}")
    if o.json:
        Path(o.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
