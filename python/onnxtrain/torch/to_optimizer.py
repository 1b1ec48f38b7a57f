"""A torch optimizer with the file's hyper-parameters and state: torch's own class where the update is torch's,
GraphOptimizer otherwise. Clipping between gradient and update becomes a hook before the step.
"""

from dataclasses import dataclass, field

import torch

from . import resting
from .to_clock import decimal, make_clock
from .to_file import reads
from .to_graph_optimizer import GraphOptimizer
from .to_program import Program, needed
from .to_split import _after_gradient
from .to_update import updates_of


@dataclass
class Built:
    """The optimizer of a section and how its state maps back to the file."""

    optimizer: object
    clock: object = None
    done: int = 0  # finished steps in the file
    counters: dict = field(default_factory=dict)  # parameter -> (state variable that counts its steps, its value, steps)
    state: dict = field(default_factory=dict)  # state variable -> (parameter, key)
    rates: list = field(default_factory=list)  # per group: (value of the file, rate variable or None, factor)
    betas: list = field(default_factory=list)  # per group: value of the file that is the cycled momentum, or None
    steps: int = 0  # steps taken in torch


def build_optimizer(module, source, section, split, names):
    """None when the section trains nothing."""
    if not split.gradients:
        return None
    after = _after_gradient(section.algorithm, split.gradients)["values"]
    updates = updates_of(section, split.gradients)
    if updates is not None:
        made = _native(module, source, section, split, names, updates, after)
        if made is not None:
            return _counted(made)
    return _counted(_graph(module, source, section, split, after))


def _counted(built):
    def count(optimizer, args, kwargs):
        built.steps += 1

    count.only_counts = True
    built.optimizer.register_step_post_hook(count)
    return built


def _native(module, source, section, split, names, updates, after):
    watched = list(dict.fromkeys(v for u in updates for v in (u.rate, u.counter, u.beta) if v))
    clock = make_clock(section, source.main, watched, after)
    if clock is None:
        return None
    values = dict(zip(watched, clock.now(clock.start)))
    later = dict(zip(watched, clock.now(clock.advance(clock.start))))
    hook, maximized = _gradient_hook(module, source, section, split, updates)
    if hook is False:
        return None
    steps = {}
    for u in updates:
        if u.counter:
            if later[u.counter] != values[u.counter] + 1:
                return None
            steps[u.parameter] = int(values[u.counter]) - (0 if u.first else 1)
            if steps[u.parameter] < 0:
                return None
    built = Built(None, clock)
    stored = {**source.main.constants, **section.algorithm.constants}
    if not _momentum_starts_clean(updates, steps, stored):
        return None
    built.done = _finished(section, steps, stored)
    _groups(built, module, source, section, names, updates, values, maximized)
    _load_state(built, module, section, updates, steps, stored)
    resting.read(module, built.optimizer, names.info, stored)
    if hook:
        built.optimizer.register_step_pre_hook(hook)
    return built


def _momentum_starts_clean(updates, steps, stored):
    """Before its first step torch's SGD has no buffer: the file's must be zero there."""
    return all(not stored[u.state["momentum_buffer"]].any() for u in updates
               if "momentum_buffer" in u.state and u.torch_class is torch.optim.SGD and steps.get(u.parameter, 0) == 0)


def _finished(section, steps, stored):
    if steps:
        return max(steps.values())
    name = _counter_name(section)
    return int(stored[name]) if name else 0


def _counter_name(section):
    """The state variable that counts steps: T, or the only integer scalar of the algorithm."""
    own = section.algorithm.constants
    found = [k for k in section.update if k in own and own[k].numel() == 1 and not own[k].dtype.is_floating_point]
    return "T" if "T" in found else found[0] if len(found) == 1 else None


def _counter_of(section, value):
    """The integer state variable behind a counter's value."""
    own = section.algorithm.constants
    leaves = {v for n in needed(section.algorithm.nodes, [value]) for v in reads(n)} | {value} if value else set()
    found = [v for v in leaves if v in section.update and v in own and not own[v].dtype.is_floating_point]
    return found[0] if len(found) == 1 else None


def _groups(built, module, source, section, names, updates, values, maximized):
    """param_groups as from_torch wrote them down, or one per set of hyper-parameters."""
    by_name = {u.parameter: u for u in updates}
    declared = ((names.info or {}).get("optimizer") or {}).get("groups") or []
    plans = []
    for g in declared:
        own = [by_name[n] for n in g.get("params", []) if n in by_name]
        if len({u.signature for u in own}) <= 1:
            fixed = ("params", "rate", "counter", "lr") if own and own[0].rate else ("params", "rate", "counter")
            extra = {k: v for k, v in g.items() if k not in fixed and _plain(v)}
            plans.append((own, [n for n in g["params"] if module.has(n)], extra))
    if {u.parameter for own, _, _ in plans for u in own} != set(by_name):
        sets = {}
        for u in updates:
            sets.setdefault((u.signature, u.parameter in maximized), []).append(u)
        plans = [(own, [u.parameter for u in own], {}) for own in sets.values()]
    groups = []
    for own, params, extra in plans:
        hyper = {k: tuple(v) if isinstance(v, list) else v for k, v in extra.items()}
        if not own:  # frozen altogether
            built.rates.append((None, None, 1.0))
            built.betas.append(None)
            groups.append({"params": [module.tensor(n) for n in params], **hyper})
            continue
        u = own[0]
        hyper.update(u.hyper)
        hyper["maximize"] = u.parameter in maximized
        if u.rate:
            hyper["lr"] = _rate(source, section, u.rate, values[u.rate])
        if u.beta:
            _set_beta(hyper, values[u.beta])
        built.rates.append(_rate_variable(source, section, u.rate, values))
        built.betas.append(u.beta)
        groups.append({"params": [module.tensor(n) for n in params], **hyper})
    cls = updates[0].torch_class
    accepted = {k: v for k, v in groups[0].items() if k == "lr"}
    built.optimizer = cls(groups, **accepted)


