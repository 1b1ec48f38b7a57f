"""Where the cases come from: the ONNX backend suite and the models of this repository."""

import copy
import dataclasses
import functools
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import onnxtrain as ot
from finite import Result, check, leaves
from retype import FLOATS, is_float, retype

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    feeds: dict
    exact: object = None  # feeds -> {output: float64 array}: what the operator approaches, for the differences

    @property
    def ops(self):
        return sorted({(n.domain or "ai.onnx") + "." + n.op_type for n in self.model.graph.node})

    def wrt(self):
        return [n for n, v in self.feeds.items() if any(x.size for x in leaves(v))]


def as_inputs(model, feeds):
    """Float initializers become inputs with a feed, so that they can be moved."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    feeds = dict(feeds)
    known = {i.name for i in out.graph.input}
    kept = []
    for t in out.graph.initializer:
        if t.data_type not in FLOATS:
            kept.append(copy.deepcopy(t))
            continue
        if t.name not in known:
            out.graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        feeds.setdefault(t.name, numpy_helper.to_array(t))
    del out.graph.initializer[:]
    out.graph.initializer.extend(kept)
    return out, feeds


def open_sequences(model, feeds):
    """Every sequence output also as tensors, one per item."""
    got = None
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for o in list(model.graph.output):
        if o.type.WhichOneof("value") != "sequence_type":
            continue
        if got is None:
            got = ot.Session(ot.load(model.SerializeToString()), threads=1).run(feeds)
        elem = o.type.sequence_type.elem_type.tensor_type.elem_type
        for k in range(len(got[o.name])):
            index = numpy_helper.from_array(np.array(k, np.int64), f"{o.name}_index{k}")
            out.graph.initializer.append(index)
            out.graph.node.append(onnx.helper.make_node("SequenceAt", [o.name, index.name], [f"{o.name}_item{k}"]))
            out.graph.output.append(onnx.helper.make_tensor_value_info(f"{o.name}_item{k}", elem, None))
    return out


@functools.cache
def suite(kinds=("node", "simple", "pytorch-converted", "pytorch-operator")):
    """[Case] of the ONNX backend suite."""
    from onnx.backend.test.loader import load_model_tests

    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            for t in load_model_tests(kind=kind):
                out.append((t.name, t))
    return dict(sorted(out))


def load_case(name):
    t = suite()[name]
    model = t.model
    if model is None:
        model = onnx.load(Path(t.model_dir) / "model.onnx")
    if t.data_sets is not None:
        inputs = list(t.data_sets[0][0])
    else:
        inputs = [_read(p, v.type) for p, v in zip(_files(t.model_dir), model.graph.input)]
    fixed = {i.name for i in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in fixed]
    feeds = {n: _array(v) for n, v in zip(names, inputs)}
    return Case(name, model, feeds)


def _files(model_dir):
    folder = sorted(Path(model_dir).glob("test_data_set_*"))[0]
    return sorted(folder.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))


def _read(path, type_proto):
    if type_proto.WhichOneof("value") == "sequence_type":
        s = onnx.SequenceProto()
        s.ParseFromString(path.read_bytes())
        return numpy_helper.to_list(s)
    t = TensorProto()
    t.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(t)


def _array(v):
    if isinstance(v, TensorProto):
        return numpy_helper.to_array(v)
    if isinstance(v, (list, tuple)):
        return [_array(x) for x in v]
    return np.asarray(v) if np.isscalar(v) else v


def jitter(value, rng, amount=0.03):
    """Moves every floating-point element a little: no ties, no element on a kink."""
    if isinstance(value, list):
        return [jitter(v, rng, amount) for v in value]
    if not is_float(value) or value.size == 0:
        return value
    x = value.astype(np.float64)
    finite = np.isfinite(x)
    spread = np.abs(x[finite]).mean() if finite.any() else 1.0
    moved = np.where(finite, x * (1 + amount * rng.uniform(-1, 1, x.shape)) + amount * spread
                     * rng.uniform(0.1, 1, x.shape), x)
    return moved.astype(value.dtype)


LEVELS = ((False, TensorProto.DOUBLE), (True, TensorProto.DOUBLE), (True, TensorProto.FLOAT))


def widened(case, seed, level=0):
    """The case in float64 as far as `level` allows (0: whatever the schema says, 1: where the schema allows it,
    2: float32): (model, feeds) with every element moved a little. Raises what the engine says when it does not run."""
    model, feeds = as_inputs(case.model, case.feeds)
    rng = np.random.default_rng(seed)
    strict, to = LEVELS[level]
    m, f = retype(model, feeds, to, strict)
    session = ot.Session(ot.load(m.SerializeToString()), threads=1)
    plain = session.run(f)
    counts = any(n.op_type == "Unique" for n in m.graph.node)  # equal elements become different ones
    for amount in (0.03, 0.001):
        g = {n: jitter(v, rng, amount) for n, v in f.items()}
        try:
            if _same_finiteness(plain, session.run(g), counts):
                return open_sequences(m, g), g
        except ot.Error:
            continue
    return open_sequences(m, f), f


def widest(case, seed=0):
    """The most exact form of the case that runs."""
    for level in range(len(LEVELS)):
        try:
            return widened(case, seed, level)
        except ot.Error:
            if level == len(LEVELS) - 1:
                raise


def _same_finiteness(a, b, counts):
    """Nothing became infinite. `counts`: the sizes of results depend on values, and may differ."""
    for n in a:
        if is_float(a[n]) and is_float(b[n]):
            if counts and a[n].shape != b[n].shape and np.isfinite(b[n].astype(float)).all():
                continue
            if a[n].shape != b[n].shape or (np.isfinite(a[n].astype(float)) & ~np.isfinite(b[n].astype(float))).any():
                return False
    return True


# inputs that are settings although they are floating point: no gradient flows to them
SETTINGS = {
    "roi": "Resize's region: ONNX marks it as not differentiable",
    "scales": "Resize's and Upsample's scales: ONNX marks them as not differentiable",
    "ratio": "Dropout's ratio: ONNX marks it as not differentiable",
}


def wanted(case):
    """Names of the inputs to differentiate by."""
    names = {}
    for n in case.model.graph.node:
        if n.op_type in ("Resize", "Upsample", "Dropout"):
            formal = (
                ["X", "scales"]
                if n.op_type == "Upsample"
                else ["X", "roi", "scales"]
                if n.op_type == "Resize"
                else ["data", "ratio"]
            )
            names.update(zip(n.input, formal))
    return [n for n in case.wrt() if names.get(n, n) not in SETTINGS]


def run_case(case, seed=0, change=None):
    """The result of one case; tries other random numbers when too many probes fell on kinks, and less exact
    types where an operator calculates in float32 whatever it is given. `change` makes another model of it."""
    last = None
    for level in range(len(LEVELS)):
        try:
            for attempt in range(2):
                model, feeds = widened(case, seed + attempt, level)
                wrt = wanted(Case("", model, feeds))
                if not wrt:
                    return Result("nothing", "no floating-point input")
                other = change(model, feeds, wrt) if change else model
                if other is None:
                    return Result("nothing", "nothing to differentiate")
                last = check(other, feeds, wrt, seed + attempt, None if change else case.exact)
                if last.status != "unmeasured":
                    break
        except ot.Error as e:
            r = Result("refused" if e.code == "OT1203" else "error", " ".join(str(e).split()))
            last = last if last and last.status == "wrong" else r
        if last.status in ("ok", "nothing", "refused"):
            break
    return last
