"""How the cost of training a convolutional network grows with the batch: ResNet-18 on 32x32 pictures (workload W4), 1 to 256.

    .venv/bin/python bench/scaling_conv.py
    .venv/bin/python bench/scaling_conv.py --batches 8,16,32 --threads 1 --seconds 2

For every batch: median time per step, time and memory per sample, and how the cost per sample changed when the batch
doubled; above 1.5 would be a cliff. Memory is the planned arena (activations, gradients, scratch) and the process' peak.
Needs numpy and onnx. Momentum, cross entropy, batch normalisation in training mode.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import onnx
from networks import Builder

ROOT = Path(__file__).resolve().parent.parent


def resnet18_small():
    b = Builder()

    def conv(x, c_in, c_out, k, stride):
        y = b.add("Conv", x, b.weight([c_out, c_in, k, k]), strides=[stride] * 2, pads=[k // 2] * 4, kernel_shape=[k, k])
        return b.add("BatchNormalization", y, b.weight([c_out], fill=1.0), b.weight([c_out], fill=0.0), b.weight([c_out], fill=0.0), b.weight([c_out], fill=1.0))

    x, c = b.add("Relu", conv("image", 3, 64, 3, 1)), 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and width > 64 else 1
            y = conv(b.add("Relu", conv(x, c, width, 3, stride)), width, width, 3, 1)
            x = b.add("Relu", b.add("Add", y, x if stride == 1 and c == width else conv(x, c, width, 1, stride)))
            c = width
    y = b.add("Gemm", b.add("Flatten", b.add("GlobalAveragePool", x)), b.weight([10, 512]), b.weight([10], fill=0.0), transB=1)
    return b.model("image", ["N", 3, 32, 32], y)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--binary", default=str(ROOT / "build/release/onnxtrain"))
    a.add_argument("--batches", default="1,2,4,8,16,32,64,128,256")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--seconds", type=float, default=1)
    o = a.parse_args()
    before, worst = None, 0
    print("| batch | ms per step | ms per sample | change | planned MB | MB per sample | peak MB |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        onnx.save(resnet18_small(), path)
        for batch in map(int, o.batches.split(",")):
            cmd = [o.binary, "bench", path, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "momentum", "--batch", batch, "--threads", o.threads, "--seconds", o.seconds, "--json"]
            out = subprocess.run([str(c) for c in cmd], check=True, capture_output=True, text=True).stdout
            r = json.loads(out)["training"]
            ms, planned, peak = r["ms_per_step"], r["arena_bytes"] / 1e6, r["peak_rss_bytes"] / 1e6
            change = ms / batch / before if before else None
            worst = max(worst, change or 0)
            print(f"| {batch} | {ms:.1f} | {ms / batch:.2f} | {f'{change:.2f}' if change else ''} | {planned:.0f} | {planned / batch:.2f} | {peak:.0f} |", flush=True)
            before = ms / batch
    print(f"worst change of the time per sample when the batch doubled: {worst:.2f}")


if __name__ == "__main__":
    main()
