"""One small network with every loss, optimizer, schedule, clipping and accumulation that the architectures of
trajectory_cases.py do not use: what both PyTorch (small_dump.py) and the test (test_small.py) are told. numpy only."""

from dataclasses import dataclass, field

import numpy as np
import onnx

from trajectory_cases import draw

STEPS, ROWS = 10, 12
W = [1.0, 2.0, 0.5]
LOG, SOFT, SIGMOID = "LogSoftmax <axis = -1>", "Softmax <axis = -1>", "Sigmoid"

LOSS_FILE = """<ir_version: 8, opset_import: ["" : 11]> g (float[N,3] y, float[N,3] label) => (float loss) {
    d = Sub (y, label)  e = Exp (d)  f = Sub (e, d)  s = ReduceSum <axes = [1], keepdims = 0> (f)
    loss = ReduceMean <keepdims = 0> (s) }"""
RULE_FILE = """<ir_version: 10, opset_import: ["" : 21]> g (float R, int64 T, float[n] X, float[n] G, float[n] m)
    => (float[n] X1, float[n] m1)
    <float c = {0.9}> { k = Mul (m, c)  m1 = Add (k, G)  s = Softsign (m1)  u = Mul (R, s)  X1 = Sub (X, u) }"""


@dataclass
class Small:
    loss: list
    target: str = "ints"  # what the label is
    tail: str = ""        # an operator behind the scores
    scores: bool = False  # PyTorch's loss takes what stands before the tail
    optimizer: tuple = ("SGD", {"lr": 0.1})
    schedule: dict = None
    clip_norm: float = 0.0
    clip_value: float = 0.0
    accumulate: int = 1
    only: list = field(default_factory=lambda: ["*"])


def weights():
    rng = np.random.RandomState(5)
    shapes = {"fc1.weight": (16, 4), "fc1.bias": (16,), "fc2.weight": (3, 16), "fc2.bias": (3,)}
    return {n: (0.5 * rng.standard_normal(s)).astype(np.float32) for n, s in shapes.items()}


