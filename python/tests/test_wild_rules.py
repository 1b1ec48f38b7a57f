"""Rules that files of other people need: each was found in a published file (tools/wild)."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def reference(model, feeds):
    import onnxruntime

    session = onnxruntime.InferenceSession(model.proto(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def differences(model, feeds, name, of, cotangent, h=1e-2):
    """The gradient of <cotangent, of> by one input, element by element."""
    session, x = ot.Session(model), feeds[name]
    out = np.zeros(x.shape)
    for k in np.ndindex(x.shape):
        values = []
        for sign in (1, -1):
            moved = x.astype(np.float64)
            moved[k] += sign * h
            value = session.run({**feeds, name: moved.astype(x.dtype)})[of]
            values.append(float(np.sum(value.astype(np.float64) * cotangent)))
        out[k] = (values[0] - values[1]) / (2 * h)
    return out


def test_stft_of_a_signal_without_channels():
    text = HEAD + """g (float[2,12] x) => (float[2,F,B,2] y)
    <int64 step = {4}, float[4] w = {0.5, 1, 1, 0.5}, int64 n = {4}> { y = STFT(x, step, w, n) }"""
    model = ot.parse(text)
    x = np.random.default_rng(0).normal(size=(2, 12)).astype(np.float32)
    y = ot.Session(model).run({"x": x})["y"]
    np.testing.assert_allclose(y, reference(model, {"x": x})[0], atol=1e-5)
    c = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    got = ot.gradients(model, {"x": x}, of="y", wrt=["x", "w"], cotangent=c)
    assert got["x"].shape == x.shape and got["w"].shape == (4,)
    np.testing.assert_allclose(got["x"], differences(model, {"x": x}, "x", "y", c), atol=5e-3)


@pytest.mark.parametrize("size, kernel, stride", [(5, 8, 8), (7, 9, 4), (3, 5, 5)])
def test_a_window_larger_than_the_input_when_rounding_up(size, kernel, stride):
    torch = pytest.importorskip("torch")
    text = HEAD + f"""g (float[1,2,{size},{size}] x) => (float[1,2,1,1] y)
    {{ y = AveragePool<ceil_mode=1, kernel_shape=[{kernel},{kernel}], strides=[{stride},{stride}]>(x) }}"""
    model = ot.parse(text)
    x = np.random.default_rng(0).normal(size=(1, 2, size, size)).astype(np.float32)
    want = torch.nn.functional.avg_pool2d(torch.tensor(x), kernel, stride, ceil_mode=True, count_include_pad=False)
    np.testing.assert_allclose(ot.Session(model).run({"x": x})["y"], want.numpy(), atol=1e-6)
    np.testing.assert_allclose(ot.gradients(model, {"x": x}, of="y", wrt=["x"])["x"], 1 / size**2, rtol=1e-5)


def test_a_window_that_is_too_large_is_refused():
    with pytest.raises(ot.ModelError, match="window"):
        ot.Session(ot.parse(HEAD + """g (float[1,2,3,3] x) => (float[1,2,A,B] y)
        { y = AveragePool<ceil_mode=1, kernel_shape=[9,9], strides=[2,2]>(x) }""")).run(
            {"x": np.zeros((1, 2, 3, 3), np.float32)})


COMPUTED = HEAD + """g (float[N,3,4] x) => (float[N,3,4] y)
<float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2}, float[3] k = {0.5, 0.25, 2}> {
  m = ReduceMean<axes=[0,2], keepdims=0>(x)  q = Mul(m, k)  v = Exp(q)  y = BatchNormalization(x, s, b, m, v) }"""


def test_computed_statistics_are_arithmetic():
    model = ot.parse(COMPUTED)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    y = ot.Session(model).run({"x": x})["y"]
    c = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    got = ot.gradients(model, {"x": x}, of="y", wrt=["x"], cotangent=c)["x"]
    np.testing.assert_allclose(got, differences(model, {"x": x}, "x", "y", c), atol=1e-2)
    t = ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.1)))
    before = {n: t.state[n].copy() for n in ("s", "b", "k")}
    first = t.step({"x": x, "label": y + c}).loss
    assert t.step({"x": x, "label": y + c}).loss < first
    assert all(np.any(t.state[n] != before[n]) for n in before), "a weight behind the statistics did not train"


NORM = HEAD + """g (float[N,2] x) => (float[N,2] y)
<float[2,2] w = {1, 2, 3, 4}, float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}>
{ h = MatMul(x, w)  y = BatchNormalization(h, s, b, m, v) }"""


def test_one_value_per_channel_is_refused():
    t = ot.Trainer(ot.prepare(ot.parse(NORM), loss="mse"))
    two = np.ones((2, 2), np.float32)
    t.step({"x": two, "label": two})
    with pytest.raises(ot.ModelError, match="one value per channel") as e:
        t.step({"x": two[:1], "label": two[:1]})
    assert e.value.code == "OT1286"
    fix = eval(e.value.hint.partition("freeze=")[2])  # as it is printed
    assert fix == ["s", "b"]
    frozen = ot.Trainer(ot.prepare(ot.parse(NORM), loss="mse", freeze=fix))
    frozen.step({"x": two[:1], "label": two[:1]})


def test_the_fix_for_one_value_per_channel_names_all_layers():
    text = NORM.replace("y = Batch", "h1 = Batch").replace(" }", """
    y = BatchNormalization(h1, s2, b2, m2, v2) }""").replace("float[2] v = {1, 1}", """float[2] v = {1, 1},
    float[2] s2 = {1, 1}, float[2] b2 = {0, 0}, float[2] m2 = {0, 0}, float[2] v2 = {1, 1}""")
    one = np.ones((1, 2), np.float32)
    with pytest.raises(ot.ModelError, match="one value per channel") as e:
        ot.Trainer(ot.prepare(ot.parse(text), loss="mse")).step({"x": one, "label": one})
    fix = eval(e.value.hint.partition("freeze=")[2])
    assert fix == ["s", "b", "s2", "b2"]
    ot.Trainer(ot.prepare(ot.parse(text), loss="mse", freeze=fix)).step({"x": one, "label": one})


def test_the_first_infinite_gradient_names_parameter_and_node():
    text = HEAD + """g (float[N,2] x) => (float[N,1] y) <float[2,1] fc = {0, 0}> {
      h = MatMul(x, fc)  r = Sqrt(h)  y = Mul(r, r) }"""
    proto = onnx.load_from_string(ot.parse(text).proto())
    for n in proto.graph.node:
        n.name = {"Sqrt": "root", "MatMul": "layer", "Mul": "square"}[n.op_type]
    t = ot.Trainer(ot.prepare(ot.load(proto.SerializeToString()), loss="mse", optimizer=ot.SGD(lr=0.1)))
    with pytest.raises(ot.DivergedError, match="gradient of 'fc'.*step 1[^0-9]") as e:
        t.step({"x": np.ones((2, 2), np.float32), "label": np.ones((2, 1), np.float32)})
    said = str(e.value)
    assert "root" in said or "square" in said, said
    assert "learning rate" not in (e.value.hint or "")


# ---- QuantizeLinear: straight through
@pytest.mark.parametrize("kind, low, high", [("uint8", 0, 255), ("int8", -128, 127)])
@pytest.mark.parametrize("axis", [None, 1])
def test_straight_through(kind, low, high, axis):
    scales = "float[2] s = {0.01, 0.02}" if axis else "float s = {0.01}"
    zero = f"{kind}[2] z = {{3, 5}}" if axis else f"{kind} z = {{3}}"
    attribute = "<axis=1>" if axis else ""
    text = HEAD + f"""g (float[3,2] x) => (float[3,2] y) <{scales}, {zero}>
    {{ q = QuantizeLinear{attribute}(x, s, z)  y = DequantizeLinear{attribute}(q, s, z) }}"""
    x = np.array([[-9, 0.5], [0.013, -0.01], [9, 0.019]], np.float32)
    c = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    got = ot.gradients(ot.parse(text), {"x": x}, of="y", wrt=["x"], cotangent=c)["x"]
    s, z = (np.array([0.01, 0.02]), np.array([3, 5])) if axis else (0.01, 3)
    q = np.round(x / s) + z
    np.testing.assert_array_equal(got, np.where((q >= low) & (q <= high), c, 0))


def qat_model():
    """Two layers with QDQ pairs on activations and on floating-point weights."""
    random = np.random.default_rng(0)
    weights = {"w1": random.normal(size=(4, 8)) * 0.5, "w2": random.normal(size=(8, 3)) * 0.5}
    nodes, initializers = [], []

    def pair(x, name):
        initializers.extend([numpy_helper.from_array(np.array(0.02, np.float32), name + "_scale"),
                             numpy_helper.from_array(np.array(0, np.int8), name + "_zero")])
        nodes.append(helper.make_node("QuantizeLinear", [x, name + "_scale", name + "_zero"], [name + "_q"]))
        back = [name + "_q", name + "_scale", name + "_zero"]
        nodes.append(helper.make_node("DequantizeLinear", back, [name + "_dq"]))
        return name + "_dq"

    for n, w in weights.items():
        initializers.append(numpy_helper.from_array(w.astype(np.float32), n))
    nodes.append(helper.make_node("MatMul", [pair("x", "x"), pair("w1", "w1")], ["h"]))
    nodes.append(helper.make_node("Relu", ["h"], ["r"]))
    nodes.append(helper.make_node("MatMul", [pair("r", "r"), pair("w2", "w2")], ["y"]))
    graph = helper.make_graph(nodes, "qat", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])], initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return ot.load(made.SerializeToString())


@pytest.mark.parametrize("lowered", [False, True])
def test_quantisation_aware_training(lowered, tmp_path):
    model = qat_model()
    assert {w["name"] for w in model.weights() if w["role"] == "trained"} == {"w1", "w2"}
    random = np.random.default_rng(1)
    x = random.normal(size=(64, 4)).astype(np.float32)
    y = (x @ random.normal(size=(4, 3))).astype(np.float32)
    t = ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.Adam(lr=0.02), lowered=lowered, strict=True))
    losses = [t.step({"x": x, "label": y}).loss for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0], losses[::10]
    t.export(str(tmp_path / "q.onnx"))
    trained = ot.load(str(tmp_path / "q.onnx"))
    np.testing.assert_allclose(ot.Session(trained).run({"x": x})["y"], reference(trained, {"x": x})[0], atol=0.05)


def test_layers_of_integers_are_said():
    text = HEAD + """g (float[N,2] x) => (float[N,2] y) <float[2,2] w1 = {1, 2, 3, 4}, int8[2,2] w2 = {1, 2, 3, 4},
    float w2_scale = {0.02}, float[2] b = {0.5, 1}> {
      h = MatMul(x, w1)  q, s, z = DynamicQuantizeLinear(h)  i = MatMulInteger(q, w2, z)  f = Cast<to=1>(i)
      k = Mul(s, w2_scale)  m = Mul(f, k)  y = Add(m, b) }"""
    found = {w["name"]: w for w in ot.parse(text).weights()}
    assert found["w1"]["role"] == "no gradient" and "DynamicQuantizeLinear" in found["w1"]["node"]
    assert found["w2"]["role"] == "integers" and found["w2_scale"]["role"] == "constant"
    with pytest.raises(ot.ModelError, match="w1"):
        ot.prepare(ot.parse(text), loss="mse", strict=True)


@pytest.mark.parametrize("optimizer", ["sgd", ot.SGD(lr=0.1, momentum=0.5), "adam", "rmsprop"])
def test_an_infinite_gradient_names_the_parameter_where_sizes_follow_from_data(optimizer):
    model = ot.parse(HEAD + """g (float[N,4] x, bool[N] c) => (float[M,2] y)
    <float[4,2] m = {1,2,3,4,5,6,7,8}, float[4] w = {0,2,3,4}, float e = {0.85}> {
      rows = Compress<axis=0>(x, c)
      [window] p = Pow(w, e)
      q = Mul(rows, p)
      y = MatMul(q, m)
    }""")
    trained = ot.prepare(model, loss=ot.losses.MSE(output="y"), optimizer=optimizer, label="t", only=["w", "m"])
    feeds = {"x": np.ones((3, 4), np.float32), "c": np.array([1, 0, 1], bool), "t": np.zeros((2, 2), np.float32)}
    with pytest.raises(ot.DivergedError, match=r"the gradient of 'w'[^$]*gradient of node 'window'"):
        ot.Trainer(trained).step(feeds)


def test_a_model_without_weights_is_said_to_have_none():
    model = ot.parse(HEAD + "g (float[N,4] x) => (float[N,4] y) { s = Shape(x) z = Reshape(x, s) y = Sigmoid(z) }")
    with pytest.raises(ot.Error, match="has no weights") as e:
        ot.prepare(model, loss="mse")
    assert "Shape" not in str(e.value)


def test_what_stops_the_gradient_is_named_with_its_weights_and_nothing_else():
    model = ot.parse(HEAD + """g (float[N,4] x) => (float[N,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      s = Shape(x)
      z = Reshape(x, s)
      h = MatMul(z, w)
      [rounds] y = Round(h)
    }""")
    with pytest.raises(ot.Error, match="OT1203") as e:
        ot.prepare(model, loss="mse")
    assert "weight 'w' does not train" in str(e.value) and "'rounds'" in str(e.value)
    assert "Shape" not in str(e.value)


def branch(name, factor, with_norm=False):
    """A branch of an If whose weights are in nodes Constant, as spox and PyTorch's inlining write them."""
    used = {"w": np.array([[1, 2], [3, 4]]) * factor}
    if with_norm:
        used |= {"s": np.ones(2), "b": np.zeros(2), "m": np.zeros(2), "v": np.ones(2)}
    nodes = [helper.make_node("Constant", [], [name + n], value=numpy_helper.from_array(v.astype(np.float32)))
             for n, v in used.items()]
    nodes.append(helper.make_node("MatMul", ["x", name + "w"], [name + "h"]))
    if with_norm:
        nodes.append(helper.make_node("BatchNormalization", [name + n for n in "hsbmv"], [name + "y"]))
    out = name + ("y" if with_norm else "h")
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["N", 2])])


