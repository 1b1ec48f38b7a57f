"""Cross-entropies, as the backend computes them: TensorFlow goes back behind a last Softmax or Sigmoid, the others clip
the probabilities."""

import keras

from ..values import Traced
from .nn import number_of
from .reduce import reduced
from .table import operation


def logits_of(t, output, from_logits, kind):
    """(the tensor, whether it holds logits)."""
    if t.semantics == "tensorflow" and isinstance(output, Traced):
        behind = t.logits.get(output.onnx)
        if behind is not None and behind[0] == kind:
            return behind[1], True
    return t.value(output), from_logits


def _clipped(t, output):
    eps = keras.config.epsilon()
    return keras.ops.clip(output, eps, 1 - eps)


def _log_probabilities(t, output, from_logits, axis, divide):
    if from_logits:
        return keras.ops.log_softmax(output, axis=axis)
    if divide:
        output = output / keras.ops.sum(output, axis=axis, keepdims=True)
    return keras.ops.log(_clipped(t, output))


@operation("CategoricalCrossentropy")
def categorical(t, op, target, output):
    output, from_logits = logits_of(t, output, op.from_logits, "Softmax")
    target = t.value(target, output.dtype)
    logs = _log_probabilities(t, output, from_logits, op.axis, True)
    loss = -keras.ops.sum(target * logs, axis=op.axis)
    return loss if t.semantics != "tensorflow" or not from_logits else loss + _rest(t, target, output, op.axis)


def _rest(t, target, output, axis):
    """0, with a gradient: TensorFlow's is softmax(logits) - target also where a row of the target does not sum to 1
    (several classes, or none)."""
    o = keras.ops
    total = o.logsumexp(output, axis=axis)
    return (1 - o.sum(target, axis=axis)) * (total - o.stop_gradient(total))


@operation("SparseCategoricalCrossentropy")
def sparse_categorical(t, op, target, output):
    output, from_logits = logits_of(t, output, op.from_logits, "Softmax")
    target = t.cast(t.value(target), "int64")
    if target.rank == output.rank and target.shape[-1] == 1:
        target = keras.ops.squeeze(target, axis=-1)
    if t.semantics == "tensorflow" and not from_logits:  # clipped, not divided, and then normalized
        output, from_logits = keras.ops.log(_clipped(t, output)), True
    logs = t.logical(_log_probabilities(t, output, from_logits, op.axis, True))
    axis = op.axis % logs.rank
    places = t.e.op("Unsqueeze", t.logical(target).onnx, t.e.ints([axis]))
    picked = Traced(t.e.op("GatherElements", logs.onnx, places, axis=axis),
                    [1 if k == axis else d for k, d in enumerate(logs.shape)], logs.dtype)
    return -reduced(t, "ReduceSum", picked, axis, False)


@operation("BinaryCrossentropy")
def binary(t, op, target, output):
    output, from_logits = logits_of(t, output, op.from_logits, "Sigmoid")
    target, o = t.value(target, output.dtype), keras.ops
    if from_logits:  # max(x, 0) - x z + log(1 + exp(-|x|)), with the slope of one side at 0
        above = output >= 0
        far = o.where(above, -output, output)
        return o.where(above, output, o.zeros_like(output)) - output * target + o.softplus(far)
    output = _clipped(t, output)
    one = number_of(t, 1, output)
    return -(target * o.log(output) + (one - target) * o.log(one - output))


@operation("CTCLoss", "CTCDecode")
def ctc(t, op, *_, **__):
    return t.refuse("the CTC loss has no form in ONNX")
