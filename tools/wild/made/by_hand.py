"""Files in the text form of ONNX with what exporters write seldom: functions, sequences, strings, old opsets."""

import onnx
from onnx import parser

HEADS = {k: f'<ir_version: {ir}, opset_import: ["" : {k}]>\n' for k, ir in
         ((1, 3), (6, 3), (7, 3), (8, 3), (9, 4), (11, 6), (13, 7), (15, 8), (17, 8), (19, 9), (21, 10), (22, 10))}
WEIGHTS = "<float[3,4] w = {1,2,3,4,-1,-2,-3,-4,0.5,0.25,0.125,1}, float[4] b = {0.1,0.2,0.3,0.4}>"

MODELS = {
    # opset: (text)
    "gemm_broadcast_6": (6, "g (float[N,3] x) => (float[N,4] y) %W "
                            "{ y = Gemm<broadcast=1, alpha=0.5, beta=2.0>(x, w, b) }"),
    "add_axis_6": (6, "g (float[2,3,4] x) => (float[2,3,4] y) <float[3] c = {1,2,3}> "
                      "{ y = Add<axis=1, broadcast=1>(x, c) }"),
    "batch_norm_7": (7, "g (float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] s = {1,2,3}, float[3] z = {0,1,2}, "
                        "float[3] m = {0.1,0.2,0.3}, float[3] v = {1,2,3}> { y = BatchNormalization(x, s, z, m, v) }"),
    "upsample_9": (9, "g (float[1,2,3,3] x) => (float[1,2,6,6] y) <float[4] s = {1,1,2,2}, float[2,1,1,1] k = {1.5,2}> "
                      "{ c = Conv<group=2>(x, k) y = Upsample<mode=\"linear\">(c, s) }"),
    "slice_9": (9, "g (float[4,3] x) => (float[2,4] y) %W { s = Slice<axes=[0], starts=[1], ends=[3]>(x) "
                   "h = MatMul(s, w) y = Add(h, b) }"),
    "softmax_11": (11, "g (float[2,3,4] x) => (float[2,3,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,1,1,1,1,0,1,0,1}> "
                       "{ h = MatMul(x, w) y = Softmax<axis=1>(h) }"),
    "sequence": (17, "g (float[N,3] x) => (float[M,4] y) %W { h = MatMul(x, w) a = Add(h, b) r = Relu(h) "
                     "s = SequenceConstruct(a, r, h) y = ConcatFromSequence<axis=0>(s) }"),
    "split_to_sequence": (17, "g (float[4,3] x) => (float[2,4] y) <int64 k = {1}, int64 two = {2}, float[3,4] w = "
                              "{1,2,3,4,-1,-2,-3,-4,0.5,0.25,0.125,1}> { s = SplitToSequence<axis=0>(x, two) "
                              "p = SequenceAt(s, k) y = MatMul(p, w) }"),
    "optional": (18, "g (float[N,3] x) => (float[N,4] y) %W { h = Gemm(x, w, b) o = Optional(h) t = "
                     "OptionalHasElement(o) "
                     "f = Cast<to=1>(t) e = OptionalGetElement(o) y = Mul(e, f) }"),
    "if_inside": (17, "g (float[N,3] x) => (float[N,4] y) %W { h = MatMul(x, w) s = ReduceSum<keepdims=0>(h) "
                      "z = Constant<value_float=0.0>() c = Greater(s, z) y = If(c) "
                      "<then_branch = t () => (float[N,4] o) { o = Add(h, b) }, "
                      "else_branch = e () => (float[N,4] p) { q = Sub(h, b) p = Relu(q) }> }"),
    "loop_states": (17, "g (float[N,3] x) => (float[N,3] y, float[K,N,3] all) <float[3,3] w = {0.1,0.2,0.3,0.3,0.2,0.1,"
                        "-0.1,0,0.4}, int64 n = {4}, bool t = {1}> { y, all = Loop(n, t, x) <body = l (int64 i, bool "
                        "c, "
                        "float[N,3] h) => (bool d, float[N,3] k, float[N,3] o) { d = Identity(c) m = MatMul(h, w) "
                        "k = Tanh(m) o = Identity(k) }> }"),
    "scan_sum": (17, "g (float[T,3] x) => (float[3] last, float[T,3] y) <float[3] w = {0.5,0.25,1}, float[3] z = "
                     "{0,0,0}> "
                     "{ last, y = Scan<num_scan_inputs=1, body = s (float[3] h, float[3] v) => (float[3] k, float[3] "
                     "o) "
                     "{ m = Mul(v, w) a = Add(h, m) k = Tanh(a) o = Identity(k) }>(z, x) }"),
    "strings": (20, "g (string[N] x) => (string[N] y, float[N] v) <string[1] tail = {\"!\"}, float[4] t = {1,2,3,4}> "
                    "{ y = StringConcat(x, tail) e = Equal(x, y) n = Cast<to=7>(e) v = Gather(t, n) }"),
    "normalizer": (17, "g (string[N] x) => (string[M] y) { y = StringNormalizer<case_change_action=\"UPPER\", "
                       "stopwords=[\"b\"]>(x) }"),
    "one_hot_gather": (17, "g (int64[N] x) => (float[N,4] y) %W { k = Constant<value_int=3>() v = "
                           "Constant<value_floats=[0.0, 1.0]>() h = OneHot(x, k, v) y = Gemm(h, w, b) }"),
    "non_zero": (17, "g (float[2,3] x) => (float[K] y) %W { h = MatMul(x, w) r = Relu(h) n = NonZero(r) "
                     "t = Transpose(n) y = GatherND(r, t) }"),
    "compress_unique": (17, "g (float[2,3] x) => (float[K] y) %W { h = MatMul(x, w) a = Add(h, b) "
                            "y = Unique<sorted=1>(a) }"),
    "nms": (17, "g (float[1,6,4] boxes, float[1,2,6] scores) => (float[K,4] y) <int64 n = {3}, float i = {0.5}, "
                "float s = {-2}, float[4] w = {1,2,3,4}> { k = NonMaxSuppression(boxes, scores, n, i, s) "
                "c = Constant<value_ints=[2]>() j = Gather<axis=1>(k, c) f = Squeeze(boxes) q = Squeeze(j) g1 = "
                "Gather(f, q) "
                "y = Mul(g1, w) }"),
    "trilu_range": (17, "g (float[N,3] x) => (float[N,4] y) %W { h = Gemm(x, w, b) y = Trilu<upper=0>(h) }"),
    "dft": (20, "g (float[1,8,1] x) => (float[1,8,2] y) <float[1,8,1] w = {1,2,3,4,4,3,2,1}> "
                "{ h = Mul(x, w) y = DFT(h) }"),
    "det": (17, "g (float[2,3,3] x) => (float[2] y) <float[3,3] w = {2,0.5,0,0.1,1,0.2,0,0.3,1}> "
                "{ h = MatMul(x, w) y = Det(h) }"),
    "cast_like": (19, "g (float[N,3] x) => (float16[N,4] y) %W { h = Gemm(x, w, b) y = Cast<to=10>(h) }"),
    "bitwise": (18, "g (int32[N] x) => (int32[N] y, float[N] z) <int32[1] m = {6}, float[8] t = {0,1,2,3,4,5,6,7}> "
                    "{ y = BitwiseAnd(x, m) z = Gather(t, y) }"),
    "max_unpool": (17, "g (float[1,1,4,4] x) => (float[1,1,4,4] y) <float[1,1,1,1] w = {1.5}> { h = Conv(x, w) "
                       "p, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(h) "
                       "y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(p, i) }"),
    "roi_align": (16, "g (float[1,2,8,8] x, float[2,4] r) => (float[2,2,2,2] y) <int64[2] k = {0,0}, "
                      "float[2,2,1,1] w = {1,2,3,4}> { h = Conv(x, w) y = RoiAlign<output_height=2, "
                      "output_width=2>(h, r, k) }"),
    "lp_pools": (18, "g (float[1,2,8] x) => (float[1,2,1] y) <float[2,2,1] w = {1,2,3,4}> { h = Conv(x, w) "
                     "p = LpPool<kernel_shape=[3], p=3, ceil_mode=1, strides=[2]>(h) y = GlobalLpPool<p=2>(p) }"),
    "shrink_selu": (17, "g (float[N,3] x) => (float[N,4] y) %W { h = Gemm(x, w, b) s = Shrink<lambd=0.2, bias=0.1>(h) "
                        "t = ThresholdedRelu<alpha=0.1>(s) u = Selu(t) v = Celu(u) y = HardSigmoid(v) }"),
    "group_norm_18": (18, "g (float[2,4,3] x) => (float[2,4,3] y) <float[2] s = {1,2}, float[2] z = {0,1}> "
                          "{ y = GroupNormalization<num_groups=2>(x, s, z) }"),
    "gelu_mish_20": (20, "g (float[N,3] x) => (float[N,4] y) %W { h = Gemm(x, w, b) g1 = Gelu<approximate=\"tanh\">(h) "
                         "y = Mish(g1) }"),
    "reduce_axes_18": (18, "g (float[2,3,4] x) => (float[2,1,4] y) <float[4] w = {1,2,3,4}, int64[1] a = {1}> "
                           "{ m = Mul(x, w) y = ReduceLogSumExp(m, a) }"),
    "no_batch": (17, "g (float[3] x) => (float[4] y) %W { y = MatMul(x, w) }"),
    "scalars": (17, "g (float x) => (float y) <float w = {2.5}> { y = Mul(x, w) }"),
    "constant_weights": (17, "g (float[N,2] x) => (float[N,1] y) { w = Constant<value = float[2,1] {0.5, 0.25}>() "
                             "y = MatMul(x, w) }"),
    "unknown_rank": (17, "g (float[] x) => (float[] y) <float w = {2.5}> { y = Mul(x, w) }"),
    "double": (17, "g (double[N,3] x) => (double[N,2] y) <double[3,2] w = {1,2,3,4,5,6}> "
                   "{ h = MatMul(x, w) y = LogSoftmax(h) }"),
}

