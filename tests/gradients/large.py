"""Means, variances, norms, losses and sums over more elements than the data's type can count (65504 for float16, 256
for bfloat16, 2^24 for float32): gradients in each type beside those in float64 of the same numbers."""

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, parser

import onnxtrain as ot

TYPES = {"float16": (np.float16, 2e-3), "bfloat16": (ml_dtypes.bfloat16, 1.6e-2), "float": (np.float32, 2e-5)}
COUNTS = [70_000, (1 << 24) + 8]
HEAD = '<ir_version: 12, opset_import: ["" : 23]>\n'
SMALL = {"w": 1.5, "b": 0.25, "m": 0.0, "v": 1.0}

# name: (text with % for the type and @ for the count, output whose gradient is asked for, inputs it is asked by)
MEANS = {
    "mean": ("(%[@] x) => (% y) { y = ReduceMean<keepdims=0>(x) }", "y", "x"),
    "mean, open": ("(%[M] x) => (% y) { y = ReduceMean<keepdims=0>(x) }", "y", "x"),
    "mean of rows": ("(%[@,2] x, %[2] w) => (%[1,2] y) { a = Constant<value_ints=[0]>() p = Mul(x, w) "
                     "y = ReduceMean(p, a) }", "y", "xw"),
    "variance": ("(%[@] x) => (% y) { m = ReduceMean<keepdims=1>(x) c = Sub(x, m) s = Mul(c, c) "
                 "y = ReduceMean<keepdims=0>(s) }", "y", "x"),
    "GlobalAveragePool": ("(%[1,1,@] x) => (%[1,1,1] y) { y = GlobalAveragePool(x) }", "y", "x"),
    "AveragePool": ("(%[1,1,@] x) => (%[1,1,1] y) { y = AveragePool<kernel_shape=[@]>(x) }", "y", "x"),
    "GlobalMaxPool": ("(%[1,1,@] x) => (%[1,1,1] y) { y = GlobalMaxPool(x) }", "y", "x"),
    "GlobalLpPool": ("(%[1,1,@] x) => (%[1,1,1] y) { y = GlobalLpPool<p=2>(x) }", "y", "x"),
    "LpPool": ("(%[1,1,@] x) => (%[1,1,1] y) { y = LpPool<kernel_shape=[@], p=2>(x) }", "y", "x"),
    "LayerNormalization": ("(%[1,@] x, %[@] w, %[@] b) => (%[1,@] y) { y = LayerNormalization(x, w, b) }", "y", "xwb"),
    "LayerNormalization of many rows": ("(%[@,2] x, %[2] w, %[2] b) => (%[@,2] y) "
                                        "{ y = LayerNormalization<epsilon=0.1>(x, w, b) }", "y", "xwb"),
    "RMSNormalization": ("(%[1,@] x, %[@] w) => (%[1,@] y) { y = RMSNormalization(x, w) }", "y", "xw"),
    "RMSNormalization of many rows": ("(%[@,2] x, %[2] w) => (%[@,2] y) { y = RMSNormalization<epsilon=0.1>(x, w) }",
                                      "y", "xw"),
    "InstanceNormalization": ("(%[1,1,@] x, %[1] w, %[1] b) => (%[1,1,@] y) { y = InstanceNormalization(x, w, b) }",
                              "y", "xwb"),
    "GroupNormalization": ("(%[1,2,@] x, %[2] w, %[2] b) => (%[1,2,@] y) "
                           "{ y = GroupNormalization<num_groups=1>(x, w, b) }", "y", "xwb"),
    "BatchNormalization": ("(%[1,1,@] x, %[1] w, %[1] b, %[1] m, %[1] v) => (%[1,1,@] y, %[1] rm, %[1] rv) "
                           "{ y, rm, rv = BatchNormalization<training_mode=1>(x, w, b, m, v) }", "y", "xwb"),
    "BatchNormalization of rows": ("(%[@,2] x, %[2] w, %[2] b, %[2] m, %[2] v) => (%[@,2] y, %[2] rm, %[2] rv) "
                                   "{ y, rm, rv = BatchNormalization<training_mode=1>(x, w, b, m, v) }", "y", "xwb"),
    "BatchNormalization, inference": ("(%[1,1,@] x, %[1] w, %[1] b, %[1] m, %[1] v) => (%[1,1,@] y) "
                                      "{ y = BatchNormalization(x, w, b, m, v) }", "y", "xwbmv"),
    "running variance": ("(%[1,1,@] x, %[1] w, %[1] b, %[1] m, %[1] v) => (%[1,1,@] y, %[1] rm, %[1] rv) "
                         "{ y, rm, rv = BatchNormalization<training_mode=1>(x, w, b, m, v) }", "rv", "x"),
    "MeanVarianceNormalization": ("(%[1,1,@] x) => (%[1,1,@] y) { y = MeanVarianceNormalization<axes=[0,2]>(x) }",
                                  "y", "x"),
    "LpNormalization": ("(%[1,@] x) => (%[1,@] y) { y = LpNormalization(x) }", "y", "x"),
}
LOSSES = {
    "cross entropy": ("(%[@,2] x, int64[@] labels) => (% y) { y = SoftmaxCrossEntropyLoss(x, labels) }", "y", "x"),
    "cross entropy, weights": ("(%[@,2] x, int64[@] labels, %[2] w) => (% y) "
                               "{ y = SoftmaxCrossEntropyLoss(x, labels, w) }", "y", "x"),
    "cross entropy of many classes": ("(%[1,@] x, int64[1] labels) => (% y) { y = SoftmaxCrossEntropyLoss(x, labels) }",
                                      "y", "x"),
    "nll": ("(%[@,2] x, int64[@] labels) => (% y) { y = NegativeLogLikelihoodLoss(x, labels) }", "y", "x"),
    "nll, image": ("(%[1,2,@] x, int64[1,@] labels, %[2] w) => (% y) "
                   "{ y = NegativeLogLikelihoodLoss<ignore_index=1>(x, labels, w) }", "y", "x"),
    "squared error": ("(%[@] x, %[1] w) => (% y) { d = Sub(x, w) s = Mul(d, d) y = ReduceMean<keepdims=0>(s) }",
                      "y", "xw"),
}
SUMS = {
    "ReduceSum": ("(%[@] x) => (% y) { y = ReduceSum<keepdims=0>(x) }", "y", "x"),
    "ReduceSumSquare": ("(%[@] x) => (% y) { y = ReduceSumSquare<keepdims=0>(x) }", "y", "x"),
    "ReduceL1": ("(%[@] x) => (% y) { y = ReduceL1<keepdims=0>(x) }", "y", "x"),
    "ReduceL2": ("(%[@] x) => (% y) { y = ReduceL2<keepdims=0>(x) }", "y", "x"),
    "ReduceLogSum": ("(%[@] x) => (% y) { a = Abs(x) y = ReduceLogSum<keepdims=0>(a) }", "y", "x"),
    "ReduceLogSumExp": ("(%[@] x) => (% y) { y = ReduceLogSumExp<keepdims=0>(x) }", "y", "x"),
    "LogSoftmax": ("(%[1,@] x) => (%[1,@] y) { y = LogSoftmax(x) }", "y", "x"),
    "Softmax": ("(%[1,@] x) => (%[1,@] y) { y = Softmax(x) }", "y", "x"),
    "CumSum": ("(%[@,2] x) => (%[@,2] y) { a = Constant<value_int=1>() y = CumSum(x, a) }", "y", "x"),
    "bias": ("(%[@,2] x, %[2] b) => (%[@,2] y) { y = Add(x, b) }", "y", "xb"),
    "factor": ("(%[@,2] x, %[1] w) => (%[@,2] y) { y = Mul(x, w) }", "y", "xw"),
    "divisor": ("(%[@] x, % w) => (%[@] y) { y = Div(x, w) }", "y", "xw"),
    "slope": ("(%[@,2] x, %[2] w) => (%[@,2] y) { y = PRelu(x, w) }", "y", "xw"),
    "Expand": ("(%[1] w) => (%[@] y) { s = Constant<value_ints=[@]>() y = Expand(w, s) }", "y", "w"),
    "Tile": ("(%[2] w) => (%[T] y) { s = Constant<value_ints=[@]>() y = Tile(w, s) }", "y", "w"),
    "Gather": ("(%[2] w, int64[@] labels) => (%[@] y) { y = Gather(w, labels) }", "y", "w"),
    "Gather of rows": ("(%[2,2] w, int64[@] labels) => (%[@,2] y) { y = Gather(w, labels) }", "y", "w"),
    "GatherElements": ("(%[2] w, int64[@] labels) => (%[@] y) { y = GatherElements(w, labels) }", "y", "w"),
    "GatherND": ("(%[2] w, int64[@] labels) => (%[@] y) { a = Constant<value_ints=[1]>() i = Unsqueeze(labels, a) "
                 "y = GatherND(w, i) }", "y", "w"),
    "MatMul": ("(%[@,2] x, %[2,1] w) => (%[@,1] y) { y = MatMul(x, w) }", "y", "xw"),
    "Gemm": ("(%[@,2] x, %[2,2] w, %[2] b) => (%[@,2] y) { y = Gemm(x, w, b) }", "y", "xwb"),
    "Einsum": ("(%[@,2] x, %[2] w) => (%[@] y) { y = Einsum<equation=\"ij,j->i\">(x, w) }", "y", "xw"),
    "Conv": ("(%[1,1,@] x, %[1,1,1] w, %[1] b) => (%[1,1,@] y) { y = Conv(x, w, b) }", "y", "xwb"),
    "ConvTranspose": ("(%[1,1,@] x, %[1,1,1] w, %[1] b) => (%[1,1,@] y) { y = ConvTranspose(x, w, b) }", "y", "xwb"),
    "ReduceMax, ties": ("(%[1] w) => (% y) { s = Constant<value_ints=[@]>() e = Expand(w, s) "
                        "y = ReduceMax<keepdims=0>(e) }", "y", "w"),
    "Resize, nearest": ("(%[1,1,2] w) => (%[1,1,L] y) { s = Constant<value_ints=[1,1,@]>() "
                        "y = Resize<mode=\"nearest\">(w, , , s) }", "y", "w"),
    "Resize, linear": ("(%[1,1,2] w) => (%[1,1,L] y) { s = Constant<value_ints=[1,1,@]>() "
                       "y = Resize<mode=\"linear\">(w, , , s) }", "y", "w"),
    "ScatterElements": ("(%[@] x, %[2] w, int64[@] labels) => (%[2] y) "
                        "{ y = ScatterElements<reduction=\"add\">(w, labels, x) }", "y", "xw"),
    "Concat": ("(%[1,2] w) => (%[L,2] y) { a = Constant<value_ints=[@,1]>() t = Tile(w, a) z = Concat<axis=0>(t, w) "
               "k = Constant<value_ints=[@]>() o = Constant<value_ints=[0]>() y = Slice(z, o, k) }", "y", "w"),
    "Where": ("(%[@] x, % w) => (%[@] y) { z = Constant<value_float=0.0>() c = CastLike(z, x) g = Greater(x, c) "
              "y = Where(g, w, x) }", "y", "xw"),
    "Pow": ("(%[@] x, % w) => (%[@] y) { a = Abs(x) y = Pow(a, w) }", "y", "xw"),
    "Clip": ("(%[@] x, % w) => (%[@] y) { n = Neg(w) y = Clip(x, n, w) }", "y", "x"),
}
CASES = {**MEANS, **LOSSES, **SUMS}
HALVES = {"GroupNormalization"}  # the count is that of one of two channels
# Numbers that float16 does not have: a probability of one in 2^24 is below its smallest.
NOT_IN_FLOAT16 = {"Softmax"}


