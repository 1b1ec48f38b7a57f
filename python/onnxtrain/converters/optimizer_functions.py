"""Bodies of the optimizer functions: those that `prepare` writes are taken from it, PyTorch's others are written
here."""

import functools

import onnx
from onnx import helper, parser

_HEAD = '<domain: "ai.onnxtrain", opset_import: ["" : 22]>\n'


def _head(name, attributes, inputs, outputs):
    """The signature and the attributes as float64 scalars called like them with a d in front."""
    text = f"{_HEAD}{name} <{', '.join(attributes)}> ({inputs}) => ({outputs})\n{{\n"
    text += "".join(f"  d_{a} = Constant <value: tensor = @{a}> ()\n" for a in attributes)
    return text + "  one = Constant <value = double {1.0}> ()\n"


_DECAY = """
  dx = CastLike (d_decay, X)
  l2 = Mul (dx, X)
  g = Add (G, l2)
  kept = Identity (X)
"""
_DECOUPLED = """
  rd = Mul (r, d_decay)
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  kept = Mul (X, k)
  g = Identity (G)
"""
_MOMENTS = """
  n1 = Sub (one, d_beta1)
  n2 = Sub (one, d_beta2)
  c1 = CastLike (n1, X)
  c2 = CastLike (n2, X)
  k2 = CastLike (d_beta2, X)
  eps = CastLike (d_epsilon, X)
  gm = Sub (g, M)
  gmc = Mul (gm, c1)
  M1 = Add (M, gmc)
  vb = Mul (V, k2)
  gg = Mul (g, g)
  ggc = Mul (gg, c2)
  V1 = Add (vb, ggc)
  p2 = Pow (d_beta2, t)
  q2 = Sub (one, p2)
"""


def nadam(name, decoupled):
    attributes = ["beta1", "beta2", "epsilon", "decay", "momentum_decay"]
    return _head(name, attributes, "R, T, X, G, M, V, P", "X1, M1, V1, P1") + """
  t = Cast <to = 11> (T)
  r = Cast <to = 11> (R)
""" + (_DECOUPLED if decoupled else _DECAY) + _MOMENTS + """
  half = Constant <value = double {0.5}> ()
  base = Constant <value = double {0.96}> ()
  tnext = Add (t, one)
  e0 = Mul (t, d_momentum_decay)
  e1 = Mul (tnext, d_momentum_decay)
  w0 = Pow (base, e0)
  w1 = Pow (base, e1)
  h0 = Mul (half, w0)
  h1 = Mul (half, w1)
  f0 = Sub (one, h0)
  f1 = Sub (one, h1)
  mu = Mul (d_beta1, f0)
  mu_next = Mul (d_beta1, f1)
  mu_s = CastLike (mu, P)
  P1 = Mul (P, mu_s)
  product = Cast <to = 11> (P1)
  q2x = CastLike (q2, X)
  fixed = Div (V1, q2x)
  root = Sqrt (fixed)
  denominator = Add (root, eps)
  rest = Sub (one, mu)
  left = Sub (one, product)
  rl = Mul (r, rest)
  a = Div (rl, left)
  product_next = Mul (product, mu_next)
  left_next = Sub (one, product_next)
  rn = Mul (r, mu_next)
  b = Div (rn, left_next)
  ax = CastLike (a, X)
  bx = CastLike (b, X)
  ag = Mul (ax, g)
  bm = Mul (bx, M1)
  move_g = Div (ag, denominator)
  move_m = Div (bm, denominator)
  first = Sub (kept, move_g)
  X1 = Sub (first, move_m)
}
"""


