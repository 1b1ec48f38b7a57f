"""Operators of com.microsoft as functions of standard operators: the numbers of ONNX Runtime, and gradients."""

import numpy as np
import pytest

import onnxtrain as ot

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
TYPES = {np.dtype(k): v for k, v in (("float32", 1), ("uint8", 2), ("int8", 3), ("int32", 6), ("int64", 7))}


def model(op, inputs, outputs=1, domain="com.microsoft", ranks=True, **attrs):
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    given = {n: np.asarray(v) for n, v in zip(names, inputs) if n}
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)] if isinstance(outputs, int) else outputs,
                            domain=domain, name="the_node", **attrs)
    def shape(name, v):
        if not ranks:
            return None
        return list(v.shape) if op.startswith("Embed") else [f"d{name}{j}" for j in range(v.ndim)]

    infos = [helper.make_tensor_value_info(n, TYPES[v.dtype], shape(n, v)) for n, v in given.items()]
    outs = [helper.make_tensor_value_info(o, 6 if op == "EmbedLayerNormalization" and o == "o1" else 1, None)
            for o in node.output if o]
    graph = helper.make_graph([node], "g", infos, outs)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                          ir_version=8)
    return m, given


def agree(op, inputs, outputs=1, atol=1e-5, **attrs):
    m, given = model(op, inputs, outputs, **attrs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(m.SerializeToString(), options)
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(names, given)))
    got = ot.Session(m.SerializeToString()).run(given)
    for name in names:
        assert got[name].dtype == want[name].dtype and got[name].shape == want[name].shape
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=atol)
    assert ot.check(m.SerializeToString()) == []


def some(*shape, seed=0):
    return np.random.RandomState(seed + len(shape)).randn(*shape).astype(np.float32)


@pytest.mark.parametrize("activation,params", [("Relu", None), ("Tanh", None), ("Sigmoid", None),
                                               ("LeakyRelu", [0.2]), ("Clip", [-0.3, 0.4]),
                                               ("HardSigmoid", [0.3, 0.4])])
@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_fused_conv(activation, params, inputs):
    every = [some(2, 3, 6, 5), some(4, 3, 3, 3), some(4), some(2, 4, 6, 5, seed=9)][:inputs]
    attrs = {"activation_params": params} if params else {}
    agree("FusedConv", every, activation=activation, pads=[1, 1, 1, 1], kernel_shape=[3, 3], **attrs)


def test_fused_conv_with_strides_and_groups():
    agree("FusedConv", [some(1, 4, 9), some(6, 2, 3), some(6)], activation="Relu", strides=[2], dilations=[2], group=2)


@pytest.mark.parametrize("a,b,attrs", [
    ((3, 4), (4, 5), {}), ((4, 3), (4, 5), {"transA": 1, "alpha": 0.5}), ((2, 3, 4), (2, 5, 4), {"transB": 1}),
    ((2, 2, 4, 3), (5, 4), {"transA": 1, "transB": 1, "alpha": 2.0}), ((4,), (4, 2), {})])
def test_fused_matmul(a, b, attrs):
    agree("FusedMatMul", [some(*a), some(*b, seed=5)], **attrs)


def test_fused_gemm():
    agree("FusedGemm", [some(3, 4), some(5, 4), some(5)], transB=1, alpha=0.5, beta=2.0, activation="LeakyRelu",
          activation_alpha=0.1)


@pytest.mark.parametrize("op,inputs", [("Gelu", 1), ("BiasGelu", 2), ("FastGelu", 1), ("FastGelu", 2),
                                       ("QuickGelu", 1)])
def test_gelus(op, inputs):
    agree(op, [3 * some(2, 5, 8), some(8)][:inputs], **({"alpha": 1.3} if op == "QuickGelu" else {}))


