"""Attention by blocks beside the same chain as separate operators: a whole training step of one attention layer.

    .venv/bin/python bench/attention.py
    .venv/bin/python bench/attention.py --kinds causal,padding --rows 128,512 --width 32,64 --batch 1,3,12 --dropout 0,0.1

Both are one model; an Identity behind the softmax keeps the second from being recognised and is gone in its plan. Least
times of interleaved rounds in one process; a ratio above 1 means that the recognised form is faster (about 1 with the
same memory: the chain was left alone). Memory: what the step's plan holds at once.
"""

import argparse
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

KINDS = ("none", "causal", "padding", "bias")


def model(kind, rows, heads, width, ratio, apart):
    rng, size = np.random.default_rng(0), heads * width
    weights, nodes = [], []

    def weight(name, value):
        weights.append(numpy_helper.from_array(value.astype("f"), name))
        return name

    def constant(name, value):
        nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value))))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    for n, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        weight(f"w{n}", rng.standard_normal((size, size)) / size**0.5)
        node("MatMul", ["x", f"w{n}"], f"{n}m")
        node("Reshape", [f"{n}m", constant(f"{n}s", np.array([0, rows, heads, width]))], f"{n}r")
        node("Transpose", [f"{n}r"], n, perm=perm)
    at = node("Mul", [node("MatMul", ["q", "k"], "scores"), constant("scale", np.float32(width**-0.5))], "scaled")
    if kind == "causal":
        at = node("Add", [at, constant("mask", np.triu(np.full((rows, rows), -np.inf, "f"), 1))], "masked")
    elif kind == "bias":
        at = node("Add", [at, weight("learned", np.zeros((1, heads, rows, rows)))], "masked")
    elif kind == "padding":
        at = node("Where", [node("Greater", ["keep", constant("zero", np.float32(0))], "open"), at, constant("low", np.float32(-1e9))], "masked")
    at = node("Softmax", [at], "p", axis=-1)
    if apart:
        at = node("Identity", [at], "same")
    if ratio:
        at = node("Dropout", [at, constant("ratio", np.float32(ratio))], "dropped")
    node("Transpose", [node("MatMul", [at, "v"], "mixed")], "turned", perm=[0, 2, 1, 3])
    node("Reshape", ["turned", constant("join", np.array([0, rows, size]))], "joined")
    node("MatMul", ["joined", weight("wo", rng.standard_normal((size, size)) / size**0.5)], "y")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", rows, size])]
    if kind == "padding":
        inputs.append(helper.make_tensor_value_info("keep", TensorProto.FLOAT, ["N", 1, 1, rows]))
    graph = helper.make_graph(nodes, "attention", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", rows, size])], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
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
        for t, out in zip(trainers, times):
            start = clock()
            for _ in range(count):
                t.step(feeds)
            out.append((clock() - start) / count)
    return [min(t) * 1e3 for t in times], [t.memory["step_bytes"] / 1e6 for t in trainers]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda kind: lambda s: [kind(v) for v in s.split(",")]
    p.add_argument("--kinds", type=numbers(str), default=list(KINDS))
    p.add_argument("--rows", type=numbers(int), default=[64, 128, 256, 512, 1024])
    p.add_argument("--width", type=numbers(int), default=[32, 64])
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--batch", type=numbers(int), default=[3])
    p.add_argument("--dropout", type=numbers(float), default=[0.0, 0.1])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.05)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--cpu-time", action="store_true", help="of the process instead of the clock: for one thread on a busy machine")
    a = p.parse_args()
    for kind in a.kinds:
        for ratio in a.dropout:
            for width in a.width:
                for batch in a.batch:
                    for rows in a.rows:
                        (apart, now), (more, less) = measure(kind, rows, a.heads, width, batch, ratio, a.threads, a.seconds, a.rounds,
                                                             time.process_time if a.cpu_time else time.perf_counter)
                        print(f"{kind:8} dropout {ratio:<4} {batch * a.heads:3} heads of {width}, {rows:5} rows: {apart:8.2f} ms, {more:7.1f} MB -> "
                              f"{now:8.2f} ms, {less:7.1f} MB  {apart / now:.2f}x", flush=True)


if __name__ == "__main__":
    main()