def radam(name, decoupled):
    return _head(name, ["beta1", "beta2", "epsilon", "decay"], "R, T, X, G, M, V", "X1, M1, V1") + """
  t = Cast <to = 11> (T)
  r = Cast <to = 11> (R)
""" + (_DECOUPLED if decoupled else _DECAY) + _MOMENTS + """
  two = Constant <value = double {2.0}> ()
  four = Constant <value = double {4.0}> ()
  five = Constant <value = double {5.0}> ()
  p1 = Pow (d_beta1, t)
  q1 = Sub (one, p1)
  tw = Div (two, n2)
  inf = Sub (tw, one)
  tp = Mul (t, p2)
  tp2 = Mul (two, tp)
  lost = Div (tp2, q2)
  rho = Sub (inf, lost)
  enough = Greater (rho, five)
  safe = Max (rho, five)
  s4 = Sub (safe, four)
  s2 = Sub (safe, two)
  i4 = Sub (inf, four)
  i2 = Sub (inf, two)
  up1 = Mul (s4, s2)
  up = Mul (up1, inf)
  low1 = Mul (i4, i2)
  low = Mul (low1, safe)
  ratio = Div (up, low)
  rect = Sqrt (ratio)
  root2 = Sqrt (q2)
  root2x = CastLike (root2, X)
  root = Sqrt (V1)
  denominator = Add (root, eps)
  adaptive = Div (root2x, denominator)
  rectx = CastLike (rect, X)
  scaled = Mul (adaptive, rectx)
  onex = CastLike (one, X)
  factor = Where (enough, scaled, onex)
  q1x = CastLike (q1, X)
  corrected = Div (M1, q1x)
  rx = CastLike (r, X)
  cr = Mul (corrected, rx)
  move = Mul (cr, factor)
  X1 = Sub (kept, move)
}
"""


def adamax(name):
    return _head(name, ["beta1", "beta2", "epsilon", "decay"], "R, T, X, G, M, U", "X1, M1, U1") + """
  t = Cast <to = 11> (T)
  r = Cast <to = 11> (R)
""" + _DECAY + """
  n1 = Sub (one, d_beta1)
  c1 = CastLike (n1, X)
  gm = Sub (g, M)
  gmc = Mul (gm, c1)
  M1 = Add (M, gmc)
  b2 = CastLike (d_beta2, X)
  eps = CastLike (d_epsilon, X)
  ub = Mul (U, b2)
  size = Abs (g)
  sized = Add (size, eps)
  U1 = Max (ub, sized)
  p1 = Pow (d_beta1, t)
  q1 = Sub (one, p1)
  rate = Div (r, q1)
  rx = CastLike (rate, X)
  quotient = Div (M1, U1)
  move = Mul (rx, quotient)
  X1 = Sub (kept, move)
}
"""


def adadelta(name):
    return _head(name, ["rho", "epsilon", "decay"], "R, X, G, V, D", "X1, V1, D1") + _DECAY + """
  rest = Sub (one, d_rho)
  a = CastLike (d_rho, X)
  c = CastLike (rest, X)
  eps = CastLike (d_epsilon, X)
  va = Mul (V, a)
  gg = Mul (g, g)
  ggc = Mul (gg, c)
  V1 = Add (va, ggc)
  ve = Add (V1, eps)
  std = Sqrt (ve)
  de = Add (D, eps)
  droot = Sqrt (de)
  dq = Div (droot, std)
  delta = Mul (dq, g)
  da = Mul (D, a)
  dd = Mul (delta, delta)
  ddc = Mul (dd, c)
  D1 = Add (da, ddc)
  r = CastLike (R, X)
  move = Mul (r, delta)
  X1 = Sub (kept, move)
}
"""


def adagrad(name):
    """For float64: the standard's operator has attributes in float32. T counts finished steps."""
    return _head(name, ["lr_decay", "epsilon", "decay"], "R, T, X, G, H", "X1, H1") + _DECAY + """
  t = Cast <to = 11> (T)
  slower = Mul (t, d_lr_decay)
  below = Add (one, slower)
  rd = Cast <to = 11> (R)
  rate = Div (rd, below)
  r = CastLike (rate, X)
  gg = Mul (g, g)
  H1 = Add (H, gg)
  root = Sqrt (H1)
  eps = CastLike (d_epsilon, X)
  std = Add (root, eps)
  share = Div (g, std)
  move = Mul (r, share)
  X1 = Sub (kept, move)
}
"""


