"""Recurrent layers of a portable step as Scan: any length, the same numbers as native in every runtime with Scan."""

import itertools
import json

import numpy as np
import pytest

import onnxtrain as ot

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
HIDDEN, INPUTS, ROWS = 3, 2, 4


def network(cell, direction, lengths, states, layout=0, **attributes):
    """x -> cell -> all of Y and the last states -> two numbers per row. Open batch N, open length T."""
    rng = np.random.RandomState(5)
    d, g = (2 if direction == "bidirectional" else 1), GATES[cell]
    weights = {"W": rng.randn(d, g * HIDDEN, INPUTS), "R": rng.randn(d, g * HIDDEN, HIDDEN),
               "B": rng.randn(d, 2 * g * HIDDEN), "w": rng.randn(d * HIDDEN, 2), "v": rng.randn(d * HIDDEN, 2)}
    weights = {k: (v * 0.5).astype(np.float32) for k, v in weights.items()}
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T", INPUTS] if layout else ["T", "N", INPUTS])
    inputs, given = [x], ["x", "W", "R", "B", "", "", ""]
    if lengths:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["N"]))
        given[4] = "lengths"
    state = ["N", d, HIDDEN] if layout else [d, "N", HIDDEN]
    for k, name in enumerate(["h0", "c0"] if cell == "LSTM" else ["h0"]):
        if states:
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, state))
            given[5 + k] = name
    while not given[-1]:
        given.pop()
    outs = ["Y", "Yh", "Yc"] if cell == "LSTM" else ["Y", "Yh"]
    node = helper.make_node(cell, given, outs, hidden_size=HIDDEN, direction=direction, layout=layout, **attributes)
    # [T,d,N,H] or [N,T,d,H] -> mean over T -> [N, d*H]
    nodes = [node, helper.make_node("ReduceMean", ["Y"], ["m"], axes=[1 if layout else 0], keepdims=0)]
    last = "Yc" if cell == "LSTM" else "Yh"
    if layout:
        nodes.append(helper.make_node("Identity", ["m"], ["mt"]))
        nodes.append(helper.make_node("Identity", [last], ["ht"]))
    else:
        nodes.append(helper.make_node("Transpose", ["m"], ["mt"], perm=[1, 0, 2]))
        nodes.append(helper.make_node("Transpose", [last], ["ht"], perm=[1, 0, 2]))
    nodes += [helper.make_node("Flatten", ["mt"], ["mf"]), helper.make_node("Flatten", ["ht"], ["hf"]),
              helper.make_node("MatMul", ["mf", "w"], ["a"]), helper.make_node("MatMul", ["hf", "v"], ["b"]),
              helper.make_node("Add", ["a", "b"], ["y"])]
    graph = helper.make_graph(nodes, "net", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
                              [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return ot.prepare(ot.load(model.SerializeToString()), loss="mse", optimizer=ot.SGD(lr=0.1, momentum=0.5))


def feeds(train, steps, seed):
    rng = np.random.RandomState(seed)
    out = {}
    for i in train.info["inputs"]:
        shape = [steps if s == "T" else ROWS if s == "N" else s for s in i["shape"]]
        out[i["name"]] = rng.randint(1, steps + 1, ROWS).astype(np.int32) if i["name"] == "lengths" else \
            rng.randn(*shape).astype(np.float32)
    target = next(v["name"] for t in train.info["training"] for v in t["inputs"])
    return out | {target: rng.randn(ROWS, 2).astype(np.float32)}


class Steps:
    """A step with its outputs fed back."""

    def __init__(self, run, manifest, state):
        self.run, self.section, self.state = run, manifest["sections"][0], dict(state)
        self.names = [o["name"] for o in self.section["outputs"]]

    def step(self, given):
        wanted = [i["name"] for i in self.section["inputs"]]
        all_feeds = {k: v for k, v in (self.state | given).items() if k in wanted}
        got = dict(zip(self.names, self.run(self.names, all_feeds)))
        self.state |= {f["input"]: np.asarray(got[f["output"]]) for f in self.section["feedback"]}
        return float(got[self.section["loss"]["output"]])


def check(train, tmp_path, lengths_of_steps=(5, 1, 7), limit=2e-5):
    ot.export_step(train, tmp_path / "step.onnx", recurrent="scan")
    proto = onnx.load(tmp_path / "step.onnx")
    onnx.checker.check_model(proto)
    used = {n.op_type for n in proto.graph.node}
    assert "Scan" in used and not used & set(GATES)
    manifest = json.loads((tmp_path / "step.manifest.json").read_text())
    native = ot.Trainer(train)
    start = {n: np.array(v) for n, v in native.state.items()}
    session, evaluator = ort.InferenceSession(tmp_path / "step.onnx"), ReferenceEvaluator(proto)
    own = ot.Session(tmp_path / "step.onnx")
    runs = {"onnxruntime": session.run, "reference": evaluator.run,
            "native": lambda names, given: [own.run(given)[n] for n in names]}
    drivers = {k: Steps(run, manifest, start) for k, run in runs.items()}
    for k, steps in enumerate(lengths_of_steps):
        given = feeds(train, steps, k)
        loss = native.step(given).loss
        for name, d in drivers.items():
            assert d.step(given) == pytest.approx(loss, abs=limit), (name, steps)
    for name, d in drivers.items():
        for key, value in native.state.items():
            np.testing.assert_allclose(d.state[key], value, atol=limit, err_msg=f"{name} {key}")


@pytest.mark.parametrize(("cell", "direction"), list(itertools.product(GATES, ["forward", "reverse",
                                                                               "bidirectional"])))
def test_an_open_length(cell, direction, tmp_path):
    check(network(cell, direction, False, False), tmp_path)


@pytest.mark.parametrize(("cell", "direction"), list(itertools.product(GATES, ["forward", "bidirectional"])))
def test_lengths_and_initial_states(cell, direction, tmp_path):
    check(network(cell, direction, True, True), tmp_path)


@pytest.mark.parametrize(("cell", "attributes"), [
    ("GRU", {"linear_before_reset": 1}), ("LSTM", {"clip": 0.3}), ("LSTM", {"input_forget": 1}),
    ("RNN", {"activations": ["Relu"]})])
def test_options_of_the_cells(cell, attributes, tmp_path):
    check(network(cell, "forward", True, False, **attributes), tmp_path)


def test_batch_first(tmp_path):
    """Only native has layout = 1 of the layer itself; the Scan runs everywhere."""
    check(network("GRU", "bidirectional", True, False, layout=1), tmp_path)


def test_a_known_length(tmp_path):
    train = network("LSTM", "forward", True, True)
    ot.export_step(train, tmp_path / "step.onnx", recurrent="scan", dims={"T": 5, "N": ROWS})
    session = ort.InferenceSession(tmp_path / "step.onnx")
    assert next(i for i in session.get_inputs() if i.name == "x").shape == [5, ROWS, INPUTS]


def test_unrolled_asks_for_the_length(tmp_path):
    with pytest.raises(ot.Error, match="OT1206|number of steps"):
        ot.export_step(network("LSTM", "forward", False, False), tmp_path / "step.onnx")
