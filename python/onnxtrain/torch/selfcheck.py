"""The file against PyTorch, always: inference outputs, loss, training outputs, buffers, gradients, one optimizer step.

Dropout is off and random numbers are fixed on both sides. The optimizer is compared on the file's own gradients, so that
noise in a gradient near zero is not blown up by methods that divide by its size.
"""

import collections
import copy

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

from ..errors import ModelError
from ..session import Session
from ..trainer import Trainer
from ..values import from_native
from . import noise
from .emit import to_numpy
from .reference import MIDDLE


def check(conversion, file, reference):
    """Raises ModelError that names the first tensor that differs."""
    _Check(conversion, file, reference).run()


def steady(proto, gradients):
    """A copy of the file without chance, and with its gradients as outputs of the step."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for graph in [made.graph, *[t.algorithm for t in made.training_info]]:
        nodes = [m for n in graph.node for m in _without_chance(n)]
        del graph.node[:]
        graph.node.extend(nodes)
    for t in made.training_info:
        infos = {v.name: v for v in t.algorithm.value_info}
        t.algorithm.output.extend(infos[g] for g in gradients)
    return made


def _without_chance(n):
    op, out = n.op_type, n.output[0]

    def const(value, name, dtype=np.float32):
        return helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(np.array(value, dtype)))

    if op == "Dropout" and len(n.input) > 2:
        off = onnx.NodeProto()
        off.CopyFrom(n)
        off.input[1] = out + "/off"
        return [const(0, out + "/off"), off]
    attrs = {a.name: a.f for a in n.attribute if a.type == onnx.AttributeProto.FLOAT}
    if op == "RandomUniformLike":
        value = (attrs.get("low", 0.0) + attrs.get("high", 1.0)) * MIDDLE
    elif op == "RandomNormalLike":
        value = attrs.get("mean", 0.0) + MIDDLE * attrs.get("scale", 1.0)
    elif op == "Bernoulli":
        value = 1.0
    else:
        return [n]
    c, like, zero = out + "/c", out + "/like", out + "/zero"
    return [const(value, c), helper.make_node("CastLike", [c, n.input[0]], [like]), helper.make_node("Sub", [n.input[0], n.input[0]], [zero]),
            helper.make_node("Add", [zero, like], [out])]


class _Check:
    def __init__(self, conversion, file, reference):
        self.c, self.file, self.ref = conversion, file, reference
        self.sensitivity = None  # made when it is needed

    def run(self):
        c = self.c
        gradients = list(c.gradients.values()) if c.training else []
        try:
            model = self.file.model(steady(self.file.proto, gradients))
            feeds = {n: to_numpy(t) for n, t in c.call.flat}
            self._inference(model, feeds)
            if c.training:
                self._step(model, feeds)
        except ModelError as e:
            if e.code == "OT1605":
                raise
            raise ModelError(f"the file that was made does not run: {e.message}", e.code, e.hint) from e

    def _inference(self, model, feeds):
        wanted = {n: feeds[n] for n in model.inputs if n in feeds}
        got = Session(model).run(wanted)
        for name, *_ in self.file.outputs:
            if name in self.ref.outputs:
                self._same(f"output '{name}' of the inference form", got[name], self.ref.outputs[name], ("output", name))

    def _step(self, model, feeds):
        c, ref = self.c, self.ref
        trainer = Trainer(model, seed=0)
        used = {n: v for n, v in feeds.items() if n in self.file.algorithm_reads}
        got = _Outputs(trainer.step(used))
        self._same("the loss", got[self.file.loss], ref.loss, ("loss", ""))
        by_name = dict(ref.train_outputs)
        for name, *_ in self.file.train_outputs:
            plain = name.removesuffix("_train")
            if plain in by_name:
                self._same(f"output '{plain}' in training", got[name], by_name[plain], ("train", plain))
        for name, after in ref.buffers.items():  # those that the file does not change must not change in PyTorch either
            if name in c.state.tensors:
                got_now = trainer.state[name] if name in trainer.state else to_numpy(c.state.tensors[name])
                self._same(f"buffer '{name}' after one step", got_now, after, ("buffer", name))
        largest = max((float(g.abs().max()) for g in ref.gradients.values() if g.numel()), default=0.0)
        for name, grad in c.gradients.items():
            self._same(f"the gradient of '{name}'", got[grad], ref.gradients[name], ("gradient", name), 20, largest * 1e-3)
        self._updates(trainer, got)

    def _updates(self, trainer, got):
        """PyTorch's optimizer, one parameter at a time, on the file's gradients."""
        c = self.c
        for k, name, p, _ in c.plan.entries:
            expected = _optimizer_step(c.optimizer, k, p, got[c.gradients[name]])
            for key, tensor in expected.items():
                stored = name if key is None else f"{name}.{'momentum' if key == 'momentum_buffer' and c.plan.kind == 'SGD' else key}"
                if stored in trainer.state:
                    self._same(f"'{stored}' after one step of {c.plan.kind}", trainer.state[stored], tensor, None, 1)

    def _same(self, what, got, expected, key, factor=1.0, floor=0.0):
        got, want = np.asarray(got), to_numpy(expected)
        if got.shape != want.shape or got.dtype != want.dtype:
            self._differs(what, f"is {got.dtype} {list(got.shape)}, PyTorch gives {want.dtype} {list(want.shape)}")
        if want.size == 0:
            return
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                self._differs(what, f"differs in {int((got != want).sum())} of {want.size} elements")
            return
        error, scale = _distance(got, want)
        tolerance = factor * 1e3 * float(np.finfo(want.dtype).eps) * max(scale, floor, 1e-30) + float(np.finfo(want.dtype).tiny)
        if error <= tolerance:
            return
        if key is not None and want.dtype == np.float32 and self._is_noise(key, got):
            return
        self._differs(what, f"differs by {error:.3g} (largest element {scale:.3g}, tolerance {tolerance:.2g})")

    def _is_noise(self, key, got):
        if self.sensitivity is None:
            self.sensitivity = noise.Sensitivity(self.c, self.ref)
        return self.sensitivity.explains(key, got)

    def _differs(self, what, how):
        raise ModelError(f"the file does not compute what PyTorch computes: {what} {how}", "OT1605",
                         "no file was written; please report the module with this message")


class _Outputs:
    """A step's outputs by name, each turned into an array only when it is read."""

    def __init__(self, result):
        self.raw = dict(result._raw)

    def __getitem__(self, name):
        return from_native(self.raw[name])