def parsed(text):
    return ot.parse(HEAD + "g " + text)


def dims_of(text, name, count):
    found = [part.split("]")[0] for part in text.split("%[")[1:] if part.split("] ")[1:] and
             part.split("] ")[1].split(",")[0].split(")")[0].strip() == name]
    if not found:
        return []
    return [count if d in ("@", "M") else int(d) for d in found[0].split(",")]


def feeds_for(text, count, dtype):
    head = text[: text.index("=>")]
    random = np.random.default_rng(3)
    feeds = {}
    for name in "xwbmv":
        if f" {name}," in head or f" {name})" in head:
            shape = dims_of(head, name, count)
            full = random.uniform(-1, 1, shape).astype(np.float32) if name == "x" else np.full(shape, SMALL[name])
            feeds[name] = np.asarray(full).astype(dtype)
    if "labels" in head:
        rows = 1 if "int64[1] labels" in head else count
        feeds["labels"] = random.integers(0, 2, (1, rows) if "int64[1,@]" in head else rows)
    return feeds


def cotangent_for(value, x, count, summed, case):
    """Gradients of ordinary size: of a mean as large as the type allows, of a sum over all rows as small; larger where
    x is positive, so that sums over zero means do not cancel."""
    tops = min(count / 8, 30_000.0)
    size = tops if value.size <= 4 or case == "Softmax" else 8000.0 / count if summed else 1.0
    made = size * np.random.default_rng(4).uniform(0.5, 1, value.shape)
    return np.where(x > 0, made, 0.25 * made) if x is not None and x.shape == value.shape else made