def two_branches(with_norm=False):
    node = helper.make_node("If", ["c"], ["y"], "choice", then_branch=branch("yes_", 1, with_norm),
                            else_branch=branch("no_", 2, with_norm))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2]),
                                            helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return ot.load(proto.SerializeToString())


def test_weights_in_constants_of_branches_train_and_reach_the_export(tmp_path):
    model = two_branches()
    assert [w["name"] for w in model.weights() if w["role"] == "trained"] == ["no_w", "yes_w"]
    t = ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.01)))
    x = np.array([[1, 2], [0.5, -1]], np.float32)
    before = {n: t.state[n].copy() for n in ("yes_w", "no_w")}
    losses = [t.step({"x": x, "c": np.array(True), "label": x}).loss for _ in range(3)]
    assert losses[2] < losses[0]
    assert not np.array_equal(before["yes_w"], t.state["yes_w"]) and np.array_equal(before["no_w"], t.state["no_w"])
    t.export(tmp_path / "trained.onnx")
    for c, name in ((True, "yes_w"), (False, "no_w")):
        got = reference(ot.load(str(tmp_path / "trained.onnx")), {"x": x, "c": np.array(c)})[0]
        np.testing.assert_allclose(got, x @ t.state[name], rtol=1e-5)


def test_a_weight_that_a_branch_gives_is_exported_as_a_result_of_a_node(tmp_path):
    """onnxruntime refuses a branch whose result is a value from outside of it."""
    def branch(name, nodes, weights):
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])
        return helper.make_graph(nodes, name, [], [result], weights)

    then = branch("given", [], [numpy_helper.from_array(np.ones(3, np.float32), "given")])
    other = branch("summed", [helper.make_node("ReduceSum", ["p", "first"], ["summed"], keepdims=0)], [])
    g = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["p"]), helper.make_node("If", ["empty"], ["r"], then_branch=then,
                                                                     else_branch=other),
         helper.make_node("Add", ["p", "r"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
         helper.make_tensor_value_info("empty", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(np.full(3, 0.5, np.float32), "w"),
         numpy_helper.from_array(np.array([0], np.int64), "first")])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    t = ot.Trainer(ot.prepare(ot.load(m.SerializeToString()), loss="mse", optimizer=ot.SGD(lr=0.1)))
    for empty in (False, True):
        t.step({"x": np.ones((2, 3), np.float32), "empty": np.array(empty), "label": np.zeros((2, 3), np.float32)})
    path = tmp_path / "t.onnx"
    t.export(str(path))
    for empty in (False, True):
        feeds = {"x": np.ones((2, 3), np.float32), "empty": np.array(empty)}
        np.testing.assert_allclose(reference(ot.load(str(path)), feeds)[0], ot.Session(str(path)).run(feeds)["y"])


def test_the_fix_for_normalization_in_a_branch_works_as_printed():
    model, x = two_branches(with_norm=True), np.ones((3, 2), np.float32)
    frozen = []
    for _ in range(2):  # one branch after the other
        with pytest.raises(ot.Error) as e:
            ot.prepare(model, loss="mse", freeze=frozen)
        assert e.value.code == "OT1248"
        frozen += eval(e.value.hint.partition("freeze=")[2].partition(", or ")[0])
    ot.Trainer(ot.prepare(model, loss="mse", freeze=frozen)).step({"x": x, "c": np.array(True), "label": x})


def test_a_running_statistic_that_float16_cannot_hold_is_named():
    model = ot.parse(HEAD + """g (float16[N,2] x) => (float16[N,2] y) <float16[2] s = {1, 1}, float16[2] b = {0, 0},
    float16[2] mean = {0, 0}, float16[2] var = {1, 1}> { [norm] y = BatchNormalization(x, s, b, mean, var) }""")
    t = ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.1)))
    x = np.array([[1000, 1], [-1000, 2], [3000, 3]], np.float16)  # a variance of 4e6
    with pytest.raises(ot.DivergedError, match="the new value of 'var'"):
        t.step({"x": x, "label": np.zeros((3, 2), np.float16)})


