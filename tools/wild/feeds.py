"""Random inputs for a model that is not known: the first of several guesses that ONNX Runtime runs."""

import numpy as np
import onnx

SIZES = [  # of dimensions that the file leaves open: batch, sizes of images or sequences, others
    {"batch": 1, "large": 64, "small": 16},
    {"batch": 1, "large": 32, "small": 32},
    {"batch": 1, "large": 48, "small": 48},
    {"batch": 1, "large": 160, "small": 80},
    {"batch": 1, "large": 512, "small": 8},
    {"batch": 1, "large": 576, "small": 8},
    {"batch": 1, "large": 16000, "small": 8},
    {"batch": 1, "large": 576, "small": 1},
    {"batch": 1, "large": 16000, "small": 1},
    {"batch": 1, "large": 1, "small": 1},
]
FLOATS = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64, onnx.TensorProto.FLOAT16: np.float16}
WHOLE = {onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32, onnx.TensorProto.UINT8: np.uint8,
         onnx.TensorProto.INT8: np.int8, onnx.TensorProto.UINT16: np.uint16, onnx.TensorProto.INT16: np.int16}
SIDE = 640  # of an image, where a number without a name that says so may be one
FREQUENCIES = {"fmin": 50.0, "fmax": 500.0}  # of a voice, in hertz


def graph_inputs(model):
    given = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in given]


def shape_of(value, sizes, named):
    """The shape with the open dimensions filled in; the same name has the same size everywhere."""
    dims = value.type.tensor_type.shape.dim
    shape = []
    for k, d in enumerate(dims):
        if d.HasField("dim_value") and d.dim_value > 0:
            shape.append(d.dim_value)
            continue
        size = sizes["batch"] if k == 0 else sizes["large"] if k >= 2 or len(dims) == 2 else sizes["small"]
        if len(dims) == 4 and k == 1:
            size = 3
        if len(dims) == 3 and dims[2].dim_value == 3:  # an image [height, width, 3]
            size = sizes["large"]
        shape.append(named.setdefault(d.dim_param, size) if d.dim_param else size)
    return shape


def says_length(value):
    name = value.name.lower()
    whole = value.type.tensor_type.elem_type in WHOLE
    return whole and "mask" not in name and any(word in name for word in ("len", "shape", "size"))


def array_for(value, shape, random, length):
    kind = value.type.tensor_type.elem_type
    name = value.name.lower()
    if name in FREQUENCIES and kind in FLOATS:
        return np.full(shape, FREQUENCIES[name], FLOATS[kind])
    if kind in FLOATS:
        return random.uniform(-1, 1, shape).astype(FLOATS[kind])
    if kind in WHOLE:
        if name in ("sr", "sample_rate"):
            return np.full(shape, 16000, WHOLE[kind])
        if "mask" in name:
            return np.ones(shape, WHOLE[kind])
        if says_length(value) or (not shape and length == SIDE):
            return np.full(shape, length, WHOLE[kind])
        return random.integers(0, 3, shape).astype(WHOLE[kind])
    if kind == onnx.TensorProto.BOOL:
        return np.ones(shape, bool)
    if kind == onnx.TensorProto.STRING:
        return np.full(shape, "a", object)
    return None


def guesses(model, seed=0, batch=1):
    """Feeds, one dict after the other. Nothing for models with inputs that are no tensors."""
    inputs = graph_inputs(model)
    if any(not i.type.HasField("tensor_type") for i in inputs):
        return
    seen = set()
    # files that were traced with a batch of two take no other
    for sizes in [*({**s, "batch": batch} for s in SIZES), {**SIZES[0], "batch": 2}, {**SIZES[0], "batch": 3}]:
        random, named = np.random.default_rng(seed), {}
        shapes = {i.name: shape_of(i, sizes, named) for i in inputs}
        longest = max((s[-1] for s in shapes.values() if len(s) > 1), default=8)
        lengths = (longest, 8) if any(map(says_length, inputs)) else (8,)
        for length in (*lengths, SIDE) if [] in shapes.values() else lengths:
            key = (length, *(tuple(s) for s in shapes.values()))
            if key in seen or sum(int(np.prod(s)) for s in shapes.values()) > 20_000_000:
                continue
            seen.add(key)
            feeds = {i.name: array_for(i, shapes[i.name], random, length) for i in inputs}
            if any(a is None for a in feeds.values()):
                return
            yield feeds
