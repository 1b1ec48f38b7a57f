"""Element-wise operators, reductions and losses, at their kinks too."""

import numpy as np
import torch
import torch.nn.functional as F

EDGES = np.array([-4.0, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, 3.0, 4.0])


def activations(b):
    x = np.concatenate([EDGES, b.normal(8)])
    plain = {
        "Relu": F.relu, "Abs": torch.abs, "Sign": torch.sign, "Neg": torch.neg, "Exp": torch.exp,
        "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Sin": torch.sin, "Cos": torch.cos,
        "Sinh": torch.sinh, "Cosh": torch.cosh, "Atan": torch.atan, "Asinh": torch.asinh, "Floor": torch.floor,
        "Ceil": torch.ceil, "Round": torch.round, "Selu": F.selu, "Softsign": F.softsign, "Mish": F.mish,
        "HardSwish": F.hardswish, "Softplus": F.softplus, "Identity": lambda v: v.clone(),
    }
    for op, f in plain.items():
        b.add(op, [x], f)
    b.add("Swish", [x], F.silu, opset=24)
    b.add("Gelu", [x], F.gelu)
    b.add("Gelu", [x], lambda v: F.gelu(v, approximate="tanh"), {"approximate": "tanh"}, name="Gelu tanh")
    b.add("LeakyRelu", [x], lambda v: F.leaky_relu(v, 0.125), {"alpha": 0.125})
    b.add("Elu", [x], lambda v: F.elu(v, 1.5), {"alpha": 1.5})
    b.add("Celu", [x], lambda v: F.celu(v, 1.5), {"alpha": 1.5})
    b.add("ThresholdedRelu", [x], lambda v: F.threshold(v, 1.0, 0.0), {"alpha": 1.0})
    b.add("Shrink", [x], lambda v: F.hardshrink(v, 0.5), {"lambd": 0.5, "bias": 0.0}, name="Shrink hard")
    b.add("Shrink", [x], lambda v: F.softshrink(v, 0.5), {"lambd": 0.5, "bias": 0.5}, name="Shrink soft")
    b.add("HardSigmoid", [x], F.hardsigmoid, {"alpha": 1 / 6, "beta": 0.5})
    b.add("PRelu", [EDGES.reshape(2, 6), b.normal(1, 6)], lambda v, w: torch.where(v > 0, v, w * v))
    for op, f in {"Log": torch.log, "Sqrt": torch.sqrt, "Reciprocal": torch.reciprocal}.items():
        b.add(op, [b.positive(7)], f)
    b.add("Acosh", [b.positive(7) + 1], torch.acosh)
    for op, f in {"Acos": torch.acos, "Asin": torch.asin, "Atanh": torch.atanh, "Tan": torch.tan}.items():
        b.add(op, [b.rng.uniform(-0.9, 0.9, 7)], f)


def clipping(b):
    low, high = np.array(-1.0), np.array(2.5)
    b.add("Clip", [EDGES, low, high], torch.clamp, wrt=[0])
    b.add("Clip", [EDGES, low, high], lambda x, lo, hi: torch.clamp(x, lo, hi), wrt=[0, 1, 2], name="Clip bounds")
    b.add("Clip", [EDGES, low], lambda x, lo: torch.clamp(x, min=lo), name="Clip low")
    b.add("Clip", [EDGES, None, high], lambda x, _, hi: torch.clamp(x, max=hi), name="Clip high")


def binary(b):
    x, y = b.whole(3, 1, 4), b.whole(2, 4)
    b.add("Max", [x, y], torch.maximum, name="Max ties")
    b.add("Min", [x, y], torch.minimum, name="Min ties")
    for op, f in {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div}.items():
        b.add(op, [b.normal(3, 1, 4), b.positive(2, 4)], f)
    b.add("Pow", [np.array([0.0, 0.0, 0.0, 2.0, 1.5, 3.0]), np.array([2.0, 1.0, 3.0, 0.0, -1.5, 2.0])], torch.pow)
    b.add("Pow", [EDGES, np.array(3.0)], torch.pow, wrt=[0], name="Pow cube")
    a, m = b.normal(3, 4) * 5, b.normal(4)
    b.add("Mod", [a, m], torch.fmod, {"fmod": 1}, name="Mod fmod")
    b.add("Where", [b.rng.random((3, 4)) > 0.5, b.normal(3, 4), b.normal(4)], torch.where)
    b.add("Sum", [b.normal(3, 1), b.normal(4), b.normal(3, 4)], lambda *v: sum(v))
    b.add("Mean", [b.normal(3, 1), b.normal(4)], lambda u, v: (u + v) / 2)


