"""How the cost of training a convolutional network grows with the batch: ResNet-18 on 32x32 images (W4), 1 to 256.

    .venv/bin/python bench/scaling_conv.py
    .venv/bin/python bench/scaling_conv.py --batches 8,16,32 --threads 1 --seconds 2

For every batch: median time per step, time and memory per sample, and how the cost per sample changed when the batch
doubled; above 1.5 would be a cliff. Memory is the planned arena (activations, gradients, scratch) and the peak of the
process. Needs numpy and onnx. Momentum, cross entropy, batch normalization in training mode.
"""

import argparse
import dataclasses
import json
import subprocess
import tempfile
from pathlib import Path

import onnx

from harness.machine import ROOT
from workloads import WORKLOADS
from workloads.onnx_layers import onnx_model


def measure(batch, o):
    workload = dataclasses.replace(WORKLOADS["W4"], input_shape=(batch, 3, 32, 32))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        onnx.save(onnx_model(workload), path)
        command = [o.binary, "bench", path, "--mode", "train", "--loss", "cross_entropy", "--optimizer", "momentum",
                   "--batch", batch, "--threads", o.threads, "--seconds", o.seconds, "--json"]
        out = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["training"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", default=str(ROOT / "build/release/onnxtrain"))
    p.add_argument("--batches", default="1,2,4,8,16,32,64,128,256")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1)
    o = p.parse_args()
    before, worst = None, 0
    print("| batch | ms per step | ms per sample | change | planned MB | MB per sample | peak MB |\n"
          "|---|---|---|---|---|---|---|")
    for batch in map(int, o.batches.split(",")):
        r = measure(batch, o)
        ms, planned, peak = r["ms_per_step"], r["arena_bytes"] / 1e6, r["peak_rss_bytes"] / 1e6
        change = ms / batch / before if before else None
        worst = max(worst, change or 0)
        print(f"| {batch} | {ms:.1f} | {ms / batch:.2f} | {f'{change:.2f}' if change else ''} | {planned:.0f} | "
              f"{planned / batch:.2f} | {peak:.0f} |", flush=True)
        before = ms / batch
    print(f"worst change of the time per sample when the batch doubled: {worst:.2f}")


if __name__ == "__main__":
    main()
