"""Float32 inference beside onnxruntime: interleaved rounds, one process per engine, medians and their ratio.

    .venv/bin/python bench/inference.py                       # both in this interpreter's packages
    .venv/bin/python bench/inference.py --ort ~/ort/bin/python --rounds 9 --only ResNet
    .venv/bin/python bench/inference.py --recurrent           # LSTM, GRU, RNN of many sizes

A ratio above 1 means that onnxtrain is faster. The outputs are compared first.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = """
import sys, time, json, numpy as np
engine, model, feeds, threads = sys.argv[1:5]
feeds = dict(np.load(feeds))
if engine == "onnxtrain":
    import onnxtrain as ot
    session = ot.Session(model, threads=int(threads))
    run = lambda: list(session.run(feeds).values())[0]
else:
    import onnxruntime as rt
    rt.set_default_logger_severity(3)
    o = rt.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = int(threads), 1
    session = rt.InferenceSession(model, o, providers=["CPUExecutionProvider"])
    run = lambda: session.run(None, feeds)[0]
np.save(sys.argv[5], run())
for line in sys.stdin:
    seconds = float(line)
    n, start = 0, time.perf_counter()
    while True:
        run()
        n += 1
        t = time.perf_counter() - start
        if t > seconds:
            break
    print(json.dumps(t / n), flush=True)
"""


class Engine:
    def __init__(self, python, name, model, feeds, threads, out):
        self.out = out
        self.process = subprocess.Popen([python, "-c", WORKER, name, model, feeds, str(threads), out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def round(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended early; its message is above")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(name, folder, options):
    import numpy as np

    from networks import save

    model, feeds = str(folder / "model.onnx"), str(folder / "feeds.npz")
    np.savez(feeds, **save(name, model))
    engines = [Engine(sys.executable, "onnxtrain", model, feeds, options.threads, str(folder / "a.npy")),
               Engine(options.ort, "onnxruntime", model, feeds, options.threads, str(folder / "b.npy"))]
    times = [[], []]
    for k in range(options.rounds + 1):
        for e, t in zip(engines, times):
            seconds = e.round(options.seconds)
            if k:  # the first round warms up
                t.append(seconds)
            time.sleep(0.05)  # the other's threads fall asleep
    for e in engines:
        e.close()
    a, b = np.load(engines[0].out), np.load(engines[1].out)
    ours, theirs = (statistics.median(t) for t in times)
    spread = max((max(t) - min(t)) / statistics.median(t) for t in times)
    return {"network": name, "onnxtrain_ms": ours * 1e3, "onnxruntime_ms": theirs * 1e3, "ratio": theirs / ours, "spread": spread,
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
    options = p.parse_args()
    if options.ort == sys.executable and importlib.util.find_spec("onnxruntime") is None:
        print("inference beside onnxruntime: left out, onnxruntime is not installed (pip install onnxruntime, or --ort PYTHON)")
        return
    from networks import NETWORKS, RECURRENT

    rows = []
    for name in RECURRENT if options.recurrent else NETWORKS:
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = compare(name, Path(folder), options)
        rows.append(row)
        if not options.json:
            print(f"{name:40} onnxtrain {row['onnxtrain_ms']:8.2f} ms   onnxruntime {row['onnxruntime_ms']:8.2f} ms   "
                  f"ratio {row['ratio']:.2f}   spread {row['spread']:.2f}   difference {row['difference']:.0e}", flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
