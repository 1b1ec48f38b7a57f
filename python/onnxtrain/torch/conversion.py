"""from_torch: a live PyTorch training as an ONNX file that carries its own training."""

import json
import warnings

import torch

from ..errors import ModelError, UsageError
from . import assemble, capture, chance, optimizer as optim, resting, scheduler as sched, selfcheck, versions
from .emit import Emitter, Value, remove_dead
from .obstacles import Obstacles, check_module
from .reference import Reference
from .state import State
from .structure import Call
from .walk import Walk


def convert(module, inputs, targets=None, loss=None, optimizer=None, scheduler=None, dynamic_batch=True):
    """See onnxtrain.from_torch."""
    versions.check_version()
    _check_arguments(module, targets, loss, optimizer, scheduler)
    with torch.no_grad(), chance.kept():
        return _Conversion(module, inputs, targets, loss, optimizer, scheduler, dynamic_batch).run()


def _check_arguments(module, targets, loss, optimizer, scheduler):
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"from_torch takes a torch.nn.Module, got {type(module).__name__}", "OT1606")
    if loss is not None and not callable(loss):
        raise UsageError(f"loss is {type(loss).__name__}, not something to call as loss(outputs, targets)", "OT1606")
    if scheduler is not None and optimizer is None:
        raise UsageError("a scheduler needs its optimizer", "OT1606", "from_torch(..., optimizer=opt, scheduler=scheduler)")
    if targets is not None and loss is None:
        raise UsageError("targets without a loss", "OT1606", "give loss=torch.nn.CrossEntropyLoss() or a function of (outputs, targets)")
    if loss is not None and optimizer is None:
        raise UsageError("a loss without an optimizer", "OT1606",
                         "give optimizer=torch.optim.AdamW(module.parameters()); or leave the loss out for an inference model")