def model(tail):
    last = f"y = {tail} (z)" if tail else "y = Identity (z)"
    m = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[N,3] y) {{
        h = Gemm <transB = 1> (x, "fc1.weight", "fc1.bias")  a = Tanh (h)
        z = Gemm <transB = 1> (a, "fc2.weight", "fc2.bias")  {last} }}""")
    m.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in weights().items())
    return m


def feeds(case, step):
    rng = np.random.RandomState(100 + step)
    x = draw(("normal", (ROWS, 4)), rng)
    if case.target in ("ints", "ignored"):
        return x, draw((case.target, 3, (ROWS,)), rng)
    if case.target == "signs":
        return x, 2 * draw(("bits", (ROWS, 3)), rng) - 1
    if case.target == "probabilities":  # one of them certain
        p = rng.dirichlet(np.ones(3), ROWS).astype(np.float32)
        p[0] = [1, 0, 0]
        return x, p
    return x, draw((case.target, (ROWS, 3)), rng)


def loss(kind, **more):
    return [{"kind": kind, **more}]


CE = loss("cross_entropy")
CASES = {
    "weights": Small(loss("cross_entropy", class_weights=W)),
    "weights sum": Small(loss("cross_entropy", class_weights=W, reduction="sum"), optimizer=("SGD", {"lr": 0.02})),
    "ignored weights smooth": Small(loss("cross_entropy", class_weights=W, ignore_index=-100, label_smoothing=0.15),
                                    "ignored"),
    "smooth sum": Small(loss("cross_entropy", label_smoothing=0.15, reduction="sum"), optimizer=("SGD", {"lr": 0.02})),
    "softmax": Small(CE, tail=SOFT, scores=True),
    "nll": Small(loss("nll", class_weights=W, ignore_index=-100), "ignored", LOG),
    "kl": Small(loss("kl"), "probabilities", LOG),
    "kl of softmax": Small(loss("kl", reduction="sum"), "probabilities", SOFT, optimizer=("SGD", {"lr": 0.02})),
    "hinge": Small(loss("hinge"), "signs"),
    "bce": Small(loss("bce"), "unit", SIGMOID),
    "bce sum": Small(loss("bce", reduction="sum"), "bits", SIGMOID, optimizer=("SGD", {"lr": 0.02})),
    "bce_logits of sigmoid": Small(loss("bce_logits"), "unit", SIGMOID, scores=True),
    "huber sum": Small(loss("huber", delta=0.6, reduction="sum"), "normal", optimizer=("SGD", {"lr": 0.02})),
    "loss of a file": Small(loss("FILE"), "normal", optimizer=("SGD", {"lr": 0.03})),
    "several terms": Small([{"kind": "mse", "weight": 2.0, "label": "label"},
                            {"kind": "l1", "weight": 0.5, "label": "label"}, {"kind": "FILE", "weight": 0.1}],
                           "normal", optimizer=("SGD", {"lr": 0.03})),
    "keras adam": Small(CE, optimizer=("Adam", {"lr": 0.01, "eps": 1e-4, "style": "keras"})),
    "keras adam amsgrad": Small(CE, optimizer=("Adam", {"lr": 0.01, "eps": 1e-4, "amsgrad": True, "style": "keras"})),
    "keras adamw": Small(CE, optimizer=("AdamW", {"lr": 0.01, "eps": 1e-4, "weight_decay": 0.3, "style": "keras"})),
    "keras rmsprop": Small(CE, optimizer=("RMSprop", {"lr": 5e-3, "alpha": 0.99, "eps": 1e-4, "style": "keras"})),
    "keras rmsprop centered": Small(CE, optimizer=("RMSprop", {"lr": 5e-3, "alpha": 0.95, "eps": 1e-4, "momentum": 0.6,
                                                               "centered": True, "style": "keras"})),
    "keras adagrad": Small(CE, optimizer=("Adagrad", {"lr": 0.05, "eps": 1e-5, "initial_accumulator_value": 0.0,
                                                      "style": "keras"})),
    "rule of a file": Small(CE, optimizer=("FILE", {"lr": 0.05})),
    "rule of a file, clipped, accumulated": Small(CE, optimizer=("FILE", {"lr": 0.05}), clip_norm=0.1, accumulate=2),
    "both clips": Small(CE, optimizer=("SGD", {"lr": 0.5, "momentum": 0.9}), clip_norm=0.1, clip_value=0.02),
    "lamb clipped": Small(CE, optimizer=("Lamb", {"lr": 0.02, "weight_decay": 0.1}), clip_norm=0.3),
    "lion accumulated": Small(CE, optimizer=("Lion", {"lr": 5e-3, "weight_decay": 0.2}), accumulate=3),
    "adamw accumulated, clipped": Small(CE, optimizer=("AdamW", {"lr": 0.01}), accumulate=2, clip_norm=0.2),
    "some only": Small(CE, optimizer=("AdamW", {"lr": 0.01}), only=["fc2.weight", "fc1.bias"]),
}
MOMENTUM = ("SGD", {"lr": 0.1, "momentum": 0.9})
SCHEDULES = {
    "constant": {}, "step": {"step_size": 2, "gamma": 0.5}, "multistep": {"milestones": [1, 4, 4], "gamma": 0.5},
    "exponential": {"gamma": 0.8}, "cosine": {"total_steps": 9, "min_lr": 1e-3},
    "polynomial": {"total_steps": 8, "power": 1.7},
}
CASES |= {f"{k} after warm-up": Small(CE, optimizer=MOMENTUM, schedule={"kind": k, "warmup_steps": 3, **v})
          for k, v in SCHEDULES.items()}
CASES["three phases"] = Small(CE, optimizer=MOMENTUM, schedule={
    "kind": "onecycle", "total_steps": 13, "max_lr": 0.3, "three_phase": 1, "anneal_linear": 1, "pct_start": 0.4})
