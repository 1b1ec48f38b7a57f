"""Lowered training steps against gradients: a case becomes a model whose parameters are its floating-point
inputs and whose output is a scalar; one plain step of the lowered file in ONNX Runtime must subtract the gradient.

Where ONNX Runtime cannot run the case itself, or means something else by it, our own session steps the lowered file
instead: a weaker witness. These cases are listed in own_session.txt, each with its reason; one more is a failure."""

import functools
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from cases import as_inputs, jitter
from finite import Result
from retype import is_float

RATE = 0.5
NEWEST_IR, NEWEST_OPSET, OLDEST_OPSET = 13, 26, 7  # of ONNX Runtime
LIST = Path(__file__).with_name("own_session.txt")


@functools.cache
def own_session():
    """{case: reason} of own_session.txt"""
    lines = (line.split(" | ") for line in LIST.read_text().splitlines() if line.strip() and not line.startswith("#"))
    return {case.strip(): reason.strip() for case, reason in lines}


def trainable(case, rng):
    """(model, parameters, feeds): tensors as initializers, a scalar output. None when nothing is left."""
    model, feeds = as_inputs(case.model, case.feeds)
    feeds = {n: jitter(v, rng) for n, v in feeds.items()}
    values = ot.Session(ot.load(model.SerializeToString()), threads=1).run(feeds)
    out = onnx.ModelProto()
    out.CopyFrom(model)
    g = out.graph
    if all(o.domain not in ("", "ai.onnx") for o in out.opset_import):
        out.opset_import.append(helper.make_opsetid("", 21))
    parameters = {n: v for n, v in feeds.items() if isinstance(v, np.ndarray) and v.dtype in (np.float32, np.float64)
                  and v.size
                  and np.isfinite(v).all()}
    sums = []
    for o in model.graph.output:
        y = values[o.name]
        if not is_float(y) or not np.isfinite(y.astype(np.float64)).all():
            continue
        c = rng.standard_normal(y.shape).astype(np.float32)
        g.initializer.append(numpy_helper.from_array(c, f"{o.name}__c"))
        g.node.append(helper.make_node("Cast", [o.name], [f"{o.name}__f"], to=TensorProto.FLOAT))
        g.node.append(helper.make_node("Mul", [f"{o.name}__f", f"{o.name}__c"], [f"{o.name}__w"]))
        g.node.append(helper.make_node("ReduceSum", [f"{o.name}__w"], [f"{o.name}__s"], keepdims=0))
        sums.append(f"{o.name}__s")
    if not sums or not parameters:
        return None
    g.node.append(helper.make_node("Sum", sums, ["total__loss"]))
    del g.output[:]
    g.output.append(helper.make_tensor_value_info("total__loss", TensorProto.FLOAT, []))
    fixed = {n: v for n, v in feeds.items() if isinstance(v, np.ndarray)
             and not is_float(v)}  # sizes, axes: as in real models
    inputs = [i for i in g.input if i.name not in parameters | fixed]
    del g.input[:]
    g.input.extend(inputs)
    g.initializer.extend(numpy_helper.from_array(v, n) for n, v in (parameters | fixed).items())
    out.ir_version = max(out.ir_version, 7)
    return out, parameters, {n: v for n, v in feeds.items() if n not in parameters | fixed}


def step_model(model):
    """Main graph and algorithm as one inference model whose state variables are inputs; its bindings."""
    info = model.training_info[0]
    bound = {e.key: e.value for e in info.update_binding}
    graph, algorithm = model.graph, info.algorithm
    initializers = {t.name: t for t in list(graph.initializer) + list(algorithm.initializer)}
    inputs = [v for v in list(graph.input) + list(algorithm.input) if v.name not in initializers]
    inputs += [helper.make_tensor_value_info(k, t.data_type, t.dims) for k, t in initializers.items() if k in bound]
    made = helper.make_graph(list(graph.node) + list(algorithm.node), "step", inputs, list(algorithm.output),
                             [t for k, t in initializers.items() if k not in bound],
                             value_info=[v for v in list(graph.value_info) + list(algorithm.value_info)
                                         if v.name not in initializers])
    state = {k: numpy_helper.to_array(initializers[k]) for k in bound}
    return (
        helper.make_model(
            made, opset_imports=model.opset_import, functions=model.functions, ir_version=model.ir_version
        ),
        bound,
        state,
    )


def nodes_of(graph):
    for n in graph.node:
        yield n
        for a in n.attribute:
            for g in [a.g, *a.graphs]:
                yield from nodes_of(g)


