"""Means, variances and losses over more elements than the data's type can count (65504 for float16, 256 for bfloat16,
2^24 for float32): gradients are right against float64, of the operators and of their forms in standard operators."""

import ml_dtypes
import numpy as np
import onnx
import pytest

import onnxtrain as ot

TYPES = {"float16": (np.float16, 2e-3), "bfloat16": (ml_dtypes.bfloat16, 1.6e-2), "float": (np.float32, 2e-5)}
COUNTS = [70_000, (1 << 24) + 8]
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'

# name: (text with % for the type and @ for the count, shape of x, output whose gradient is asked for)
CASES = {
    "mean": ("g (%[@] x) => (% y) { y = ReduceMean<keepdims=0>(x) }", "@", "y"),
    "mean, open": ("g (%[M] x) => (% y) { y = ReduceMean<keepdims=0>(x) }", "@", "y"),
    "variance": ("g (%[@] x) => (% y) { m = ReduceMean<keepdims=1>(x)  c = Sub(x, m)  s = Mul(c, c) "
                 "y = ReduceMean<keepdims=0>(s) }", "@", "y"),
    "GlobalAveragePool": ("g (%[1,1,@] x) => (%[1,1,1] y) { y = GlobalAveragePool(x) }", "1,1,@", "y"),
    "AveragePool": ("g (%[1,1,@] x) => (%[1,1,1] y) { y = AveragePool<kernel_shape=[@]>(x) }", "1,1,@", "y"),
    "LayerNormalization": ("g (%[1,@] x, %[@] w, %[@] b) => (%[1,@] y) { y = LayerNormalization(x, w, b) }",
                           "1,@", "y"),
    "InstanceNormalization": ("g (%[1,1,@] x, %[1] w, %[1] b) => (%[1,1,@] y) { y = InstanceNormalization(x, w, b) }",
                              "1,1,@", "y"),
    "GroupNormalization": ("g (%[1,2,@] x, %[2] w, %[2] b) => (%[1,2,@] y) "
                           "{ y = GroupNormalization<num_groups=1>(x, w, b) }", "1,2,@", "y"),
    "BatchNormalization": ("g (%[1,1,@] x, %[1] w, %[1] b, %[1] m, %[1] v) => (%[1,1,@] y, %[1] rm, %[1] rv) "
                           "{ y, rm, rv = BatchNormalization<training_mode=1>(x, w, b, m, v) }", "1,1,@", "y"),
    "running variance": ("g (%[1,1,@] x, %[1] w, %[1] b, %[1] m, %[1] v) => (%[1,1,@] y, %[1] rm, %[1] rv) "
                         "{ y, rm, rv = BatchNormalization<training_mode=1>(x, w, b, m, v) }", "1,1,@", "rv"),
    "MeanVarianceNormalization": ("g (%[1,1,@] x) => (%[1,1,@] y) { y = MeanVarianceNormalization<axes=[0,2]>(x) }",
                                  "1,1,@", "y"),
    "cross entropy": ("g (%[@,2] x, int64[@] labels) => (% y) { y = SoftmaxCrossEntropyLoss(x, labels) }", "@,2", "y"),
    "nll": ("g (%[@,2] x, int64[@] labels) => (% y) { y = NegativeLogLikelihoodLoss(x, labels) }", "@,2", "y"),
}
HALVES = {"GroupNormalization"}  # the count is that of one of two channels


def feeds_for(head, shape, count, dtype):
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, [count if s == "@" else int(s) for s in shape.split(",")]).astype(np.float32)
    feeds = {"x": x.astype(dtype)}
    for name in ("w", "b", "m", "v"):
        if f" {name}," in head or f" {name})" in head:
            size = count if f"%[@] {name}" in head else 2 if f"%[2] {name}" in head else 1
            feeds[name] = np.full(size, {"w": 1.5, "b": 0.25, "m": 0.0, "v": 1.0}[name]).astype(dtype)
    if "labels" in head:
        feeds["labels"] = random.integers(0, 2, count)
    return feeds