@pytest.mark.parametrize("declared", [[], None])
def test_a_state_that_becomes_one_element_of_a_number(declared):
    """Decoders begin with a scalar and go on with [1]: the declared rank 0 is no proof of a shape."""
    floats, make = TensorProto.FLOAT, helper.make_node

    def branch(name, node):
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], floats, declared)])

    def value(name, kind, shape=()):
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [make("Identity", ["c"], ["c2"]), make("Greater", ["i", "zero"], ["later"]),
         make("If", ["later"], ["t"], then_branch=branch("later", make("Reshape", ["s", "one"], ["a"])),
              else_branch=branch("first", make("Identity", ["s"], ["b"]))), make("Mul", ["t", "half"], ["s2"])],
        "body", [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("s", floats, declared)],
        [value("c2", TensorProto.BOOL), value("s2", floats, declared)])
    constants = {"trips": np.int64(3), "yes": np.array(True), "s0": np.float32(0.5), "zero": np.int64(0),
                 "one": np.array([1], np.int64), "half": np.float32(0.5), "w": np.array([2, 3], np.float32)}
    graph = helper.make_graph(
        [make("Loop", ["trips", "yes", "s0"], ["r"], "again", body=body), make("Mul", ["r", "w"], ["rw"]),
         make("Mul", ["x", "rw"], ["y"])], "g", [value("x", floats, ["N", 2])], [value("y", floats, ["N", 2])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = ot.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    x = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_allclose(ot.Session(model).run({"x": x})["y"], reference(model, {"x": x})[0])
    got = ot.gradients(model, {"x": x}, of="y", wrt=["s0", "half", "w", "x"])
    np.testing.assert_allclose(got["s0"], 0.125 * (4 * 2 + 6 * 3))
    np.testing.assert_allclose(got["half"], 0.5 * 3 * 0.25 * (4 * 2 + 6 * 3))
    np.testing.assert_allclose(got["w"], 0.0625 * np.array([4, 6]))
    np.testing.assert_allclose(got["x"], 0.0625 * np.tile([2, 3], (2, 1)))
    trainer = ot.Trainer(ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.01)))
    losses = [trainer.step({"x": x, "label": 0 * x}).loss for _ in range(3)]
    assert losses[2] < losses[0]
