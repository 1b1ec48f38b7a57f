"""ONNX operators in keras.ops: (domain, operator) -> function (values, node, training)."""

import keras
import numpy as np
from keras import ops

from ...errors import ModelError
from .values import to_last

TABLE = {}
IMAGES = {}  # the same on images that are channels last


def operator(*names, domain=""):
    def add(f):
        for n in names:
            TABLE[domain, n] = f
        return f

    return add


def kinds():
    return [*TABLE, *[k for k in IMAGES if k not in TABLE]]


def numbers(v, name):
    """A value as numpy: sizes and axes must be known."""
    x = v[name]
    try:
        return np.asarray(ops.convert_to_numpy(x))
    except Exception as e:  # noqa: BLE001 - symbolic
        raise ModelError(f"'{name}' must be known before the model runs", "OT1711") from e


def ints(v, node, k, attribute=None):
    if attribute and attribute in node.attrs:
        return [int(a) for a in np.atleast_1d(node.attrs[attribute])]
    if len(node.inputs) > k and node.inputs[k]:
        return [int(a) for a in np.atleast_1d(numbers(v, node.inputs[k]))]
    return None


# ---- elements
_UNARY = {"Relu": ops.relu, "Sigmoid": ops.sigmoid, "Tanh": ops.tanh, "Exp": ops.exp, "Log": ops.log, "Sqrt": ops.sqrt,
          "Neg": ops.negative, "Abs": ops.abs, "Sign": ops.sign, "Floor": ops.floor, "Ceil": ops.ceil, "Erf": ops.erf,
          "Sin": ops.sin, "Cos": ops.cos, "Softplus": ops.softplus, "Softsign": ops.softsign, "Not": ops.logical_not,
          "Reciprocal": ops.reciprocal, "Identity": lambda x: x, "IsNaN": ops.isnan, "Round": ops.round}
_BINARY = {"Add": ops.add, "Sub": ops.subtract, "Mul": ops.multiply, "Div": ops.true_divide, "Pow": ops.power,
           "Max": ops.maximum, "Min": ops.minimum, "Equal": ops.equal, "Less": ops.less, "Greater": ops.greater,
           "LessOrEqual": ops.less_equal, "GreaterOrEqual": ops.greater_equal, "And": ops.logical_and,
           "Or": ops.logical_or, "Mod": ops.mod}


def _elementwise(f, count):
    def run(v, node, training):
        names = node.inputs[:count] if count else node.inputs
        if all(v.is_image(n) for n in names):
            made = v.image(names[0])
            made = f(made) if count == 1 else made
            for n in names[1:]:
                made = f(made, v.image(n))
            v.set_image(node.outputs[0], made)
            return
        made = v[names[0]]
        made = f(made) if count == 1 else made
        for n in names[1:]:
            made = f(made, v[n])
        v.set(node.outputs[0], made)

    return run


for _n, _f in _UNARY.items():
    TABLE["", _n] = _elementwise(_f, 1)
for _n, _f in _BINARY.items():
    TABLE["", _n] = _elementwise(_f, 0)
TABLE["ai.onnxtrain", "Detach"] = _elementwise(ops.stop_gradient, 1)


@operator("Div")
def div(v, node, training):
    a, b = v[node.inputs[0]], v[node.inputs[1]]
    whole = keras.backend.is_int_dtype(a.dtype)
    v.set(node.outputs[0], ops.floor_divide(a, b) if whole else ops.true_divide(a, b))


def _unary_with(name, f):
    def run(v, node, training):
        x = node.inputs[0]
        if v.is_image(x):
            v.set_image(node.outputs[0], f(v.image(x), node.attrs))
        else:
            v.set(node.outputs[0], f(v[x], node.attrs))

    TABLE["", name] = run


