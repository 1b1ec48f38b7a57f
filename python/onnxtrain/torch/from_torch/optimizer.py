"""A live torch.optim object as nodes: every group's numbers, every parameter's state, mapped by identity."""

import inspect
from dataclasses import dataclass

import numpy as np
import torch
from onnx import numpy_helper

from ...converters.optimizers import OPERATORS
from ...graph import OWN, TRAINING
from .emit import Value

# class -> keys that must keep their plain meaning; other keys of a group only choose an implementation
SUPPORTED = {"SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop"}
_LIST = "SGD, Adam, AdamW, Adagrad, RMSprop, NAdam, RAdam, Adamax, Adadelta, Rprop"


def kind_of(optimizer):
    """The class of torch.optim whose step this object runs, or None."""
    own = vars(optimizer).get("step")
    if own is not None and not hasattr(own, "_wrapped_by_lr_sched"):  # schedulers count calls in that way
        return None
    step = inspect.unwrap(type(optimizer).step)  # torch wraps it once more in every class
    name = step.__qualname__.removesuffix(".step")
    if not (step.__module__ or "").startswith("torch.optim") or name not in SUPPORTED:
        return None
    return "AdamW" if isinstance(optimizer, torch.optim.AdamW) else name


def check(optimizer, obstacles, state):
    """Refusals that can be said before anything runs."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        obstacles.add(f"optimizer is {type(optimizer).__name__}, not a torch.optim.Optimizer", fix=f"one of {_LIST}")
        return
    if kind_of(optimizer) is None:
        cls = type(optimizer)
        obstacles.add(
            f"the optimizer {cls.__module__}.{cls.__qualname__} runs code of its own that a file cannot carry",
            fix=f"use one of {_LIST}; or convert without optimizer and give ot.prepare one of its own "
            "(it has Lion and Lamb)",
        )
        return
    kinds = "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"
    hooks = [h for kind in kinds for h in getattr(optimizer, kind, {}).values()]
    if any(not getattr(h, "only_counts", False) for h in hooks):
        obstacles.add("the optimizer has step hooks, which are Python code (to_torch makes clipping one)",
                      fix="remove the hooks")
    strange = [list(p.shape) for g in optimizer.param_groups for p in g["params"]
               if state is not None and state.stored_name(p) is None]
    if strange:
        obstacles.add(f"the optimizer holds {len(strange)} parameters that neither module nor loss has "
                      f"(shapes {strange[:4]})", fix="make the optimizer from module.parameters()")


def number(x):
    return float(x.item()) if isinstance(x, torch.Tensor) else float(x)


def real(x):
    """A float64 tensor attribute."""
    return numpy_helper.from_array(np.array(number(x), np.float64))


@dataclass(frozen=True)
class Update:
    """One parameter's update: the operator, its attributes and its state as [(suffix of its name, tensor)]."""

    kind: tuple  # (domain, operator)
    attrs: dict
    state: list
    momentum: float | None = None  # for operators that read it as an input, when no schedule cycles it


class _State:
    """State of a parameter: what the optimizer has, or what it would begin with."""

    def __init__(self, saved, parameter):
        self.saved, self.parameter = saved, parameter

    def filled(self, number):
        return self.parameter.detach().new_full((), number).expand(self.parameter.shape)  # one number in memory

    def get(self, key, begin=0):
        return self.saved[key] if self.saved.get(key) is not None else self.filled(begin)

    def pairs(self, *keys):
        return [(k, self.get(k)) for k in keys]


def describe(kind, group, saved, p, cycled):
    """The Update of parameter p; cycled: a schedule changes the momentum."""
    return _DESCRIBE[kind](group, _State(saved, p), cycled)


def _adam_attributes(group):
    return {"beta1": real(group["betas"][0]), "beta2": real(group["betas"][1]), "epsilon": real(group["eps"]),
            "decay": real(group.get("weight_decay", 0))}


def _of_adam_kind(name, attrs, state, cycled):
    """With a cycled momentum, beta1 is an input of the step."""
    if cycled:
        return Update((OWN, name + "Cycled"), {k: v for k, v in attrs.items() if k != "beta1"}, state)
    return Update((OWN, name), attrs, state)


def _adam(group, state, cycled, decoupled=False):
    name = "AdamW" if decoupled or group.get("decoupled_weight_decay") else "Adam"
    kept = state.pairs("exp_avg", "exp_avg_sq")
    if group.get("amsgrad"):
        name, kept = name + "Ams", kept + state.pairs("max_exp_avg_sq")
    return _of_adam_kind(name, _adam_attributes(group), kept, cycled)