@pytest.mark.parametrize("beta", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_skip_layer_normalization(beta, bias):
    x, s = some(2, 3, 8), some(2, 3, 8, seed=4)
    inputs = [x, s, some(8), some(8, seed=2) if beta else None, some(8, seed=3) if bias else None]
    agree("SkipLayerNormalization", inputs, outputs=["o0", "", "", "o3"], epsilon=1e-5)
    inputs = [x, s, some(8)] + ([some(8, seed=3)] if bias else [])
    agree("SkipSimplifiedLayerNormalization", inputs, outputs=["o0", "", "", "o3"], epsilon=1e-6)


def test_simplified_layer_normalization():
    agree("SimplifiedLayerNormalization", [some(2, 3, 8), some(8)], domain="", axis=-1, epsilon=1e-6)


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("positions", [True, False])
def test_embed_layer_normalization(segments, mask, positions):
    ids = np.array([[1, 4, 2], [0, 3, 3]], np.int32)
    inputs = [ids, ids % 2 if segments else None, some(5, 8), some(6, 8, seed=1), some(2, 8, seed=2) if segments else
              None, some(8), some(8, seed=3), np.array([[1, 1, 0], [1, 1, 1]], np.int32) if mask else None,
              np.array([[2, 1, 0], [3, 3, 1]], np.int32) if positions else None]
    while inputs[-1] is None:
        inputs.pop()
    agree("EmbedLayerNormalization", inputs, outputs=2, epsilon=1e-6)


MASKS = {"none": None, "lengths": np.array([2, 4], np.int32), "raw": np.array([[1, 1, 0, 1], [1, 0, 1, 1]], np.int32),
         "full": np.random.RandomState(0).randint(0, 2, (2, 4, 4)).astype(np.int32) | np.eye(4, dtype=np.int32)}


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("attrs", [{}, {"unidirectional": 1}, {"scale": 0.3}])
def test_attention(mask, attrs):
    inputs = [some(2, 4, 8), 0.5 * some(8, 24), some(24)]
    agree("Attention", inputs + ([MASKS[mask]] if MASKS[mask] is not None else []), num_heads=2, **attrs)


def test_attention_with_other_sizes_and_bias():
    agree("Attention", [some(2, 4, 6), some(6, 28), some(28)], num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    agree("Attention", [some(2, 4, 8), some(8, 24), some(24), None, None, some(2, 2, 4, 4, seed=7)], num_heads=2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", ["none", "lengths", "raw"])
def test_multi_head_attention(bias, mask):
    inputs = [some(2, 3, 8), some(2, 4, 8, seed=2), some(2, 4, 12, seed=3), some(28) if bias else None, MASKS[mask]]
    while inputs[-1] is None:
        inputs.pop()
    agree("MultiHeadAttention", inputs, num_heads=2)


def test_multi_head_attention_over_keys_by_head():
    agree("MultiHeadAttention", [some(2, 3, 8), some(2, 2, 5, 4), some(2, 2, 5, 4, seed=3)], num_heads=2)
    agree("MultiHeadAttention", [some(2, 3, 8), some(2, 3, 8, seed=1), some(2, 3, 8, seed=2), None, None,
                                 some(1, 2, 3, 3)], num_heads=2, unidirectional=1)


@pytest.mark.parametrize("causal", [0, 1])
def test_keys_and_values_of_the_past(causal):
    past = some(2, 2, 2, 3, 4, seed=4)
    agree("Attention", [some(2, 4, 8), some(8, 24), some(24), None, past], 2, num_heads=2, unidirectional=causal)
    now = [some(2, 4, 8), some(2, 4, 8, seed=1), some(2, 4, 8, seed=2)]
    agree("MultiHeadAttention", [*now, None, None, None, past[0], past[1]], 3, num_heads=2, unidirectional=causal)


def test_quantized_matrix_multiplications():
    rng = np.random.RandomState(0)
    b = rng.randint(-100, 100, (6, 4)).astype(np.int8)
    scale, zero = np.float32([0.02]), np.int8([3])
    agree("DynamicQuantizeMatMul", [some(3, 6), b, scale[0], zero[0], some(4)], atol=1e-4)
    agree("DynamicQuantizeMatMul", [some(3, 6), b, scale[0]], atol=1e-4)
    a = rng.randint(0, 200, (3, 6)).astype(np.uint8)
    agree("MatMulIntegerToFloat", [a, b, np.float32(0.1), scale[0], np.uint8(7), zero[0], some(4)], atol=1e-4)


@pytest.mark.parametrize("op,inputs,attrs", [
    ("FusedConv", [some(1, 2, 5, 5), some(3, 2, 3, 3)], {"activation": "Tanh"}),
    ("FusedMatMul", [some(4, 3), some(4, 5)], {"transA": 1, "alpha": 0.5}), ("BiasGelu", [some(2, 4), some(4)], {}),
    ("FastGelu", [some(2, 4)], {}), ("QuickGelu", [some(2, 4)], {}),
    ("SkipLayerNormalization", [some(2, 4), some(2, 4, seed=1), some(4)], {}),
    ("Attention", [some(1, 3, 4), some(4, 12), some(12)], {"num_heads": 2}),
    ("MultiHeadAttention", [some(1, 3, 4), some(1, 3, 4, seed=1), some(1, 3, 4, seed=2)], {"num_heads": 2})])
def test_gradients(op, inputs, attrs):
    m, given = model(op, inputs, **attrs)
    session = ot.Session(m.SerializeToString())
    cotangent = np.random.RandomState(3).randn(*session.run(given)["o0"].shape).astype(np.float32)
    gradients = ot.gradients(m.SerializeToString(), given, of="o0", wrt=list(given), cotangent=cotangent)
    rng = np.random.RandomState(4)
    for name, value in given.items():
        direction = rng.randn(*value.shape).astype(np.float32)
        step = np.float32(1e-2)
        up, down = (session.run(given | {name: value + s * direction})["o0"] for s in (step, -step))
        slope = np.sum((up - down).astype(np.float64) * cotangent) / (2 * step)
        assert np.sum(gradients[name] * direction) == pytest.approx(slope, rel=2e-2, abs=2e-2)


def test_a_file_with_them_trains_and_keeps_them(tmp_path):
    rng = np.random.RandomState(0)
    weights = {"w": rng.randn(8, 6) * 0.3, "b": rng.randn(8) * 0.1, "v": rng.randn(8, 3) * 0.3}
    nodes = [helper.make_node("FusedMatMul", ["x", "w"], ["h"], domain="com.microsoft", transB=1, name="first"),
             helper.make_node("BiasGelu", ["h", "b"], ["a"], domain="com.microsoft", name="second"),
             helper.make_node("MatMul", ["a", "v"], ["y"], name="third")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 6])],
                              [helper.make_tensor_value_info("y", 1, ["N", 3])],
                              [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                          ir_version=8)
    t = ot.Trainer(ot.prepare(m.SerializeToString(), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2)))
    x, y = rng.randn(16, 6).astype(np.float32), rng.randint(0, 3, 16)
    losses = [t.step({"x": x, "label": y}).loss for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]
    t.export(tmp_path / "trained.onnx")
    kept = onnx.load(tmp_path / "trained.onnx")
    assert [n.op_type for n in kept.graph.node] == ["FusedMatMul", "BiasGelu", "MatMul"]
    session = onnxruntime.InferenceSession(str(tmp_path / "trained.onnx"))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], ot.Session(tmp_path / "trained.onnx").run({"x": x})["y"],
                               atol=1e-5)
    t.save(tmp_path / "t.train.onnx")
    assert ot.Trainer(tmp_path / "t.train.onnx").step({"x": x, "label": y}).loss < losses[-1]
    report = ot.export_step(tmp_path / "t.train.onnx", tmp_path / "step.onnx")
    assert report["sections"][0]["nodes"] > 10


def test_what_has_no_body_is_refused_by_name_and_reason():
    m, _ = model("Attention", [some(1, 3, 4), some(4, 12), some(12)], num_heads=2, do_rotary=1)
    with pytest.raises(ot.ModelError, match="(?s)com.microsoft.Attention.*'the_node'.*rotary"):
        ot.Session(m.SerializeToString())
    m, _ = model("FusedMatMul", [some(4, 3), some(4, 5)], transA=1, ranks=False)
    with pytest.raises(ot.ModelError, match="rank"):
        ot.Session(m.SerializeToString())
