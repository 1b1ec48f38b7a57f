"""Steps of a training file on all ranks of an mpirun, timed:  python steps.py FILE ROWS STEPS OUT

ROWS are those of one rank. Rank 0 writes {"ms": per step, "least": of the fastest step, "cpu": the least processor time
of a step, "bytes", "messages": what it sent per step} to OUT.
"""

import json
import sys
import time

import numpy as np

import onnxtrain as ot


def feeds_of(model, rows):
    """Zeros for every input and target with an open first dimension."""
    made = {}
    description = model.info
    for v in [*description["inputs"], *(v for t in description["training"] for v in t["inputs"])]:
        shape = [rows, *v["shape"][1:]]
        made[v["name"]] = np.zeros(shape, "i8" if "int64" in v["type"] else "f4")
    return made


def main():
    file, rows, steps, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    model = ot.load(file)
    t = ot.Trainer(model, threads=1, distributed="auto")
    feeds = feeds_of(model, rows)
    for _ in range(3):
        t.step(feeds)
    sent, times, spent = t.traffic, [time.perf_counter()], [time.process_time()]
    for _ in range(steps):
        t.step(feeds)
        times.append(time.perf_counter())
        spent.append(time.process_time())
    seconds, now = times[-1] - times[0], t.traffic
    if t.rank == 0:
        with open(out, "w") as f:
            json.dump({"ms": seconds / steps * 1e3, "least": float(np.diff(times).min()) * 1e3,
                       "cpu": float(np.diff(spent).min()) * 1e3,
                       "bytes": (now[0] - sent[0]) / steps, "messages": (now[1] - sent[1]) / steps}, f)


if __name__ == "__main__":
    main()
