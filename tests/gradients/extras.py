"""Cases that the backend suite lacks: recurrent layers in all their forms, control flow with captured values,
combinations of attributes, networks."""

import itertools

import numpy as np
import onnx
from onnx import helper

from cases import Case


def node_case(name, op, inputs, attrs=None, outputs=1, opset=22, domain=""):
    """inputs: arrays or None."""
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outs = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names, outs, domain=domain, **(attrs or {}))
    feeds = {n: np.asarray(x) for n, x in zip(names, inputs) if x is not None}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in feeds.items()]
    graph = helper.make_graph([node], "extra", infos, [helper.make_tensor_value_info(o, 1, None) for o in outs])
    return Case(name, helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10),
                feeds)


def text_case(name, text, feeds, opset=22, more=""):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{more}]> {text}')
    return Case(name, model, feeds)


def f32(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
               "Softsign", "Softplus"]
_PER_CELL = {"LSTM": 3, "GRU": 2, "RNN": 1}


def recurrent(rng):
    for op, direction, layout in itertools.product(_PER_CELL, ("forward", "reverse", "bidirectional"), (0, 1)):
        d, gates, h = (2 if direction == "bidirectional" else 1), {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 3
        x = f32(rng, 2, 4, 3) if layout else f32(rng, 4, 2, 3)
        state = f32(rng, 2, d, h) if layout else f32(rng, d, 2, h)
        weights = [f32(rng, d, gates * h, 3), f32(rng, d, gates * h, h), f32(rng, d, 2 * gates * h)]
        inputs = [x, *weights, np.array([4, 2], np.int32), state]
        if op == "LSTM":
            inputs += [state[::-1].copy(), f32(rng, d, 3 * h)]
        for more in ({}, {"clip": 0.4}, *([{"linear_before_reset": 1}] if op == "GRU" else []),
                     *([{"input_forget": 1}] if op == "LSTM" else [])):
            attrs = {"hidden_size": h, "direction": direction, "layout": layout, **more}
            yield node_case(f"{op} {direction} layout {layout} {more or ''}", op, inputs, attrs,
                            3 if op == "LSTM" else 2)
    for op, f in itertools.product(_PER_CELL, ACTIVATIONS):
        gates, h = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2
        inputs = [f32(rng, 3, 2, 2), f32(rng, 1, gates * h, 2), f32(rng, 1, gates * h, h), f32(rng, 1, 2 * gates * h)]
        yield node_case(f"{op} with {f}", op, inputs, {"hidden_size": h, "activations": [f] * _PER_CELL[op]},
                        3 if op == "LSTM" else 2)


def control_flow(rng):
    w = f32(rng, 3, 3)
    x = f32(rng, 2, 3)
    body = """agraph (float[2,3] x, float[3,3] w, bool c) => (float[2,3] y, float[] s) {
        y = If (c) <then_branch = g1 () => (float[2,3] a) { t = MatMul (x, w)  a = Tanh (t) },
                    else_branch = g2 () => (float[2,3] b) { u = Mul (x, x)  b = Sin (u) }>
        s = ReduceSum <keepdims = 0> (x) }"""
    for c in (True, False):
        yield text_case(f"If captured {c}", body, {"x": x, "w": w, "c": np.array(c)})
    loop = """agraph (float[2,3] x, float[3,3] w, int64 n) => (float[2,3] y, float[k,2,3] all) {
        one = Constant <value = bool {1}> ()
        y, all = Loop (n, one, x) <body = g (int64 i, bool c, float[2,3] s) => (bool c2, float[2,3] s2, float[2,3] o) {
            c2 = Identity (c)  t = MatMul (s, w)  s2 = Tanh (t)  o = Mul (s2, x) }> }"""
    for n in (0, 1, 4):
        yield text_case(f"Loop captured {n} times", loop, {"x": x, "w": w, "n": np.array(n)})
    growing = """agraph (float[2,3] x, float[3] w) => (float[a,3] y) {
        n = Constant <value = int64 {3}> ()  one = Constant <value = bool {1}> ()
        y = Loop (n, one, x) <body = g (int64 i, bool c, float[b,3] s) => (bool c2, float[d,3] s2) {
            c2 = Identity (c)  t = Mul (s, w)  u = Sin (t)  s2 = Concat <axis = 0> (s, u) }> }"""
    yield text_case("Loop whose state grows", growing, {"x": x, "w": w[0]})
    sequence = """agraph (float[2,3] x, float[2,3] z) => (float[a,3] y) {
        e = SequenceConstruct (x)  n = Constant <value = int64 {3}> ()  one = Constant <value = bool {1}> ()
        q = Loop (n, one, e) <body = g (int64 i, bool c, seq(float[2,3]) s) => (bool c2, seq(float[2,3]) s2) {
            c2 = Identity (c)  last = Constant <value = int64 {-1}> ()  t = SequenceAt (s, last)  u = Mul (t, z)
            v = Tanh (u) s2 = SequenceInsert (s, v) }>
        y = ConcatFromSequence <axis = 0> (q) }"""
    yield text_case("Loop over a sequence", sequence, {"x": x, "z": f32(rng, 2, 3)})
    scan = """agraph (float[3] s, float[4,3] x, float[3] w) => (float[3] last, float[4,3] ys) {{
        last, ys = Scan (s, x) <num_scan_inputs = 1, scan_input_directions = [{0}], scan_output_directions = [{1}],
            body = g (float[3] h, float[3] e) => (float[3] h2, float[3] y) {{ a = Mul (h, w)  b = Add (a, e)
            h2 = Tanh (b)  y = Mul (h2, e) }}> }}"""
    for a, b in itertools.product((0, 1), (0, 1)):
        yield text_case(f"Scan directions {a}{b}", scan.format(a, b),
                        {"s": f32(rng, 3), "x": f32(rng, 4, 3), "w": w[0]})
    eight = """agraph (int64[2] len, float[2,3] s, float[2,4,3] x, float[3] w) => (float[2,3] last, float[2,4,3] ys) {
        last, ys = Scan (len, s, x) <num_scan_inputs = 1,
            body = g (float[3] h, float[3] e) => (float[3] h2, float[3] y) { a = Mul (h, w)  b = Add (a, e)
            h2 = Tanh (b)  y = Mul (h2, e) }> }"""
    yield text_case("Scan-8 with lengths", eight,
                    {"len": np.array([4, 2]), "s": f32(rng, 2, 3), "x": f32(rng, 2, 4, 3), "w": w[0]}, 8)


def combinations(rng):
    for mode, how in itertools.product(("nearest", "linear", "cubic"),
                                       ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                        "asymmetric")):
        for more in ({}, {"exclude_outside": 1}, {"antialias": 1}):
            if mode == "nearest" and more:
                continue
            if mode == "linear" and "exclude_outside" in more:
                continue
            attrs = {"mode": mode, "coordinate_transformation_mode": how, **more}
            yield node_case(f"Resize {mode} {how} {more or ''}", "Resize",
                            [f32(rng, 1, 2, 4, 5), None, None, np.array([1, 2, 3, 8])], attrs)
    for mode, padding, align, d in itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"),
                                                     (0, 1), (1, 2, 3)):
        size = [3, 4, 2][:d]
        grid = rng.uniform(-1.3, 1.3, (2, *[2, 3, 2][:d], d)).astype(np.float32)
        yield node_case(f"GridSample {mode} {padding} {align} {d}d", "GridSample", [f32(rng, 2, 2, *size), grid],
                        {"mode": mode, "padding_mode": padding, "align_corners": align})
    for axis, reduction in itertools.product((0, 1), ("none", "add", "mul", "max", "min")):
        index = (
            np.stack([rng.permutation(3)[:2] for _ in range(4)], 1)
            if axis == 0
            else np.stack([rng.permutation(4)[:3] for _ in range(3)])
        )
        yield node_case(f"ScatterElements {axis} {reduction}", "ScatterElements",
                        [f32(rng, 3, 4), index, f32(rng, *index.shape)], {"axis": axis, "reduction": reduction})
        where = np.array([[0], [2]]) if reduction == "none" else np.array([[0], [2], [0]])
        yield node_case(f"ScatterND {reduction}", "ScatterND", [f32(rng, 3, 4), where, f32(rng, len(where), 4)],
                        {"reduction": reduction})
    for equation, shapes in {"ii->i": [(3, 3)], "ii->": [(3, 3)], "iij->j": [(3, 3, 2)], "ijij->ij": [(2, 3, 2, 3)],
                             "i,i->i": [(3,), (3,)], "ij,jk,kl->il": [(2, 3), (3, 2), (2, 4)],
                             "...i,...i->...": [(2, 3, 4), (3, 4)], "ij->ji": [(2, 3)], "ii,i->": [(3, 3), (3,)],
                             "bhid,bhjd->bhij": [(1, 2, 3, 2), (1, 2, 4, 2)], "i->": [(4,)]}.items():
        yield node_case(f"Einsum {equation}", "Einsum", [f32(rng, *s) for s in shapes], {"equation": equation})
    for mode, ratio, how in itertools.product(("avg", "max"), (0, 2), ("half_pixel", "output_half_pixel")):
        rois = np.array([[0.3, 0.2, 4.1, 3.3], [1.2, 1.7, 3.4, 4.8]], np.float32)
        yield node_case(f"RoiAlign {mode} {ratio} {how}", "RoiAlign", [f32(rng, 2, 2, 5, 6), rois, np.array([0, 1])],
                        {"mode": mode, "sampling_ratio": ratio, "output_height": 2, "output_width": 3,
                         "coordinate_transformation_mode": how})
    rois = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 4, 4]], np.float32)
    yield node_case("MaxRoiPool", "MaxRoiPool", [f32(rng, 2, 2, 5, 5), rois], {"pooled_shape": [2, 2]})
    for group, offsets in ((1, 1), (2, 2), (1, 2)):
        inputs = [f32(rng, 1, 4, 4, 4), f32(rng, 2, 4 // group, 2, 2), 0.4 * f32(rng, 1, offsets * 8, 3, 3),
                  f32(rng, 2), f32(rng, 1, offsets * 4, 3, 3)]
        yield node_case(f"DeformConv {group} {offsets}", "DeformConv", inputs,
                        {"group": group, "offset_group": offsets})
    yield from attentions(rng)


def attentions(rng):
    for packed, causal, softcap, mode, past in itertools.product((0, 1), (0, 1), (0.0, 2.0), (0, 1, 2, 3), (0, 1)):
        q = f32(rng, 2, 3, 8) if packed else f32(rng, 2, 4, 3, 2)
        kv = [f32(rng, 2, 3, 4), f32(rng, 2, 3, 6)] if packed else [f32(rng, 2, 2, 3, 2), f32(rng, 2, 2, 3, 3)]
        mask = f32(rng, 3, 3 + 2 * past)
        inputs = [q, *kv, mask] + ([f32(rng, 2, 2, 2, 2), f32(rng, 2, 2, 2, 3)] if past else [])
        attrs = {"is_causal": causal, "softcap": softcap, "qk_matmul_output_mode": mode,
                 **({"q_num_heads": 4, "kv_num_heads": 2} if packed else {})}
        yield node_case(f"Attention packed {packed} causal {causal} cap {softcap} mode {mode} past {past}",
                        "Attention", inputs, attrs, 4, 23)


def networks(rng):
    """Whose gradient is differentiated again: gradient penalties."""
    mlp = """agraph (float[4,3] x, float[3,5] a, float[5] b, float[5,1] c) => (float[4,1] y) {
        t = MatMul (x, a)  u = Add (t, b)  v = Softplus (u)  y = MatMul (v, c) }"""
    yield text_case("MLP", mlp, {"x": f32(rng, 4, 3), "a": f32(rng, 3, 5), "b": f32(rng, 5), "c": f32(rng, 5, 1)})
    cnn = """agraph (float[2,2,6,6] x, float[3,2,3,3] w, float[3] s, float[3] b, float[3] m, float[3] v, float[2,27] f)
        => (float[2,2] y) {
        t = Conv <pads = [1,1,1,1]> (x, w)  u, rm, rv = BatchNormalization <training_mode = 1> (t, s, b, m, v)
        r = LeakyRelu (u) p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (r)  g = Flatten (p)
        y = Gemm <transB = 1> (g, f) }"""
    yield text_case("CNN", cnn, {"x": f32(rng, 2, 2, 6, 6), "w": f32(rng, 3, 2, 3, 3), "s": f32(rng, 3),
                                 "b": f32(rng, 3), "m": f32(rng, 3), "v": np.abs(f32(rng, 3)) + 0.5,
                                 "f": f32(rng, 2, 27)})
    block = """agraph (float[2,4,6] x, float[6,18] wq, float[6] s, float[6] b, float[6,6] wo) => (float[2,4,6] y) {
        n = LayerNormalization <axis = -1> (x, s, b)  h = MatMul (n, wq)  k3 = Constant <value = int64[3] {6,6,6}> ()
        q, k, v = Split <axis = 2> (h, k3)  a = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (q, k, v)
        o = MatMul (a, wo)  r = Add (x, o)  y = Gelu (r) }"""
    yield text_case("transformer block", block, {"x": f32(rng, 2, 4, 6), "wq": f32(rng, 6, 18), "s": f32(rng, 6),
                                                 "b": f32(rng, 6), "wo": f32(rng, 6, 6)}, 23)
    loss = """agraph (float[3,4] x, int64[3] t, float[4] w) => (float l) { l = SoftmaxCrossEntropyLoss (x, t, w) }"""
    yield text_case("cross entropy", loss,
                    {"x": f32(rng, 3, 4), "t": np.array([0, 3, 1]), "w": np.abs(f32(rng, 4)) + 0.2})


def coupled(x, attrs):
    """Probabilities of classes as Wu, Lin and Weng (2004) define them: the least p'Qp with sum 1, solved in float64."""
    n, s = len(attrs["classlabels_ints"]), sum(attrs["vectors_per_class"])
    number = {k: np.array(attrs[k], np.float32).astype(np.float64)
              for k in ("coefficients", "support_vectors", "rho", "prob_a", "prob_b", "kernel_params")}
    vectors, weights = number["support_vectors"].reshape(s, -1), number["coefficients"].reshape(n - 1, s)
    gamma, coef0, degree = number["kernel_params"]
    dot = x @ vectors.T
    kernel = {"LINEAR": lambda: dot, "POLY": lambda: (gamma * dot + coef0) ** degree,
              "SIGMOID": lambda: np.tanh(gamma * dot + coef0),
              "RBF": lambda: np.exp(-gamma * ((x[:, None] - vectors) ** 2).sum(2))}[attrs["kernel_type"]]()
    of = np.repeat(np.arange(n), attrs["vectors_per_class"])
    out = np.zeros((len(x), n))
    for row in range(len(x)):
        r = np.zeros((n, n))
        for at, (i, j) in enumerate(itertools.combinations(range(n), 2)):
            score = (
                number["rho"][at]
                + weights[j - 1, of == i] @ kernel[row, of == i]
                + weights[i, of == j] @ kernel[row, of == j]
            )
            r[i, j] = np.clip(1 / (1 + np.exp(score * number["prob_a"][at] + number["prob_b"][at])), 1e-7, 1 - 1e-7)
            r[j, i] = 1 - r[i, j]
        q = np.diag((r**2).sum(0)) - r * r.T
        ones = np.ones((n, 1))
        out[row] = np.linalg.solve(np.block([[q, ones], [ones.T, np.zeros((1, 1))]]), np.r_[np.zeros(n), 1])[:n]
    return out


def coupled_case(ml, name, x, attrs):
    """The operator goes round until a tolerance is met: differences are those of what it approaches."""
    case = ml(name, "SVMClassifier", [x], attrs, 2)
    inputs, outputs = [i.name for i in case.model.graph.input], [o.name for o in case.model.graph.output]
    case.exact = lambda feeds: {outputs[1]: coupled(feeds[inputs[0]].astype(np.float64), attrs)}
    return case


def machines(rng):
    """Linear models and support vector machines of ai.onnx.ml with every kernel and post transform."""
    posts = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    x = f32(rng, 4, 3)

    def ml(name, op, inputs, attrs, outputs):
        return node_case(name, op, inputs, attrs, outputs, 1, "ai.onnx.ml")

    def numbers(*shape, low=-1.0):
        return [float(v) for v in rng.uniform(low, 1, int(np.prod(shape)))]
    for post in posts:
        scale = 0.1 if post == "PROBIT" else 1.0  # PROBIT is defined between 0 and 1
        base = [0.5, 0.4] if post == "PROBIT" else [0.3, -0.2]
        weights = [scale * v for v in numbers(2, 3)]
        yield ml(f"LinearRegressor {post}", "LinearRegressor", [x],
                 {"coefficients": weights, "intercepts": base, "targets": 2, "post_transform": post}, 1)
        yield ml(f"LinearClassifier {post}", "LinearClassifier", [x],
                 {"coefficients": weights, "intercepts": base, "classlabels_ints": [0, 1],
                  "post_transform": post}, 2)
        if post == "PROBIT":  # of a score and of its negative: one of them has no probit
            continue
        yield ml(f"LinearClassifier one row {post}", "LinearClassifier", [x],
                 {"coefficients": weights[:3], "intercepts": base[:1], "classlabels_strings": ["no", "yes"],
                  "post_transform": post}, 2)
    yield ml("LinearRegressor one row of features", "LinearRegressor", [x[0]], {"coefficients": numbers(3)}, 1)
    for kernel, post in itertools.product(("LINEAR", "POLY", "RBF", "SIGMOID"), ("NONE", "LOGISTIC")):
        shared = {"kernel_type": kernel, "kernel_params": [0.4, 0.7, 3.0], "post_transform": post}
        yield ml(f"SVMRegressor {kernel} {post}", "SVMRegressor", [x],
                 {"coefficients": numbers(5), "support_vectors": numbers(5, 3), "n_supports": 5, "rho": [0.3],
                  **shared}, 1)
        for labels, per_class in (([0, 1], [3, 2]), ([0, 1, 2], [2, 3, 1])):
            n, s = len(labels), sum(per_class)
            pairs = n * (n - 1) // 2
            attrs = {"coefficients": numbers(n - 1, s), "support_vectors": numbers(s, 3),
                     "vectors_per_class": per_class, "rho": numbers(pairs), "classlabels_ints": labels, **shared}
            yield ml(f"SVMClassifier {kernel} {post} {n}", "SVMClassifier", [x], attrs, 2)
            if post == "NONE":
                likely = {"prob_a": numbers(pairs, low=0.5), "prob_b": numbers(pairs)}
                yield coupled_case(ml, f"SVMClassifier {kernel} probabilities {n}", x, {**attrs, **likely})
    labels, per_class = [0, 1, 2, 3, 4], [2, 1, 3, 1, 2]
    many = {"coefficients": numbers(4, 9), "support_vectors": numbers(9, 3), "vectors_per_class": per_class,
            "rho": numbers(10), "classlabels_ints": labels, "kernel_type": "RBF", "kernel_params": [0.4, 0.7, 3.0]}
    yield coupled_case(ml, "SVMClassifier five classes", x,
                       {**many, "prob_a": numbers(10, low=0.5), "prob_b": numbers(10)})
    yield coupled_case(ml, "SVMClassifier five classes far apart", 3 * x,
                       {**many, "prob_a": [-6 * v for v in numbers(10, low=0.5)], "prob_b": numbers(10)})
    even = {**many, "coefficients": [0.01 * v for v in many["coefficients"]],
            "rho": [0.0] * 10}  # the iteration does not even begin
    yield coupled_case(ml, "SVMClassifier five even classes", x,
                       {**even, "prob_a": numbers(10, low=0.5), "prob_b": [0.0] * 10})
    yield ml("SVMRegressor without vectors", "SVMRegressor", [x], {"coefficients": numbers(3), "rho": [0.3]}, 1)
    yield ml("SVMClassifier without vectors", "SVMClassifier", [x],
             {"coefficients": numbers(3, 3), "rho": [0.3], "classlabels_ints": [0, 1, 2]}, 2)


def others(rng):
    """Operators with a rule that no case of the suite differentiates."""
    for p in (1, 2, 3):
        yield node_case(f"GlobalLpPool {p}", "GlobalLpPool", [f32(rng, 2, 3, 2, 4)], {"p": p})
    sequence = """agraph (float[2,3] x, float[2,3] z, float[2,3] w) => (float[2,3] y, float[a,3] all) {
        zero = Constant <value = int64 {0}> ()  one = Constant <value = int64 {1}> ()
        e = SequenceConstruct (x, z, w)  f = SequenceErase (e, zero)  u = Mul (x, z)  v = Tanh (u)
        g = SequenceInsert (f, v, one) y = SequenceAt (g, one)  all = ConcatFromSequence <axis = 0> (g) }"""
    yield text_case("sequence without a loop", sequence, {n: f32(rng, 2, 3) for n in "xzw"})
    optional = """agraph (float[2,3] x, float[2,3] z) => (float[2,3] y) {
        u = Mul (x, z)  o = Optional (u)  v = OptionalGetElement (o)  y = Tanh (v) }"""
    yield text_case("Optional", optional, {n: f32(rng, 2, 3) for n in "xz"})
    x = f32(rng, 3, 4)
    for norm in ("MAX", "L1", "L2"):
        yield node_case(f"Normalizer {norm}", "Normalizer", [np.abs(x) + 0.1 if norm == "MAX" else x], {"norm": norm},
                        1, 1, "ai.onnx.ml")
    yield node_case("Scaler", "Scaler", [x], {"offset": [0.5, -1.0, 0.0, 2.0], "scale": [2.0, 0.5, 1.0, -3.0]}, 1, 1,
                    "ai.onnx.ml")
    yield node_case("Imputer", "Imputer", [x], {"imputed_value_floats": [7.0, 8.0, 9.0, 1.0],
                                                "replaced_value_float": float(x[1, 2])}, 1, 1, "ai.onnx.ml")
    yield node_case("FeatureVectorizer", "FeatureVectorizer", [x, f32(rng, 3, 2)], {"inputdimensions": [4, 2]}, 1, 1,
                    "ai.onnx.ml")


def all_cases():
    rng = np.random.default_rng(4)
    out = [*recurrent(rng), *control_flow(rng), *combinations(rng), *networks(rng), *machines(np.random.default_rng(5)),
           *others(np.random.default_rng(6))]
    return {c.name: c for c in out}