_unary_with("LeakyRelu", lambda x, a: ops.leaky_relu(x, a.get("alpha", 0.01)))
_unary_with("Elu", lambda x, a: ops.elu(x, a.get("alpha", 1.0)))
_unary_with("Selu", lambda x, a: ops.selu(x))
_unary_with("Gelu", lambda x, a: ops.gelu(x, approximate=a.get("approximate") == "tanh"))
_unary_with("HardSigmoid", lambda x, a: ops.clip(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1))
_unary_with("HardSwish", lambda x, a: x * ops.clip(x / 6 + 0.5, 0, 1))


@operator("Clip")
def clip(v, node, training):
    x = v[node.inputs[0]]
    for k, f in ((1, ops.maximum), (2, ops.minimum)):
        if len(node.inputs) > k and node.inputs[k]:
            x = f(x, v[node.inputs[k]])
    v.set(node.outputs[0], x)


@operator("Where")
def where(v, node, training):
    v.set(node.outputs[0], ops.where(*[v[n] for n in node.inputs]))


_TYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
          11: "float64", 12: "uint32", 16: "bfloat16"}


@operator("Cast")
def cast(v, node, training):
    v.set(node.outputs[0], ops.cast(v[node.inputs[0]], _TYPES[node.attrs["to"]]))


@operator("CastLike")
def cast_like(v, node, training):
    v.set(node.outputs[0], ops.cast(v[node.inputs[0]], v[node.inputs[1]].dtype))


# ---- products and layers
@operator("MatMul")
def matmul(v, node, training):
    v.set(node.outputs[0], ops.matmul(v[node.inputs[0]], v[node.inputs[1]]))


@operator("Gemm")
def gemm(v, node, training):
    a, b = v[node.inputs[0]], v[node.inputs[1]]
    a = ops.transpose(a) if node.attrs.get("transA") else a
    b = ops.transpose(b) if node.attrs.get("transB") else b
    y = ops.matmul(a, b)
    if node.attrs.get("alpha", 1.0) != 1.0:
        y = y * node.attrs["alpha"]
    if len(node.inputs) > 2 and node.inputs[2]:
        y = y + v[node.inputs[2]] * node.attrs.get("beta", 1.0)
    v.set(node.outputs[0], y)


@operator("Einsum")
def einsum(v, node, training):
    v.set(node.outputs[0], ops.einsum(node.attrs["equation"], *[v[n] for n in node.inputs]))


