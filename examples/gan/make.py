"""Writes gan.train.onnx: a generative adversarial network as two training sections.

Needs the onnx package (for its text parser). Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper, parser

HERE = pathlib.Path(__file__).parent
NOISE, WIDTH = 4, 48

# Both networks are in the main graph, because both sections need both sets of weights. The discriminator is a
# function, so that a section can apply it to other points too.
MODEL = f"""
<ir_version: 8, opset_import: ["": 17, "ai.onnx.preview.training": 1, "gan": 1], producer_name: "onnxtrain examples">
gan (float[N, {NOISE}] noise) => (float[N, 2] point, float[N, 1] point_score)
{{
  g1 = Gemm <transB = 1> (noise, "g.1.weight", "g.1.bias")
  g1a = LeakyRelu <alpha = 0.2> (g1)
  g2 = Gemm <transB = 1> (g1a, "g.2.weight", "g.2.bias")
  g2a = LeakyRelu <alpha = 0.2> (g2)
  point = Gemm <transB = 1> (g2a, "g.3.weight", "g.3.bias")
  point_score = gan.Discriminator (point, "d.1.weight", "d.1.bias", "d.2.weight", "d.2.bias", "d.3.weight", "d.3.bias")
}}
<domain: "gan", opset_import: ["": 17]>
Discriminator (x, w1, b1, w2, b2, w3, b3) => (score)
{{
  h1 = Gemm <transB = 1> (x, w1, b1)
  a1 = LeakyRelu <alpha = 0.2> (h1)
  h2 = Gemm <transB = 1> (a1, w2, b2)
  a2 = LeakyRelu <alpha = 0.2> (h2)
  score = Gemm <transB = 1> (a2, w3, b3)
}}
"""

SHAPES = {
    "g.1.weight": (WIDTH, NOISE), "g.1.bias": (WIDTH,), "g.2.weight": (WIDTH, WIDTH), "g.2.bias": (WIDTH,),
    "g.3.weight": (2, WIDTH), "g.3.bias": (2,),
    "d.1.weight": (WIDTH, 2), "d.1.bias": (WIDTH,), "d.2.weight": (WIDTH, WIDTH), "d.2.bias": (WIDTH,),
    "d.3.weight": (1, WIDTH), "d.3.bias": (1,),
}
GENERATOR = [n for n in SHAPES if n.startswith("g.")]
DISCRIMINATOR = [n for n in SHAPES if n.startswith("d.")]

# Section 0 teaches the discriminator: high scores for data, low ones for generated points.
DISCRIMINATOR_LOSS = """
  data_score = gan.Discriminator (data, "d.1.weight", "d.1.bias", "d.2.weight", "d.2.bias", "d.3.weight", "d.3.bias")
  data_miss = Neg (data_score)
  on_data = Softplus (data_miss)
  on_points = Softplus (point_score)
  mean_data = ReduceMean <keepdims = 0> (on_data)
  mean_points = ReduceMean <keepdims = 0> (on_points)
  d_loss = Add (mean_data, mean_points)
"""

# Section 1 teaches the generator: points that the discriminator scores high.
GENERATOR_LOSS = """
  miss = Neg (point_score)
  each = Softplus (miss)
  g_loss = ReduceMean <keepdims = 0> (each)
"""


def quoted(names, suffix=""):
    return ", ".join(f'"{n}{suffix}"' for n in names)


def section(model, key, data_input, loss_nodes, names, data_names, rate):
    """One TrainingInfoProto: the loss, its gradient, the standard's Adam over all parameters, a counter."""
    typed = ", ".join(f'float[{", ".join(map(str, SHAPES[n]))}] "{n}_next"' for n in names)
    moments = ", ".join(
        f'float[{", ".join(map(str, SHAPES[n]))}] "{n}_{s}_next"' for s in ("v", "h") for n in names)
    gradients = ", ".join(f'float[{", ".join(map(str, SHAPES[n]))}] "{n}_gradient"' for n in names)
    algorithm = parser.parse_graph(f"""
{key}_step ({data_input}) => (float {key}_loss, {typed}, {moments}, int64 {key}_count_next)
  <float {key}_rate = {{{rate}}}, int64 {key}_count = {{1}}, int64 {key}_one = {{1}}, {gradients}>
{{
{loss_nodes}
  {quoted(names, "_gradient")} = ai.onnx.preview.training.Gradient
     <xs = [{quoted(names)}], zs = [{quoted(data_names)}], y = "{key}_loss"> ({quoted(names)}, {", ".join(data_names)})
  {quoted(names, "_next")}, {quoted(names, "_v_next")}, {quoted(names, "_h_next")} = ai.onnx.preview.training.Adam
     <alpha = 0.5, beta = 0.99, epsilon = 1e-7>
     ({key}_rate, {key}_count, {quoted(names)}, {quoted(names, "_gradient")}, {quoted(names, "_v")},
     {quoted(names, "_h")})
  {key}_count_next = Add ({key}_count, {key}_one)
}}""")
    state = [n + s for s in ("_v", "_h") for n in names]
    for n in state:
        shape = SHAPES[n[:-2]]
        algorithm.initializer.append(numpy_helper.from_array(np.zeros(shape, np.float32), n))
    training = model.training_info.add()
    training.algorithm.CopyFrom(algorithm)
    for n in list(names) + state + [f"{key}_count"]:
        training.update_binding.add(key=n, value=n + "_next")


def model():
    m = parser.parse_model(MODEL)
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        bound = (6.0 / shape[-1]) ** 0.5 if len(shape) > 1 else 0.0
        m.graph.initializer.append(numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name))
    section(m, "d", "float[N, 2] data", DISCRIMINATOR_LOSS, DISCRIMINATOR, ["noise", "data"], 0.002)
    section(m, "g", "", GENERATOR_LOSS, GENERATOR, ["noise"], 0.001)
    return m


if __name__ == "__main__":
    onnx.save(model(), HERE / "gan.train.onnx")
