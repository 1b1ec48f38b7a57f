"""Writes characters.onnx: a language model over characters (embedding, GRU, scores).

Needs the onnx package (for its text parser). Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper, parser

HERE = pathlib.Path(__file__).parent
EMBED, HIDDEN = 24, 80


def text():
    return (HERE / "text.txt").read_text()


def alphabet():
    return "".join(sorted(set(text())))


def model(characters):
    n = len(characters)
    m = parser.parse_model(f"""
<ir_version: 8, opset_import: ["": 17], producer_name: "onnxtrain examples">
characters (int64[N, T] ids) => (float[N, T, {n}] scores)
{{
  embedded = Gather <axis = 0> ("embedding.weight", ids)
  by_time = Transpose <perm = [1, 0, 2]> (embedded)
  states, last = GRU <hidden_size = {HIDDEN}, linear_before_reset = 1> (by_time, "gru.W", "gru.R", "gru.B")
  axis = Constant <value = int64[1] {{1}}> ()
  one_way = Squeeze (states, axis)
  by_row = Transpose <perm = [1, 0, 2]> (one_way)
  products = MatMul (by_row, "head.weight")
  scores = Add (products, "head.bias")
}}""")
    rng = np.random.default_rng(0)
    shapes = {
        "embedding.weight": (n, EMBED), "gru.W": (1, 3 * HIDDEN, EMBED), "gru.R": (1, 3 * HIDDEN, HIDDEN),
        "gru.B": (1, 6 * HIDDEN), "head.weight": (HIDDEN, n), "head.bias": (n,),
    }
    for name, shape in shapes.items():
        bound = 1.0 if name == "embedding.weight" else 1 / HIDDEN**0.5
        m.graph.initializer.append(numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name))
    m.metadata_props.add(key="characters", value=characters)
    return m


if __name__ == "__main__":
    onnx.save(model(alphabet()), HERE / "characters.onnx")
