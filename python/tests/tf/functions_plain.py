"""Functions of TensorFlow without Keras: operations one by one, control flow, lists, text and tables."""

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 4)).astype(np.float32)
IMAGE = RNG.normal(size=(2, 5, 7, 3)).astype(np.float32)
IMAGE_OPS = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize", "DepthToSpace", "SpaceToDepth", "LRN",
             "BatchNormalization"}


def transposes_between(graph):
    """Transposes of data between two image operators of a file."""
    maker = {o: n for n in graph.nodes for o in n.outputs if o}
    before, after = {}, {}
    for n in graph.nodes:
        parents = [maker[v] for v in n.inputs if v in maker]
        before[id(n)] = any(p.op in IMAGE_OPS or before[id(p)] for p in parents)
    for n in reversed(graph.nodes):
        for v in n.inputs:
            if v in maker:
                p = maker[v]
                after[id(p)] = after.get(id(p), False) or n.op in IMAGE_OPS or after.get(id(n), False)
    return sum(n.op == "Transpose" and before[id(n)] and after.get(id(n), False) for n in graph.nodes)


def _over(f, x=X):
    """x times a variable, so that there is a gradient, through f."""
    def build():
        w = tf.Variable(RNG.normal(size=x.shape[-1]).astype(x.dtype) + 1, name="w")

        @tf.function(input_signature=[tf.TensorSpec([None, *x.shape[1:]], x.dtype, "x")], autograph=False)
        def call(x):
            return f(x * w)

        return call, x, w

    return build


def _while(x):
    """Counts, carries and collects."""
    def body(k, s, parts):
        s = tf.tanh(s + x[:, 0:1])
        return k + 1, s, parts.write(k, s)

    parts = tf.TensorArray(tf.float32, 5)
    _, s, parts = tf.while_loop(lambda k, *_: k < 5, body, (0, x, parts))
    return {"last": s, "all": parts.stack()}


def _shift(x):
    return {"a": tf.roll(x, 3, 1), "b": tf.roll(x, [1, -5], [0, 1]), "c": tf.roll(x, [7, 1], [1, 1])}


def _range(x):
    """A loop over tf.range, as people write it: TensorFlow hands the step in from outside."""
    @tf.function
    def run(x):
        s, parts = tf.zeros_like(x), tf.TensorArray(tf.float32, 4)
        for k in tf.range(4):
            s = s * 0.5 + x
            parts = parts.write(k, tf.sin(s))
        return s, parts.stack()

    last, parts = run(x)
    return {"last": last, "all": parts}


def _until(x):
    """A number of steps that depends on the data."""
    return tf.while_loop(lambda s: tf.reduce_sum(tf.abs(s)) > 1.0, lambda s: [s * 0.5], [x])[0]


def _cond(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x * 2)


def _slices(x):
    return {"a": x[:, 1:3], "b": x[:, ::-1], "c": x[..., -1], "d": x[:, tf.newaxis, 2], "e": x[-2:, :1],
            "f": x[tf.shape(x)[0] - 1], "g": tf.slice(x, [0, 1], [-1, 2]), "h": x[1::2]}


def _shapes(x):
    n = tf.shape(x)[0]
    return {"a": tf.reshape(x, [n * 2, -1]), "b": tf.tile(x, [1, 2]), "c": tf.broadcast_to(x[:, :1], [n, 3]),
            "d": tf.stack([x, x], 1), "e": tf.unstack(x, 4, 1)[2], "f": tf.concat([x, tf.zeros([n, 2])], 1),
            "g": tf.split(x, [1, 3], 1)[1], "h": tf.transpose(x), "i": tf.pad(x, [[0, 0], [1, 2]]),
            "j": tf.reverse(x, [1]), "k": tf.pad(x, [[0, 0], [1, 1]], "REFLECT"),
            "l": tf.linspace(0.0, 1.0, 5) + x[0, 0],
            "m": tf.space_to_batch(x[:, :, None], [2], [[0, 0]]), "n": tf.fill([n, 2], 3.0) * x[:, :2]}


def _indices(x):
    at = tf.constant([[1, 0], [0, 2], [2, 1]])
    return {"a": tf.gather(x, [2, 0, 1], axis=1), "b": tf.gather_nd(x, at), "c": tf.gather(x, at, axis=1, batch_dims=1),
            "d": tf.tensor_scatter_nd_update(x, [[0]], x[1:2]), "e": tf.tensor_scatter_nd_add(x, [[0], [0]], x[1:3]),
            "f": tf.one_hot(tf.constant([1, -1, 5, 0]), 4) * x[0], "g": tf.math.top_k(x, 2)[0],
            "h": tf.boolean_mask(x, tf.constant([True, False, True])), "i": tf.scatter_nd([[1], [3]], x[:2], [5, 4]),
            "j": tf.math.unsorted_segment_sum(x, tf.constant([0, 1, 0]), 2), "k": tf.argmax(x, 1),
            "l": tf.linalg.band_part(x[:3, :3], 1, 0), "m": tf.cumsum(x, 1, exclusive=True, reverse=True),
            "n": tf.where(x > 0)}


