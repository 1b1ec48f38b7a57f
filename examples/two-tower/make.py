"""Writes towers.onnx (the model), in_batch.onnx (its loss) and pairs.npz (data).

Needs the onnx package (for its text parser). Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper, parser

HERE = pathlib.Path(__file__).parent

# Two inputs, two outputs: what a person asks for and what is on offer, in one space of 16 numbers.
TOWERS = """
<ir_version: 8, opset_import: ["": 17], producer_name: "onnxtrain examples">
towers (float[N, 20] query, float[N, 30] item) => (float[N, 16] query_vector, float[N, 16] item_vector)
{
  q1 = Gemm <transB = 1> (query, "query.1.weight", "query.1.bias")
  q1a = Relu (q1)
  q2 = Gemm <transB = 1> (q1a, "query.2.weight", "query.2.bias")
  query_vector = LpNormalization <axis = 1, p = 2> (q2)
  i1 = Gemm <transB = 1> (item, "item.1.weight", "item.1.bias")
  i1a = Relu (i1)
  i2 = Gemm <transB = 1> (i1a, "item.2.weight", "item.2.bias")
  item_vector = LpNormalization <axis = 1, p = 2> (i2)
}
"""
SHAPES = {
    "query.1.weight": (64, 20), "query.1.bias": (64,), "query.2.weight": (16, 64), "query.2.bias": (16,),
    "item.1.weight": (64, 30), "item.1.bias": (64,), "item.2.weight": (16, 64), "item.2.bias": (16,),
}

# The loss: row k of the batch belongs to row k; all other rows of the batch are wrong answers. Softmax over the
# scores of each query against every item, and of each item against every query. Its inputs are outputs of the model
# by name; there is no target at all.
IN_BATCH = """
<ir_version: 8, opset_import: ["": 17], producer_name: "onnxtrain examples">
in_batch (float[N, 16] query_vector, float[N, 16] item_vector) => (float loss)
{
  temperature = Constant <value = float {0.1}> ()
  item_columns = Transpose <perm = [1, 0]> (item_vector)
  cosines = MatMul (query_vector, item_columns)
  scores = Div (cosines, temperature)
  rows = Shape <start = 0, end = 1> (query_vector)
  count = Squeeze (rows)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  own = Range (zero, count, one)
  query_loss = SoftmaxCrossEntropyLoss (scores, own)
  scores_turned = Transpose <perm = [1, 0]> (scores)
  item_loss = SoftmaxCrossEntropyLoss (scores_turned, own)
  loss = Add (query_loss, item_loss)
}
"""


def towers():
    m = parser.parse_model(TOWERS)
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        bound = (3.0 / shape[-1]) ** 0.5 if len(shape) > 1 else 0.0
        m.graph.initializer.append(numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name))
    return m


def in_batch():
    return parser.parse_model(IN_BATCH)


def pairs():
    """Both sides see the same hidden 6 numbers through their own curved glass, with noise."""
    rng = np.random.default_rng(0)
    n, hidden = 1000, 6
    taste = rng.standard_normal((n, hidden))

    def seen(width):
        glass = rng.standard_normal((hidden, width)) / hidden**0.5
        return (np.tanh(taste @ glass) + rng.normal(0, 0.1, (n, width))).astype(np.float32)

    query, item = seen(20), seen(30)
    return {"query_train": query[:800], "item_train": item[:800], "query_test": query[800:], "item_test": item[800:]}


if __name__ == "__main__":
    onnx.save(towers(), HERE / "towers.onnx")
    onnx.save(in_batch(), HERE / "in_batch.onnx")
    np.savez_compressed(HERE / "pairs.npz", **pairs())