def compare(case, kind, count):
    text, shape, of = CASES[case]
    given = text[:text.index("=>")]
    text = HEAD + text.replace("@", str(count))
    dtype, tolerance = TYPES[kind]
    narrow = feeds_for(given, shape, count, dtype)
    wide = {n: v if v.dtype.kind == "i" else v.astype(np.float64) for n, v in narrow.items()}
    # a cotangent that gives gradients of ordinary size: of a mean, as large as the type allows
    value = ot.Session(ot.parse(text.replace("%", "double"))).run(wide)[of]
    size = min(count / 8, 30_000.0) if value.size <= 2 else 1.0
    cotangent = (size * np.random.default_rng(4).uniform(0.5, 1, value.shape)).astype(dtype)
    want = ot.gradients(ot.parse(text.replace("%", "double")), wide, of=of, wrt=["x"],
                        cotangent=cotangent.astype(np.float64))["x"]
    got = ot.gradients(ot.parse(text.replace("%", kind)), narrow, of=of, wrt=["x"], cotangent=cotangent)["x"]
    assert np.abs(want).max() > 1e-5, "the case says nothing: its gradient is too small"
    limit = tolerance * np.abs(want).max() + 6e-8  # the step of float16's smallest numbers
    worst = np.abs(got.astype(np.float64) - want).max()
    assert worst <= limit, f"{case} {kind} {count}: off by {worst:.3g}, allowed {limit:.3g}"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_more_than_float16_counts(case, kind):
    compare(case, kind, COUNTS[0])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_more_than_float32_counts(case, kind):
    compare(case, kind, COUNTS[1] // 2 if case in HALVES else COUNTS[1])


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_training_moves(kind, lowered):
    """A mean over 131072 outputs: weights and the running variance of a BatchNormalization change as in double."""
    rows = 1 << 17

    def trained(kind, dtype):
        text = HEAD + """g (float[B,2] x) => (float[B,1] y)
        <float[2,1] w = {0.5, -0.25}, float[1] c = {0.125}, float[1] s = {1}, float[1] b = {0}, float[1] m = {0},
         float[1] v = {1}> { h = Gemm(x, w, c)  y = BatchNormalization(h, s, b, m, v) }"""
        proto = onnx.load_from_string(ot.parse(text).proto())
        code = onnx.TensorProto.DataType.Value(kind.upper())
        for value in (*proto.graph.input, *proto.graph.output):
            value.type.tensor_type.elem_type = code
        for k, i in enumerate(proto.graph.initializer):
            array = onnx.numpy_helper.to_array(i).astype(dtype)
            made = onnx.helper.make_tensor(i.name, code, i.dims, array.tobytes(), raw=True)
            proto.graph.initializer[k].CopyFrom(made)
        del proto.graph.value_info[:]
        model = ot.prepare(ot.load(proto.SerializeToString()), loss="mse", optimizer=ot.SGD(lr=0.5), lowered=lowered,
                           batch=rows if lowered else None)
        t = ot.Trainer(model)
        x = np.random.default_rng(0).uniform(-1, 1, (rows, 2)).astype(np.float16).astype(dtype)
        t.step({"x": x, "label": (2 * x[:, :1] + 1).astype(dtype)})
        return {n: np.asarray(t.state[n], np.float64) for n in ("w", "c", "s", "b", "m", "v")}

    got, want = trained(kind, TYPES[kind][0]), trained("double", np.float64)
    for name in got:
        assert np.isfinite(got[name]).all(), name
        np.testing.assert_allclose(got[name], want[name], rtol=2 * TYPES[kind][1], atol=TYPES[kind][1], err_msg=name)
    assert abs(got["b"] - 0).max() > 0.1, "the bias did not move"


@pytest.mark.parametrize("case", ["mean", "variance", "GlobalAveragePool", "AveragePool"])
def test_values_of_large_means(case):
    """Not only their gradients: float32 sums of 2^24 elements, beside float64."""
    text, shape, of = CASES[case]
    text = HEAD + text.replace("@", str(COUNTS[1]))
    x = np.random.default_rng(7).uniform(0, 1, [COUNTS[1] if s == "@" else 1 for s in shape.split(",")])
    x = x.astype(np.float32)
    want = ot.Session(ot.parse(text.replace("%", "double"))).run({"x": x.astype(np.float64)})[of]
    got = ot.Session(ot.parse(text.replace("%", "float"))).run({"x": x})[of]
    np.testing.assert_allclose(got, want, rtol=TYPES["float"][1])