def _arithmetic(x):
    p = tf.abs(x) + 0.5
    return {"a": tf.math.divide_no_nan(x, tf.nn.relu(x)), "b": tf.math.xlogy(tf.nn.relu(x), p), "c": x // p, "d": x % p,
            "e": tf.maximum(x, p - 1), "f": tf.minimum(x, 0.1), "g": tf.math.squared_difference(x, p), "h": p ** 1.5,
            "i": tf.math.log1p(p), "j": tf.math.expm1(x), "k": tf.math.erfc(x), "l": tf.math.rsqrt(p),
            "m": tf.clip_by_value(x, -0.5, 0.5), "n": tf.atan2(x, p), "o": tf.add_n([x, p, x]), "p": tf.sign(x),
            "q": tf.cast(tf.cast(x * 10, tf.int32) // 3, tf.float32), "r": tf.stop_gradient(x) * x,
            "s": tf.where(x > 0, x, p), "t": tf.nn.leaky_relu(x), "u": tf.nn.relu6(x * 8), "v": tf.floor(x),
            "w": tf.math.is_finite(x), "x": tf.round(x * 3), "y": tf.math.logical_xor(x > 0, p > 1),
            "z": tf.einsum("bi,bj->ij", x, p)}


def _reductions(x):
    return {"a": tf.reduce_sum(x, 0), "b": tf.reduce_mean(x, 1, keepdims=True), "c": tf.reduce_max(x), "d": tf.norm(x),
            "e": tf.reduce_prod(x, 1), "f": tf.reduce_any(x > 1, 1), "g": tf.reduce_all(x > -9), "h": tf.nn.l2_loss(x),
            "i": tf.reduce_logsumexp(x, 1), "j": tf.nn.log_softmax(x), "k": tf.nn.l2_normalize(x, 1),
            "l": tf.math.reduce_variance(x, 0), "m": tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), x * 2)}


def _images(x):
    a = tf.nn.max_pool2d(x, 2, 2, "SAME")
    b = tf.nn.avg_pool2d(a, 3, 1, "SAME")
    return {"a": b, "b": tf.image.resize(x, [9, 4]), "c": tf.image.resize(x, [10, 14], "nearest"),
            "d": tf.nn.depth_to_space(tf.concat([x, x, x, x], -1), 2), "e": tf.nn.local_response_normalization(x, 2),
            "f": tf.compat.v1.image.resize_bilinear(x, [3, 9], align_corners=True),
            "g": tf.nn.space_to_depth(x[:, :4, :6], 2),
            "i": tf.nn.relu(b) + tf.reduce_mean(a, [1, 2], keepdims=True), "j": tf.transpose(a, [0, 3, 1, 2]),
            "k": tf.image.flip_left_right(a) * tf.constant([1.0, 2.0, 3.0])}


def _matrices(x):
    square = tf.matmul(x, x, transpose_a=True) + 3 * tf.eye(4)
    at = tf.constant([2, 0, -1])
    return {"a": tf.linalg.diag(x), "b": tf.linalg.diag_part(square), "c": tf.linalg.set_diag(square, x[0]),
            "d": tf.linalg.det(square), "e": tf.linalg.trace(square), "f": tf.math.unsorted_segment_max(x, at, 4),
            "g": tf.math.unsorted_segment_mean(x, at, 3), "h": tf.math.segment_sum(x, tf.constant([0, 0, 2])),
            "i": tf.math.in_top_k(tf.constant([1, 3, 0]), x, 2), "j": tf.pad(x, [[2, 0], [1, 3]], "SYMMETRIC"),
            "k": tf.bitwise.right_shift(tf.constant([-5, 9]), 1) + tf.bitwise.left_shift(tf.shape(x), [1, 2])}


def _case(x):
    return tf.switch_case(tf.shape(x)[0] - 1, [lambda: x, lambda: x * 2, lambda: tf.tanh(x), lambda: -x])


def _patches(x):
    return tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME")


def _calls(x):
    @tf.function(autograph=False)
    def inner(y, factor):
        return tf.tanh(y) * factor

    return inner(inner(x, 2.0), x)


def _map(x):
    return tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)


def _scan(x):
    return tf.scan(lambda s, row: s * 0.5 + row, x)


class Words(tf.Module):
    """A table of words, and what ONNX can do with text."""

    def __init__(self):
        super().__init__()
        keys, values = tf.constant(["a", "b", "the"]), tf.constant([1, 2, 3], tf.int64)
        start = tf.lookup.KeyValueTensorInitializer(keys, values)
        self.table = tf.lookup.StaticHashTable(start, -1)
        self.weight = tf.Variable(RNG.normal(size=(5, 2)).astype(np.float32), name="embedding")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")], autograph=False)
    def __call__(self, words):
        at = self.table.lookup(tf.strings.lower(words)) + 1
        return {"index": at, "vector": tf.gather(self.weight, at)}


def words():
    module = Words()
    return module, {"words": np.array(["a", "The", "zebra"], object)}, module


CASES = {
    "while": _over(_while), "until": _over(_until), "cond": _over(_cond), "slices": _over(_slices),
    "shapes": _over(_shapes), "indices": _over(_indices), "arithmetic": _over(_arithmetic),
    "reductions": _over(_reductions), "images": _over(_images, IMAGE), "calls": _over(_calls),
    "matrices": _over(_matrices), "case": _over(_case), "patches": _over(_patches, IMAGE), "map": _over(_map),
    "scan": _over(_scan), "words": words, "range": _over(_range), "shift": _over(_shift),
}