def reductions(b):
    ties = b.whole(3, 4, 5)
    axes = np.array([1], np.int64)
    both = np.array([0, 2], np.int64)
    b.add("ReduceMax", [ties, both], lambda v, _: torch.amax(v, (0, 2), keepdim=True), name="ReduceMax ties")
    b.add("ReduceMin", [ties, axes], lambda v, _: torch.amin(v, 1), {"keepdims": 0}, name="ReduceMin ties")
    x = b.normal(3, 4, 5)
    x[0, :, 0] = 0
    b.add("ReduceSum", [x, both], lambda v, _: v.sum((0, 2)), {"keepdims": 0})
    b.add("ReduceMean", [x, axes], lambda v, _: v.mean(1, keepdim=True))
    b.add("ReduceL1", [x, axes], lambda v, _: torch.linalg.vector_norm(v, 1, 1, keepdim=True), name="ReduceL1 zero")
    b.add("ReduceL2", [x, axes], lambda v, _: torch.linalg.vector_norm(v, 2, 1, keepdim=True), name="ReduceL2 zero")
    b.add("ReduceSumSquare", [x, axes], lambda v, _: (v * v).sum(1, keepdim=True))
    b.add("ReduceLogSumExp", [x, axes], lambda v, _: torch.logsumexp(v, 1, keepdim=True))
    b.add("ReduceLogSum", [b.positive(3, 4), axes], lambda v, _: torch.log(v.sum(1, keepdim=True)))
    p = b.normal(4, 4)
    p[1, 2] = p[2, 0] = p[2, 3] = 0
    b.add("ReduceProd", [p, axes], lambda v, _: v.prod(1, keepdim=True), name="ReduceProd zeros")
    b.add("CumSum", [x, np.array(1)], lambda v, _: v.cumsum(1))
    b.add("CumSum", [x, np.array(1)], lambda v, _: v.flip(1).cumsum(1).flip(1), {"reverse": 1}, name="CumSum reverse")
    b.add("CumProd", [p, np.array(1)], lambda v, _: v.cumprod(1), opset=26, name="CumProd zeros")
    b.add("TopK", [x + b.normal(3, 4, 5), np.array([2])], lambda v, _: (torch.topk(v, 2, 2)[0], None), {"axis": 2},
          outputs=2)


def softmaxes(b):
    x = b.normal(3, 4, 5)
    for axis in (0, 1, -1):
        b.add("Softmax", [x], lambda v, a=axis: F.softmax(v, a), {"axis": axis})
        b.add("LogSoftmax", [x], lambda v, a=axis: F.log_softmax(v, a), {"axis": axis})
    labels = b.rng.integers(0, 5, (6,))
    labels[2] = 3
    scores, w = b.normal(6, 5), b.positive(5)
    for reduction in ("mean", "sum", "none"):
        b.add("SoftmaxCrossEntropyLoss", [scores, labels, w],
              lambda s, t, v, r=reduction: F.cross_entropy(s, t, v, ignore_index=3, reduction=r),
              {"reduction": reduction, "ignore_index": 3}, wrt=[0])
        b.add("NegativeLogLikelihoodLoss", [scores, labels,
                                            w], lambda s, t, v, r=reduction: F.nll_loss(s, t, v, reduction=r),
              {"reduction": reduction}, wrt=[0])
    images = b.rng.integers(0, 5, (2, 3, 2))
    b.add("SoftmaxCrossEntropyLoss", [b.normal(2, 5, 3, 2), images], F.cross_entropy,
          name="SoftmaxCrossEntropyLoss images")


def add_cases(b):
    activations(b)
    clipping(b)
    binary(b)
    reductions(b)
    softmaxes(b)
