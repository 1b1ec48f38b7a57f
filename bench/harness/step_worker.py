"""One row of bench/scaling.py in a fresh process:  step_worker.py MODEL FEEDS.npz THREADS SECONDS adam|adamw"""

import json
import resource
import sys
import time

import numpy as np

import onnxtrain as ot


def main(model, feeds, threads, seconds, kind):
    optimizer = {"adam": ot.Adam, "adamw": ot.AdamW}[kind](lr=1e-8)
    prepared = ot.prepare(model, loss="cross_entropy", label="label", optimizer=optimizer)
    trainer, feeds = ot.Trainer(prepared, seed=0, threads=int(threads)), dict(np.load(feeds))
    trainer.step(feeds)
    times, end = [], time.perf_counter() + float(seconds)
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        trainer.step(feeds)
        times.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"ms": min(times) * 1e3, "median": sorted(times)[len(times) // 2] * 1e3, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
