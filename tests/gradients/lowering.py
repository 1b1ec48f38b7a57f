"""Lowered training steps against gradients: a case becomes a model whose parameters are its floating-point
inputs and whose output is a scalar; one plain step of the lowered file in ONNX Runtime must subtract the gradient."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from cases import as_inputs, jitter
from finite import Result
from retype import is_float

RATE = 0.5


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


def session(proto):
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
    return compare(model, parameters, feeds)


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
    """ONNX Runtime where it has the model's operators and means the same by them, otherwise ours."""
    ours = ot.Session(model.SerializeToString(), threads=1).run(feeds)["total__loss"]
    try:
        if np.allclose(ours, Theirs(model).run(feeds)["total__loss"], 1e-4, 1e-4):
            return Theirs
    except Exception:  # noqa: BLE001 - whatever it says
        pass
    return Ours


def prepared(model, names):
    try:
        return ot.prepare(model, loss="output", optimizer=ot.SGD(lr=RATE), only=list(names), mode="as_is", lowered=True)
    except ot.Error as e:
        if e.code == "OT1240":
            return None
        raise


def compare(model, parameters, feeds):
    want = ot.gradients(model.SerializeToString(), feeds, of="total__loss", wrt=list(parameters), threads=1)
    want = {n: g for n, g in want.items() if np.any(g)}
    if not want:
        return Result("nothing", "every gradient is zero")
    runtime = runtime_for(model, feeds)
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
    r = Result("ok", runtime.__name__, dtype="float32")
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
    return r