def padded(x, node, size, strides, dilations, value=0.0):
    """An image with explicit padding; auto_pad counted out."""
    n = len(size)
    auto = node.attrs.get("auto_pad", "NOTSET")
    pads = list(node.attrs.get("pads", [0] * 2 * n))
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = [0] * 2 * n
        for k in range(n):
            total = max((-(-x.shape[1 + k] // strides[k]) - 1) * strides[k] + (size[k] - 1) * dilations[k] + 1
                        - x.shape[1 + k], 0)
            less = total // 2
            pads[k], pads[n + k] = (less, total - less) if auto == "SAME_UPPER" else (total - less, less)
    if not any(pads):
        return x, pads
    widths = [(0, 0), *[(pads[k], pads[n + k]) for k in range(n)], (0, 0)]
    return ops.pad(x, widths, constant_values=value), pads


@operator("Conv")
def conv(v, node, training):
    x, w = v.image(node.inputs[0]), v[node.inputs[1]]
    n = len(w.shape) - 2
    size = list(w.shape[2:])
    strides, dilations = (list(node.attrs.get(k, [1] * n)) for k in ("strides", "dilations"))
    x, _ = padded(x, node, size, strides, dilations)
    kernel = ops.transpose(w, (*range(2, n + 2), 1, 0))
    groups = node.attrs.get("group", 1)
    if groups > 1 and groups == x.shape[-1] and w.shape[1] == 1 and n <= 2 and len(set(strides)) == 1:
        deep = ops.reshape(w, (groups, w.shape[0] // groups, *size))
        y = ops.depthwise_conv(x, ops.transpose(deep, (*range(2, n + 2), 0, 1)), strides, "valid", "channels_last",
                               dilations)
    else:
        y = ops.conv(x, kernel, strides, "valid", "channels_last", dilations)
    if len(node.inputs) > 2 and node.inputs[2]:
        y = y + v[node.inputs[2]]
    v.set_image(node.outputs[0], y)


@operator("MaxPool", "AveragePool")
def pool(v, node, training):
    x = v.image(node.inputs[0])
    size = list(node.attrs["kernel_shape"])
    n = len(size)
    strides = list(node.attrs.get("strides", [1] * n))
    if node.attrs.get("ceil_mode") or any(d != 1 for d in node.attrs.get("dilations", [1])) or len(node.outputs) > 1:
        raise ModelError(f"node {node.label}: pooling with ceil_mode, dilations or indices", "OT1711")
    if node.op == "MaxPool":
        x, _ = padded(x, node, size, strides, [1] * n, float(np.finfo(np.float32).min))
        v.set_image(node.outputs[0], ops.max_pool(x, size, strides, "valid", "channels_last"))
        return
    wide, pads = padded(x, node, size, strides, [1] * n)
    y = ops.average_pool(wide, size, strides, "valid", "channels_last")
    if any(pads) and not node.attrs.get("count_include_pad"):
        one, _ = padded(ops.ones_like(x), node, size, strides, [1] * n)
        y = y / ops.average_pool(one, size, strides, "valid", "channels_last")
    v.set_image(node.outputs[0], y)


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(v, node, training):
    x = v.image(node.inputs[0])
    f = ops.mean if node.op == "GlobalAveragePool" else ops.max
    v.set_image(node.outputs[0], f(x, axis=list(range(1, len(x.shape) - 1)), keepdims=True))


@operator("BatchNormalization")
def batch_normalization(v, node, training):
    name, axis = node.inputs[0], 1
    rank = len(v.image(name).shape) if v.is_image(name) else len(v[name].shape)
    x, image = (v.image(name), True) if rank > 2 else (v[name], False)
    scale, bias, mean, variance = (v[n] for n in node.inputs[1:5])
    axis, epsilon = (rank - 1 if image else 1), node.attrs.get("epsilon", 1e-5)
    if node.attrs.get("training_mode"):
        m = node.attrs.get("momentum", 0.9)
        now, spread = ops.moments(x, [a for a in range(rank) if a != axis])
        for out, old, new in zip(node.outputs[1:3], (mean, variance), (now, spread)):
            if out:
                v.set(out, ops.stop_gradient(old * m + new * (1 - m)))
        mean, variance = now, spread
    y = ops.batch_normalization(x, mean, variance, axis, bias, scale, epsilon)
    (v.set_image if image else v.set)(node.outputs[0], y)


@operator("LayerNormalization")
def layer_normalization(v, node, training):
    x = v[node.inputs[0]]
    axes = list(range(node.attrs.get("axis", -1) % len(x.shape), len(x.shape)))
    mean, variance = ops.moments(x, axes, keepdims=True)
    y = (x - mean) * ops.rsqrt(variance + node.attrs.get("epsilon", 1e-5)) * v[node.inputs[1]]
    v.set(node.outputs[0], y + v[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else y)


@operator("Dropout")
def dropout(v, node, training):
    x = v[node.inputs[0]]
    ratio = float(numbers(v, node.inputs[1])) if len(node.inputs) > 1 and node.inputs[1] else 0.5
    on = len(node.inputs) > 2 and node.inputs[2] and bool(numbers(v, node.inputs[2]))
    v.set(node.outputs[0], keras.random.dropout(x, ratio, seed=v.seed) if on and ratio > 0 else x)


@operator("Softmax", "LogSoftmax")
def softmax(v, node, training):
    f = ops.softmax if node.op == "Softmax" else ops.log_softmax
    v.set(node.outputs[0], f(v[node.inputs[0]], axis=node.attrs.get("axis", -1)))


@operator("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def class_loss(v, node, training):
    x, target = v[node.inputs[0]], ops.cast(v[node.inputs[1]], "int64")
    logs = ops.log_softmax(x, axis=1) if node.op == "SoftmaxCrossEntropyLoss" else x
    ignore = node.attrs.get("ignore_index")
    kept = ops.ones_like(target) if ignore is None else ops.cast(ops.not_equal(target, ignore), "int64")
    places = ops.expand_dims(target * kept, 1)
    losses = -ops.squeeze(ops.take_along_axis(logs, places, axis=1), axis=1)
    weights = ops.cast(kept, x.dtype)
    if len(node.inputs) > 2 and node.inputs[2]:
        weights = weights * ops.take(v[node.inputs[2]], target * kept)
    losses = losses * weights
    reduction = node.attrs.get("reduction", "mean")
    if reduction != "none":
        losses = ops.sum(losses) if reduction == "sum" else ops.sum(losses) / ops.sum(weights)
    v.set(node.outputs[0], losses)
    if len(node.outputs) > 1 and node.outputs[1]:
        v.set(node.outputs[1], logs)


# ---- shapes
@operator("Reshape")
def reshape(v, node, training):
    x = v[node.inputs[0]]
    wanted = [int(d) for d in numbers(v, node.inputs[1])]
    sizes = ops.shape(x)
    v.set(node.outputs[0], ops.reshape(x, tuple(sizes[k] if d == 0 and not node.attrs.get("allowzero") else d
                                                for k, d in enumerate(wanted))))


@operator("Flatten")
def flatten(v, node, training):
    x = v[node.inputs[0]]
    axis = node.attrs.get("axis", 1) % (len(x.shape) + 1)
    if axis == 1:
        v.set(node.outputs[0], ops.reshape(x, (ops.shape(x)[0], -1 if None not in x.shape[1:] and not x.shape[1:]
                                               else int(np.prod(x.shape[1:])))))
        return
    v.set(node.outputs[0], ops.reshape(x, (int(np.prod(x.shape[:axis], dtype=np.int64)), -1)))


@operator("Transpose")
def transpose(v, node, training):
    v.set(node.outputs[0], ops.transpose(v[node.inputs[0]], node.attrs.get("perm")))


@operator("Concat")
def concat(v, node, training):
    if all(v.is_image(n) for n in node.inputs) and node.attrs["axis"] == 1:
        v.set_image(node.outputs[0], ops.concatenate([v.image(n) for n in node.inputs], axis=-1))
    else:
        v.set(node.outputs[0], ops.concatenate([v[n] for n in node.inputs], axis=node.attrs["axis"]))


@operator("Squeeze", "Unsqueeze")
def squeeze(v, node, training):
    x, axes = v[node.inputs[0]], ints(v, node, 1, "axes")
    if node.op == "Squeeze":
        v.set(node.outputs[0], ops.squeeze(x, axis=None if axes is None else tuple(a % len(x.shape) for a in axes)))
        return
    for a in sorted(a % (len(x.shape) + len(axes)) for a in axes):
        x = ops.expand_dims(x, a)
    v.set(node.outputs[0], x)


@operator("Gather")
def gather(v, node, training):
    v.set(node.outputs[0], ops.take(v[node.inputs[0]], ops.cast(v[node.inputs[1]], "int32"),
                                    axis=node.attrs.get("axis", 0)))


@operator("Slice")
def slice_(v, node, training):
    x = v[node.inputs[0]]
    starts, ends = ints(v, node, 1, "starts"), ints(v, node, 2, "ends")
    axes = ints(v, node, 3, "axes") or list(range(len(starts)))
    steps = ints(v, node, 4) or [1] * len(starts)
    keys = [slice(None)] * len(x.shape)
    for s, e, a, step in zip(starts, ends, axes, steps):
        stop = None if e >= (1 << 31) - 1 or step < 0 and e <= -(1 << 31) else e
        keys[a % len(x.shape)] = slice(s, stop, step)
    v.set(node.outputs[0], x[tuple(keys)])


@operator("Split")
def split(v, node, training):
    x, axis = v[node.inputs[0]], node.attrs.get("axis", 0)
    sizes = ints(v, node, 1, "split") or [x.shape[axis] // len(node.outputs)] * len(node.outputs)
    for name, part in zip(node.outputs, ops.split(x, list(np.cumsum(sizes)[:-1]), axis=axis)):
        v.set(name, part)


@operator("Pad")
def pad(v, node, training):
    x, pads = v[node.inputs[0]], ints(v, node, 1, "pads")
    n, mode = len(pads) // 2, node.attrs.get("mode", "constant")
    value = v[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else 0
    widths = [(pads[k], pads[n + k]) for k in range(n)]
    v.set(node.outputs[0], ops.pad(x, widths, mode, constant_values=value) if mode == "constant"
          else ops.pad(x, widths, mode))


@operator("Expand")
def expand(v, node, training):
    x, shape = v[node.inputs[0]], [int(d) for d in numbers(v, node.inputs[1])]
    have = [1] * (len(shape) - len(x.shape)) + list(x.shape)
    v.set(node.outputs[0], ops.broadcast_to(x, [max(a, b) for a, b in zip(have, shape)]))


@operator("Shape")
def shape(v, node, training):
    sizes = ops.shape(v[node.inputs[0]])[node.attrs.get("start", 0):node.attrs.get("end")]
    v.set(node.outputs[0], ops.convert_to_tensor(sizes, dtype="int64"))


@operator("Size")
def size(v, node, training):
    v.set(node.outputs[0], ops.prod(ops.convert_to_tensor(ops.shape(v[node.inputs[0]]), dtype="int64")))


@operator("ConstantOfShape")
def constant_of_shape(v, node, training):
    value = np.asarray(node.attrs.get("value", np.zeros([1], np.float32)))
    v.set(node.outputs[0], ops.full([int(d) for d in numbers(v, node.inputs[0])], value[0], dtype=value.dtype.name))


def _reduction(name, f):
    def run(v, node, training):
        x, axes = v[node.inputs[0]], ints(v, node, 1, "axes")
        keep = bool(node.attrs.get("keepdims", 1))
        if axes is None and node.attrs.get("noop_with_empty_axes"):
            v.set(node.outputs[0], x)
            return
        v.set(node.outputs[0], f(x, axes, keep))

    TABLE["", name] = run


_reduction("ReduceSum", lambda x, a, k: ops.sum(x, a, k))
_reduction("ReduceMean", lambda x, a, k: ops.mean(x, a, k))
_reduction("ReduceMax", lambda x, a, k: ops.max(x, a, k))
_reduction("ReduceMin", lambda x, a, k: ops.min(x, a, k))
_reduction("ReduceProd", lambda x, a, k: ops.prod(x, a, k))
_reduction("ReduceSumSquare", lambda x, a, k: ops.sum(ops.square(x), a, k))
_reduction("ReduceL1", lambda x, a, k: ops.sum(ops.abs(x), a, k))
_reduction("ReduceL2", lambda x, a, k: ops.sqrt(ops.sum(ops.square(x), a, k)))


@operator("OneHot")
def one_hot(v, node, training):
    depth = int(numbers(v, node.inputs[1]).reshape(-1)[0])
    off, on = numbers(v, node.inputs[2])
    hot = ops.one_hot(ops.mod(v[node.inputs[0]], depth), depth, axis=node.attrs.get("axis", -1))
    v.set(node.outputs[0], ops.cast(hot * (on - off) + off, off.dtype.name))


def run(v, nodes, training):
    """All nodes in order."""
    for node in nodes:
        TABLE[node.kind](v, node, training)


__all__ = ["TABLE", "kinds", "run", "to_last"]