FUNCTIONS = '''<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
g (float[N,3] x) => (float[N,4] y) %W { h = own.Dense(x, w, b) s = own.Scaled<factor=0.5>(h) y = own.Twice(s) }
<domain: "own", opset_import: ["" : 17]> Dense (x, w, b) => (y) { m = MatMul(x, w) y = Add(m, b) }
<domain: "own", opset_import: ["" : 17]> Scaled <factor> (x) => (y) { f =
  Constant<value_float: float = @factor>() y = Mul(x, f) }
<domain: "own", opset_import: ["" : 17, "own" : 1]> Twice (x) => (y) { a = own.Half(x) y = Add(a, a) }
<domain: "own", opset_import: ["" : 17]> Half (x) => (y) { t = Constant<value_float=0.5>() y = Mul(x, t) }
'''


def of_text(opset, text):
    nearest = HEADS.get(opset) or HEADS[max(k for k in HEADS if k <= opset)].replace(": " + str(
        max(k for k in HEADS if k <= opset)) + "]", f": {opset}]")
    model = parser.parse_model(nearest + text.replace("%W", WEIGHTS))
    if model.ir_version < 4:  # initializers were inputs
        for i in model.graph.initializer:
            model.graph.input.append(onnx.helper.make_tensor_value_info(i.name, i.data_type, i.dims))
    return model


def shuffled():
    """Nodes in reverse order, without names, initializers also inputs, dimensions of -1."""
    m = of_text(13, MODELS["shrink_selu"][1])
    nodes = list(m.graph.node)[::-1]
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    m.ir_version = 3
    for i in m.graph.initializer:
        m.graph.input.append(onnx.helper.make_tensor_value_info(i.name, i.data_type, i.dims))
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    return m


def files():
    for name, (opset, text) in MODELS.items():
        yield f"hand_{name}", lambda o=opset, t=text: of_text(o, t)
    yield "hand_functions", lambda: parser.parse_model(FUNCTIONS.replace("%W", WEIGHTS))
    yield "hand_shuffled", shuffled
