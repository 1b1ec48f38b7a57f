"""from_torch: a live PyTorch training as an ONNX file that carries its own training.

Stages, each with what it needs and what it gives:

    check_request     arguments and examples -> what stands against the conversion, State (names and tensors)
    trace_request     module and loss -> Traces (functional graphs in evaluation and training mode)   trace.py
    lower             Traces, State -> Lowered (nodes of both graphs)                                 walk.py, lower/
    compute_reference module and examples -> Reference (what PyTorch computes)                        reference.py
    add_training      Lowered, Reference -> Training (gradient, optimizer, schedule, bindings)        training.py
    assemble          all of it -> File (the ModelProto)                                              assemble.py
    self_check        File against Reference -> the loaded ot.Model                                   self_check.py
"""

import warnings
from dataclasses import dataclass

import torch

from ...converters.obstacles import Obstacles
from ...errors import ModelError, UsageError
from ..shared import versions
from . import optimizer as optimizers
from . import python_random, self_check, trace
from . import schedule as schedules
from .assemble import assemble
from .call import Call
from .emit import Emitter, Value
from .obstacles import check_module
from .reference import compute_reference
from .state import State
from .training import add_training
from .walk import Walk


@dataclass(frozen=True)
class Request:
    """What is to be converted."""

    module: torch.nn.Module
    loss: object
    optimizer: object
    scheduler: object
    dynamic: bool

    @property
    def training(self):
        return self.optimizer is not None


@dataclass(frozen=True)
class Traces:
    evaluation: trace.TracedGraph
    training: trace.TracedGraph | None


@dataclass(frozen=True)
class LoweredStep:
    """The training form: loss, outputs, and {buffer: its value after the step}."""

    loss: Value
    outputs: list
    output_names: list
    new_buffers: dict


@dataclass(frozen=True)
class Lowered:
    """Both graphs as nodes in one emitter; outputs of the main graph as Values."""

    emitter: Emitter
    outputs: list
    output_names: list
    step: LoweredStep | None


def convert(module, inputs, targets=None, loss=None, optimizer=None, scheduler=None, dynamic_batch=True):
    """See onnxtrain.from_torch."""
    versions.check_version()
    _check_arguments(module, targets, loss, optimizer, scheduler)
    request = Request(module, loss, optimizer, scheduler, dynamic_batch)
    with torch.no_grad(), python_random.kept():
        call, obstacles = Call(module, inputs, targets), Obstacles()
        state = check_request(request, call, obstacles)
        traces = trace_request(request, call, obstacles)
        _warn_of_fixed_size(request, call, traces.training or traces.evaluation)
        lowered = lower(traces, call, state, obstacles)
        new_buffers = lowered.step.new_buffers if lowered.step else {}
        reference = _reference(request, call, state, new_buffers, obstacles)
        training = add_training(request, call, state, lowered, reference, obstacles) if lowered.step else None
        file = assemble(request, call, state, traces, lowered, training)
        return self_check.check(request, call, state, file, training, reference, obstacles)


def _check_arguments(module, targets, loss, optimizer, scheduler):
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"from_torch takes a torch.nn.Module, got {type(module).__name__}", "OT1606",
                         "put the function into the forward of a torch.nn.Module")
    if loss is not None and not callable(loss):
        raise UsageError(f"loss is {type(loss).__name__}, not something to call as loss(outputs, targets)", "OT1606")
    if scheduler is not None and optimizer is None:
        raise UsageError("a scheduler needs its optimizer", "OT1606",
                         "from_torch(..., optimizer=opt, scheduler=scheduler)")
    if targets is not None and loss is None:
        raise UsageError("targets without a loss", "OT1606",
                         "give loss=torch.nn.CrossEntropyLoss() or a function of (outputs, targets)")
    if loss is not None and optimizer is None:
        raise UsageError("a loss without an optimizer", "OT1606",
                         "give optimizer=torch.optim.AdamW(module.parameters()); or leave the loss out for an "
                         "inference model")