def compare(case, kind, count):
    """"" or what is wrong; for each input that the case asks by."""
    text, of, by = CASES[case]
    dtype, tolerance = TYPES[kind]
    count = count // 2 if case in HALVES and count > 1 << 20 else count
    narrow = feeds_for(text, count, dtype)
    text = text.replace("@", str(count))
    wide = {n: v if v.dtype.kind == "i" else v.astype(np.float64) for n, v in narrow.items()}
    exact = parsed(text.replace("%", "double"))
    value = ot.Session(exact).run(wide)[of]
    problems = []
    for summed in (False, True):
        names = [n for n in by if (narrow[n].size <= 4) == summed]
        if not names:
            continue
        cotangent = cotangent_for(value, narrow.get("x"), count, summed, case).astype(dtype)
        want = ot.gradients(exact, wide, of=of, wrt=names, cotangent=cotangent.astype(np.float64))
        got = ot.gradients(parsed(text.replace("%", kind)), narrow, of=of, wrt=names, cotangent=cotangent)
        for n in names:
            largest = np.abs(want[n]).max()
            if largest <= 1e-5:
                problems.append(f"by {n}: the case says nothing, its gradient is too small")
            worst = np.abs(got[n].astype(np.float64) - want[n]).max()
            limit = tolerance * largest + 6e-8  # the step of float16's smallest numbers
            if not worst <= limit:
                problems.append(f"by {n}: off by {worst:.3g}, allowed {limit:.3g}")
    return "; ".join(problems)


def counted(count):
    return [(case, kind) for case in CASES for kind in TYPES
            if not (count > 1 << 20 and kind == "float16" and case in NOT_IN_FLOAT16)]


def in_type(proto, kind, dtype):
    """A float32 model in another type."""
    code = onnx.TensorProto.DataType.Value(kind.upper())
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = code
    for k, i in enumerate(proto.graph.initializer):
        array = onnx.numpy_helper.to_array(i).astype(dtype)
        proto.graph.initializer[k].CopyFrom(helper.make_tensor(i.name, code, i.dims, array.tobytes(), raw=True))
    del proto.graph.value_info[:]
    return proto


def operators(case):
    text = CASES[case][0].replace("@", "5").replace("%", "float")
    return tuple({n.op_type for n in parser.parse_model(HEAD + "g " + text).graph.node})
