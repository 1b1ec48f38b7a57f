"""A live torch.optim object as nodes: every group's numbers, every parameter's state, mapped by identity."""

import inspect

import numpy as np
import torch
from onnx import numpy_helper

from .emit import OWN, TRAINING, Value

# class -> keys that must keep their plain meaning; other keys of a group only choose an implementation
SUPPORTED = {"SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop"}
_LIST = "SGD, Adam, AdamW, Adagrad, RMSprop, NAdam, RAdam, Adamax, Adadelta, Rprop"


def kind_of(optimizer):
    """The class of torch.optim whose step this object runs, or None."""
    if "step" in vars(optimizer) and not hasattr(vars(optimizer)["step"], "_wrapped_by_lr_sched"):  # schedulers count calls in that way
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
        obstacles.add(f"the optimizer {cls.__module__}.{cls.__qualname__} runs code of its own that a file cannot carry",
                      fix=f"use one of {_LIST}; or convert without optimizer and give ot.prepare one of its own (it has Lion and Lamb)")
        return
    hooks = [h for kind in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks") for h in getattr(optimizer, kind, {}).values()]
    if any(not getattr(h, "only_counts", False) for h in hooks):
        obstacles.add("the optimizer has step hooks, which are Python code (to_torch makes clipping one)", fix="remove the hooks")
    strange = [list(p.shape) for g in optimizer.param_groups for p in g["params"] if state is not None and state.stored_name(p) is None]
    if strange:
        obstacles.add(f"the optimizer holds {len(strange)} parameters that neither module nor loss has (shapes {strange[:4]})",
                      fix="make the optimizer from module.parameters()")


def number(x):
    return float(x.item()) if isinstance(x, torch.Tensor) else float(x)


def real(x):
    """A float64 tensor attribute."""
    return numpy_helper.from_array(np.array(number(x), np.float64))


class Update:
    """One parameter's update: the node, its attributes and its state."""

    def __init__(self, op, domain, scalars, attrs, state, beta=None):
        self.op, self.domain, self.scalars, self.attrs, self.state = op, domain, scalars, attrs, state
        self.beta = beta  # "B" when no schedule cycles it


def describe(kind, group, saved, p, cycled):
    """The Update of parameter p: scalars of "R" (rate), "T" (finished steps), "N" (T + 1), "B" (cycled momentum);
    state as [(suffix, tensor)]."""
    filled = lambda number: p.detach().new_full((), number).expand(p.shape)  # noqa: E731 - one number in memory
    zero = lambda: filled(0)  # noqa: E731
    kept = lambda key, make=zero: saved[key] if saved.get(key) is not None else make()  # noqa: E731
    decay = group.get("weight_decay", 0)
    if kind == "SGD":
        return _sgd(group, kept, cycled, p.dtype)
    if kind in ("Adam", "AdamW"):
        name = "AdamW" if kind == "AdamW" or group.get("decoupled_weight_decay") else "Adam"
        state = [(k, kept(k)) for k in ("exp_avg", "exp_avg_sq")]
        if group.get("amsgrad"):
            name, state = name + "Ams", state + [("max_exp_avg_sq", kept("max_exp_avg_sq"))]
        attrs = dict(beta1=real(group["betas"][0]), beta2=real(group["betas"][1]), epsilon=real(group["eps"]), decay=real(decay))
        return _cycled(name, attrs, state) if cycled else Update(name, OWN, "RN", attrs, state)
    if kind in ("NAdam", "RAdam"):
        name = kind + ("W" if group.get("decoupled_weight_decay") else "")
        attrs = dict(beta1=real(group["betas"][0]), beta2=real(group["betas"][1]), epsilon=real(group["eps"]), decay=real(decay))
        state = [(k, kept(k)) for k in ("exp_avg", "exp_avg_sq")]
        if kind == "NAdam":
            attrs["momentum_decay"] = real(group["momentum_decay"])
            state.append(("mu_product", kept("mu_product", lambda: torch.ones(()))))
        return _cycled(name, attrs, state) if cycled else Update(name, OWN, "RN", attrs, state)
    if kind == "Adamax":
        attrs = dict(beta1=real(group["betas"][0]), beta2=real(group["betas"][1]), epsilon=real(group["eps"]), decay=real(decay))
        state = [(k, kept(k)) for k in ("exp_avg", "exp_inf")]
        return _cycled("Adamax", attrs, state) if cycled else Update("Adamax", OWN, "RN", attrs, state)
    if kind == "Adagrad":
        first = number(group.get("initial_accumulator_value", 0))
        state = [("sum", kept("sum", lambda: filled(first)))]
        if p.dtype == torch.float64:
            return Update("Adagrad", OWN, "RT", dict(lr_decay=real(group["lr_decay"]), epsilon=real(group["eps"]), decay=real(decay)), state)
        attrs = dict(decay_factor=number(group["lr_decay"]), epsilon=number(group["eps"]), norm_coefficient=number(decay))
        return Update("Adagrad", TRAINING, "RT", attrs, state)
    if kind == "Adadelta":
        attrs = dict(rho=real(group["rho"]), epsilon=real(group["eps"]), decay=real(decay))
        return Update("Adadelta", OWN, "R", attrs, [(k, kept(k)) for k in ("square_avg", "acc_delta")])
    if kind == "RMSprop":
        return _rmsprop(group, kept, decay, cycled)
    low, high = group["etas"]
    attrs = dict(eta_minus=real(low), eta_plus=real(high), step_min=real(group["step_sizes"][0]), step_max=real(group["step_sizes"][1]))
    start = lambda: filled(number(group["lr"]))  # noqa: E731
    return Update("Rprop", OWN, "", attrs, [("prev", kept("prev")), ("step_size", kept("step_size", start))])


def _cycled(name, attrs, state):
    """beta1 is an input of the step."""
    return Update(name + "Cycled", OWN, "RNB", {k: v for k, v in attrs.items() if k != "beta1"}, state)


def _sgd(group, kept, cycled, dtype):
    decay, momentum = number(group.get("weight_decay", 0)), number(group.get("momentum", 0))
    if momentum == 0 and not cycled:
        return Update("Sgd", OWN, "R", dict(decay=real(decay)), [])
    state = [("momentum", kept("momentum_buffer"))]
    dampening, nesterov = number(group.get("dampening", 0)), bool(group.get("nesterov"))
    if cycled or dtype == torch.float64:  # the standard's operator has attributes in float32
        name = "NesterovCycled" if nesterov else "MomentumCycled"
        return Update(name, OWN, "RTB", dict(decay=real(decay), dampening=real(dampening)), state, None if cycled else momentum)
    attrs = dict(alpha=momentum, beta=1 - dampening, norm_coefficient=decay, mode="nesterov" if nesterov else "standard")
    return Update("Momentum", TRAINING, "RT", attrs, state)


def _rmsprop(group, kept, decay, cycled):
    name, state = "RMSprop", [("square_avg", kept("square_avg"))]
    if group.get("centered"):
        name, state = name + "Centered", state + [("grad_avg", kept("grad_avg"))]
    if number(group.get("momentum", 0)) > 0 or cycled:
        name, state = name + "Momentum", state + [("momentum_buffer", kept("momentum_buffer"))]
    attrs = dict(alpha=real(group["alpha"]), epsilon=real(group["eps"]), momentum=real(group.get("momentum", 0)), decay=real(decay))
    if cycled:
        del attrs["momentum"]
    return Update(name + ("Cycled" if cycled else ""), OWN, "RB" if cycled else "R", attrs, state)


def steps_of(kind, group, saved, common):
    """How many steps this parameter has behind it; SGD does not count, its buffer tells."""
    if "step" in saved:
        return int(number(saved["step"]))
    if kind != "SGD" or number(group.get("momentum", 0)) == 0:
        return common if kind == "SGD" else 0
    return max(common, 1) if saved.get("momentum_buffer") is not None else 0


class Plan:
    """What the optimizer does, ready to be written: groups, counters, and the counter every schedule reads."""

    def __init__(self, optimizer, scheduler, state, trained):
        self.kind, self.optimizer = kind_of(optimizer), optimizer
        position = int(scheduler.last_epoch) if scheduler is not None else 0
        self.entries = []  # (group number, stored name, parameter, finished steps)
        self.names = {id(p): state.stored_name(p) for g in optimizer.param_groups for p in g["params"]}
        for k, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                name = state.stored_name(p)
                if name in trained:
                    self.entries.append((k, name, p, steps_of(self.kind, group, optimizer.state.get(p, {}), position)))
        counts = [s for *_, s in self.entries]
        common = max(set(counts), key=counts.count) if counts else 0
        self.counters = {common: "T"}
        for s in sorted(set(counts) - {common}):
            self.counters[s] = f"T.{len(self.counters)}"
        self.first, self.resting = common, {}

    def rate(self, k):
        return "learning_rate" if k == 0 else f"learning_rate.{k}"

    def metadata(self):
        groups = []
        for k, g in enumerate(self.optimizer.param_groups):
            plain = {key: _plain(v) for key, v in g.items() if key != "params"}
            names = [self.names[id(p)] for p in g["params"]]  # all of them: state_dicts count by position
            groups.append({"params": names, "rate": self.rate(k), **{k2: v for k2, v in plain.items() if v is not _NO}})
        other = {n: self.counters[s] for _, n, _, s in self.entries if self.counters[s] != "T"}
        cls = type(self.optimizer)
        return {"class": f"{cls.__module__}.{cls.__qualname__}", "kind": self.kind, "groups": groups, "counters": other, "resting": self.resting}


_NO = object()


def _plain(v):
    if isinstance(v, torch.Tensor):
        return v.item() if v.numel() == 1 else v.tolist()
    if isinstance(v, (tuple, list)):
        return [_plain(x) for x in v]
    return v if v is None or isinstance(v, (bool, int, float, str)) else _NO


def emit(e, plan, gradients, initial, bind, cycled):
    """Writes counters and updates. `initial(name, tensor)` adds an initializer of the algorithm, `bind(key, value)` a
    binding; `cycled` maps a group to the state variable of its momentum."""
    nexts = {}
    one = e.const(1)
    for steps, name in plan.counters.items():
        initial(name, torch.tensor(steps, dtype=torch.int64))
        nexts[name] = e.node("Add", [name, one], named=[name + "_new"])[0]
    for k, name, p, steps in plan.entries:
        group = plan.optimizer.param_groups[k]
        u = describe(plan.kind, group, plan.optimizer.state.get(p, {}), p, k in cycled)
        counter = plan.counters[steps]
        scalar = {"R": plan.rate(k), "T": counter, "N": nexts[counter], "B": cycled.get(k)}
        if u.beta is not None:
            scalar["B"] = e.const(u.beta, torch.float64)
        grad = gradients[name]
        if group.get("maximize"):
            grad = e.node("Neg", [grad], named=[name + "_ascent"])[0]
        keys = [name]
        for suffix, tensor in u.state:
            keys.append(initial(f"{name}.{suffix}", tensor))
        inputs = [scalar[s] for s in u.scalars] + [name, grad] + keys[1:]
        made = e.node(u.op, inputs, outputs=len(keys), domain=u.domain, named=[key + "_new" for key in keys], **u.attrs)
        e.nodes_by_output[made[0]].name = name + "_update"
        if u.domain == OWN:
            e.functions.add(u.op)
        for key, value in zip(keys, made):
            bind(key, value)
    for name, value in nexts.items():
        bind(name, value)
    return {name: Value(v, torch.int64, []) for name, v in nexts.items()}
