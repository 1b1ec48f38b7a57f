"""The file against PyTorch, always: inference outputs, loss, training outputs, buffers, gradients, one optimizer step.

Dropout is off and random numbers are fixed on both sides. The optimizer is compared on the file's own gradients, so that
noise in a gradient near zero is not blown up by methods that divide by its size.
"""

import collections
import copy
import math

import numpy as np
import torch
from onnx import helper

from ..errors import ModelError
from ..model import load
from ..session import Session
from ..trainer import Trainer
from ..values import dtype_number
from . import noise
from .emit import remove_dead, to_numpy
from .reference import Reference
from .shelf import Shelf, bits, give_back
from .steady import steady
from .to_file import to_tensor


def check(conversion, file, reference):
    """Raises ModelError that names the first tensor that differs."""
    _Check(conversion, file, reference).run()


class _Check:
    def __init__(self, conversion, file, reference):
        self.c, self.file, self.ref = conversion, file, reference
        self.sensitivity = None  # made when it is needed

    def run(self):
        c = self.c
        gradients = list(c.gradients.values()) if c.training else []
        bindings = {"T", *(c.new_buffers if c.training else ())}
        fed = [n for n in c.state.parameters if n not in bindings and n in self.file.reads]
        self._stored()
        try:
            model = self.file.model(steady(self.file.proto, gradients, bindings, set(fed)))
            feeds = {n: to_numpy(t) for n, t in [*c.call.flat, *((n, c.state.tensors[n]) for n in fed)]}
            self._inference(model, feeds)
            for size in self.file.other_sizes:
                self._other_size(model, feeds, size)
            give_back()
            if c.training:
                self._step(model, feeds)
            del model
            give_back()
        except ModelError as e:
            if e.code in ("OT1601", "OT1605"):
                raise
            raise ModelError(f"the file that was made does not run: {e.message}", e.code, e.hint) from e

    def _stored(self):
        """Every tensor in the file is, bit by bit, that of PyTorch; the runs are fed with the latter."""
        proto, c = self.file.proto, self.c
        for graph in [proto.graph, *[t.algorithm for t in proto.training_info]]:
            for t in graph.initializer:
                expected = c.state.tensors[t.name] if t.name in c.state.tensors else c.initial[t.name]
                got = to_tensor(t, self.file.folder.name if self.file.folder else "")
                if got.shape != expected.shape or got.dtype != expected.dtype or not torch.equal(bits(got), bits(expected)):
                    self._differs(f"the stored tensor '{t.name}'", "is not PyTorch's")

    def _inference(self, model, feeds):
        wanted = {n: feeds[n] for n in model.inputs if n in feeds}
        got = Session(model).run(wanted)
        for name, *_ in self.file.outputs:
            if name in self.ref.outputs:
                self._same(f"output '{name}' of the inference form", got[name], self.ref.outputs[name], ("output", name))

    def _other_size(self, model, feeds, size):
        """Code that asks for the size of the batch may do the same in two ways (torch's own distances), or something else."""
        c = self.c
        open_ = {name for d in (self.file.dims, self.file.step_dims) if d for name, axis in d.by_input if axis == 0}
        examples = [(n, _rows(t, size) if n in open_ else t) for n, t in c.call.flat]
        try:
            other = Reference(c, examples=[t for _, t in examples])
        except Exception:  # noqa: BLE001 - PyTorch does not take that size either
            return
        feeds = {**feeds, **{n: to_numpy(t) for n, t in examples}}
        try:
            got = Session(model).run({n: feeds[n] for n in model.inputs if n in feeds})
            for name in [n for n, *_ in self.file.outputs if n in other.outputs]:
                self._same(name, got[name], other.outputs[name], None, 20)
            if c.training:
                loss = Trainer(model, seed=0).step({n: v for n, v in feeds.items() if n in self.file.algorithm_reads}).take(self.file.loss)
                self._same("loss", loss, other.loss, None, 20)
        except ModelError:
            c.obstacles.add(f"forward goes another way for a batch of {size} than for that of the examples",
                            fix="write it without asking for the size, or from_torch(..., dynamic_batch=False)")
            c.obstacles.raise_()

    def _step(self, model, feeds):
        c, ref = self.c, self.ref
        trainer = Trainer(model, seed=0)
        used = {n: v for n, v in feeds.items() if n in self.file.algorithm_reads}
        step = trainer.step(used)
        self._same("the loss", step.take(self.file.loss), ref.loss, ("loss", ""))
        by_name = dict(ref.train_outputs)
        for name, *_ in self.file.train_outputs:
            plain = name.removesuffix("_train")
            if plain in by_name:
                self._same(f"output '{plain}' in training", step.take(name), by_name[plain], ("train", plain))
        for name, after in ref.buffers.items():  # those that the file does not change must not change in PyTorch either
            if name in c.state.tensors:
                got_now = trainer.state[name] if name in trainer.state else to_numpy(c.state.tensors[name])
                self._same(f"buffer '{name}' after one step", got_now, after, ("buffer", name))
        del trainer
        got = Shelf(sum(t.numel() * t.element_size() for n, t in c.state.tensors.items() if n in c.gradients))
        for grad in c.gradients.values():
            got.put(grad, torch.from_numpy(step.take(grad)))
        del step
        give_back()
        largest = max((float(g.abs().max()) for g in ref.gradients.values() if g.numel()), default=0.0)
        for name, grad in c.gradients.items():
            self._same(f"the gradient of '{name}'", got[grad].numpy(), ref.gradients[name], ("gradient", name), 20, largest * 1e-3)
        ref.gradients = {}  # proved
        self._updates(got)
        if c.schedule is not None:
            self._rates()

    def _updates(self, got):
        """The file's update nodes against PyTorch's optimizer, one parameter at a time, on the file's gradients."""
        c = self.c
        bound = dict(c.bindings)
        for k, name, p, _ in c.plan.entries:
            gradient = got[c.gradients[name]].numpy()
            keys = [key for key in bound if key == name or (key in c.initial and key.startswith(name + ".") and "." not in key[len(name) + 1:])]
            new = self._part([bound[key] for key in keys], {c.gradients[name]: gradient, name: to_numpy(p)})
            for key, tensor in _optimizer_step(c.optimizer, k, p, gradient).items():
                suffix = "momentum" if key == "momentum_buffer" and c.plan.kind == "SGD" else key
                stored = name if key is None else f"{name}.{suffix}"
                if stored in bound:
                    self._same(f"'{stored}' after one step of {c.plan.kind}", new[bound[stored]], tensor, None)

    def _rates(self):
        """The schedule's nodes against its formulas, which were proved against PyTorch's scheduler."""
        c, bound = self.c, dict(self.c.bindings)
        at = c.schedule.position + 1
        for g in range(len(c.optimizer.param_groups)):
            for f, name in ((c.schedule.rates[g], c.plan.rate(g)), (c.schedule.momenta[g], c.cycled.get(g))):
                if f is not None and name is not None:
                    new = self._part([bound[name]], {})[bound[name]]
                    self._same(f"'{name}' after one step", new, torch.tensor(f.at(at), dtype=c.rate_dtype), None)

    def _part(self, outputs, given):
        """Runs the nodes of the step that compute `outputs` from `given` and the file's initial state."""
        c, proto = self.c, self.file.proto
        step = proto.training_info[0].algorithm
        reads = set(outputs)
        nodes = remove_dead([n for n in [*proto.graph.node, *step.node] if n.op_type != "Gradient"], reads)
        feeds = {n: v for n, v in given.items() if n in reads}
        feeds |= {n: to_numpy(t) for n, t in c.initial.items() if n in reads}
        infos = {o.name: o for o in step.output}
        inputs = [helper.make_tensor_value_info(n, dtype_number(v.dtype), list(v.shape)) for n, v in feeds.items()]
        graph = helper.make_graph(nodes, "part", inputs, [infos[o] for o in outputs])
        model = helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version, functions=proto.functions)
        return Session(load(model.SerializeToString())).run(feeds)

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
        error, scale = _distance(torch.from_numpy(np.ascontiguousarray(got)), expected.detach().cpu())
        tolerance = factor * 1e3 * float(np.finfo(want.dtype).eps) * max(scale, floor, 1e-30) + float(np.finfo(want.dtype).tiny)
        if error <= tolerance:
            return
        if key is not None and self._is_noise(key, got, tolerance):
            return
        self._differs(what, f"differs by {error:.3g} (largest element {scale:.3g}, tolerance {tolerance:.2g})")

    def _is_noise(self, key, got, tolerance):
        if self.sensitivity is None:
            self.sensitivity = noise.Sensitivity(self.c, self.ref)
        return self.sensitivity.explains(key, got, tolerance)

    def _differs(self, what, how):
        raise ModelError(f"the file does not compute what PyTorch computes: {what} {how}", "OT1605",
                         "no file was written; please report the module with this message")


def _rows(t, n):
    """A batch of n: the first rows, or all of them several times."""
    return t.detach().repeat(-(-n // t.shape[0]), *[1] * (t.dim() - 1))[:n]


def _distance(a, b):
    """Largest difference of finite elements, and the largest finite element of b; infinite where kinds differ."""
    a = a.reshape(b.shape)
    low, high = (float(v) for v in torch.aminmax(a - b))
    if not math.isfinite(high - low):  # something is not finite
        fa, fb = torch.isfinite(a), torch.isfinite(b)
        if not torch.equal(fa, fb) or not np.array_equal(a[~fb].numpy(), b[~fb].numpy(), equal_nan=True):
            return float("inf"), 0.0
        a, b = a[fb], b[fb]
        if not b.numel():
            return 0.0, 0.0
        low, high = (float(v) for v in torch.aminmax(a - b))
    least, most = (float(v) for v in torch.aminmax(b))
    return max(-low, high), max(-least, most)


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
