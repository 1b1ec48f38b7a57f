"""Writes model.train.onnx: a small classifier with its training, for run.py.

Needs the onnx package (for its text parser). Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
from onnx import numpy_helper, parser

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent
MODEL = """
<ir_version: 8, opset_import: ["": 17], producer_name: "onnxtrain examples">
classifier (float[N, 2] x) => (float[N, 4] logits)
{
  h1 = Gemm <transB = 1> (x, "fc1.weight", "fc1.bias")
  a1 = Tanh (h1)
  logits = Gemm <transB = 1> (a1, "fc2.weight", "fc2.bias")
}
"""
SHAPES = {"fc1.weight": (32, 2), "fc1.bias": (32,), "fc2.weight": (4, 32), "fc2.bias": (4,)}


def model():
    m = parser.parse_model(MODEL)
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        value = rng.uniform(-1, 1, shape) / np.sqrt(shape[-1])
        m.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return m


if __name__ == "__main__":
    train = ot.prepare(model(), loss="cross_entropy", optimizer=ot.SGD(lr=0.5))
    train.save(HERE / "model.train.onnx")
