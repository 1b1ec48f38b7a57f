"""Engines with one fault each, for the conformance suite to find. Most are this library on a file that was changed on
its way; some change what a step is fed or what becomes of its results."""

import numpy as np
import onnx
from onnx import numpy_helper

from onnxtrain import load
from onnxtrain.conformance.targets import Native, _Training
from onnxtrain.engines import onnxruntime_engine
from onnxtrain.session import Session
from onnxtrain.trainer import Trainer

TRAINING = "ai.onnx.preview.training"


def graphs(model):
    return [model.graph, *(t.algorithm for t in model.training_info)]


def attribute(node, name):
    return next((a for a in node.attribute if a.name == name), None)


class OnChangedFiles(Native):
    """This library, after `change(node, graph)` went over every node."""

    def __init__(self, change):
        self.name, self.change = change.__name__, change

    def changed(self, model):
        m = onnx.ModelProto.FromString(model)
        for g in graphs(m):
            for n in list(g.node):
                self.change(n, g)
        return m.SerializeToString()

    def node(self, model, feeds):
        return Session(load(self.changed(model))).run(feeds)

    def training(self, model):
        return _Training(Trainer(load(self.changed(model))))


def set_float(op, name, value):
    def change(n, g):
        a = attribute(n, name) if n.op_type == op else None
        if a is not None:
            a.f = value(a.f) if callable(value) else value

    change.__name__ = f"{op} with another {name}"
    return change


def nesterov_is_standard(n, g):
    if n.op_type == "Momentum" and attribute(n, "mode"):
        attribute(n, "mode").s = b"standard"


def beta_from_the_first_step(n, g):
    if n.op_type == "Momentum":
        _count(n, g, "Add")


def adam_never_corrects_bias(n, g):
    if n.op_type == "Adam":
        _count(n, g, "Mul", 0)


def _count(n, g, op, by=1):
    """T of an optimizer becomes T + 1 or T * 0."""
    at = list(g.node).index(n)
    if not any(i.name == "the.other" for i in g.initializer):
        g.initializer.append(numpy_helper.from_array(np.int64(by), "the.other"))
    g.node.insert(at, onnx.helper.make_node(op, [n.input[1], "the.other"], ["T.changed"]))
    g.node[at + 1].input[1] = "T.changed"


def weights_of_classes_ignored(n, g):
    if n.op_type in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss") and len(n.input) == 3:
        del n.input[2]


def momentum_of_batch_norm_as_in_pytorch(n, g):
    a = attribute(n, "momentum") if n.op_type == "BatchNormalization" else None
    if a is not None:
        a.f = 1 - a.f


def gradient_at_the_graphs_own_values(n, g):
    if n.op_type == "Gradient":
        names = [s.decode() for a in ("xs", "zs") for s in (attribute(n, a).strings if attribute(n, a) else ())]
        n.input[:] = names


def second_derivatives_are_first_ones(n, g):
    if n.op_type == "Gradient":
        made = {o: m for m in g.node if m.op_type == "Gradient" for o in m.output}
        y = attribute(n, "y")
        if y.s.decode() in made:
            y.s = attribute(made[y.s.decode()], "y").s


def dropout_never_drops(n, g):
    if n.op_type == "Dropout":
        del n.input[1:]


class Wrapped(Native):
    """This library with another `_Training`."""

    def __init__(self, training):
        self.name, self.made = training.__doc__, training

    def training(self, model):
        return self.made(Trainer(load(model)))


class NeverInitializes(_Training):
    """initialize() does nothing"""

    def initialize(self):
        pass


class AlwaysAllSections(_Training):
    """step(i) runs every section"""

    def step(self, feeds, which=None):
        return super().step(feeds)


class FedStateIgnored(_Training):
    """a fed state variable is ignored"""

    def step(self, feeds, which=None):
        return super().step({k: v for k, v in feeds.items() if k not in self.trainer.state}, which)


