"""Two networks and their data: points in three spirals for an MLP, images of bars for a small CNN."""

import numpy as np
import onnx

import onnxtrain as ot

BATCH, ROWS, STEPS = 16, 64, 60


def model(text, shapes, seed):
    random = np.random.default_rng(seed)
    m = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>' + text)
    for name, shape in shapes.items():
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        values = random.standard_normal(shape) * (2 / fan_in) ** 0.5 if len(shape) > 1 else np.zeros(shape)
        m.graph.initializer.append(onnx.numpy_helper.from_array(values.astype(np.float32), name))
    return m.SerializeToString()


def spirals():
    random = np.random.default_rng(1)
    label = np.arange(ROWS) % 3
    radius = random.uniform(0.2, 1, ROWS)
    angle = radius * 4 + label * 2 * np.pi / 3 + random.normal(0, 0.1, ROWS)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return x.astype(np.float32), label.astype(np.int64)


def bars():
    """8 x 8 images with a horizontal, vertical or diagonal bar in noise."""
    random = np.random.default_rng(2)
    label = np.arange(ROWS) % 3
    x = random.normal(0, 0.25, (ROWS, 1, 8, 8))
    for image, kind in zip(x[:, 0], label):
        at = random.integers(1, 7)
        if kind == 0:
            image[at] += 1
        elif kind == 1:
            image[:, at] += 1
        else:
            image += np.eye(8, k=at - 3)
    return x.astype(np.float32), label.astype(np.int64)


def mlp():
    text = """mlp (float[N,2] x) => (float[N,3] scores) {
        h0 = Gemm(x, W1, b1) h = Relu(h0) scores = Gemm(h, W2, b2) }"""
    return (model(text, {"W1": (2, 16), "b1": (16,), "W2": (16, 3), "b2": (3,)}, 3), ot.Adam(lr=0.03), spirals())


def cnn():
    text = """cnn (float[N,1,8,8] x) => (float[N,3] scores) {
        c1 = Conv<pads = [1, 1, 1, 1]>(x, K1, b1) r1 = Relu(c1)
        p1 = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r1)
        c2 = Conv<pads = [1, 1, 1, 1]>(p1, K2, b2) r2 = Relu(c2) m = ReduceMean<axes = [2, 3], keepdims = 0>(r2)
        scores = Gemm(m, W, b) }"""
    shapes = {"K1": (4, 1, 3, 3), "b1": (4,), "K2": (8, 4, 3, 3), "b2": (8,), "W": (8, 3), "b": (3,)}
    return model(text, shapes, 4), ot.SGD(lr=0.1, momentum=0.9), bars()


NETWORKS = {"mlp": mlp, "cnn": cnn}
