"""The file against PyTorch, always: inference outputs, loss, training outputs, buffers, gradients, one optimizer step.

Dropout is off and random numbers are fixed on both sides. The optimizer is compared on the file's own gradients, so
that noise in a gradient near zero is not blown up by methods that divide by its size.
"""

import collections
import copy
import functools

import numpy as np
import torch
from onnx import helper

from ...converters.compare import Comparison, Sensitivity
from ...converters.deterministic import deterministic
from ...converters.protos import remove_dead
from ...converters.spill import SpilledArrays, trim_memory
from ...errors import ConversionError, ModelError
from ...model import load
from ...session import Session
from ...trainer import Trainer
from ...values import dtype_number
from ..shared.dtypes import TO_ONNX, as_bytes, to_numpy
from .reference import Parameters, compute_reference


def check(request, call, state, file, training, reference, obstacles):
    """The file as a loaded ot.Model; raises ModelError that names the first tensor that differs. training: None for an
    inference model."""
    new_buffers = training.new_buffers if training else {}
    again = functools.partial(compute_reference, request, call, state, new_buffers)
    compare = Comparison("PyTorch", functools.partial(_sensitivity, again, state, reference))
    try:
        made = file.model()
        _stored(made, file, state, training, compare)
        model, feeds = _deterministic(file, call, state, training)
        _inference(model, feeds, file, reference, compare)
        for size in file.other_sizes:
            _other_size(model, feeds, file, training, call, size, again, compare, obstacles)
        trim_memory()
        if training:
            gradients = _step(model, feeds, file, training, state, reference, compare)
            _updates(file, training, gradients, compare)
            _rates(file, training, compare)
        del model
        trim_memory()
        return made
    except ConversionError:
        raise
    except ModelError as e:
        raise ModelError(f"the file that was made does not run: {e.message}", e.code, e.hint) from e


def _sensitivity(again, state, reference):
    if state.captured:  # the loss reads parameters by itself: a copy of the module is not all of the training
        return Sensitivity(reference.arrays())

    def changed(units):
        trim_memory()
        result = again(Parameters(jitter=units)).arrays()
        trim_memory()
        return result

    return Sensitivity(reference.arrays(), changed, lambda: again(Parameters(exact=True)).arrays().items())


def _stored(made, file, state, training, compare):
    """Every tensor in the file is, bit by bit, that of PyTorch; the runs are fed with the latter."""
    for graph in [file.proto.graph, *[t.algorithm for t in file.proto.training_info]]:
        for t in graph.initializer:
            want = state.tensors[t.name] if t.name in state.tensors else training.initial[t.name]
            got = made._m.initializer(t.name)
            same = got.dtype == TO_ONNX[want.dtype] and list(got.shape) == list(want.shape)
            if same and want.numel():
                same = np.array_equal(np.frombuffer(got.memory(), np.uint8), as_bytes(want).numpy())
            if not same:
                compare.differs(f"the stored tensor '{t.name}'", "is not PyTorch's")


def _deterministic(file, call, state, training):
    """(the model without randomness, what it is fed with)."""
    gradients = list(training.gradients.values()) if training else []
    bindings = {"T", *(training.new_buffers if training else ())}
    fed = [n for n in state.parameters if n not in bindings and n in file.reads]
    model = file.model(deterministic(file.proto, gradients, bindings, set(fed)))
    return model, {n: to_numpy(t) for n, t in [*call.flat, *((n, state.tensors[n]) for n in fed)]}


def _run(model, feeds):
    return Session(model).run({n: feeds[n] for n in model.inputs if n in feeds})


def _inference(model, feeds, file, reference, compare):
    got = _run(model, feeds)
    for name, *_ in file.outputs:
        if name in reference.outputs:
            compare.same(f"output '{name}' of the inference form", got[name], to_numpy(reference.outputs[name]),
                         ("output", name))


def _other_size(model, feeds, file, training, call, size, again, compare, obstacles):
    """Code that asks for the size of the batch may do the same in two ways (torch's own distances), or something
    else."""
    open_ = {name for d in (file.dims, file.step_dims) if d for name, axis in d.by_input if axis == 0}
    examples = [(n, _rows(t, size) if n in open_ else t) for n, t in call.flat]
    try:
        other = again(examples=[t for _, t in examples])
    except Exception:  # noqa: BLE001 - PyTorch does not take that size either
        return
    feeds = {**feeds, **{n: to_numpy(t) for n, t in examples}}
    try:
        got = _run(model, feeds)
        for name in [n for n, *_ in file.outputs if n in other.outputs]:
            compare.same(name, got[name], to_numpy(other.outputs[name]), None, 20)
        if training:
            used = {n: v for n, v in feeds.items() if n in file.algorithm_reads}
            loss = Trainer(model, seed=0).step(used).take(file.loss)
            compare.same("loss", loss, to_numpy(other.loss), None, 20)
    except ModelError:
        obstacles.add(f"forward goes another way for a batch of {size} than for that of the examples",
                      fix="write it without asking for the size, or from_torch(..., dynamic_batch=False)")
        obstacles.raise_()


