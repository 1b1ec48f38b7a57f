"""How far it scales, on paper:  python bench/distributed/scaling.py [--rounds 3] [--steps 20]   (make figures-scaling)

Measured here: the step of each workload in one process of one thread; the time that an exchange takes beside the wire
(from a model of a few bytes). From these, bytes and a link's latency and bandwidth follow the steps of 8, 64 and 512
nodes. The same formula is first compared with hosts in network namespaces (tests/hosts), where it can be measured.

A step of R ranks with gradients of G bytes, over links of B bytes/s and latency L:
    T = C + 3 (L + (R-1) o) + 2 G/B (R-1)/R + G/M
C: the step alone; three exchanges (rows, all-to-all, all-gather) of R-1 messages, o each; M: adding parts of a sum.
With gradients reduced while the backward pass runs (two thirds of C), only what does not fit behind it is added to C.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests/hosts")]
from distributed.workloads import gradient_bytes, training  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

NAMES = ("W1", "W4", "W6", "W9")
NODES, GIGABITS, LATENCY = (8, 64, 512), (10, 100), 25e-6
TINY = """
<ir_version: 8, opset_import: ["": 17]>
tiny (float[N,4] x) => (float[N,2] scores)
<float[4,2] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}>
{
  scores = MatMul(x, w)
}
"""


class Measured:
    """Seconds of the fastest step: what the formula describes is a step that nothing else disturbs."""

    def __init__(self, folder, rounds, steps):
        self.folder, self.rounds, self.steps = folder, rounds, steps
        import onnxtrain as ot

        tiny = ot.prepare(ot.parse(TINY), loss="cross_entropy", label="label", optimizer=ot.SGD(lr=1e-9))
        tiny.save(folder / "tiny.train.onnx")
        for name in NAMES:
            training(name).save(folder / f"{name}.train.onnx")

    def step(self, name, rows, ranks=1, hosts=None, steps=None):
        """Of a step with `rows` on each rank. One process of one thread: its processor time, which others on the
        machine disturb less."""
        out = self.folder / "out.json"
        words = [sys.executable, HERE / "steps.py", self.folder / f"{name}.train.onnx", rows, steps or self.steps, out]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if hosts is not None:
            words, environment = hosts.mpirun(ranks, words), hosts.environment()
        found = []
        for _ in range(self.rounds):
            subprocess.run([str(w) for w in words], env=environment, check=True, capture_output=True, timeout=1800)
            found.append(json.loads(out.read_text())["cpu" if hosts is None else "least"] / 1e3)
        return min(found)


def add_speed():
    """Bytes of a sum per second: an addition of two arrays that do not fit into a cache."""
    a, b = np.ones(1 << 24, "f4"), np.ones(1 << 24, "f4")
    best = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        np.add(a, b, out=a)
        best = min(best, time.perf_counter() - begin)
    return a.nbytes / best


def seconds(compute, gradient, ranks, bandwidth, latency, message, adding, overlap=False):
    """The formula of this file; -> (seconds of a step, seconds of its exchange)"""
    wire = 2 * gradient / bandwidth * (ranks - 1) / ranks
    exchange = 3 * (latency + (ranks - 1) * message) + wire + gradient / adding
    return compute + (max(0.0, exchange - compute * 2 / 3) if overlap else exchange), exchange


def check(measured, alone, adding):
    """-> seconds per message (o); prints predicted beside measured"""
    import hosts as h

    why = h.obstacle()
    if why:
        print(f"scaling: hosts cannot be made here ({why}); a message counts 10 us\n")
        return 1e-5
    with h.Hosts(2) as hosts:
        tiny = measured.step("tiny", 4, 2, hosts, 300)
    message = max(0.0, tiny - measured.step("tiny", 4, steps=300)) / 3
    print(f"A message costs {message * 1e6:.1f} us here, adding {adding / 1e9:.1f} GB/s.\n")
    print("| hosts | link | | measured, ms | formula, ms |\n|---|---|---|---|---|")
    for link in ({"rate": "1gbit"}, {"rate": "1gbit", "delay_us": 500}):
        with h.Hosts(2, **link) as hosts:
            for name in ("W1", "W6"):
                rows = WORKLOADS[name].input_shape[0]
                found = measured.step(name, rows, 2, hosts)
                said, _ = seconds(alone[name], gradient_bytes(name)[1], 2, h.bits(link["rate"]) / 8,
                                  link.get("delay_us", 0) * 1e-6, message, adding)
                print(f"| 2 | {link['rate']}, {link.get('delay_us', 0)} us | {name} | {found * 1e3:.1f} | "
                      f"{said * 1e3:.1f} |", flush=True)
    return message


def tables(alone, message, adding):
    for faster in (1, 20):
        node = "as one thread here" if faster == 1 else f"{faster} times one thread here"
        print(f"\nWeak scaling on paper, a node computes {node}, latency {LATENCY * 1e6:.0f} us: part of the step that "
              "is computing, without and with overlap.\n")
        print("| | Gbit/s | " + " | ".join(f"{n} nodes" for n in NODES) + " | more than half is exchange from | "
              "because of |\n|---|---|" + "---|" * (len(NODES) + 2))
        for name, compute in alone.items():
            for gigabits in GIGABITS:
                told = [row_part(compute / faster, name, n, gigabits, message, adding) for n in NODES]
                print(f"| {name} | {gigabits} | {' | '.join(told)} | "
                      f"{limit(compute / faster, name, gigabits, message, adding)} |", flush=True)


def row_part(compute, name, ranks, gigabits, message, adding):
    gradient, parts = gradient_bytes(name)[1], []
    for overlap in (False, True):
        total, _ = seconds(compute, gradient, ranks, gigabits * 1e9 / 8, LATENCY, message, adding, overlap)
        parts.append(f"{compute / total:.0%}")
    return ", ".join(parts)


def limit(compute, name, gigabits, message, adding):
    """'N nodes | reason' where the exchange without overlap takes as long as the step alone."""
    gradient, bandwidth = gradient_bytes(name)[1], gigabits * 1e9 / 8
    for ranks in (2**k for k in range(1, 21)):
        total, exchange = seconds(compute, gradient, ranks, bandwidth, LATENCY, message, adding)
        if exchange > compute:
            wire = 2 * gradient / bandwidth * (ranks - 1) / ranks
            count = 3 * (ranks - 1) * message
            return f"{ranks} | {'bytes' if wire > count else 'number of messages'}"
    return "never below 1048576 | "


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured(Path(folder), a.rounds, a.steps)
        adding = add_speed()
        alone = {}
        print("| | batch | gradients, MB | step of one thread, ms |\n|---|---|---|---|")
        for name in NAMES:
            rows = WORKLOADS[name].input_shape[0]
            steps = a.steps if name == "W1" else max(2, a.steps // 10)
            alone[name] = measured.step(name, rows, steps=steps)
            print(f"| {name} | {rows} | {gradient_bytes(name)[1] / 1e6:.2f} | {alone[name] * 1e3:.1f} |", flush=True)
        print()
        message = check(measured, alone, adding)
        tables(alone, message, adding)


if __name__ == "__main__":
    main()
