"""Writes linear.train.onnx and data.csv: a training that is written by hand, graph by graph, in ONNX's text syntax.

Needs the onnx package (for its text parser). Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import parser

HERE = pathlib.Path(__file__).parent

# The inference graph: what every ONNX runtime sees. `weight` and `bias` are ordinary initializers.
MODEL = """
<ir_version: 8, opset_import: ["": 17, "ai.onnx.preview.training": 1], producer_name: "onnxtrain examples">
linear (float[N, 3] x) => (float[N, 1] prediction)
  <float[3, 1] weight = {0, 0, 0}, float[1] bias = {0}>
{
  product = MatMul(x, weight)
  prediction = Add(product, bias)
}
"""

# Where training starts: a graph without inputs. Its outputs are bound to state variables below.
INITIALIZATION = """
start () => (float[3, 1] weight_start, float[1] bias_start, float[3, 1] weight_still, float[1] bias_still)
{
  weight_start = RandomNormal <shape = [3, 1], scale = 0.1, seed = 1.0> ()
  bias_start = Constant <value = float[1] {0}> ()
  weight_still = Constant <value = float[3, 1] {0, 0, 0}> ()
  bias_still = Constant <value = float[1] {0}> ()
}
"""

# One step of gradient descent with momentum. It may use everything of the inference graph: x, prediction, weight,
# bias. Its own initializers: the velocities are bound below, so they are state; `rate` and `keep` stay as they are.
ALGORITHM = """
step (float[N, 1] target) =>
     (float loss, float[3, 1] weight_next, float[1] bias_next, float[3, 1] weight_velocity_next,
     float[1] bias_velocity_next)
  <float rate = {0.01}, float keep = {0.9}, float[3, 1] weight_velocity = {0, 0, 0}, float[1] bias_velocity = {0},
   float[3, 1] weight_gradient, float[1] bias_gradient>
{
  error = Sub(prediction, target)
  square = Mul(error, error)
  loss = ReduceMean <keepdims = 0> (square)
  weight_gradient, bias_gradient = ai.onnx.preview.training.Gradient
      <xs = ["weight", "bias"], zs = ["x", "target"], y = "loss"> (weight, bias, x, target)
  weight_kept = Mul(keep, weight_velocity)
  weight_velocity_next = Add(weight_kept, weight_gradient)
  weight_move = Mul(rate, weight_velocity_next)
  weight_next = Sub(weight, weight_move)
  bias_kept = Mul(keep, bias_velocity)
  bias_velocity_next = Add(bias_kept, bias_gradient)
  bias_move = Mul(rate, bias_velocity_next)
  bias_next = Sub(bias, bias_move)
}
"""

# After the initialization and after each step: state variable <- output. All at once.
INITIALIZATION_BINDING = {
    "weight": "weight_start", "bias": "bias_start", "weight_velocity": "weight_still", "bias_velocity": "bias_still",
}
UPDATE_BINDING = {
    "weight": "weight_next", "bias": "bias_next",
    "weight_velocity": "weight_velocity_next", "bias_velocity": "bias_velocity_next",
}


def model():
    m = parser.parse_model(MODEL)
    training = m.training_info.add()
    training.initialization.CopyFrom(parser.parse_graph(INITIALIZATION))
    training.algorithm.CopyFrom(parser.parse_graph(ALGORITHM))
    for key, value in INITIALIZATION_BINDING.items():
        training.initialization_binding.add(key=key, value=value)
    for key, value in UPDATE_BINDING.items():
        training.update_binding.add(key=key, value=value)
    # names the learning rate, so that `t.lr` and the command line can show and change it
    m.metadata_props.add(key="onnxtrain.rate", value="rate")
    return m


def data():
    """A house's price (in 100,000) by area (100 m2), rooms, age (decades): linear and some noise."""
    rng = np.random.default_rng(0)
    area, rooms, age = rng.uniform(0.4, 2.5, 200), rng.integers(1, 7, 200), rng.uniform(0, 5, 200)
    price = 0.5 + 2.0 * area + 0.3 * rooms - 0.25 * age + rng.normal(0, 0.1, 200)
    rows = [f"{a:.2f},{r},{y:.1f},{p:.2f}" for a, r, y, p in zip(area, rooms, age, price)]
    return "area,rooms,age,price\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    onnx.save(model(), HERE / "linear.train.onnx")
    (HERE / "data.csv").write_text(data())