def rprop(name):
    return _head(name, ["eta_minus", "eta_plus", "step_min", "step_max"], "X, G, P, S", "X1, P1, S1") + """
  both = Mul (G, P)
  zero_d = Sub (one, one)
  zero = CastLike (zero_d, X)
  onex = CastLike (one, X)
  minus = CastLike (d_eta_minus, X)
  plus = CastLike (d_eta_plus, X)
  low = CastLike (d_step_min, X)
  high = CastLike (d_step_max, X)
  same = Greater (both, zero)
  turned = Less (both, zero)
  f0 = Where (turned, minus, onex)
  factor = Where (same, plus, f0)
  scaled = Mul (S, factor)
  s0 = Max (scaled, low)
  S1 = Min (s0, high)
  P1 = Where (turned, zero, G)
  direction = Sign (P1)
  move = Mul (direction, S1)
  X1 = Sub (X, move)
}
"""


def momentum_cycled(name, nesterov):
    """SGD whose momentum B changes from step to step; the first step (T = 0) starts the buffer with the gradient."""
    return _head(name, ["decay", "dampening"], "R, T, B, X, G, V", "X1, V1") + _DECAY + """
  b = CastLike (B, X)
  rest = Sub (one, d_dampening)
  c = CastLike (rest, X)
  zero_t = Sub (T, T)
  later = Greater (T, zero_t)
  onex = CastLike (one, X)
  share = Where (later, c, onex)
  vb = Mul (V, b)
  gs = Mul (g, share)
  V1 = Add (vb, gs)
""" + ("  bv = Mul (b, V1)\n  go = Add (g, bv)\n" if nesterov else "  go = Identity (V1)\n") + """
  r = CastLike (R, X)
  move = Mul (r, go)
  X1 = Sub (kept, move)
}
"""


_WRITTEN = {
    "NAdam": lambda n: nadam(n, False), "NAdamW": lambda n: nadam(n, True), "RAdam": lambda n: radam(n, False),
    "RAdamW": lambda n: radam(n, True), "Adamax": adamax, "Adadelta": adadelta, "Adagrad": adagrad, "Rprop": rprop,
    "MomentumCycled": lambda n: momentum_cycled(n, False), "NesterovCycled": lambda n: momentum_cycled(n, True),
    "Detach": lambda n: _HEAD + "Detach (X) => (Y)\n{\n  Y = Identity (X)\n}\n",
}
# attribute that a cycling schedule turns into an input, and the input behind which it stands
_CYCLED = {"Adam": ("beta1", "T"), "NAdam": ("beta1", "T"), "RAdam": ("beta1", "T"), "RMSprop": ("momentum", "R")}


@functools.cache
def _from_prepare(name):
    """The function `name` as `prepare` writes it."""
    import numpy as np

    from .. import recipe
    from ..model import load
    from ..trainer import prepare

    specs = {"Sgd": recipe.SGD(lr=1.0), "Adam": recipe.Adam(lr=1.0), "AdamW": recipe.AdamW(lr=1.0),
             "AdamAms": recipe.Adam(lr=1.0, amsgrad=True), "AdamWAms": recipe.AdamW(lr=1.0, amsgrad=True)}
    for centered in (False, True):
        for momentum in (0.0, 0.9):
            key = "RMSprop" + ("Centered" if centered else "") + ("Momentum" if momentum else "")
            specs[key] = recipe.RMSprop(lr=1.0, centered=centered, momentum=momentum)
    w = onnx.numpy_helper.from_array(np.ones([2, 2], np.float32), "w")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [info("x", 1, [1, 2])], [info("y", 1, [1, 2])], [w]
    )
    tiny = load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()
    )
    proto = onnx.ModelProto.FromString(prepare(tiny, loss="mse", optimizer=specs[name]).proto())
    return next(f for f in proto.functions if f.name == name)


def function(name):
    """FunctionProto of an operator of our own domain."""
    if name in _WRITTEN:
        return parser.parse_function(_WRITTEN[name](name))
    if not name.endswith("Cycled"):
        return _from_prepare(name)
    plain = name.removesuffix("Cycled")
    key, behind = next(v for k, v in _CYCLED.items() if plain.startswith(k))
    f = onnx.FunctionProto()
    f.CopyFrom(function(plain))
    f.name = name
    f.attribute.remove(key)
    inputs = list(f.input)
    inputs.insert(inputs.index(behind) + 1, "Beta")
    f.input[:] = inputs
    for n in f.node:
        if n.op_type == "Constant" and n.attribute[0].ref_attr_name == key:
            n.CopyFrom(helper.make_node("Cast", ["Beta"], list(n.output), to=11))
    return f