class OldStateForLaterSections(_Training):
    """later sections see the state from before the step"""

    def step(self, feeds, which=None):
        sections = len(self.trainer.model().info["training"])
        if which is not None or sections == 1:
            return super().step(feeds, which)
        before, out, new = self.state(), {}, {}
        for k in range(sections):
            out |= super().step(feeds, k)
            new |= {n: v for n, v in self.state().items() if not np.array_equal(v, before[n])}
            self._set(before)
        self._set(new)
        return out

    def _set(self, values):
        for n, v in values.items():
            self.trainer.state[n] = v


class CounterStandsStill(_Training):
    """the counter T stands still"""

    def step(self, feeds, which=None):
        t = np.array(self.trainer.state["T"]) if "T" in self.trainer.state else None
        out = super().step(feeds, which)
        if t is not None:
            self.trainer.state["T"] = t
        return out


class StateInHalfPrecision(_Training):
    """the state is kept in float16"""

    def step(self, feeds, which=None):
        out = super().step(feeds, which)
        for n, v in self.state().items():
            if v.dtype == np.float32:
                self.trainer.state[n] = v.astype(np.float16).astype(np.float32)
        return out


class StateOneStepLate(_Training):
    """the state that is read is that of the step before"""

    def step(self, feeds, which=None):
        self.late = super().state()
        return super().step(feeds, which)

    def state(self):
        return getattr(self, "late", None) or super().state()


class AcceptsAnything(Native):
    """Broken files are read as if nothing was wrong."""

    name = "broken files are accepted"

    def training(self, model):
        try:
            return super().training(model)
        except Exception:  # noqa: BLE001

            class Nothing:
                step = initialize = state = lambda self, *a: {}

            return Nothing()


class BrokenRunner(onnxruntime_engine.Engine):
    """ONNX Runtime under the loop, with a fault in its runner."""

    def __init__(self, name, fault):
        self.name, self.fault = name, fault

    def compile(self, step, device, threads=0):
        return self.fault(super().compile(step, device, threads))


def first_batch_for_ever(runner):
    step, kept = runner.step, {}

    def stale(feeds):
        kept.setdefault("feeds", feeds)
        same = all(kept["feeds"][k].shape == v.shape for k, v in feeds.items())
        return step(kept["feeds"] if same else feeds)

    runner.step = stale
    return runner


def one_result_is_not_fed_back(runner):
    step = runner.step

    def lossy(feeds):
        s = runner.step_file
        out = list(s.feedback)[-1:]
        kept = {k: runner.state()[k] for o in out for k in s.feedback[o]}
        got = step(feeds)
        runner.set_state(kept)
        return got

    runner.step = lossy
    return runner


def less_exact_inputs(runner):
    step = runner.step
    runner.step = lambda feeds: step(
        {
            k: v.astype(np.float16).astype(v.dtype) * v.dtype.type(1.0001) if v.dtype == np.float32 else v
            for k, v in feeds.items()
        }
    )
    return runner


def all_broken():
    changes = [
        nesterov_is_standard,
        beta_from_the_first_step,
        adam_never_corrects_bias,
        weights_of_classes_ignored,
        momentum_of_batch_norm_as_in_pytorch,
        gradient_at_the_graphs_own_values,
        second_derivatives_are_first_ones,
        dropout_never_drops,
        set_float("Adam", "norm_coefficient", 0.0),
        set_float("Adam", "epsilon", 1e-6),
        set_float("Adam", "norm_coefficient_post", 0.0),
        set_float("Adagrad", "decay_factor", 0.0),
        set_float("Adagrad", "epsilon", lambda e: e * e),
    ]
    wrapped = [
        NeverInitializes,
        AlwaysAllSections,
        FedStateIgnored,
        OldStateForLaterSections,
        CounterStandsStill,
        StateInHalfPrecision,
        StateOneStepLate,
    ]
    return [OnChangedFiles(c) for c in changes] + [Wrapped(w) for w in wrapped] + [AcceptsAnything()]


def broken_runners():
    return [
        BrokenRunner("the first batch for ever", first_batch_for_ever),
        BrokenRunner("one result is not fed back", one_result_is_not_fed_back),
        BrokenRunner("inputs in less than float32", less_exact_inputs),
    ]