def _nadam(group, state, cycled):
    product = state.saved.get("mu_product")
    kept = [*state.pairs("exp_avg", "exp_avg_sq"), ("mu_product", torch.ones(()) if product is None else product)]
    attrs = {**_adam_attributes(group), "momentum_decay": real(group["momentum_decay"])}
    return _of_adam_kind("NAdam" + _decoupled(group), attrs, kept, cycled)


def _radam(group, state, cycled):
    kept = state.pairs("exp_avg", "exp_avg_sq")
    return _of_adam_kind("RAdam" + _decoupled(group), _adam_attributes(group), kept, cycled)


def _decoupled(group):
    return "W" if group.get("decoupled_weight_decay") else ""


def _adamax(group, state, cycled):
    return _of_adam_kind("Adamax", _adam_attributes(group), state.pairs("exp_avg", "exp_inf"), cycled)


def _adagrad(group, state, cycled):
    kept = [("sum", state.get("sum", number(group.get("initial_accumulator_value", 0))))]
    decay = group.get("weight_decay", 0)
    if state.parameter.dtype == torch.float64:  # the standard's operator has attributes in float32
        attrs = {"lr_decay": real(group["lr_decay"]), "epsilon": real(group["eps"]), "decay": real(decay)}
        return Update((OWN, "Adagrad"), attrs, kept)
    attrs = {"decay_factor": number(group["lr_decay"]), "epsilon": number(group["eps"]),
             "norm_coefficient": number(decay)}
    return Update((TRAINING, "Adagrad"), attrs, kept)


def _adadelta(group, state, cycled):
    attrs = {"rho": real(group["rho"]), "epsilon": real(group["eps"]), "decay": real(group.get("weight_decay", 0))}
    return Update((OWN, "Adadelta"), attrs, state.pairs("square_avg", "acc_delta"))


def _rprop(group, state, cycled):
    (low, high), (least, most) = group["etas"], group["step_sizes"]
    attrs = {"eta_minus": real(low), "eta_plus": real(high), "step_min": real(least), "step_max": real(most)}
    kept = [("prev", state.get("prev")), ("step_size", state.get("step_size", number(group["lr"])))]
    return Update((OWN, "Rprop"), attrs, kept)


def _sgd(group, state, cycled):
    decay, momentum = number(group.get("weight_decay", 0)), number(group.get("momentum", 0))
    if momentum == 0 and not cycled:
        return Update((OWN, "Sgd"), {"decay": real(decay)}, [])
    kept = [("momentum", state.get("momentum_buffer"))]
    dampening, nesterov = number(group.get("dampening", 0)), bool(group.get("nesterov"))
    if cycled or state.parameter.dtype == torch.float64:  # the standard's operator has attributes in float32
        name = "NesterovCycled" if nesterov else "MomentumCycled"
        attrs = {"decay": real(decay), "dampening": real(dampening)}
        return Update((OWN, name), attrs, kept, None if cycled else momentum)
    attrs = {"alpha": momentum, "beta": 1 - dampening, "norm_coefficient": decay,
             "mode": "nesterov" if nesterov else "standard"}
    return Update((TRAINING, "Momentum"), attrs, kept)


def _rmsprop(group, state, cycled):
    name, kept = "RMSprop", state.pairs("square_avg")
    if group.get("centered"):
        name, kept = name + "Centered", kept + state.pairs("grad_avg")
    if number(group.get("momentum", 0)) > 0 or cycled:
        name, kept = name + "Momentum", kept + state.pairs("momentum_buffer")
    attrs = {"alpha": real(group["alpha"]), "epsilon": real(group["eps"]), "momentum": real(group.get("momentum", 0)),
             "decay": real(group.get("weight_decay", 0))}
    if cycled:
        name = name + "Cycled"
        del attrs["momentum"]
    return Update((OWN, name), attrs, kept)


_DESCRIBE = {"SGD": _sgd, "Adam": _adam, "AdamW": lambda *a: _adam(*a, decoupled=True), "Adagrad": _adagrad,
             "RMSprop": _rmsprop, "NAdam": _nadam, "RAdam": _radam, "Adamax": _adamax, "Adadelta": _adadelta,
             "Rprop": _rprop}