def _distance(a, b):
    """Largest difference of finite elements, and the largest finite element of b; infinite where kinds differ."""
    fa, fb = np.isfinite(a), np.isfinite(b)
    if not np.array_equal(fa, fb) or not np.array_equal(a[~fb], b[~fb], equal_nan=True):
        return float("inf"), 0.0
    if not fb.any():
        return 0.0, 0.0
    return float(np.abs(a[fb].astype(np.float64) - b[fb]).max()), float(np.abs(b[fb]).max())


def _optimizer_step(optimizer, k, p, gradient):
    """{None: the parameter, state key: state} after one step of PyTorch's optimizer on a copy."""
    fresh = p.detach().clone()
    fresh.grad = torch.from_numpy(np.ascontiguousarray(gradient)).reshape(p.shape).to(p.device)
    stand_in = copy.copy(optimizer)
    for own in ("step", "zero_grad"):
        stand_in.__dict__.pop(own, None)
    for hooks in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
        setattr(stand_in, hooks, collections.OrderedDict())
    group = {key: v for key, v in optimizer.param_groups[k].items() if key != "params"}
    stand_in.param_groups = [{**group, "params": [fresh]}]
    saved = {key: v.clone() if isinstance(v, torch.Tensor) else v for key, v in optimizer.state.get(p, {}).items()}
    stand_in.state = collections.defaultdict(dict)
    if saved:
        stand_in.state[fresh] = saved
    type(optimizer).step(stand_in)
    result = {None: fresh.detach()}
    for key, v in stand_in.state[fresh].items():
        if key != "step" and isinstance(v, torch.Tensor):
            result[key] = v
    return result