_UNTRACEABLE = "lazy parameters", "TorchScript", "without data", "quantized layers"


def check_request(request, call, obstacles):
    """Adds what can be seen without running to the obstacles; the names and tensors of module and loss."""
    check_module(request.module, obstacles)
    if isinstance(request.loss, torch.nn.Module):
        check_module(request.loss, obstacles, "loss")
    half = [n for n, t in call.flat if t.dtype in (torch.float16, torch.bfloat16)]
    if half:
        obstacles.add(f"inputs in half precision: {', '.join(half)}", fix="give float32 examples: x.float()")
    empty = [n for n, t in call.flat if t.device.type == "meta"]
    if empty:
        obstacles.add(f"examples without data (device meta): {', '.join(empty)}",
                      fix="give tensors with data: the file is compared with PyTorch on them")
    untraceable = any(word in what for what, *_ in obstacles.items for word in _UNTRACEABLE)
    state = None if untraceable else State(request.module, request.loss)
    if request.training:
        optimizers.check(request.optimizer, obstacles, state)
    if request.scheduler is not None:
        schedules.check(request.scheduler, request.optimizer, obstacles)
    if state is None:
        obstacles.raise_()
    return state


def trace_request(request, call, obstacles):
    """Nothing of the user's module changes: copies of its structure are traced."""
    evaluating = trace.set_mode(trace.structural_copy(request.module), False)
    evaluation = trace.trace(evaluating, None, call, False, request.dynamic, obstacles)
    del evaluating
    if not request.training:
        return Traces(evaluation, None)
    copy = trace.structural_copy(request.module)
    if not request.module.training:
        trace.set_mode(copy, True)
    return Traces(evaluation, trace.trace(copy, request.loss, call, True, request.dynamic, obstacles))


def _warn_of_fixed_size(request, call, graph):
    size = graph.first_size() if request.dynamic and call.tensors[0].dim() > 1 else None
    if size is not None:
        warnings.warn(f"forward or loss fixes the first size of '{call.names[0]}' at {size}, so the file takes no "
                      "other: len(x) and int(x.shape[0]) are numbers, x.shape[0] stays open", stacklevel=4)


def lower(traces, call, state, obstacles):
    """Nodes of the main graph, then those of the algorithm that differ; everything that has no form is named."""
    e = Emitter()
    _claim_names(e, call, state)
    names = list(traces.evaluation.output_names)
    if traces.training is None:
        e.reserve(names)
    else:
        train_names = [n + "_train" for n in traces.training.output_names]
        e.reserve(["loss", *[n for n in names if n != "loss"], *train_names])
    values = [Value(n, t.dtype, list(t.shape)) for n, t in call.flat]
    outputs, _ = Walk(e, state, False, obstacles).run(traces.evaluation, values)
    step = None
    if traces.training is not None:
        e.part = e.algorithm
        (loss, *rest), new_buffers = Walk(e, state, True, obstacles).run(traces.training, values)
        step = LoweredStep(loss, rest, traces.training.output_names, new_buffers)
    obstacles.raise_()
    return Lowered(e, outputs, names, step)


def _claim_names(e, call, state):
    """Names of data inputs come first, so that nothing else takes them; then the stored names."""
    for n in call.names:
        e.claim(n)
    for n in state.tensors:
        if n in e.names:
            raise UsageError(f"an input or target has the name of a parameter: '{n}'", "OT1606",
                             "give inputs or targets as a dict with other keys")
        e.claim(n)


def _reference(request, call, state, new_buffers, obstacles):
    try:
        reference = compute_reference(request, call, state, new_buffers)
    except ModelError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever the user's code raises
        obstacles.add(*trace.torch_fails(e))
        obstacles.raise_()
    if request.training and not bool(torch.isfinite(reference.loss)):
        raise ModelError(f"PyTorch's loss on the examples is {float(reference.loss):g}: there is nothing to compare "
                         "the file with", "OT1606",
                         "look for numbers that are not finite in the weights and the examples")
    return reference
