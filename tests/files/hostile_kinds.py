"""Small models that ask for much without a loop, or hide it: huge results, doubling, recursion, sizes that overflow,
names and lists without end. Every command stays within its budget and answers in words.

    python tests/files/hostile_kinds.py [--memory 128M] [--only TEXT] [--every N [--first K]] [--minutes M]

--every N takes every Nth model of each kind, from number K on. --minutes M begins no model after that time; what was
tried is counted.

Judged as hostile_loops.py does it. `make figures-hostile-kinds`.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

sys.path.insert(0, str(Path(__file__).parent))
import hostile_loops  # noqa: E402
from hostile_loops import DEFAULT_MIB, PROGRAM_MIB, const, info, judge  # noqa: E402
from measured import command, spent  # noqa: E402

BIG = (10**5, 10**7, 10**9, 1 << 40, (1 << 62) + 3, (1 << 63) - 1)
NEGATIVE = (-1, -(1 << 62), -(1 << 63))


def net(nodes, x_shape=(4,), functions=(), weights=(), outputs=None, opset=21):
    """x times a parameter, the nodes from `a`, and the mean of `b` as output `y`."""
    shape = list(x_shape)
    w = h.make_tensor("w", T.FLOAT, shape, [0.5] * int(np.prod(shape)))
    ends = [h.make_node("Mul", ["x", "w"], ["a"]), *nodes, h.make_node("ReduceMean", ["b"], ["y"], keepdims=0)]
    g = h.make_graph(ends, "g", [info("x", T.FLOAT, shape)], outputs or [info("y", T.FLOAT, [])], [w, *weights])
    m = h.make_model(g, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("l", 1)], ir_version=10)
    m.functions.extend(functions)
    return m


def n(op, inputs, outputs, **a):
    return h.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **a)


def ints(name, values, shape=None):
    return const(name, T.INT64, [len(values)] if shape is None else shape, values)


def computed(name, value):
    """A number that shows only while the model runs: it depends on x."""
    return [n("ReduceMax", ["x"], [name + "_m"], keepdims=0), n("Cast", [name + "_m"], [name + "_i"], to=T.INT64),
            ints(name + "_k", [value], []), n("Mul", [name + "_i", name + "_k"], [name + "_s"]),
            ints(name + "_one", [1]), n("Reshape", [name + "_s", name + "_one"], [name])]


def results(size, known):
    """Operators whose result has `size` elements; the size is a constant, or computed from the data."""
    k = [ints("k", [size])] if known else computed("k", size)
    flat = ints("f", [-1])
    yield "expand", [*k, ints("four", [4]), n("Concat", ["k", "four"], ["k4"], axis=0), ints("row", [1, 4]),
                     n("Reshape", ["a", "row"], ["a0"]), n("Expand", ["a0", "k4"], ["b"])]
    yield "tile", [*k, n("Tile", ["a", "k"], ["b"])]
    yield "fill", [*k, n("ConstantOfShape", ["k"], ["c"]), n("ReduceSum", ["a"], ["s"]), n("Add", ["c", "s"], ["b"])]
    yield "range", [*k, ints("z", [0], []), ints("e", [1], []), ints("none", [], [0]),
                    n("Reshape", ["k", "none"], ["l"]), n("Range", ["z", "l", "e"], ["r"]),
                    n("Cast", ["r"], ["rf"], to=T.FLOAT),
                    n("ReduceSum", ["a"], ["s"]), n("Mul", ["rf", "s"], ["b"])]
    yield "pad", [*k, ints("z", [0]), n("Concat", ["z", "k"], ["p"], axis=0), n("Pad", ["a", "p"], ["b"])]
    yield "resize", [*k, ints("one", [1]), n("Unsqueeze", ["a", "ax"], ["a3"]), ints("ax", [0, 1]),
                     n("Concat", ["one", "one", "k"], ["sizes"], axis=0),
                     n("Resize", ["a3", "", "", "sizes"], ["b"], mode="linear")][::1]
    yield "one_hot", [*k, n("Cast", ["a"], ["i"], to=T.INT64), n("OneHot", ["i", "k", "v"], ["o"]),
                      n("ReduceSum", ["a"], ["s"]), n("Mul", ["o", "s"], ["b"])]
    yield "gather", [*k, n("ConstantOfShape", ["k"], ["i"], value=h.make_tensor("v", T.INT64, [1], [1])),
                     n("Gather", ["a", "i"], ["b"])]
    yield "eye", [*k, n("Concat", ["k", "k"], ["kk"], axis=0), n("ConstantOfShape", ["kk"], ["c"]),
                  n("EyeLike", ["c"], ["e"]), n("ReduceSum", ["a"], ["s"]), n("Mul", ["e", "s"], ["b"])]
    yield "random", [*k, n("ConstantOfShape", ["k"], ["c"]), n("RandomNormalLike", ["c"], ["r"]),
                     n("ReduceSum", ["a"], ["s"]), n("Mul", ["r", "s"], ["b"])]
    yield "window", [*k, ints("none", [], [0]), n("Reshape", ["k", "none"], ["l"]), n("HannWindow", ["l"], ["c"]),
                     n("ReduceSum", ["a"], ["s"]), n("Mul", ["c", "s"], ["b"])]
    yield "reshape", [*k, n("Reshape", ["a", "k"], ["b"])]
    yield "center_pad", [*k, n("CenterCropPad", ["a", "k"], ["b"])]
    yield "split", [*k, n("SplitToSequence", ["t"], ["q"]), n("Tile", ["a", "k"], ["t"]),
                    n("ConcatFromSequence", ["q"], ["b"], axis=0)]
    yield "affine", [*k, ints("two", [1]), n("Concat", ["two", "two", "k", "k"], ["size"], axis=0), flat,
                     n("Concat", ["a", "h2"], ["t6"], axis=0), n("Slice", ["a", "z", "u"], ["h2"]), ints("z", [0]),
                     ints("u", [2]), ints("to", [1, 2, 3]), n("Reshape", ["t6", "to"], ["theta"]),
                     n("AffineGrid", ["theta", "size"], ["b"])]


def huge_results():
    values = h.make_tensor("v", T.FLOAT, [2], [0.0, 1.0])
    for size in (*BIG, *NEGATIVE):
        for known in (True, False):
            for name, nodes in results(size, known):
                yield f"{name}_{size}_{'known' if known else 'computed'}", net(nodes, weights=[values])


def doubling():
    for count in (20, 30, 60, 200):
        chain = [n("Concat", [f"t{k}", f"t{k}"], [f"t{k + 1}"], axis=0) for k in range(count)]
        yield f"concat_{count}", net([n("Identity", ["a"], ["t0"]), *chain, n("Identity", [f"t{count}"], ["b"])])
        rows = [node for k in range(count) for node in (
            n("Unsqueeze", [f"t{k}", "one"], [f"c{k}"]), n("Mul", [f"c{k}", f"t{k}"], [f"o{k}"]),
            n("Reshape", [f"o{k}", "flat"], [f"t{k + 1}"]))]
        yield f"outer_{count}", net([n("Identity", ["a"], ["t0"]), ints("one", [1]), ints("flat", [-1]), *rows,
                                     n("Identity", [f"t{count}"], ["b"])])
        seq = [n("SequenceInsert", [f"q{k}", f"t{k}"], [f"q{k + 1}"]) for k in range(count)]
        join = [n("ConcatFromSequence", [f"q{k + 1}"], [f"t{k + 1}"], axis=0) for k in range(count)]
        both = [x for pair in zip(seq, join, strict=True) for x in pair]
        yield f"sequence_{count}", net([n("Identity", ["a"], ["t0"]), n("SequenceEmpty", [], ["q0"]), *both,
                                        n("Identity", [f"t{count}"], ["b"])])
        fixed = [n("Concat", [f"t{k}", f"t{k}"], [f"t{k + 1}"], axis=0) for k in range(count)]
        yield f"constant_{count}", net([const("t0", T.FLOAT, [4], [1.0] * 4), *fixed,
                                        n("ReduceSum", [f"t{count}"], ["s"]), n("Add", ["a", "s"], ["b"])])
        fills = [x for k in range(count) for x in (ints(f"k{k}", [5_000_000 + k]),
                                                   n("ConstantOfShape", [f"k{k}"], [f"c{k}"]),
                                                   n("ReduceSum", [f"c{k}"], [f"s{k}"]))]
        yield f"fills_{count}", net([*fills, n("Sum", ["a", *(f"s{k}" for k in range(count))], ["b"])])
        text = [n("StringConcat", [f"s{k}", f"s{k}"], [f"s{k + 1}"]) for k in range(count)]
        yield f"text_{count}", net([const("s0", T.STRING, [1], [b"abcdefgh"]), *text,
                                    n("Equal", [f"s{count}", "s0"], ["e"]), n("Cast", ["e"], ["f"], to=T.FLOAT),
                                    n("Mul", ["a", "f"], ["b"])])


def functions():
    def one(name, nodes, attributes=()):
        return h.make_function("l", name, ["p"], ["q"], nodes, [h.make_opsetid("", 21), h.make_opsetid("l", 1)],
                               list(attributes))

    def call(name, i, o):
        return h.make_node(name, [i], [o], domain="l")

    for count in (3, 40, 70, 3000):
        chain = [one(f"F{k}", [call(f"F{k + 1}", "p", "q")]) for k in range(count)]
        chain.append(one(f"F{count}", [n("Relu", ["p"], ["q"])]))
        yield f"chain_{count}", net([call("F0", "a", "b")], functions=chain)
        ring = [one(f"F{k}", [call(f"F{(k + 1) % count}", "p", "q")]) for k in range(count)]
        yield f"ring_{count}", net([call("F0", "a", "b")], functions=ring)
    for wide in (2, 10, 100):
        for deep in (4, 10, 20):
            tree = [one(f"F{k}", [*(call(f"F{k + 1}", "p" if i == 0 else f"t{i}", f"t{i + 1}") for i in range(wide)),
                                  n("Relu", [f"t{wide}"], ["q"])]) for k in range(deep)]
            yield f"tree_{wide}_{deep}", net([call("F0", "a", "b")],
                                             functions=[*tree, one(f"F{deep}", [n("Relu", ["p"], ["q"])])])
    branch = h.make_graph([call("F0", "p", "o")], "t", [], [info("o", T.FLOAT)])
    other = h.make_graph([n("Relu", ["p"], ["o2"])], "e", [], [info("o2", T.FLOAT)])
    yield "if_recursion", net([call("F0", "a", "b")], functions=[one("F0", [
        const("c", T.BOOL, [], [True]), n("If", ["c"], ["q"], then_branch=branch, else_branch=other)])])


def many():
    for count in (10_000, 100_000):
        chain = [n("Relu", [f"t{k}"], [f"t{k + 1}"]) for k in range(count)]
        yield f"nodes_{count}", net([n("Identity", ["a"], ["t0"]), *chain, n("Identity", [f"t{count}"], ["b"])])
        yield f"inputs_{count}", net([n("Sum", ["a"] * count, ["b"])])
        yield f"outputs_{count}", net([n("Split", ["a9"], [f"s{k}" for k in range(count)], num_outputs=count),
                                       n("Tile", ["a", "r"], ["a9"]), ints("r", [count]), n("Neg", ["s0"], ["b"])])
        yield f"axes_{count}", net([n("Transpose", ["a"], ["b"], perm=[0] * count)])
        yield f"floats_{count}", net([h.make_node("Constant", [], ["c"], value_floats=[1.0] * count),
                                      n("ReduceSum", ["c"], ["s"]), n("Mul", ["a", "s"], ["b"])])
        yield f"attributes_{count}", net([n("Relu", ["a"], ["b"], **{f"k{i}": i for i in range(count)})])
        yield f"same_name_{count}", net([n("Relu", ["a"], ["t"]) for _ in range(count)] + [n("Relu", ["t"], ["b"])])
        yield f"values_{count}", net([n("Relu", ["a"], ["b"])], weights=[
            h.make_tensor(f"k{i}", T.FLOAT, [1], [1.0]) for i in range(count)])
    square = [n("Mul", [f"t{k}", f"t{k}"], [f"t{k + 1}"]) for k in range(3000)]
    yield "squares_3000", net([n("Identity", ["a"], ["t0"]), *square, n("Identity", ["t3000"], ["b"])])
    yield "long_name", net([n("Relu", ["a"], ["b"]), n("Relu", ["a"], ["z" * 10_000_000])])


def sizes():
    """Sizes that overflow or are zero, in shapes and in their arithmetic."""
    def shaped(dims):
        return net([ints("k", dims), n("ConstantOfShape", ["k"], ["c"]), n("ReduceSum", ["c"], ["s"]),
                    n("Add", ["a", "s"], ["b"])])

    for dims in ([1 << 32, 1 << 32], [1 << 31, 1 << 31, 4], [3, (1 << 63) - 1, 2], [0, 1 << 62], [0, 1 << 62, 1 << 62],
                 [1 << 62, 0], [-1, -1], [0], [0, 0, 0], [1] * 70, [2] * 62, [1] * 10_000):
        yield f"fill_{len(dims)}_{dims[0]}_{dims[-1]}", shaped(dims)
    for op in ("Add", "Mul", "Sub", "Div", "Mod"):
        for u, v in (((1 << 63) - 1, (1 << 63) - 1), (-(1 << 63), -1), (1 << 62, 4), (-(1 << 63), 1), (5, 0)):
            yield f"{op}_{u}_{v}", net([ints("u", [u]), ints("v", [v]), n(op, ["u", "v"], ["k"]),
                                        n("ConstantOfShape", ["k"], ["c"]), n("ReduceSum", ["c"], ["s"]),
                                        n("Add", ["a", "s"], ["b"])])
    for start, end, step in ((0, 1 << 62, 1), (1 << 62, -(1 << 62), -1), (0, (1 << 63) - 1, 1 << 62), (0, 5, -1),
                             (-(1 << 63), (1 << 63) - 1, 1), (-(1 << 63), (1 << 63) - 1, (1 << 63) - 1)):
        nodes = [ints("u", [start], []), ints("v", [end], []), ints("d", [step], []),
                 n("Range", ["u", "v", "d"], ["r"]), n("Cast", ["r"], ["f"], to=T.FLOAT),
                 n("ReduceSum", ["f"], ["s"]), n("Add", ["a", "s"], ["b"])]
        yield f"range_{start}_{end}_{step}", net(nodes)
        nodes = [ints("u", [start]), ints("v", [end]), ints("z", [0]), ints("d", [step]),
                 n("Slice", ["a", "u", "v", "z", "d"], ["b"])]
        yield f"slice_{start}_{end}_{step}", net(nodes)
    for axis in (-5, 5, 1 << 40, -(1 << 63), (1 << 63) - 1):
        for op in ("Concat", "Softmax", "Gather", "Flatten", "ArgMax", "LayerNormalization", "Split", "Hardmax"):
            inputs = {"Gather": ["a", "i"], "LayerNormalization": ["a", "w"], "Concat": ["a", "a"]}.get(op, ["a"])
            yield f"{op}_axis_{axis}", net([ints("i", [0]), n(op, inputs, ["b"], axis=axis)])
        yield f"squeeze_{axis}", net([ints("i", [axis]), n("Unsqueeze", ["a", "i"], ["b"])])
        yield f"cumsum_{axis}", net([ints("i", [axis], []), n("CumSum", ["a", "i"], ["b"])])
        yield f"reduce_{axis}", net([ints("i", [axis]), n("ReduceSum", ["a", "i"], ["b"])])
        yield f"trilu_{axis}", net([ints("i", [axis], []), ints("q", [2, 2]), n("Reshape", ["a", "q"], ["m"]),
                                    n("Trilu", ["m", "i"], ["b"])])
        yield f"top_k_{axis}", net([ints("i", [axis]), n("TopK", ["a", "i"], ["b", "j"])])
        yield f"gather_at_{axis}", net([ints("i", [axis]), n("Gather", ["a", "i"], ["b"])])


def images():
    """Windows, paddings and groups out of proportion."""
    def layer(op, weight=None, **a):
        w = [h.make_tensor("k", T.FLOAT, weight, [0.1] * int(np.prod(weight)))] if weight else []
        return net([n(op, ["a"] + (["k"] if weight else []), ["b"], **a)], x_shape=(1, 2, 5, 5), weights=w)

    for size in (1000, 10**6, 1 << 31, 1 << 40, (1 << 63) - 1):
        yield f"conv_pads_{size}", layer("Conv", [2, 2, 3, 3], pads=[size] * 4)
        yield f"conv_dilations_{size}", layer("Conv", [2, 2, 3, 3], dilations=[size] * 2)
        yield f"conv_strides_{size}", layer("Conv", [2, 2, 3, 3], strides=[size] * 2)
        yield f"transposed_strides_{size}", layer("ConvTranspose", [2, 2, 3, 3], strides=[size] * 2)
        yield f"transposed_pads_{size}", layer("ConvTranspose", [2, 2, 3, 3], pads=[size] * 4)
        yield f"transposed_shape_{size}", layer("ConvTranspose", [2, 2, 3, 3], output_shape=[size] * 2)
        for pool in ("MaxPool", "AveragePool", "LpPool"):
            yield f"{pool}_kernel_{size}", layer(pool, kernel_shape=[size] * 2)
            yield f"{pool}_pads_{size}", layer(pool, kernel_shape=[2, 2], pads=[size] * 4)
            yield f"{pool}_dilations_{size}", layer(pool, kernel_shape=[2, 2], dilations=[size] * 2)
            yield f"{pool}_strides_{size}", layer(pool, kernel_shape=[2, 2], strides=[size] * 2)
        yield f"lrn_{size}", layer("LRN", size=size)
        yield f"depth_to_space_{size}", layer("DepthToSpace", blocksize=size)


def training():
    """Training sections that bind nothing, to nothing, or ask for gradients of gradients without end."""
    base = net([n("Tanh", ["a"], ["b"])])

    def with_step(nodes, bindings=(), outputs=("loss",)):
        m = onnx.ModelProto()
        m.CopyFrom(base)
        m.opset_import.append(h.make_opsetid("ai.onnx.preview.training", 1))
        t = m.training_info.add()
        t.algorithm.CopyFrom(h.make_graph(list(nodes), "step", [], [info(o, T.FLOAT) for o in outputs]))
        for k, v in bindings:
            t.update_binding.add(key=k, value=v)
        return m

    def gradient(y, o):
        return h.make_node("Gradient", ["w", "x"], [o], xs=["w"], zs=["x"], y=y, domain="ai.onnx.preview.training")

    loss = n("Identity", ["y"], ["loss"])
    for depth in (2, 4, 8, 16):
        chain, y = [loss], "loss"
        for k in range(depth):
            chain += [gradient(y, f"g{k}"), n("ReduceSum", [f"g{k}"], [f"y{k}"], keepdims=0)]
            y = f"y{k}"
        chain += [n("Sub", ["w", f"g{depth - 1}"], ["w2"])]
        yield f"gradients_of_gradients_{depth}", with_step(chain, [("w", "w2")], ("loss", "w2"))
    yield "binding_to_nothing", with_step([loss], [("", "")])
    yield "binding_half", with_step([loss], [("w", "")])
    both = [("w", "w2"), ("w2", "w")]
    yield "binding_to_itself", with_step([loss, n("Identity", ["w"], ["w2"])], both, ("loss", "w2"))
    for count in (300, 3000):
        m = with_step([loss, gradient("loss", "g"), n("Sub", ["w", "g"], ["w2"])], [("w", "w2")], ("loss", "w2"))
        for _ in range(count):
            m.training_info.add().CopyFrom(m.training_info[0])
        yield f"sections_{count}", m


KINDS = (huge_results, doubling, functions, many, sizes, images, training)


def all_models(every=1, first=0):
    for kind in KINDS:
        for k, (name, m) in enumerate(kind()):
            if k % every == first % every:
                yield f"{kind.__name__}/{name}", m


def attempts(path, npz, memory, folder, has_training):
    yield "info", lambda: command("info", path)
    if has_training:  # its own steps
        limit = ["--memory", memory] if memory else []
        out = folder / f"own-{path.stem}"
        yield "train", lambda: command("train", path, "--data", npz, "--epochs", 1, "--batch", 4, "--valid", 0, "--out",
                                       out, "-q", *limit)
        yield "check", lambda: command("check", path)
        return
    yield from hostile_loops.attempts(path, npz, "float", memory, folder)
    words = ["prepare", path, "-o", folder / "lowered.onnx", "--loss", "output", "--lowered", "--batch", 4]
    yield "prepare --lowered", lambda: command(*words)


def run_case(name, m, folder, memory=None, few=False):
    """[(command, code, OT code, MiB, seconds, problem)]"""
    stem = "".join(c if c.isalnum() else "_" for c in name)[:80]
    path, npz = folder / f"{stem}.onnx", folder / f"{stem}.npz"
    path.write_bytes(m.SerializeToString())
    shape = [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim]
    np.savez(npz, x=np.ones(shape, np.float32))
    mib, rows = int(memory[:-1]) if memory else DEFAULT_MIB, []
    for what, call in attempts(path, npz, memory, folder, len(m.training_info) > 0):
        if few and what not in ("info", "run", "grad", "train"):
            continue
        start = time.monotonic()
        code, text, peak = call()
        seconds = min(time.monotonic() - start, spent["cpu"])
        more = 80 if what in ("Session", "Trainer") else 0
        own = DEFAULT_MIB if what in ("info", "check", "prepare --lowered") else mib  # these take no --memory
        allowed = own + PROGRAM_MIB + more + path.stat().st_size * 256 / 2**20
        found = text.partition("error[OT")[2][:4]
        problem = judge(code, text, peak, seconds, allowed)
        rows.append((what, code, f"OT{found}" if found else "-", peak, seconds, problem))
    for used in (path, npz):
        used.unlink()
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--memory", default=None, help="in mebibytes: 128M; default: the program's own rule")
    p.add_argument("--only", default="", help="models whose name holds this text")
    p.add_argument("--every", type=int, default=1, help="every Nth model of each kind")
    p.add_argument("--first", type=int, default=0, help="with --every: where it begins")
    p.add_argument("--minutes", type=float, default=1e9, help="begins no model after this time")
    p.add_argument("--few", action="store_true", help="info, run, grad and train only")
    a = p.parse_args()
    outcomes, problems, worst, tried, models, left = {}, [], [0.0, 0.0], 0, 0, 0
    end = time.monotonic() + 60 * a.minutes
    with tempfile.TemporaryDirectory() as d:
        for name, m in all_models(a.every, a.first):
            if a.only not in name:
                continue
            if time.monotonic() > end:
                left += 1
                continue
            models += 1
            for what, code, ot, peak, seconds, problem in run_case(name, m, Path(d), a.memory, a.few):
                tried += 1
                counts = outcomes.setdefault(what, {})
                counts[ot if code else "finished"] = counts.get(ot if code else "finished", 0) + 1
                worst = [max(worst[0], seconds), max(worst[1], peak)]
                if problem:
                    problems.append(f"{name} {what}: {problem}")
                    print("  " + problems[-1], flush=True)
    for what, counts in outcomes.items():
        print(f"{what:18} {json.dumps(dict(sorted(counts.items())))}")
    print(f"{models} models, {tried} commands; at most {worst[0]:.1f} s and {worst[1]:.0f} MiB of the process")
    print(f"over the budget, over {hostile_loops.SECONDS} s, crashed or without a code: {len(problems)}")
    if left:
        print(f"{left} models were not begun")
    return 1 if problems or left else 0


if __name__ == "__main__":
    sys.exit(main())
