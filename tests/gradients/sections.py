"""What is checked, in sections: each a list of (label, operators, function that returns a Result)."""

import functools

import numpy as np
from onnx import TensorProto

import cases
import extras
import golden
import large as large_counts
import lowering
import onnxtrain as ot
import opsets
import variations
from finite import Function, Result, check, leaves
from retype import retype


def _guarded(f):
    def run():
        try:
            return f()
        except ot.Error as e:
            return Result("refused" if e.code == "OT1203" else "error", " ".join(str(e).split()))
    return run


def _suite_names(expanded=True):
    return [n for n in cases.suite() if expanded or "_expanded" not in n]


def suite():
    """Every model of the ONNX backend suite."""
    for name in _suite_names():
        yield name, _ops(name), lambda n=name: cases.run_case(cases.load_case(n))


@functools.cache
def _ops(name):
    t = cases.suite()[name]
    return tuple(cases.Case(name, t.model, {}).ops) if t.model is not None else ()


def extra():
    """Recurrent layers, control flow, combinations of attributes, networks: see extras.py."""
    for name, case in extras.all_cases().items():
        yield name, tuple(case.ops), lambda c=case: cases.run_case(c)


def _is_second(name):
    return "_expanded" not in name and "linear_attention" not in name


def _second(case):
    def change(model, feeds, wrt):
        return variations.as_gradient(model, feeds, [n for n in wrt if isinstance(feeds[n], np.ndarray)])
    return cases.run_case(case, change=change)


def second():
    """Gradients of gradients: a Gradient node's outputs differentiated again."""
    for name in _suite_names(False):
        if _is_second(name):
            yield name, _ops(name), lambda n=name: _second(cases.load_case(n))
    for name, case in extras.all_cases().items():
        yield name, tuple(case.ops), lambda c=case: _second(c)


def third():
    """Three times: smooth operators and networks."""
    def run(case):
        model, feeds = cases.widened(case, 0)
        wrt = cases.wanted(cases.Case("", model, feeds))
        once = variations.as_gradient(model, feeds, wrt)
        return check(variations.as_gradient(once, feeds, wrt, 1), feeds, wrt)
    names = [f"test_{n}" for n in ("tanh", "exp", "sin", "softmax_axis_1", "gelu_default_1", "matmul_2d",
                                   "logsoftmax_axis_1", "sigmoid", "softplus", "pow", "div",
                                   "layer_normalization_2d_axis1", "basic_conv_with_padding", "mish")]
    for name in names:
        if name in cases.suite():
            yield name, _ops(name), lambda n=name: _guarded(lambda: run(cases.load_case(n)))()
    for name in ("MLP", "CNN", "transformer block", "cross entropy"):
        case = extras.all_cases()[name]
        yield name, tuple(case.ops), lambda c=case: _guarded(lambda: run(c))()


def dynamic():
    """Inputs whose shape and rank nobody knows before the run."""
    for name in _suite_names(False):
        yield name, _ops(name), lambda n=name: cases.run_case(cases.load_case(n),
                                                              change=lambda m, f, w: variations.hidden(m, f))


def shapes(per_operator=3):
    """Other shapes: broadcasts, dimensions of 1, empty tensors, sizes that the file leaves open."""
    for _, names in sorted(opsets.single_nodes().items()):
        kept = 0
        for name in names:
            if kept == per_operator:
                break
            case = cases.load_case(name)
            if case.wrt():
                kept += 1
                yield name, tuple(case.ops), lambda c=case: _shapes(c)


def _shapes(case, seed=0):
    for level in range(len(cases.LEVELS)):
        try:
            r = _shapes_at(*cases.widened(case, seed, level), case, seed)
        except ot.Error as e:
            r = Result("error", " ".join(str(e).split()))
        if r.status in ("ok", "nothing", "refused"):
            break
    return r


def _shapes_at(model, feeds, case, seed):
    model = variations.open_shapes(model)
    total = Result("nothing", "no other shape runs")
    for what, other in variations.other_shapes(feeds, np.random.default_rng(seed), 12):
        try:
            ot.Session(ot.load(model.SerializeToString()), threads=1).run(other)
        except ot.Error:
            continue
        wrt = cases.wanted(cases.Case("", model, other))
        empty = [n for n, v in other.items() if any(x.size == 0 for x in leaves(v))]
        wrt = [n for n in case.wrt() if n in other and (n in wrt or n in empty)]
        if not wrt:
            continue
        r = _guarded(lambda o=other, w=wrt: check(model, o, w, seed))()
        if r.status in ("wrong", "error", "refused"):
            r.text = f"{what}: {r.text}"
            return r
        if r.status == "ok":
            total.status, total.text = "ok", ""
            total.probes, total.skipped, total.dtype = total.probes + r.probes, total.skipped + r.skipped, r.dtype
    return total


