"""Small models for the tests, made with onnx.parser."""

import numpy as np
from onnx import numpy_helper, parser

import onnxtrain as ot

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'


def with_weights(text, shapes, seed=0, scale=0.5):
    m = parser.parse_model(HEAD + text)
    rng = np.random.default_rng(seed)
    for name, shape in shapes.items():
        value = rng.standard_normal(shape) * scale if len(shape) > 1 else np.zeros(shape)
        m.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return m


def mlp(inputs=4, hidden=16, classes=3, seed=0, output="logits"):
    return with_weights(
        f"""mlp (float[N, {inputs}] x) => (float[N, {classes}] {output})
        {{
          h = Gemm <transB = 1> (x, "fc1.weight", "fc1.bias")
          a = Relu (h)
          {output} = Gemm <transB = 1> (a, "fc2.weight", "fc2.bias")
        }}""",
        {"fc1.weight": (hidden, inputs), "fc1.bias": (hidden,), "fc2.weight": (classes, hidden),
         "fc2.bias": (classes,)}, seed)


def two_heads():
    return with_weights(
        """heads (float[N, 4] x) => (float[N, 3] scores, float[N, 1] size)
        {
          h = Gemm <transB = 1> (x, "body.weight", "body.bias")
          a = Tanh (h)
          scores = Gemm <transB = 1> (a, "scores.weight", "scores.bias")
          size = Gemm <transB = 1> (a, "size.weight", "size.bias")
        }""",
        {"body.weight": (8, 4), "body.bias": (8,), "scores.weight": (3, 8), "scores.bias": (3,),
         "size.weight": (1, 8), "size.bias": (1,)})


def rows(n=64, seed=1):
    """x [n,4] float32 and labels 0..2 that follow from it."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 4)).astype(np.float32)
    return x, (x.sum(1) > 0).astype(np.int64) + (x[:, 0] > 1)


def feeds(n=64, seed=1):
    x, y = rows(n, seed)
    return {"x": x, "label": y}


def three_classes():
    """Rows that a linear model can tell apart: x, labels."""
    x = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
    return x, np.argmax(x[:, :3], 1)


def trainer(**more):
    return ot.Trainer(ot.prepare(mlp(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1)), threads=1, **more)