def known_stamp(proto):
    """The same model in versions that ONNX Runtime reads, where its operators were there already: the types that newer
    versions added are not used here, and runtime_for compares what both compute."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    out.ir_version = min(out.ir_version, NEWEST_IR)
    parts = [out.graph, *out.functions]
    standard = [o for p in [out, *out.functions] for o in p.opset_import if o.domain in ("", "ai.onnx")]
    if all(was_there(n) for p in parts for n in nodes_of(p) if n.domain in ("", "ai.onnx")):
        for o in standard:
            o.version = min(o.version, NEWEST_OPSET)
    if any(o.version < OLDEST_OPSET for o in standard):
        return onnx.version_converter.convert_version(out, OLDEST_OPSET)
    return out


def was_there(node):
    try:
        schema = onnx.defs.get_schema(node.op_type, NEWEST_OPSET, "")
    except onnx.defs.SchemaError:
        return False
    return all(a.name in schema.attributes for a in node.attribute)


def session(proto):
    proto = known_stamp(proto)
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), o, providers=["CPUExecutionProvider"])


def run_case(case, seed=0):
    rng = np.random.default_rng(seed)
    made = trainable(case, rng)
    if made is None:
        return Result("nothing", "no floating-point input or output")
    model, parameters, feeds = made
    return compare(model, parameters, feeds, case.name)


class Ours:
    """Our own session in the place of ONNX Runtime's."""

    def __init__(self, proto):
        self.session = ot.Session(ot.load(proto.SerializeToString()), threads=1)

    def run(self, feeds):
        return self.session.run(feeds)


class Theirs:
    def __init__(self, proto):
        self.session = session(proto)

    def run(self, feeds):
        names = [o.name for o in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feeds)))


def runtime_for(model, feeds):
    """ONNX Runtime where it has the model's operators and means the same by them, otherwise ours and why."""
    ours = ot.Session(model.SerializeToString(), threads=1).run(feeds)["total__loss"]
    try:
        theirs = Theirs(model).run(feeds)["total__loss"]
    except Exception as e:  # noqa: BLE001 - whatever it says
        return Ours, f"cannot run it: {' '.join(str(e).split())[:300]}"
    if np.allclose(ours, theirs, 1e-4, 1e-4, equal_nan=True):
        return Theirs, ""
    return Ours, f"means something else by it: {float(theirs):.6g} instead of {float(ours):.6g}"


def prepared(model, names):
    try:
        return ot.prepare(model, loss="output", optimizer=ot.SGD(lr=RATE), only=list(names), mode="as_is", lowered=True)
    except ot.Error as e:
        if e.code == "OT1240":
            return None
        raise


def compare(model, parameters, feeds, name):
    want = ot.gradients(model.SerializeToString(), feeds, of="total__loss", wrt=list(parameters), threads=1)
    want = {n: g for n, g in want.items() if np.any(g)}
    if not want:
        return Result("nothing", "every gradient is zero")
    runtime, swapped = runtime_for(model, feeds)
    low = prepared(model, want)
    if low is None:
        return Result("nothing", "settings only, or one name for two: nothing that prepare trains")
    proto = onnx.load_from_string(low.proto())
    onnx.checker.check_model(proto)
    step, bound, state = step_model(proto)
    left = [n.op_type for n in proto.training_info[0].algorithm.node if n.domain == "ai.onnx.preview.training"]
    if left:
        return Result("wrong", f"{left} are left")
    reads = {i.name for i in step.graph.input}
    got = runtime(step).run({k: v for k, v in (feeds | state).items() if k in reads})
    r = Result("ok", swapped and f"own session: {swapped}", dtype="float32")
    for n, g in want.items():
        if n not in bound:  # a setting: prepare does not train it
            continue
        new, expected = got[bound[n]].astype(np.float64), parameters[n] - RATE * g.astype(np.float64)
        if not np.isfinite(expected).all():
            continue
        apart = np.abs(new - expected).max(initial=0)
        if not apart <= 1e-5 * (np.abs(g).max() + np.abs(parameters[n]).max()) + 1e-6:
            return Result("wrong", f"{runtime.__name__} {n}: {apart:.3g} apart, largest gradient {np.abs(g).max():.3g}")
        r.probes += 1
    if swapped and name.strip() not in own_session():
        return Result("wrong", f"ONNX Runtime {swapped}; the case is not in own_session.txt")
    if not swapped and name.strip() in own_session():
        return Result("wrong", "ONNX Runtime runs it: its line in own_session.txt can go")
    return r
