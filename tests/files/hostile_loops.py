"""Random small models whose loops grow, repeat or nest without end, run by every command: does the budget hold?

    python tests/files/hostile_loops.py [--count 120] [--seed 0] [--memory 128M]

A case passes when each command ends within SECONDS (of the clock or, on a busy machine, of CPU time), takes no more
memory than its budget (plus the program itself), and either succeeds or is refused with an OT14xx error (a limit) or
another error with a code. `make figures-hostile`.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

sys.path.insert(0, str(Path(__file__).parent))
from measured import command, python, spent  # noqa: E402

SECONDS = 10
PROGRAM_MIB = 160  # the program itself: code, tables, protobuf, plans
DEFAULT_MIB = 512  # docs/safety.md, 5
TYPES = {"float": T.FLOAT, "int64": T.INT64, "string": T.STRING, "bool": T.BOOL}


def info(name, elem, shape=None):
    return h.make_tensor_value_info(name, elem, shape)


def const(name, elem, shape, values):
    return h.make_node("Constant", [], [name], value=h.make_tensor(name, elem, shape, values))


class Maker:
    """One random model; names are unique."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = 0
        self.words = []

    def name(self, stem):
        self.n += 1
        return f"{stem}_{self.n}"

    def ints(self, nodes, values, shape=None):
        out = self.name("k")
        nodes.append(const(out, T.INT64, [len(values)] if shape is None else shape, values))
        return out

    # ---- how a rank-1 value `v` becomes another one, usually larger
    def grow(self, nodes, v, i, kind):
        out = self.name("v")
        ways = ["double", "append", "tile", "pad", "gather", "keep"]
        if kind == "float":
            ways += ["expand", "outer", "fill", "resize", "range", "where", "compress", "onehot"]
        way = "string_concat" if kind == "string" and self.r.random() < 0.5 else self.r.choice(ways)
        self.words.append(way)
        add = nodes.append
        if way == "double":
            add(h.make_node("Concat", [v, v], [out], axis=0))
        elif way == "append":
            part = self.name("part")
            add(h.make_node("Slice", [v, self.ints(nodes, [0]), self.ints(nodes, [1])], [part]))
            add(h.make_node("Concat", [v, part], [out], axis=0))
        elif way == "tile":
            add(h.make_node("Tile", [v, self.ints(nodes, [self.r.choice([2, 10, 1000])])], [out]))
        elif way == "pad" and kind in ("float", "int64"):
            add(h.make_node("Pad", [v, self.ints(nodes, [0, self.r.choice([1, 1000, 10**6])])], [out]))
        elif way == "gather":
            twice = self.name("twice")
            size, idx, rng, start, step = (self.name(s) for s in ("size", "idx", "rng", "zero", "one"))
            add(h.make_node("Size", [v], [size]))
            nodes.append(const(start, T.INT64, [], [0]))
            nodes.append(const(step, T.INT64, [], [1]))
            add(h.make_node("Range", [start, size, step], [rng]))
            add(h.make_node("Concat", [rng, rng], [idx], axis=0))
            add(h.make_node("Gather", [v, idx], [twice], axis=0))
            add(h.make_node("Identity", [twice], [out]))
        elif way == "expand":
            row, shape, big = self.name("row"), self.name("shape"), self.name("big")
            add(h.make_node("Unsqueeze", [v, self.ints(nodes, [0])], [row]))
            nodes.append(const(shape, T.INT64, [2], [self.r.choice([2, 100, 10**5]), 1]))
            add(h.make_node("Expand", [row, shape], [big]))
            add(h.make_node("Reshape", [big, self.ints(nodes, [-1])], [out]))
        elif way in ("outer", "fill", "range", "resize", "where", "compress", "onehot"):
            self.grow_numbers(nodes, v, i, way, out)
        elif way == "string_concat":
            add(h.make_node("StringConcat", [v, v], [out]))
        else:
            add(h.make_node("Identity", [v], [out]))
        return out

    def grow_numbers(self, nodes, v, i, way, out):
        add = nodes.append
        if way == "outer":
            a, b, c = self.name("a"), self.name("b"), self.name("c")
            add(h.make_node("Unsqueeze", [v, self.ints(nodes, [1])], [a]))
            add(h.make_node("Unsqueeze", [v, self.ints(nodes, [0])], [b]))
            add(h.make_node("MatMul", [a, b], [c]))
            add(h.make_node("Reshape", [c, self.ints(nodes, [-1])], [out]))
        elif way == "fill":
            n, one, big = self.name("n"), self.name("one"), self.name("big")
            add(h.make_node("Add", [i, self.ints(nodes, [1], [])], [n]))
            add(h.make_node("Mul", [n, self.ints(nodes, [self.r.choice([10, 10**4, 10**6])], [])], [one]))
            flat = self.name("flat")
            add(h.make_node("Reshape", [one, self.ints(nodes, [1])], [flat]))
            add(h.make_node("ConstantOfShape", [flat], [big]))
            add(h.make_node("Concat", [v, big], [out], axis=0))
        elif way == "range":
            n, f, z, s, big = (self.name(x) for x in ("n", "f", "z", "s", "big"))
            add(h.make_node("Mul", [i, self.ints(nodes, [self.r.choice([10, 10**4, 10**6])], [])], [n]))
            add(h.make_node("Cast", [n], [f], to=T.FLOAT))
            nodes.append(const(z, T.FLOAT, [], [0.0]))
            nodes.append(const(s, T.FLOAT, [], [1.0]))
            add(h.make_node("Range", [z, f, s], [big]))
            add(h.make_node("Concat", [v, big], [out], axis=0))
        elif way == "resize":
            a, b, scale = self.name("a"), self.name("b"), self.name("scale")
            add(h.make_node("Unsqueeze", [v, self.ints(nodes, [0, 1])], [a]))
            nodes.append(const(scale, T.FLOAT, [3], [1.0, 1.0, 2.0]))
            add(h.make_node("Resize", [a, "", scale], [b], mode="nearest"))
            add(h.make_node("Reshape", [b, self.ints(nodes, [-1])], [out]))
        elif way == "where":
            a, b, c, d = (self.name(x) for x in "abcd")
            add(h.make_node("Unsqueeze", [v, self.ints(nodes, [1])], [a]))
            add(h.make_node("Greater", [a, v], [b]))
            add(h.make_node("Where", [b, a, v], [c]))
            add(h.make_node("Reshape", [c, self.ints(nodes, [-1])], [d]))
            add(h.make_node("Identity", [d], [out]))
        elif way == "compress":
            a, b = self.name("a"), self.name("b")
            add(h.make_node("IsNaN", [v], [a]))
            add(h.make_node("Not", [a], [b]))
            two = self.name("two")
            add(h.make_node("Concat", [v, v], [two], axis=0))
            bb = self.name("bb")
            add(h.make_node("Concat", [b, b], [bb], axis=0))
            add(h.make_node("Compress", [two, bb], [out], axis=0))
        elif way == "onehot":
            a, b, c = self.name("a"), self.name("b"), self.name("c")
            add(h.make_node("Cast", [v], [a], to=T.INT64))
            nodes.append(const(b, T.FLOAT, [2], [0.0, 1.0]))
            add(h.make_node("OneHot", [a, self.ints(nodes, [self.r.choice([2, 1000])]), b], [c]))
            add(h.make_node("Reshape", [c, self.ints(nodes, [-1])], [out]))

    # ---- a graph that changes v: a chain of growth, If, Loop, Scan, sequences
    def block(self, v, i, kind, depth):
        nodes = []
        for _ in range(self.r.randint(1, 2)):
            what = self.r.random()
            if depth > 0 and what < 0.45:
                v = self.loop(nodes, v, kind, depth - 1)
            elif depth > 0 and what < 0.55 and kind == "float":
                v = self.scan(nodes, v, i, depth - 1)
            elif depth > 0 and what < 0.65:
                v = self.branch(nodes, v, i, kind, depth - 1)
            elif what < 0.8:
                v = self.sequence(nodes, v, kind)
            else:
                v = self.grow(nodes, v, i, kind)
        return nodes, v

    def branch(self, nodes, v, i, kind, depth):
        self.words.append("if")
        c, out = self.name("c"), self.name("v")
        nodes.append(const(c, T.BOOL, [], [self.r.random() < 0.5]))
        graphs = []
        for _ in range(2):
            inner, o = self.block(v, i, kind, depth)
            same = self.name("o")
            inner.append(h.make_node("Identity", [o], [same]))
            graphs.append(h.make_graph(inner, self.name("branch"), [], [info(same, TYPES[kind])]))
        nodes.append(h.make_node("If", [c], [out], then_branch=graphs[0], else_branch=graphs[1], name=self.name("if")))
        return out

    def sequence(self, nodes, v, kind):
        """A loop that inserts v into a sequence again and again, then joins or counts it."""
        way = self.r.choice(["insert", "split"])
        self.words.append(f"sequence_{way}")
        seq, out = self.name("seq"), self.name("v")
        if way == "split":
            nodes.append(h.make_node("SplitToSequence", [v], [seq], axis=0))
        else:
            start = self.name("start")
            nodes.append(h.make_node("SequenceEmpty", [], [start], dtype=TYPES[kind]))
            i, c, s, s2, c2 = (self.name(x) for x in ("i", "c", "s", "s2", "c2"))
            t = h.make_tensor_sequence_value_info(s, TYPES[kind], None)
            t2 = h.make_tensor_sequence_value_info(s2, TYPES[kind], None)
            body = h.make_graph(
                [h.make_node("SequenceInsert", [s, v], [s2]), h.make_node("Identity", [c], [c2])],
                self.name("body"),
                [info(i, T.INT64, []), info(c, T.BOOL, []), t],
                [info(c2, T.BOOL, []), t2],
            )
            m = self.ints(nodes, [self.trips()], [])
            nodes.append(h.make_node("Loop", [m, "", start], [seq], body=body, name=self.name("loop")))
        nodes.append(h.make_node("ConcatFromSequence", [seq], [out], axis=0))
        return out

    def trips(self):
        return self.r.choice([3, 40, 1000, 10**5, 10**6, 9 * 10**6, 9 * 10**6, 2**62])

    def loop(self, nodes, v, kind, depth):
        self.words.append("loop")
        i, c, s, c2, s2 = (self.name(x) for x in ("i", "c", "s", "c2", "s2"))
        inner, o = self.block(s, i, kind, depth)
        inner.append(h.make_node("Identity", [o], [s2]))
        ends = self.r.random()
        if ends < 0.6:
            inner.append(h.make_node("Identity", [c], [c2]))
        else:  # a condition that is computed and true for a long time
            limit = self.name("limit")
            inner.append(const(limit, T.INT64, [], [self.r.choice([5, 10**5, 2**62])]))
            inner.append(h.make_node("Less", [i, limit], [c2]))
        outputs = [info(c2, T.BOOL, []), info(s2, TYPES[kind])]
        scan = self.r.random() < 0.5
        results = [self.name("v")]
        if scan:
            self.words.append("scan_output")
            extra = self.name("scan")
            if kind == "float" and self.r.random() < 0.5:
                size = self.ints(inner, [self.r.choice([1, 1000, 10**6])])
                inner.append(h.make_node("ConstantOfShape", [size], [extra]))
            else:
                inner.append(h.make_node("Identity", [s], [extra]))
            outputs.append(info(extra, TYPES[kind]))
            results.append(self.name("stack"))
        body = h.make_graph(
            inner, self.name("body"), [info(i, T.INT64, []), info(c, T.BOOL, []), info(s, TYPES[kind])], outputs
        )
        m = "" if ends >= 0.6 and self.r.random() < 0.5 else self.ints(nodes, [self.trips()], [])
        nodes.append(h.make_node("Loop", [m, "", v], results, body=body, name=self.name("loop")))
        if scan and kind == "float" and self.r.random() < 0.5:
            flat, joined = self.name("flat"), self.name("v")
            nodes.append(h.make_node("Reshape", [results[1], self.ints(nodes, [-1])], [flat]))
            nodes.append(h.make_node("Concat", [results[0], flat], [joined], axis=0))
            return joined
        return results[0]

    def scan(self, nodes, v, i, depth):
        self.words.append("scan")
        s, x, s2, y, out, ys = (self.name(n) for n in ("s", "x", "s2", "y", "v", "ys"))
        inner, o = self.block(s, i, "float", depth)
        inner.append(h.make_node("Identity", [o], [s2]))
        size = self.ints(inner, [self.r.choice([1, 1000, 10**5])])
        inner.append(h.make_node("ConstantOfShape", [size], [y]))
        body = h.make_graph(
            inner, self.name("body"), [info(s, T.FLOAT), info(x, T.FLOAT)], [info(s2, T.FLOAT), info(y, T.FLOAT)]
        )
        nodes.append(h.make_node("Scan", [v, v], [out, ys], body=body, num_scan_inputs=1, name=self.name("scan")))
        return out

    def model(self):
        kind = self.r.choice(["float", "float", "float", "int64", "string", "bool"])
        nodes = []
        i = self.name("i")
        nodes.append(const(i, T.INT64, [], [2]))
        v = "x"
        if kind == "float":  # a parameter in front, so that there is something to train
            nodes.append(h.make_node("Mul", ["x", "w"], ["xw"]))
            v = "xw"
        v = self.loop(nodes, v, kind, self.r.randint(0, 2))
        y = "y"
        if kind == "float":
            nodes.append(h.make_node("ReduceMean", [v], [y], keepdims=0))
        else:
            nodes.append(h.make_node("Identity", [v], [y]))
        weights = [h.make_tensor("w", T.FLOAT, [4], [1.0, 0.5, 1.0, 0.5])] if kind == "float" else []
        g = h.make_graph(
            nodes, "g", [info("x", TYPES[kind], [4])], [info(y, TYPES[kind], [] if kind == "float" else None)], weights
        )
        m = h.make_model(g, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
        feed = {
            "float": np.ones(4, np.float32),
            "int64": np.ones(4, np.int64),
            "bool": np.ones(4, bool),
            "string": np.array(["abcdefgh" * 4] * 4),
        }[kind]
        return m, kind, feed


SESSION = """
import sys, numpy as np, onnxtrain as ot
m, f, kw = sys.argv[1], sys.argv[2], eval(sys.argv[3])
x = np.load(f)["x"]
what = sys.argv[4]
try:
    if what == "session":
        ot.Session(m, **kw).run({"x": x.astype(object) if x.dtype.kind == "U" else x})
    else:
        t = ot.Trainer(ot.prepare(m, loss="output", optimizer=ot.SGD(lr=0.1)), **kw)
        t.step({"x": x})
except ot.Error as e:
    print(e)
    sys.exit(3)
"""


def attempts(path, npz, kind, memory, folder):
    """(name, call) of everything that is tried on one model."""
    limit = ["--memory", memory] if memory else []
    yield "check", lambda: command("check", path)
    yield "run", lambda: command("run", path, "--inputs", npz, *limit)
    arguments = f'{{"memory": "{memory}"}}' if memory else "{}"
    yield "Session", lambda: python(SESSION, path, npz, arguments, "session")
    if kind != "float":
        return
    yield "grad", lambda: command("grad", path, "--wrt", "w", "--inputs", npz, *limit)
    yield "check --grad", lambda: command("check", path, "--grad", *limit)
    yield (
        "train",
        lambda: command(
            "train",
            path,
            "--data",
            npz,
            "--loss",
            "output",
            "--epochs",
            1,
            "--batch",
            4,
            "--valid",
            0,
            "--out",
            folder / f"run-{path.stem}",
            "-q",
            *limit,
        ),
    )
    yield "Trainer", lambda: python(SESSION, path, npz, arguments, "trainer")


def judge(code, text, peak, seconds, limit_mib):
    if code not in (0, 2, 3, 4, 5, 6):
        return f"exit {code}: {text[-300:]}"
    if code not in (0, 6) and "error[OT" not in text:
        return f"exit {code} without a code: {text[-300:]}"
    if "OT9001" in text or "Traceback" in text:
        return f"a trace or OT9001: {text[-300:]}"
    if seconds > SECONDS:
        return f"{seconds:.1f} s"
    if peak > limit_mib:
        return f"{peak:.0f} MiB, allowed {limit_mib:.0f}"
    return ""


def run_case(seed, folder, memory=None):
    """[(command, code, OT code, MiB, seconds, problem)]"""
    m, kind, feed = Maker(seed).model()
    path, npz = folder / f"loop{seed}.onnx", folder / f"loop{seed}.npz"
    onnx.save(m, path)
    np.savez(npz, x=feed if kind != "float" else feed)
    mib = int(memory[:-1]) if memory else DEFAULT_MIB
    rows = []
    for name, call in attempts(path, npz, kind, memory, folder):
        start = time.monotonic()
        code, text, peak = call()
        seconds = min(time.monotonic() - start, spent["cpu"])
        python_mib = 80 if name in ("Session", "Trainer") else 0
        allowed = mib + PROGRAM_MIB + python_mib + os.path.getsize(path) * 256 / 2**20
        found = re.search(r"error\[(OT\d+)\]", text)
        rows.append(
            (name, code, found.group(1) if found else "-", peak, seconds, judge(code, text, peak, seconds, allowed))
        )
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=120)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--memory", default=None, help="in mebibytes: 128M; default: the program's own rule")
    p.add_argument("--minutes", type=float, default=1e9, help="begins no model after this time")
    a = p.parse_args()
    outcomes, problems, worst_s, worst_mib, tried, models = {}, [], 0.0, 0.0, 0, 0
    end = time.monotonic() + 60 * a.minutes
    with tempfile.TemporaryDirectory() as d:
        for seed in range(a.seed, a.seed + a.count):
            if time.monotonic() > end:
                break
            models += 1
            for name, code, ot, peak, seconds, problem in run_case(seed, Path(d), a.memory):
                tried += 1
                outcomes.setdefault(name, {}).setdefault(ot if code else "finished", 0)
                outcomes[name][ot if code else "finished"] += 1
                worst_s, worst_mib = max(worst_s, seconds), max(worst_mib, peak)
                if problem:
                    problems.append(f"seed {seed} {name}: {problem}")
                    print("  " + problems[-1], flush=True)
    for name, counts in outcomes.items():
        print(f"{name:14} {json.dumps(dict(sorted(counts.items())))}")
    print(f"{models} of {a.count} models, {tried} commands; "
          f"at most {worst_s:.1f} s and {worst_mib:.0f} MiB of the process")
    print(f"over the budget, over {SECONDS} s, crashed or without a code: {len(problems)}")
    return 1 if problems or models < a.count else 0


if __name__ == "__main__":
    sys.exit(main())