def _plain(v):
    return v is None or isinstance(v, (bool, int, float, str)) or (isinstance(v, list) and all(_plain(x) for x in v))


def _set_beta(group, value):
    if "betas" in group:
        group["betas"] = (value, group["betas"][1])
    else:
        group["momentum"] = value


def _rate(source, section, name, value):
    t = {**source.main.constants, **section.algorithm.constants}.get(name)
    return decimal(value, torch.float32 if t is None else t.dtype)


def _rate_variable(source, section, rate, values):
    """(value, the one rate variable behind it, value / variable)."""
    own = section.algorithm.constants
    leaves = {v for n in needed(section.algorithm.nodes, [rate]) for v in reads(n)} | {rate} if rate else set()
    found = [v for v in leaves if v in own and own[v].dtype.is_floating_point and own[v].numel() == 1
             and (v in section.update or v.startswith("learning_rate") or v == source.metadata.get("onnxtrain.rate"))]
    if len(found) != 1 or not float(own[found[0]]):
        return rate, found[0] if len(found) == 1 and found[0] == rate else None, 1.0
    return rate, found[0], 1.0 if found[0] == rate else values[rate] / float(own[found[0]])


_STEPPED = (torch.optim.RMSprop, torch.optim.Adadelta, torch.optim.Rprop)  # count steps without using them


def _load_state(built, module, section, updates, steps, stored):
    counter = _counter_name(section)
    for u in updates:
        p = module.tensor(u.parameter)
        step = steps.get(u.parameter)
        if step is None and counter and u.torch_class in _STEPPED:
            step = int(stored[counter])
        mine = _counter_of(section, u.counter) or counter
        if mine:
            built.counters[u.parameter] = (mine, int(stored[mine]), built.done if step is None else step)
        built.state.update({v: (u.parameter, k) for k, v in u.state.items()})
        if u.torch_class is torch.optim.SGD:
            if u.state and step:
                built.optimizer.state[p]["momentum_buffer"] = stored[u.state["momentum_buffer"]]
            continue
        if not step and not any(bool(stored[v].any()) for v in u.state.values()) and u.torch_class is not torch.optim.Adagrad:
            continue  # untouched: torch makes its own
        state = {"step": torch.tensor(float(step or 0))}
        state.update({k: stored[v] for k, v in u.state.items()})
        built.optimizer.state[p].update(state)


def _gradient_hook(module, source, section, split, updates):
    """(hook or None, parameters that are maximised); (False, _) when gradients meet state on their way."""
    algorithm = section.algorithm
    direct = {u.gradient for u in updates} <= set(split.gradients)
    if direct:
        return None, set()
    maker = {o: n for n in algorithm.nodes for o in n.outputs if o}
    negated = {u.parameter for u in updates if u.gradient in maker and maker[u.gradient].op == "Neg"
               and split.gradients.get(maker[u.gradient].inputs[0]) == u.parameter}
    updates = [u for u in updates if u.parameter not in negated]
    if {u.gradient for u in updates} <= set(split.gradients):
        return None, negated
    state = set(section.update)
    between = needed(algorithm.nodes, [u.gradient for u in updates], list(split.gradients))
    if any(v in state for n in between for v in reads(n)):
        return False, set()
    gradients = list(split.gradients)
    stored = {**source.main.constants, **algorithm.constants}
    program = Program(algorithm.nodes, gradients, [u.gradient for u in updates], stored)

    def clip(optimizer, args, kwargs):
        with torch.no_grad():
            grads = {}
            for g in gradients:
                p = module.tensor(split.gradients[g])
                grads[g] = torch.zeros_like(p) if p.grad is None else p.grad
            for u, new in zip(updates, program(grads, module.device)):
                p = module.tensor(u.parameter)
                if p.grad is not None:
                    p.grad = new.to(p.dtype)

    return clip, negated


def _graph(module, source, section, split, after):
    algorithm = section.algorithm
    maker_inputs = _rates_of(section, source)
    clock = make_clock(section, source.main, maker_inputs, after) if maker_inputs else None
    if clock is None:
        maker_inputs = []
    optimizer = GraphOptimizer(module, source, section, split, maker_inputs,
                               [] if clock is None else clock.now(clock.start))
    built = Built(optimizer, clock)
    values = dict(zip(maker_inputs, clock.now(clock.start))) if clock else {}
    built.rates = [_rate_variable(source, section, r, values) for r in maker_inputs]
    built.betas = [None] * len(maker_inputs)
    counter = _counter_name(section) or ("T" if "T" in algorithm.constants else None)
    built.done = int(algorithm.constants[counter]) if counter in algorithm.constants else 0
    return built


def _rates_of(section, source):
    """The values that optimizers read as their rate; one group each."""
    from .to_file import OWN, TRAINING

    found = []
    for n in section.algorithm.nodes:
        f = source.reader.functions.get((n.domain, n.op))
        if (n.domain == TRAINING and n.op in ("Adam", "Adagrad", "Momentum")) or (
                n.domain == OWN and f is not None and list(f.input)[:1] == ["R"]):
            found.append(n.inputs[0])
    rate = source.metadata.get("onnxtrain.rate")
    if not found and rate in section.algorithm.constants:
        found = [rate]
    return list(dict.fromkeys(found))
