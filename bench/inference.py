"""Float32 inference beside onnxruntime: interleaved rounds, one process per engine, medians and their ratio.

    .venv/bin/python bench/inference.py                       # both in this interpreter's packages
    .venv/bin/python bench/inference.py --ort ~/ort/bin/python --rounds 9 --only ResNet
    .venv/bin/python bench/inference.py --recurrent           # LSTM, GRU, RNN of many sizes

A ratio above 1 means that onnxtrain is faster. The outputs are compared too.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from harness.process import LineProcess
from networks import NETWORKS, RECURRENT, save

WORKER = Path(__file__).resolve().parent / "harness/inference_worker.py"


def compare(name, folder, o):
    model, feeds = str(folder / "model.onnx"), str(folder / "feeds.npz")
    np.savez(feeds, **save(name, model))
    results = [folder / "ours.npy", folder / "theirs.npy"]
    engines = [LineProcess([python, WORKER, engine, model, feeds, o.threads, out]) for python, engine, out in
               zip((sys.executable, o.ort), ("onnxtrain", "onnxruntime"), results, strict=True)]
    times = [[], []]
    for k in range(o.rounds + 1):
        for engine, t in zip(engines, times, strict=True):
            seconds = engine.must_answer(o.seconds)
            if k:  # the first round warms up
                t.append(seconds)
            time.sleep(0.05)  # the other's threads fall asleep
    for engine in engines:
        engine.close()
    a, b = (np.load(out) for out in results)
    ours, theirs = (statistics.median(t) for t in times)
    return {"network": name, "onnxtrain_ms": ours * 1e3, "onnxruntime_ms": theirs * 1e3, "ratio": theirs / ours,
            "spread": max((max(t) - min(t)) / statistics.median(t) for t in times),
            "difference": float(np.abs(a - b).max() / np.abs(b).max())}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ort", default=sys.executable, help="a Python that has onnxruntime")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.5, help="length of a round")
    p.add_argument("--only", default="", help="networks whose name contains this")
    p.add_argument("--recurrent", action="store_true", help="recurrent layers of many sizes instead")
    p.add_argument("--json", action="store_true")
    o = p.parse_args()
    if o.ort == sys.executable and importlib.util.find_spec("onnxruntime") is None:
        print("inference beside onnxruntime: left out, onnxruntime is not installed (pip install onnxruntime, or "
              "--ort PYTHON)")
        return
    rows = []
    for name in RECURRENT if o.recurrent else NETWORKS:
        if o.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = compare(name, Path(folder), o)
        rows.append(row)
        if not o.json:
            print(f"{name:40} onnxtrain {row['onnxtrain_ms']:8.2f} ms   onnxruntime {row['onnxruntime_ms']:8.2f} ms   "
                  f"ratio {row['ratio']:.2f}   spread {row['spread']:.2f}   difference {row['difference']:.0e}",
                  flush=True)
    if o.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