def versions():
    """Every version of every operator's schema."""
    for domain, op, schema in opsets.versions():
        label = f"{op}-{schema.since_version}"
        yield label, ((domain or "ai.onnx") + "." + op,), lambda d=domain, o=op, s=schema: _versions(d, o, s)


def _versions(domain, op, schema):
    found = opsets.cases_at(domain, op, schema)
    total = Result("nothing", "no case can be rewritten for this version")
    for case in found:
        r = cases.run_case(case)
        if r.status not in ("ok", "nothing"):
            r.text = f"{case.name}: {r.text}"
            return r
        if r.status == "ok":
            total.status, total.text, total.probes = "ok", "", total.probes + r.probes
    return total


_EPS = {TensorProto.FLOAT16: 2.0**-10, TensorProto.BFLOAT16: 2.0**-7}


def narrow():
    """float16 and bfloat16: gradients against those in float64 of the same numbers."""
    for name in _suite_names(False):
        for to in _EPS:
            yield (
                f"{name} {TensorProto.DataType.Name(to).lower()}",
                _ops(name),
                lambda n=name, t=to: _guarded(lambda: _narrow(cases.load_case(n), t))(),
            )


def _narrow(case, to):
    model, feeds = cases.as_inputs(case.model, case.feeds)
    small, rounded = retype(model, feeds, to, True)
    wide, exact = retype(small, rounded, TensorProto.DOUBLE, False)
    wrt = [n for n in cases.wanted(cases.Case("", small, rounded)) if isinstance(rounded[n], np.ndarray)
           and rounded[n].dtype.itemsize == 2 and isinstance(exact.get(n), np.ndarray) and exact[n].dtype == np.float64]
    if not wrt:
        return Result("nothing", "no input of that type")
    try:
        g, h = Function(small, rounded, np.random.default_rng(0)), Function(wide, exact, np.random.default_rng(0))
    except ot.Error as e:
        return Result("nothing", f"does not run in that type: {e}")
    if not g.cotangents or set(g.cotangents) != set(h.cotangents) or not g.finite:
        return Result("nothing", "no finite output of that type")
    for n, c in g.cotangents.items():
        h.cotangents[n] = c.astype(h.cotangents[n].dtype)
    mine, theirs = g.gradients(rounded, wrt), h.gradients(exact, wrt)
    for n in wrt:
        if mine[n].dtype != rounded[n].dtype or mine[n].shape != rounded[n].shape:
            return Result("wrong", f"{n}: {rounded[n].dtype}{rounded[n].shape}, its gradient "
                                   f"{mine[n].dtype}{mine[n].shape}")
        a, b = mine[n].astype(np.float64), theirs[n]
        if not np.isfinite(b).all() or np.abs(b).max(initial=0) > 3e4:
            continue
        apart, size = np.abs(a - b).max(initial=0), np.abs(b).max(initial=0)
        # rounding of every step between: a few dozen units of the type
        if not apart <= 40 * _EPS[to] * size + 1e-4:
            return Result("wrong", f"{n}: {apart:.3g} apart, largest gradient {size:.3g}")
    return Result("ok", probes=len(wrt))


def lowered():
    """Lowered steps in ONNX Runtime."""
    for name in _suite_names(False):
        yield name, _ops(name), lambda n=name: _guarded(lambda: lowering.run_case(cases.load_case(n)))()
    for name, case in extras.all_cases().items():
        yield name, tuple(case.ops), lambda c=case: _guarded(lambda: lowering.run_case(c))()


def torch():
    """PyTorch's own numbers (tests/gradients/torch.npz), kinks and ties included."""
    def run(case, arrays):
        why = golden.compare(case, arrays)
        return Result("wrong" if why else "ok", why, 1)
    for case, arrays in golden.book():
        yield case["name"], ("ai.onnx." + case["op"],), lambda c=case, a=arrays: _guarded(lambda: run(c, a))()


def large():
    """Beyond 65504 and 2^24 elements, in float16, bfloat16 and float32: against float64."""
    def run(case, kind, count):
        why = large_counts.compare(case, kind, count)
        return Result("wrong" if why else "ok", why, len(large_counts.CASES[case][2]), dtype=kind)
    for count in large_counts.COUNTS:
        for case, kind in large_counts.counted(count):
            ops = tuple("ai.onnx." + op for op in large_counts.operators(case))
            yield f"{case} {kind} {count}", ops, lambda c=case, k=kind, n=count: _guarded(lambda: run(c, k, n))()


SECTIONS = {f.__name__: f for f in (suite, extra, versions, shapes, dynamic, narrow, second, third, lowered, torch,
                                    large)}
