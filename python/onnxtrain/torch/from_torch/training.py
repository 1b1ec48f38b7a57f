"""Behind the loss: its gradient, the optimizer's updates, the schedule, and what a step assigns."""

from dataclasses import dataclass

import torch

from ...converters.protos import remove_dead
from ...errors import UsageError
from ...graph import TRAINING
from ..shared import frozen_state
from . import optimizer as optimizers
from .schedule import schedule_of


@dataclass(frozen=True)
class Training:
    """The training part of a file, as far as it is not nodes."""

    trained: list  # parameters with a gradient
    gradients: dict  # parameter -> value
    initial: dict  # initializer of the algorithm -> tensor
    bindings: list  # (state variable, value)
    new_buffers: dict  # buffer -> Value after the step
    plan: optimizers.Plan
    schedule: object  # None without a scheduler
    cycled: dict  # parameter group -> state variable of its momentum
    rate_dtype: torch.dtype
    frozen: dict  # state of parameters that the step does not move


class StateVariables:
    """Initializers of the algorithm, and what is assigned to state variables after a step."""

    def __init__(self, emitter):
        self._emitter, self.initial, self.bindings = emitter, {}, []

    def add(self, name, tensor):
        """A new initializer; its name."""
        name = self._emitter.claim(name)
        self.initial[name] = tensor
        return name

    def bind(self, key, value):
        self.bindings.append((key, value))


def add_training(request, call, state, lowered, reference, obstacles):
    """Writes gradient, updates and schedule behind the nodes of the step."""
    e, step = lowered.emitter, lowered.step
    trained = _trained(state, step.new_buffers, reference, obstacles)
    gradients = _gradient(e, trained, call.names, step.loss.name)
    plan = optimizers.plan_of(request.optimizer, request.scheduler, state, set(trained))
    schedule = schedule_of(request.scheduler, request.optimizer) if request.scheduler is not None else None
    double = all(state.tensors[n].dtype == torch.float64 for n in trained)
    dtype, variables = torch.float64 if double else torch.float32, StateVariables(e)
    cycled = _add_rates(variables, plan, schedule, dtype)
    nexts = optimizers.emit(e, plan, gradients, variables, cycled)
    frozen = frozen_state.write(plan, variables.add)
    if schedule is not None:
        _schedule_nodes(e, variables, plan, schedule, cycled, dtype, nexts["T"])
    for name, value in step.new_buffers.items():
        if value.name != name:
            variables.bind(name, value.name)
    return Training(trained, gradients, variables.initial, variables.bindings, step.new_buffers, plan, schedule, cycled,
                    dtype, frozen)


def _trained(state, new_buffers, reference, obstacles):
    trained = [n for n in state.parameters if n in reference.gradients]
    if not trained:
        raise UsageError("the optimizer trains nothing: no parameter with requires_grad in it reaches the loss",
                         "OT1609", "make the optimizer from module.parameters() with requires_grad=True")
    for a, b in state.overlaps({*trained, *new_buffers}):
        obstacles.add(f"'{a}' and '{b}' share memory without being one tensor, so that each changes with the other",
                      fix=f"make them one Parameter, or give '{b}' a clone() of its own")
    obstacles.raise_()
    return trained


def _gradient(e, trained, inputs, loss):
    """{parameter: its gradient}, by one Gradient node."""
    reads = {loss}
    remove_dead(e.main.nodes + e.algorithm.nodes, reads)
    zs = [n for n in inputs if n in reads]
    made = e.node("Gradient", trained + zs, outputs=len(trained), domain=TRAINING, named=[n + "_grad" for n in trained],
                  xs=trained, zs=zs or None, y=loss)
    e.nodes_by_output[made[0]].name = "gradient"
    return dict(zip(trained, made))


def _add_rates(variables, plan, schedule, dtype):
    """Initializers of learning rates and cycled momenta; the latter by group."""
    cycled = {}
    for k, group in enumerate(plan.optimizer.param_groups):
        variables.add(plan.rate(k), torch.tensor(optimizers.number(group["lr"]), dtype=dtype))
        if schedule is not None and schedule.momenta[k] is not None:
            now = torch.tensor(schedule.momenta[k].at(schedule.position), dtype=dtype)
            cycled[k] = variables.add("momentum" if k == 0 else f"momentum.{k}", now)
    return cycled


def _schedule_nodes(e, variables, plan, schedule, cycled, dtype, counter):
    e.hint = "schedule"
    k = e.cast(counter, torch.float64)
    offset = schedule.position - plan.first
    if offset:
        k = e.op("Add", k, e.double(float(offset)))
    for g in range(len(plan.optimizer.param_groups)):
        for f, name in ((schedule.rates[g], plan.rate(g)), (schedule.momenta[g], cycled.get(g))):
            if f is None or name is None:
                continue
            value = e.cast(f.emit(e, k), dtype)
            variables.bind(name, e.node("Identity", [value], named=[name + "_new"])[0])
