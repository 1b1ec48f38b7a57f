"""Quantized operators of com.microsoft as functions of standard operators: the numbers of ONNX Runtime."""

import numpy as np
import pytest

import onnxtrain as ot

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
RANDOM = np.random.RandomState(7)


def model(op, inputs, outputs, **attrs):
    """One node; `inputs` are arrays or None, the first of them fed, the others initializers."""
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    fed = next(k for k, v in enumerate(inputs) if v is not None and np.asarray(v).ndim > 1)
    kinds = {n: onnx.helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for n, v in zip(names, inputs) if n}
    given = [helper.make_tensor_value_info(names[fed], kinds[names[fed]], [f"d{k}" for k in range(inputs[fed].ndim)])]
    stored = [onnx.numpy_helper.from_array(np.asarray(v), n) for k, (n, v) in enumerate(zip(names, inputs))
              if n and k != fed]
    results = [f"o{k}" for k in range(len(outputs))]
    node = helper.make_node(op, names, results, domain="com.microsoft", name="node", **attrs)
    outs = [helper.make_tensor_value_info(f"o{k}", t, None) for k, t in enumerate(outputs)]
    m = helper.make_model(helper.make_graph([node], "g", given, outs, stored), ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    return m, {names[fed]: np.asarray(inputs[fed])}


def agree(op, inputs, outputs=(2,), steps=1, rtol=1e-4, atol=1e-5, **attrs):
    """Integers may be one apart where ONNX Runtime rounds in other steps."""
    m, feeds = model(op, inputs, outputs, **attrs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # two threads would quantize the rows of an LSTM's state apart
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = ot.Session(m.SerializeToString()).run(feeds)
    for o, want in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        assert got[o.name].dtype == want.dtype and got[o.name].shape == want.shape
        if want.dtype.kind in "iu":
            assert np.abs(got[o.name].astype(int) - want.astype(int)).max() <= steps
        else:
            np.testing.assert_allclose(got[o.name], want, rtol=rtol, atol=atol)
    assert ot.check(m.SerializeToString()) == []


def bytes_of(*shape, kind=np.uint8):
    low, high = (0, 255) if kind == np.uint8 else (-127, 127)
    return RANDOM.randint(low, high, shape).astype(kind)


def scale(v):
    return np.array(v, np.float32)


def zero(v, kind=np.uint8):
    return np.array(v, kind)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("kind,code", [(np.uint8, 2), (np.int8, 3)])
def test_binary(op, kind, code):
    z = 120 if kind == np.uint8 else 3
    agree(op, [bytes_of(2, 3, 4, kind=kind), scale(0.1), zero(z, kind), bytes_of(4, kind=kind), scale(0.05),
               zero(z - 2, kind), scale(0.5), zero(z, kind)], (code,))


@pytest.mark.parametrize("op,attrs", [("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSigmoid", {}),
                                      ("QLinearGlobalAveragePool", {"channels_last": 0}),
                                      ("QLinearGlobalAveragePool", {"channels_last": 1}),
                                      ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 1]}),
                                      ("QLinearSoftmax", {"axis": -1, "opset": 13}),
                                      ("QLinearSoftmax", {"axis": 2, "opset": 11})])
def test_unary(op, attrs):
    small = scale(1 / 256) if op in ("QLinearSigmoid", "QLinearSoftmax") else scale(0.04)
    end = zero(0) if op in ("QLinearSigmoid", "QLinearSoftmax") else zero(110)
    agree(op, [bytes_of(2, 3, 4, 5), scale(0.03), zero(128), small, end], **attrs)


@pytest.mark.parametrize("kind, code", [(np.uint8, 2), (np.int8, 3), (np.uint16, 4), (np.int16, 5)])
def test_pairs_of_16_bits(kind, code):
    numbers = RANDOM.standard_normal((3, 4)).astype(np.float32)
    agree("QuantizeLinear", [numbers, scale(0.01), zero(100, kind)], (code,))
    wide = RANDOM.randint(np.iinfo(kind).min, np.iinfo(kind).max, (3, 4)).astype(kind)
    agree("DequantizeLinear", [wide, scale(0.01), zero(7, kind)], (1,))
    by_row = np.array([0.01, 0.02, 0.5], np.float32)
    agree("DequantizeLinear", [wide, by_row, np.array([1, 2, 3], kind)], (1,), axis=0)