def steps_of(kind, group, saved, common):
    """How many steps this parameter has behind it; SGD does not count, its buffer tells."""
    if "step" in saved:
        return int(number(saved["step"]))
    if kind != "SGD" or number(group.get("momentum", 0)) == 0:
        return common if kind == "SGD" else 0
    return max(common, 1) if saved.get("momentum_buffer") is not None else 0


@dataclass(frozen=True)
class Plan:
    """What the optimizer does, ready to be written: groups, counters, and the counter every schedule reads."""

    kind: str
    optimizer: object
    names: dict  # id of a parameter -> its stored name
    entries: list  # (group number, stored name, parameter, finished steps)
    counters: dict  # finished steps -> state variable that counts them
    first: int  # finished steps of most parameters

    @staticmethod
    def rate(k):
        """The state variable of a group's learning rate."""
        return "learning_rate" if k == 0 else f"learning_rate.{k}"


def plan_of(optimizer, scheduler, state, trained):
    kind, position = kind_of(optimizer), int(scheduler.last_epoch) if scheduler is not None else 0
    names = {id(p): state.stored_name(p) for g in optimizer.param_groups for p in g["params"]}
    entries = [(k, names[id(p)], p, steps_of(kind, group, optimizer.state.get(p, {}), position))
               for k, group in enumerate(optimizer.param_groups) for p in group["params"] if names[id(p)] in trained]
    counts = [s for *_, s in entries]
    common = max(set(counts), key=counts.count) if counts else 0
    counters = {common: "T"}
    for s in sorted(set(counts) - {common}):
        counters[s] = f"T.{len(counters)}"
    return Plan(kind, optimizer, names, entries, counters, common)


def metadata(plan, frozen):
    """What to_torch needs to make the optimizer again; frozen: see shared/frozen_state.py."""
    groups = []
    for k, g in enumerate(plan.optimizer.param_groups):
        plain = {key: _plain(v) for key, v in g.items() if key != "params"}
        names = [plan.names[id(p)] for p in g["params"]]  # all of them: state_dicts count by position
        groups.append({"params": names, "rate": plan.rate(k), **{k2: v for k2, v in plain.items() if v is not _NO}})
    other = {n: plan.counters[s] for _, n, _, s in plan.entries if plan.counters[s] != "T"}
    cls = type(plan.optimizer)
    return {"class": f"{cls.__module__}.{cls.__qualname__}", "kind": plan.kind, "groups": groups, "counters": other,
            "resting": frozen}


_NO = object()


def _plain(v):
    if isinstance(v, torch.Tensor):
        return v.item() if v.numel() == 1 else v.tolist()
    if isinstance(v, (tuple, list)):
        return [_plain(x) for x in v]
    return v if v is None or isinstance(v, (bool, int, float, str)) else _NO


def emit(e, plan, gradients, variables, cycled):
    """Writes counters and updates into the emitter's graph, their state and bindings into `variables`. `cycled` maps a
    group to the state variable of its momentum. The counters' values after the step, by name."""
    nexts = {}
    one = e.const(1)
    for steps, name in plan.counters.items():
        variables.add(name, torch.tensor(steps, dtype=torch.int64))
        nexts[name] = e.node("Add", [name, one], named=[name + "_new"])[0]
    for k, name, p, steps in plan.entries:
        group = plan.optimizer.param_groups[k]
        u = describe(plan.kind, group, plan.optimizer.state.get(p, {}), p, k in cycled)
        operator, counter = OPERATORS[u.kind], plan.counters[steps]
        momentum = cycled.get(k) if u.momentum is None else e.double(u.momentum)
        scalar = {"R": plan.rate(k), "T": counter if operator.counts_finished else nexts[counter], "B": momentum}
        grad = gradients[name]
        if group.get("maximize"):
            grad = e.node("Neg", [grad], named=[name + "_ascent"])[0]
        keys = [name, *[variables.add(f"{name}.{suffix}", tensor) for suffix, tensor in u.state]]
        inputs = [scalar[s] for s in operator.scalars] + [name, grad] + keys[1:]
        domain, op = u.kind
        made = e.node(op, inputs, outputs=len(keys), domain=domain, named=[key + "_new" for key in keys], **u.attrs)
        e.nodes_by_output[made[0]].name = name + "_update"
        for key, value in zip(keys, made):
            variables.bind(key, value)
    for name, value in nexts.items():
        variables.bind(name, value)
    return {name: Value(v, torch.int64, []) for name, v in nexts.items()}
