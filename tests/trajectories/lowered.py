"""Runs lowered training files step by step in an ordinary ONNX Runtime session, and the inference
part of prepared files too.

    python tests/trajectories/lowered.py [NAME ...]

A step is what the standard says: the lists of the main graph followed by those of the algorithm.
State variables become inputs, so that one session serves all steps."""

import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import onnxtrain as ot
from compare import DATA, EPS, Reference, exports, places, prepared, tensor_ratios
from trajectory_cases import CASES, STEPS, feeds


def step_model(model, which=0):
    """Main graph and algorithm as one inference model; the state variables it reads; its bindings."""
    info = model.training_info[which]
    bound = [(e.key, e.value) for e in info.update_binding]
    keys = {k for i in model.training_info for k in (e.key for e in i.update_binding)}
    graph, algorithm = model.graph, info.algorithm
    initializers = {t.name: t for t in list(graph.initializer) + list(algorithm.initializer)}
    inputs = [v for v in list(graph.input) + list(algorithm.input) if v.name not in initializers]
    inputs += [helper.make_tensor_value_info(k, t.data_type, t.dims) for k, t in initializers.items() if k in keys]
    made = helper.make_graph(
        list(graph.node) + list(algorithm.node), "step", inputs, list(algorithm.output),
        [t for k, t in initializers.items() if k not in keys],
        value_info=[v for v in list(graph.value_info) + list(algorithm.value_info) if v.name not in initializers])
    m = helper.make_model(made, opset_imports=model.opset_import, functions=model.functions,
                          ir_version=model.ir_version)
    return m, bound


def session(model):
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])


class Runner:
    """A lowered training file in ONNX Runtime."""

    def __init__(self, proto):
        self.state, self.steps = {}, []
        for info in proto.training_info:
            for n in info.algorithm.node:
                assert n.domain != "ai.onnx.preview.training", f"{n.op_type} is left"
        named = {t.name: t for g in [proto.graph] + [i.algorithm for i in proto.training_info] for t in g.initializer}
        for k in range(len(proto.training_info)):
            model, bound = step_model(proto, k)
            s = session(model)
            self.steps.append((s, [o.name for o in s.get_outputs()], {i.name for i in s.get_inputs()}, bound))
            self.state |= {key: onnx.numpy_helper.to_array(named[key]) for key, _ in bound}

    def step(self, data, which=0):
        s, outputs, inputs, bound = self.steps[which]
        got = dict(zip(outputs, s.run(outputs, {k: v for k, v in (data | self.state).items() if k in inputs})))
        self.state |= {key: got[value] for key, value in bound}
        return float(got[outputs[0]])


def run(name, how, batch=0):
    """The trajectory of the lowered file, as ratios to torch's noise."""
    case, ref = CASES[name], Reference(name)
    train = prepared(name, ot.load(DATA / f"{name}.{how}.onnx"), lowered=True, batch=batch)
    proto = onnx.load_from_string(train.proto())
    onnx.checker.check_model(proto)
    runner = Runner(proto)
    where = places(ref, {k: v for k, v in runner.state.items()})
    losses = [runner.step(feeds(case, k), i) for k in range(STEPS) for i in range(len(case.sections))]
    scale = np.maximum(np.maximum.accumulate(ref.loss_noise), EPS * abs(ref.losses))
    final = np.zeros(ref.start.size)
    for n, w in where.items():
        final[w] = runner.state[n].reshape(-1)
    worst, at = tensor_ratios(final, ref.state, ref.slices, ref.names, ref.state_noise)
    return {"losses": (float(np.max(abs(np.array(losses) - ref.losses) / scale)), "loss"), "state": (worst, at)}


def infer(name, how):
    """The prepared file in ONNX Runtime, for inference: largest difference to our own."""
    case = CASES[name]
    train = prepared(name, ot.load(DATA / f"{name}.{how}.onnx"))
    assert ot.check(train) == [], ot.check(train)
    proto = onnx.load_from_string(train.proto())
    onnx.checker.check_model(proto)
    data = feeds(case, 3, targets=False)
    names = [o.name for o in proto.graph.output]
    theirs = dict(zip(names, session(proto).run(names, data)))
    ours = ot.Session(train).run(data)
    return max(float(np.max(abs(ours[n] - theirs[n]) / (1 + abs(theirs[n])))) for n in names)


def main(names):
    for name, how in exports():
        if names and name not in names:
            continue
        for what in (infer, run):
            t = time.time()
            try:
                r = what(name, how)
                text = (
                    f"{r:.1e}" if isinstance(r, float) else "  ".join(f"{k} {v:.2f} ({n})" for k, (v, n) in r.items())
                )
            except Exception as e:  # noqa: BLE001
                text = f"{type(e).__name__}: {str(e)[:500]}"
            print(f"{name:13s} {how:13s} {what.__name__:6s} {text}  {time.time() - t:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
