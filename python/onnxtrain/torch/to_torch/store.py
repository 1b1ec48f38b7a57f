"""From a PyTorch training back to the file it came from: parameters, buffers, optimizer state, rates, counters."""

import numpy as np
import torch

from ...trainer import Trainer
from .graph_optimizer import GraphOptimizer
from .schedule import GraphLR


def _array(t, like):
    t = t.detach().cpu()
    if t.dtype == torch.bfloat16:
        return t.view(torch.int16).numpy().view(like.dtype).reshape(like.shape)
    return np.ascontiguousarray(t.numpy()).astype(like.dtype, copy=False).reshape(like.shape)


def store(model, training):
    """A new ot.Model: the file with the state that the PyTorch side has now."""
    trainer = Trainer(model)
    out = trainer.model()
    known, state = set(out.parameters), set(trainer.state)

    def put(name, value):
        if name in state:
            trainer.state[name] = _array(torch.as_tensor(value), trainer.state[name])
        elif name in known:
            fixed[name] = _array(torch.as_tensor(value), out.parameters[name])

    fixed = {}

    for name in training.module._places:
        put(name, training.module.tensor(name))
    for section in training.sections:
        built = section.built
        if built is None:
            continue
        if isinstance(built.optimizer, GraphOptimizer):
            for name in built.optimizer._places:
                table, key = built.optimizer.place(name)
                put(name, table[key])
        else:
            _store_native(put, training.module, built)
        _store_rates(put, built, section.scheduler)
    out = trainer.model()
    for name, value in fixed.items():  # frozen tensors, and buffers that no step assigns
        out.parameters[name] = value
    return out


def _store_native(put, module, built):
    for variable, (parameter, key) in built.state.items():
        state = built.optimizer.state.get(module.tensor(parameter), {})
        if state.get(key) is not None:
            put(variable, state[key])
    counters = {}
    for parameter, (variable, value, loaded) in built.counters.items():
        state = built.optimizer.state.get(module.tensor(parameter), {})
        now = int(state["step"]) if "step" in state else loaded + built.taken.steps
        counters[variable] = max(counters.get(variable, value), value + now - loaded)
    for variable, value in counters.items():
        put(variable, value)


def _store_rates(put, built, scheduler):
    if isinstance(scheduler, GraphLR):
        for name, value in scheduler.scalars.items():
            if value.dtype.is_floating_point:
                put(name, value)
    for group, (_, variable, factor) in zip(built.optimizer.param_groups, built.rates):
        if variable:
            put(variable, float(group["lr"]) / factor)
