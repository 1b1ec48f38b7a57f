"""Training files edited by hand: bindings, counters, gradients and learning rates that are not what they seem."""

import onnx
from onnx import helper as h
from onnx import numpy_helper

from mistake import Mistake as M

TRAIN = "onnxtrain train e.onnx --data data.npz --epochs 1 --out o "


def training(change):
    """e.onnx: mlp.train.onnx with its training changed by change(TrainingInfoProto, {key: binding}, ModelProto)."""
    def edit(d):
        m = onnx.load(str(d / "mlp.train.onnx"))
        t = m.training_info[0]
        change(t, {b.key: b for b in t.update_binding}, m)
        (d / "e.onnx").write_bytes(m.SerializeToString())

    return edit


def exchanged(t, b, m):
    one, other = b["fc1.weight.exp_avg"], b["fc1.weight.exp_avg_sq"]
    one.value, other.value = other.value, one.value


def without(*names):
    def change(t, b, m):
        kept = [e for e in t.update_binding if e.key not in names]
        del t.update_binding[:]
        t.update_binding.extend(kept)

    return change


def of_the_scores(t, b, m):
    for n in t.algorithm.node:
        for a in n.attribute:
            if n.op_type == "Gradient" and a.name == "y":
                a.s = b"logits"


def number(name, value):
    def change(t, b, m):
        for i in (*m.graph.initializer, *t.algorithm.initializer):
            if i.name == name:
                i.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(i).dtype.type(value), name))

    return change


def as_it_was(t, b, m):
    t.algorithm.node.append(h.make_node("Identity", ["fc1.weight"], ["same"]))
    t.algorithm.output.append(h.make_tensor_value_info("same", onnx.TensorProto.FLOAT, [16, 4]))
    b["fc1.weight"].value = "same"


def silent_loss(t, b, m):
    kept = [o for o in t.algorithm.output if o.name != "loss"]
    del t.algorithm.output[:]
    t.algorithm.output.extend(kept)


def uphill(t, b, m):
    """The gradient of the first weight comes into its update with the other sign."""
    for k, n in enumerate(t.algorithm.node):
        if n.op_type == "AdamW":
            t.algorithm.node.insert(k, h.make_node("Neg", [n.input[3]], ["turned"], "turn"))
            t.algorithm.node[k + 1].input[3] = "turned"
            return


def plain_steps(sign):
    """w = w + 0.1 * gradient, or with `Sub` what it should be."""
    def change(t, b, m):
        for n in list(t.algorithm.node):
            if n.op_type == "AdamW" and n.input[2] == "fc1.weight":
                t.algorithm.node.append(h.make_node("Mul", ["learning_rate", n.input[3]], ["scaled"]))
                t.algorithm.node.append(h.make_node(sign, ["fc1.weight", "scaled"], ["stepped"], "step"))
        t.algorithm.output.append(h.make_tensor_value_info("stepped", onnx.TensorProto.FLOAT, [16, 4]))
        b["fc1.weight"].value = "stepped"

    return change


def below_zero(t, b, m):
    for i in (*m.graph.initializer, *t.algorithm.initializer):
        if i.name == "fc1.weight.exp_avg_sq":
            i.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(i) - 0.01, i.name))


def edited(name, change, says, code=0):
    return M(name, TRAIN, code, says, plant=training(change))


def P(name, typed, code, says, change):
    return M(name, typed, code, says, plant=training(change), python=True)


CASES = [
    edited("bindings exchanged", exchanged, ["OT3134", "'fc1.weight.exp_avg'", "its own update"], 5),
    edited("a weight that gets its moment", lambda t, b, m: setattr(b["fc1.weight"], "value", b[
        "fc1.weight.exp_avg"].value), ["OT3134", "'fc1.weight' is assigned 'fc1.weight.exp_avg_new'"]),
    edited("a weight that stays", without("fc2.weight"), ["OT3134", "'fc2.weight'", "never assigned"]),
    edited("moments that stay", without("fc1.weight.exp_avg", "fc1.weight.exp_avg_sq"),
           ["OT3134", "'fc1.weight.exp_avg'", "never assigned"]),
    edited("a counter that stands still", without("T"), ["OT3134", "'T'", "taken for the first"]),
    edited("a weight that is assigned itself", as_it_was, ["OT3134", "'fc1.weight' is assigned 'same'"]),
    edited("the gradient of the scores", of_the_scores, ["OT3134", "'logits'", "'label' teaches nothing"]),
    edited("a learning rate of the file below zero", number("learning_rate", -0.1), ["OT3130", "-0.1", "loss larger"]),
    edited("a learning rate of zero", number("learning_rate", 0), ["OT3127", "learning rate is 0"]),
    edited("a training that shows no loss", silent_loss, ["nan"]),
    edited("the sign of a gradient", uphill, ["OT3134", "'fc1.weight'", "along its gradient", "sign turned around"]),
    edited("the sign of a plain step", plain_steps("Add"), ["OT3134", "'fc1.weight'", "along its gradient", "step"]),
    edited("a counter below zero", number("T", -5), ["OT1292", "'T'", "-5", "below 0"], 3),
    edited("a counter beyond all trainings", number("T", 2**62), ["OT3134", "'T'", "no training is that long"]),
    edited("squares below zero", below_zero, ["OT1292", "'fc1.weight.exp_avg_sq'", "-0.01", "NaN"], 3),
    M("bindings exchanged, check", "onnxtrain check e.onnx", 0, ["warning[OT3134]", "'fc1.weight.exp_avg'"],
      plant=training(exchanged)),
    M("squares below zero, check", "onnxtrain check e.onnx", 3, ["error[OT1292]", "'fc1.weight.exp_avg_sq'"],
      plant=training(below_zero)),
    P("bindings exchanged, ot.check", "print(ot.check('e.onnx'))", 0, ["OT3134", "fc1.weight.exp_avg"], exchanged),
    P("squares below zero in one's own loop", "ot.Trainer('e.onnx')", "ModelError",
      ["OT1292", "'fc1.weight.exp_avg_sq'"], below_zero),
    P("the sign of a gradient, Python", "ot.Trainer('e.onnx').fit(x, y, epochs=1)", 0, ["OT3134", "'fc1.weight'"],
      uphill),
]