def _step(model, feeds, file, training, state, reference, compare):
    """Loss, outputs, buffers and gradients of one step; {gradient: array} of the file."""
    trainer = Trainer(model, seed=0)
    step = trainer.step({n: v for n, v in feeds.items() if n in file.algorithm_reads})
    compare.same("the loss", step.take(file.loss), to_numpy(reference.loss), ("loss", ""))
    for name, plain in file.forms.items():
        if plain in reference.train_outputs:
            compare.same(f"output '{plain}' in training", step.take(name), to_numpy(reference.train_outputs[plain]),
                         ("train", plain))
    for name, after in reference.buffers.items():  # those that the file does not change must not change in PyTorch
        if name in state.tensors:
            now = trainer.state[name] if name in trainer.state else to_numpy(state.tensors[name])
            compare.same(f"buffer '{name}' after one step", now, to_numpy(after), ("buffer", name))
    del trainer
    gradients = training.gradients
    got = SpilledArrays(sum(t.numel() * t.element_size() for n, t in state.tensors.items() if n in gradients))
    for grad in gradients.values():
        got.put(grad, step.take(grad))
    del step
    trim_memory()
    largest = max((float(np.abs(g).max()) for g in reference.gradients.values() if g.size), default=0.0)
    for name, grad in gradients.items():
        compare.same(f"the gradient of '{name}'", got[grad], reference.gradients[name], ("gradient", name), 20,
                     largest * 1e-3)
    return got


def _updates(file, training, gradients, compare):
    """The file's update nodes against PyTorch's optimizer, one parameter at a time, on the file's gradients."""
    plan, bound = training.plan, dict(training.bindings)
    for k, name, p, _ in plan.entries:
        gradient = gradients[training.gradients[name]]
        keys = [key for key in bound if key == name or _is_state_of(name, key, training.initial)]
        given = {training.gradients[name]: gradient, name: to_numpy(p)}
        new = _part(file, training, [bound[key] for key in keys], given)
        for key, tensor in _optimizer_step(plan.optimizer, k, p, gradient).items():
            suffix = "momentum" if key == "momentum_buffer" and plan.kind == "SGD" else key
            stored = name if key is None else f"{name}.{suffix}"
            if stored in bound:
                compare.same(f"'{stored}' after one step of {plan.kind}", new[bound[stored]], to_numpy(tensor))


def _is_state_of(name, key, initial):
    return key in initial and key.startswith(name + ".") and "." not in key[len(name) + 1:]


def _rates(file, training, compare):
    """The schedule's nodes against its formulas, which were proved against PyTorch's scheduler."""
    schedule, bound = training.schedule, dict(training.bindings)
    if schedule is None:
        return
    for g in range(len(training.plan.optimizer.param_groups)):
        pairs = (schedule.rates[g], training.plan.rate(g)), (schedule.momenta[g], training.cycled.get(g))
        for f, name in pairs:
            if f is not None and name is not None:
                new = _part(file, training, [bound[name]], {})[bound[name]]
                want = torch.tensor(f.at(schedule.position + 1), dtype=training.rate_dtype)
                compare.same(f"'{name}' after one step", new, to_numpy(want))


def _part(file, training, outputs, given):
    """Runs the nodes of the step that compute `outputs` from `given` and the file's initial state."""
    proto = file.proto
    step = proto.training_info[0].algorithm
    reads = set(outputs)
    nodes = remove_dead([n for n in [*proto.graph.node, *step.node] if n.op_type != "Gradient"], reads)
    feeds = {n: v for n, v in given.items() if n in reads}
    feeds |= {n: to_numpy(t) for n, t in training.initial.items() if n in reads}
    infos = {o.name: o for o in step.output}
    inputs = [helper.make_tensor_value_info(n, dtype_number(v.dtype), list(v.shape)) for n, v in feeds.items()]
    graph = helper.make_graph(nodes, "part", inputs, [infos[o] for o in outputs])
    model = helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version,
                              functions=proto.functions)
    return Session(load(model.SerializeToString())).run(feeds)


def _rows(t, n):
    """A batch of n: the first rows, or all of them several times."""
    return t.detach().repeat(-(-n // t.shape[0]), *[1] * (t.dim() - 1))[:n]


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