class _Conversion:
    def __init__(self, module, inputs, targets, loss, optimizer, scheduler, dynamic):
        self.module, self.loss, self.optimizer, self.scheduler, self.dynamic = module, loss, optimizer, scheduler, dynamic
        self.training = optimizer is not None
        self.obstacles = Obstacles()
        check_module(module, self.obstacles)
        if isinstance(loss, torch.nn.Module):
            check_module(loss, self.obstacles, "loss")
        self.call = Call(module, inputs, targets)
        half = [n for n, t in self.call.flat if t.dtype in (torch.float16, torch.bfloat16)]
        if half:
            self.obstacles.add(f"inputs in half precision: {', '.join(half)}", fix="give float32 examples: x.float()")
        empty = [n for n, t in self.call.flat if t.device.type == "meta"]
        if empty:
            self.obstacles.add(f"examples without data (device meta): {', '.join(empty)}", fix="give tensors with data: the file is compared with PyTorch on them")
        untraceable = any(word in what for what, *_ in self.obstacles.items for word in ("lazy parameters", "TorchScript", "without data", "quantized layers"))
        self.state = None if untraceable else State(module, loss)
        if self.training:
            optim.check(optimizer, self.obstacles, self.state)
        if scheduler is not None:
            sched.check(scheduler, optimizer, self.obstacles)
        self.e = Emitter()

    def run(self):
        if self.state is None:
            self.obstacles.raise_()
        trained_now = self.module.training
        evaluating = capture.set_mode(capture.structural_copy(self.module), False)
        eval_graph = capture.trace(evaluating, None, self.call, False, self.dynamic, self.obstacles)
        del evaluating
        train_graph = None
        if self.training:
            copy = capture.structural_copy(self.module)
            if not trained_now:
                capture.set_mode(copy, True)
            train_graph = capture.trace(copy, self.loss, self.call, True, self.dynamic, self.obstacles)
        self._tell_fixed(train_graph or eval_graph)
        self._inputs()
        self._reserve(eval_graph, train_graph)
        main_outputs = self._main(eval_graph)
        if self.training:
            self._algorithm(train_graph)
        self.obstacles.raise_()
        reference = self._reference()
        if self.training and not bool(torch.isfinite(reference.loss)):
            raise ModelError(f"PyTorch's loss on the examples is {float(reference.loss):g}: there is nothing to compare the file with", "OT1606",
                             "look for numbers that are not finite in the weights and the examples")
        if self.training:
            self._optimize(reference)
        file = assemble.File(self, main_outputs, eval_graph, train_graph)
        selfcheck.check(self, file, reference)
        return file.model()

    def _tell_fixed(self, graph):
        size = graph.first_size() if self.dynamic and self.call.tensors[0].dim() > 1 else None
        if size is not None:
            warnings.warn(f"forward or loss fixes the first size of '{self.call.names[0]}' at {size}, so the file takes no other: "
                          "len(x) and int(x.shape[0]) are numbers, x.shape[0] stays open", stacklevel=5)

    def _reference(self):
        try:
            return Reference(self)
        except ModelError:
            raise
        except Exception as e:  # noqa: BLE001 - whatever the user's code raises
            self.obstacles.add(*capture.torch_fails(e))
            self.obstacles.raise_()

    # ---- graphs
    def _inputs(self):
        """Names of data inputs come first, so that nothing else takes them; then the stored names."""
        for n in self.call.names:
            self.e.claim(n)
        for n in self.state.tensors:
            if n in self.e.names:
                raise UsageError(f"an input or target has the name of a parameter: '{n}'", "OT1606", "give inputs or targets as a dict with other keys")
            self.e.claim(n)
        self.values = [Value(n, t.dtype, list(t.shape)) for n, t in self.call.flat]

    def _reserve(self, eval_graph, train_graph):
        """Names of outputs, kept for them: other values may not take them."""
        wanted = list(eval_graph.output_names)
        if train_graph is not None:
            wanted = ["loss", *[n for n in wanted if n != "loss"], *[n + "_train" for n in train_graph.output_names]]
        self.reserved = {n for n in wanted if n not in self.e.names}
        self.e.names |= self.reserved

    def _main(self, graph):
        walk = Walk(self.e, self.state, False, self.obstacles)
        outputs, _ = walk.run(graph, self.values)
        return outputs

    def _algorithm(self, graph):
        self.e.part = self.e.algorithm
        walk = Walk(self.e, self.state, True, self.obstacles)
        outputs, self.new_buffers = walk.run(graph, self.values)
        self.loss_value, self.train_outputs, self.train_output_names = outputs[0], outputs[1:], graph.output_names
        self.bindings, self.initial = [], {}

    def _bind(self, key, value):
        self.bindings.append((key, value))

    def _initial(self, name, tensor):
        name = self.e.claim(name)
        self.initial[name] = tensor
        return name

    def _optimize(self, reference):
        e = self.e
        trained = [n for n in self.state.parameters if n in reference.gradients]
        if not trained:
            raise UsageError("the optimizer trains nothing: no parameter with requires_grad in it reaches the loss", "OT1609",
                             "make the optimizer from module.parameters() with requires_grad=True")
        self.trained = trained
        for a, b in self.state.overlaps({*trained, *self.new_buffers}):
            self.obstacles.add(f"'{a}' and '{b}' share memory without being one tensor, so that each changes with the other",
                               fix=f"make them one Parameter, or give '{b}' a clone() of its own")
        self.obstacles.raise_()
        self.loss_name = self.loss_value.name
        reads = {self.loss_name}
        remove_dead(e.main.nodes + e.algorithm.nodes, reads)
        zs = [n for n in self.call.names if n in reads]
        grads = [n + "_grad" for n in trained]
        made = e.node("Gradient", trained + zs, outputs=len(grads), domain="ai.onnx.preview.training", named=grads, xs=trained, zs=zs or None,
                      y=self.loss_name)
        e.nodes_by_output[made[0]].name = "gradient"
        self.gradients = dict(zip(trained, made))
        self.plan = optim.Plan(self.optimizer, self.scheduler, self.state, set(trained))
        self.schedule = sched.Schedule(self.scheduler, self.optimizer) if self.scheduler is not None else None
        cycled = self._rates()
        nexts = optim.emit(e, self.plan, self.gradients, self._initial, self._bind, cycled)
        self.plan.resting = resting.write(self.plan, self._initial)
        if self.schedule is not None:
            self._schedule_nodes(nexts["T"])
        for name, value in self.new_buffers.items():
            if value.name != name:
                self._bind(name, value.name)

    def _rates(self):
        """Initializers of rates and cycled momenta; the latter by group."""
        double = all(self.state.tensors[n].dtype == torch.float64 for n in self.trained)
        dtype, cycled = torch.float64 if double else torch.float32, {}
        for k, group in enumerate(self.optimizer.param_groups):
            self._initial(self.plan.rate(k), torch.tensor(optim.number(group["lr"]), dtype=dtype))
            if self.schedule is not None and self.schedule.momenta[k] is not None:
                now = self.schedule.momenta[k].at(self.schedule.position)
                cycled[k] = self._initial("momentum" if k == 0 else f"momentum.{k}", torch.tensor(now, dtype=dtype))
        self.cycled, self.rate_dtype = cycled, dtype
        return cycled

    def _schedule_nodes(self, counter):
        e = self.e
        e.hint = "schedule"
        k = e.cast(counter, torch.float64)
        offset = self.schedule.position - self.plan.first
        if offset:
            k = e.op("Add", k, e.const(float(offset), torch.float64))
        for g in range(len(self.optimizer.param_groups)):
            for f, name in ((self.schedule.rates[g], self.plan.rate(g)), (self.schedule.momenta[g], self.cycled.get(g))):
                if f is None or name is None:
                    continue
                value = e.cast(f.emit(e, k), self.rate_dtype)
                self._bind(name, e.node("Identity", [value], named=[name + "_new"])[0])

    def metadata(self, outputs):
        s, cls = self.state, type(self.module)
        info = {"format": 1, "torch": torch.__version__, "module": f"{cls.__module__}.{cls.__qualname__}",
                "inputs": self.call.names[:self.call.inputs], "targets": self.call.names[self.call.inputs:], "outputs": outputs,
                "parameters": s.parameters, "buffers": s.buffers, "non_persistent": s.non_persistent, "ties": s.ties, "frozen": s.frozen}
        if self.training:
            info["no_grad"] = [n for n in s.parameters if n not in s.frozen and n not in self.trained]
            info["loss"] = {"class": _class_name(self.loss), "state": s.of_loss} if self.loss is not None else None
            info["optimizer"] = self.plan.metadata()
            if self.schedule is not None:
                info["scheduler"] = sched.metadata(self.schedule, self.plan.first)
        return json.dumps(info)


def _class_name(x):
    cls = x if hasattr(x, "__qualname__") else type(x)
    return f"{cls.__module__}.{cls.__qualname__}"