def test_concat():
    agree("QLinearConcat", [scale(0.1), zero(100), bytes_of(2, 3), scale(0.05), zero(120), bytes_of(2, 4), scale(0.2),
                            zero(90)], axis=1)


def test_where():
    agree("QLinearWhere", [RANDOM.rand(2, 4) > 0.5, bytes_of(2, 4), scale(0.1), zero(100), bytes_of(4), scale(0.05),
                           zero(120), scale(0.2), zero(90)])


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gemm(columns, bias):
    s = RANDOM.uniform(0.01, 0.02, 5).astype(np.float32) if columns else scale(0.01)
    z = np.zeros(5, np.int8) if columns else zero(0, np.int8)
    c = RANDOM.randint(-500, 500, 5).astype(np.int32) if bias else None
    a = [bytes_of(3, 4), scale(0.02), zero(128)]
    agree("QGemm", [*a, bytes_of(4, 5, kind=np.int8), s, z, c, scale(0.05), zero(100)], alpha=1.0)
    agree("QGemm", [*a, bytes_of(5, 4, kind=np.int8), s, z, c], (1,), transB=1, alpha=0.5)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("width,block", [(32, 16), (40, 16), (64, 32)])
def test_matmul_of_four_bits(width, block, zeros):
    rows, blocks = 6, -(-width // block)
    z = bytes_of(rows * -(-blocks // 2)) if zeros else None
    inputs = [RANDOM.randn(2, 3, width).astype(np.float32), bytes_of(rows, blocks, block // 2),
              RANDOM.uniform(0.01, 0.1, rows * blocks).astype(np.float32), z]
    agree("MatMulNBits", inputs, (1,), K=width, N=rows, bits=4, block_size=block)
    m, feeds = model("MatMulNBits", inputs, (1,), K=width, N=rows, bits=4, block_size=block)
    slopes = ot.gradients(m.SerializeToString(), feeds, wrt=["i0"])["i0"]
    moved = {"i0": feeds["i0"] + np.float32(0.5)}
    session = ot.Session(m.SerializeToString())
    change = session.run(moved)["o0"].astype(np.float64).sum() - session.run(feeds)["o0"].astype(np.float64).sum()
    np.testing.assert_allclose(0.5 * slopes.astype(np.float64).sum(), change, rtol=1e-3)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("bias", [False, True])
def test_lstm(direction, bias):
    dirs, hidden, width = 1 + (direction == "bidirectional"), 6, 5
    b = RANDOM.randn(dirs, 8 * hidden).astype(np.float32) if bias else None
    agree("DynamicQuantizeLSTM", [
        RANDOM.randn(4, 2, width).astype(np.float32), bytes_of(dirs, width, 4 * hidden, kind=np.int8),
        bytes_of(dirs, hidden, 4 * hidden, kind=np.int8), b, None, RANDOM.randn(dirs, 2, hidden).astype(np.float32),
        RANDOM.randn(dirs, 2, hidden).astype(np.float32), None, np.full(dirs, 0.01, np.float32),
        np.zeros(dirs, np.int8), np.full(dirs, 0.01, np.float32), np.zeros(dirs, np.int8)], (1, 1, 1), rtol=1e-3,
        atol=1e-3, hidden_size=hidden, direction=direction)


@pytest.mark.parametrize("op,inputs,attrs,words", [
    ("MatMulNBits", [RANDOM.randn(2, 32).astype(np.float32), bytes_of(6, 2, 8), np.ones(12, np.float32), None,
                     np.arange(32).astype(np.int32)], {"K": 32, "N": 6, "bits": 4, "block_size": 16}, "g_idx"),
    ("QLinearAveragePool", [bytes_of(2, 4, 4, 3), scale(0.1), zero(1), scale(0.1), zero(1)],
     {"kernel_shape": [2, 2], "channels_last": 1}, "channels_last")])
def test_what_is_not_known_is_said(op, inputs, attrs, words):
    m, _ = model(op, inputs, (1 if op == "MatMulNBits" else 2,), **attrs)
    with pytest.raises(ot.ModelError, match="OT1101") as e:
        ot.Session(m.SerializeToString())
    assert "'node'" in str(e.value) and words in str(e.value) + e.value.hint
