"""How the cost of a training step grows: batch and width of a multilayer perceptron (W1), sequence of a small GPT (W7).

    .venv/bin/python bench/scaling.py                 # needs onnx beside onnxtrain
    .venv/bin/python bench/scaling.py --only sequence --seconds 1

Every row is a fresh process; times are the least of its steps. "growth" is the cost per sample (for the GPT: per token)
beside the row above, "work" the same for floating point operations: where attention's quadratic share rises, so may the
cost. Memory is the peak of the process in MB.
"""

import argparse
import dataclasses
import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

from workloads import WORKLOADS, w1_mlp, w7_gpt_nano
from workloads.onnx_layers import onnx_model

WORKER = Path(__file__).resolve().parent / "harness/step_worker.py"


def mlp(batch, width=1):
    return dataclasses.replace(WORKLOADS["W1"], network=functools.partial(w1_mlp.network, width=width),
                               input_shape=(batch, 784))


def gpt(length, batch=4):
    return dataclasses.replace(WORKLOADS["W7"], network=functools.partial(w7_gpt_nano.network, length=length),
                               input_shape=(batch, length))


def gpt_flops(length, batch=4):
    """Half of the scores count: the mask is causal."""
    h = w7_gpt_nano.WIDTH
    per_token = w7_gpt_nano.LAYERS * (12 * h * h + length * h) + h * w7_gpt_nano.WORDS
    return 6 * batch * length * per_token


def tables():
    """name -> (title, unit, rows of (label, workload, samples, operations))"""
    return {
        "batch": ("MLP 784-512-256-10, Adam, by batch", "sample",
                  [(b, mlp(b), b, mlp(b).cost()["step_flops"]) for b in (1, 2, 4, 8, 16, 32, 64, 128, 256)]),
        "width": ("MLP, batch 64, Adam, by width", "sample",
                  [(f"x{w}", mlp(64, w), 64, mlp(64, w).cost()["step_flops"]) for w in (1, 2, 4)]),
        "sequence": ("GPT 6 x 192, batch 4, AdamW, by sequence", "token",
                     [(n, gpt(n), 4 * n, gpt_flops(n)) for n in (64, 128, 256, 512, 1024)])}


def measure(workload, o):
    with tempfile.TemporaryDirectory() as folder:
        path, data = str(Path(folder) / "model.onnx"), str(Path(folder) / "feeds.npz")
        onnx.save(onnx_model(workload), path)
        x, label = workload.data()
        np.savez(data, x=x, label=label)
        command = [WORKER, path, data, o.threads, o.seconds, workload.optimizer.kind]
        out = subprocess.run([sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise SystemExit("a worker ended early; its message is above")
    return json.loads(out.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.5, help="time per row")
    p.add_argument("--only", choices=["batch", "width", "sequence"])
    p.add_argument("--json", action="store_true")
    o = p.parse_args()
    results = {}
    for name, (title, unit, rows) in tables().items():
        if o.only not in (None, name):
            continue
        results[name], before = [], None
        if not o.json:
            print(f"\n{title}\n\n| {name} | ms per step | us per {unit} | growth | work | peak MB |\n"
                  "|---|---|---|---|---|---|")
        for label, workload, samples, flops in rows:
            r = measure(workload, o)
            each, work = r["ms"] * 1e3 / samples, flops / samples
            growth = (each / before[0], work / before[1]) if before else None
            results[name].append({name: label, **r, "us_each": each, "growth": growth and growth[0],
                                  "work": growth and growth[1]})
            if not o.json:
                tail = f"{growth[0]:.2f} | {growth[1]:.2f}" if growth else "- | -"
                print(f"| {label} | {r['ms']:.4g} | {each:.4g} | {tail} | {r['peak']:.0f} |", flush=True)
            before = each, work
            time.sleep(0.05)
    if o.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
