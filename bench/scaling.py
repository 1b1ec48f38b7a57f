"""How the cost of a training step grows: batch and width of a multilayer perceptron, sequence length of a small GPT.

    .venv/bin/python bench/scaling.py                 # needs onnx beside onnxtrain
    .venv/bin/python bench/scaling.py --only sequence --seconds 1

Every row is a fresh process; times are the least of its steps. "growth" is the cost per sample (for the GPT: per token)
beside the row above, "work" the same for floating point operations: where attention's quadratic share rises, so may the
cost. Memory is the peak of the process in MB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = """
import sys, time, json, resource, numpy as np, onnxtrain as ot
model, feeds, threads, seconds, kind = sys.argv[1], dict(np.load(sys.argv[2])), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
optimizer = ot.Adam(lr=1e-8) if kind == "adam" else ot.AdamW(lr=1e-8)
trainer = ot.Trainer(ot.prepare(model, loss="cross_entropy", label="label", optimizer=optimizer), seed=0, threads=threads)
trainer.step(feeds)
times, end = [], time.perf_counter() + seconds
while time.perf_counter() < end or len(times) < 3:
    t = time.perf_counter()
    trainer.step(feeds)
    times.append(time.perf_counter() - t)
print(json.dumps({"ms": min(times) * 1e3, "median": sorted(times)[len(times) // 2] * 1e3, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def tables():
    from networks import gpt, mlp

    def mlp_flops(batch, width):
        return 6 * batch * (784 * 512 * width + 512 * 256 * width * width + 256 * 10 * width) - 2 * batch * 784 * 512 * width

    def gpt_flops(batch, length, layers=6, h=192, words=256):
        return 6 * batch * length * (layers * (12 * h * h + length * h) + h * words)  # half of the scores count

    batch = {"title": "MLP 784-512-256-10, Adam, by batch", "unit": "sample", "optimizer": "adam",
             "rows": [(b, lambda b=b: mlp(b), b, mlp_flops(b, 1), 10) for b in (1, 2, 4, 8, 16, 32, 64, 128, 256)]}
    width = {"title": "MLP, batch 64, Adam, by width", "unit": "sample", "optimizer": "adam",
             "rows": [(f"x{w}", lambda w=w: mlp(64, w), 64, mlp_flops(64, w), 10) for w in (1, 2, 4)]}
    sequence = {"title": "GPT 6 x 192, batch 4, AdamW, by sequence", "unit": "token", "optimizer": "adamw",
                "rows": [(n, lambda n=n: gpt(4, n), 4 * n, gpt_flops(4, n), 256) for n in (64, 128, 256, 512, 1024)]}
    return {"batch": batch, "width": width, "sequence": sequence}


def measure(make, samples, classes, optimizer, options):
    import numpy as np
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        model, feeds = make()
        path, data = str(Path(folder) / "model.onnx"), str(Path(folder) / "feeds.npz")
        onnx.save(model, path)
        np.savez(data, label=np.random.default_rng(3).integers(0, classes, samples), **feeds)
        out = subprocess.run([sys.executable, "-c", WORKER, path, data, str(options.threads), str(options.seconds), optimizer], stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise SystemExit("a worker ended early; its message is above")
    return json.loads(out.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.5, help="time per row")
    p.add_argument("--only", choices=["batch", "width", "sequence"])
    p.add_argument("--json", action="store_true")
    options = p.parse_args()
    results = {}
    for name, table in tables().items():
        if options.only not in (None, name):
            continue
        results[name], before = [], None
        if not options.json:
            print(f"\n{table['title']}\n\n| {name} | ms per step | us per {table['unit']} | growth | work | peak MB |\n|---|---|---|---|---|---|")
        for label, make, samples, flops, classes in table["rows"]:
            r = measure(make, samples, classes, table["optimizer"], options)
            each, work = r["ms"] * 1e3 / samples, flops / samples
            growth = (each / before[0], work / before[1]) if before else None
            results[name].append({name: label, **r, "us_each": each, "growth": growth and growth[0], "work": growth and growth[1]})
            if not options.json:
                tail = f"{growth[0]:.2f} | {growth[1]:.2f}" if growth else "- | -"
                print(f"| {label} | {r['ms']:.4g} | {each:.4g} | {tail} | {r['peak']:.0f} |", flush=True)
            before = each, work
            time.sleep(0.05)
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
