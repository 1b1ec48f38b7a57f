"""Writes digits.onnx (a network that knows the digits 0 to 6), new_head.onnx (the same with a fresh head for three
classes) and data.npz (a few images of 7, 8 and 9).

Needs the onnx package. Trains for a few seconds on examples/mnist/data. Run it from anywhere:  python make.py
"""

import gzip
import pathlib

import numpy as np
import onnx
from onnx import numpy_helper, parser

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent
MNIST = HERE.parent / "mnist/data"

MODEL = """
<ir_version: 8, opset_import: ["": 17], producer_name: "onnxtrain examples">
digits (float[N, 1, 28, 28] image) => (float[N, 7] scores)
{
  c1 = Conv <kernel_shape = [5, 5], strides = [2, 2], pads = [2, 2, 2, 2]> (image, "backbone.conv1.weight",
  "backbone.conv1.bias") r1 = Relu (c1)
  c2 = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r1, "backbone.conv2.weight",
  "backbone.conv2.bias") r2 = Relu (c2)
  flat = Flatten (r2)
  h = Gemm <transB = 1> (flat, "backbone.fc.weight", "backbone.fc.bias")
  features = Relu (h)
  scores = Gemm <transB = 1> (features, "head.weight", "head.bias")
}
"""
SHAPES = {
    "backbone.conv1.weight": (8, 1, 5, 5), "backbone.conv1.bias": (8,),
    "backbone.conv2.weight": (16, 8, 3, 3), "backbone.conv2.bias": (16,),
    "backbone.fc.weight": (32, 784), "backbone.fc.bias": (32,), "head.weight": (7, 32), "head.bias": (7,),
}


def mnist(part):
    images = gzip.open(MNIST / f"{part}-images-idx3-ubyte.gz").read()[16:]
    labels = gzip.open(MNIST / f"{part}-labels-idx1-ubyte.gz").read()[8:]
    return np.frombuffer(images, np.uint8).reshape(-1, 28, 28), np.frombuffer(labels, np.uint8)


def new_head(model, classes, seed=1):
    """The same model with another head: two initializers and the output's type change, nothing else."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    rng = np.random.default_rng(seed)
    for t in m.graph.initializer:
        if t.name == "head.weight":
            t.CopyFrom(numpy_helper.from_array(rng.uniform(-0.2, 0.2, (classes, t.dims[1])).astype(np.float32), t.name))
        if t.name == "head.bias":
            t.CopyFrom(numpy_helper.from_array(np.zeros(classes, np.float32), t.name))
    m.graph.output[0].type.tensor_type.shape.dim[1].dim_value = classes
    return m


def known_digits():
    m = parser.parse_model(MODEL)
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        bound = (6.0 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.0
        m.graph.initializer.append(numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name))
    x, y = mnist("train")
    model = ot.load(m.SerializeToString()).compile(loss="cross_entropy", optimizer=ot.AdamW(lr=2e-3))
    model.fit(x[y < 7], y[y < 7], epochs=2, batch_size=64)
    x, y = mnist("t10k")
    print(f"digits 0 to 6: test accuracy {model.evaluate(x[y < 7], y[y < 7])['accuracy']:.2%}")
    for t in m.graph.initializer:
        t.CopyFrom(numpy_helper.from_array(model.parameters[t.name], t.name))
    return m


def few_images():
    x, y = mnist("train")
    xt, yt = mnist("t10k")
    some, test = np.flatnonzero(y > 6)[:60], np.flatnonzero(yt > 6)[:600]
    return {"x_train": x[some], "y_train": y[some], "x_test": xt[test], "y_test": yt[test]}


if __name__ == "__main__":
    digits = known_digits()
    onnx.save(digits, HERE / "digits.onnx")
    onnx.save(new_head(digits, 3), HERE / "new_head.onnx")
    np.savez_compressed(HERE / "data.npz", **few_images())
