"""Attention by blocks beside the same chain as separate operators: a whole training step of one attention layer.

    .venv/bin/python bench/attention.py
    .venv/bin/python bench/attention.py --kinds causal,padding --rows 128,512 --width 32 --batch 1,3 --dropout 0,0.1

Both are one model; an Identity behind the softmax keeps the second from being recognised and is gone in its plan. Least
times of interleaved rounds in one process; a ratio above 1 means that the recognised form is faster (about 1 with the
same memory: the chain was left alone). Memory: what the step's plan holds at once.
"""

import argparse
import itertools
import time

import numpy as np
from onnx import TensorProto

import onnxtrain as ot
from harness.graph import GraphBuilder

KINDS = ("none", "causal", "padding", "bias")


def model(kind, rows, heads, width, ratio, apart):
    rng, size, b = np.random.default_rng(0), heads * width, GraphBuilder()

    def projection():
        return b.weight((rng.standard_normal((size, size)) / size**0.5).astype("f"))

    split = b.constant(np.array([0, rows, heads, width]))
    q, k, v = (b.node("Transpose", b.node("Reshape", b.node("MatMul", "x", projection()), split), perm=perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    at = b.node("Mul", b.node("MatMul", q, k), b.constant(width**-0.5))
    if kind == "causal":
        at = b.node("Add", at, b.constant(np.triu(np.full((rows, rows), -np.inf, "f"), 1)))
    elif kind == "bias":
        at = b.node("Add", at, b.weight(np.zeros((1, heads, rows, rows), "f")))
    elif kind == "padding":
        at = b.node("Where", b.node("Greater", "keep", b.constant(0.0)), at, b.constant(-1e9))
    at = b.node("Softmax", at, axis=-1)
    if apart:
        at = b.node("Identity", at)
    if ratio:
        at = b.node("Dropout", at, b.constant(ratio), name="dropout")  # both draw the numbers that belong to the name
    joined = b.node("Reshape", b.node("Transpose", b.node("MatMul", at, v), perm=[0, 2, 1, 3]),
                    b.constant(np.array([0, rows, size])))
    inputs = {"x": (TensorProto.FLOAT, ["N", rows, size])}
    if kind == "padding":
        inputs["keep"] = (TensorProto.FLOAT, ["N", 1, 1, rows])
    made = b.model(inputs, b.node("MatMul", joined, projection()), ["N", rows, size])
    return ot.prepare(made.SerializeToString(), loss="mse", optimizer=ot.SGD(lr=1e-3))


def measure(kind, rows, heads, width, batch, ratio, threads, seconds, rounds, clock):
    rng = np.random.default_rng(1)
    feeds = {"x": rng.standard_normal((batch, rows, heads * width), dtype="f")}
    models = [model(kind, rows, heads, width, ratio, apart) for apart in (True, False)]
    target = next(i["name"] for i in models[0].info["training"][0]["inputs"] if i["name"] not in models[0].inputs)
    feeds[target] = rng.standard_normal(feeds["x"].shape, dtype="f")
    if kind == "padding":
        feeds["keep"] = (np.arange(rows) < rows * 3 // 4).astype("f") * np.ones((batch, 1, 1, 1), "f")
    trainers = [ot.Trainer(m, threads=threads, seed=1) for m in models]
    losses = [[t.step(feeds).loss for _ in range(2)][-1] for t in trainers]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    start = clock()
    trainers[0].step(feeds)
    count = max(1, int(seconds / max(1e-6, clock() - start)))
    times = [[], []]
    for _ in range(rounds):
        for t, out in zip(trainers, times, strict=True):
            start = clock()
            for _ in range(count):
                t.step(feeds)
            out.append((clock() - start) / count)
    return [min(t) * 1e3 for t in times], [t.memory["step_bytes"] / 1e6 for t in trainers]


def numbers(kind):
    return lambda text: [kind(v) for v in text.split(",")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kinds", type=numbers(str), default=list(KINDS))
    p.add_argument("--rows", type=numbers(int), default=[64, 128, 256, 512, 1024])
    p.add_argument("--width", type=numbers(int), default=[32, 64])
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--batch", type=numbers(int), default=[3])
    p.add_argument("--dropout", type=numbers(float), default=[0.0, 0.1])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.05)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--cpu-time", action="store_true",
                   help="of the process instead of the clock: for one thread on a busy machine")
    a = p.parse_args()
    clock = time.process_time if a.cpu_time else time.perf_counter
    for kind, ratio, width, batch, rows in itertools.product(a.kinds, a.dropout, a.width, a.batch, a.rows):
        (apart, now), (more, less) = measure(kind, rows, a.heads, width, batch, ratio, a.threads, a.seconds, a.rounds,
                                             clock)
        print(f"{kind:8} dropout {ratio:<4} {batch * a.heads:3} heads of {width}, {rows:5} rows: {apart:8.2f} ms, "
              f"{more:7.1f} MB -> {now:8.2f} ms, {less:7.1f} MB  {apart / now:.2f}x", flush=True)


if __name__ == "__main__":
    main()
