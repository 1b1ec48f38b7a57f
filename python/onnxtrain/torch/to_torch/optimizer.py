"""A torch optimizer with the file's hyper-parameters and state: torch's own class where the update is torch's,
GraphOptimizer otherwise. Clipping between gradient and update becomes a hook before the step.
"""

from dataclasses import dataclass, field

import torch

from ...converters.training_section import values_after_gradient
from ...graph import OWN, TRAINING, needed, reads
from ..shared import frozen_state
from .graph_optimizer import GraphOptimizer
from .program import Program
from .step_scalars import decimal, find_step_scalars, leaves_of
from .update import torch_updates


@dataclass
class StepCounter:
    """Steps that an optimizer has taken in torch."""

    steps: int = 0


@dataclass(frozen=True)
class Built:
    """The optimizer of a section and how its state maps back to the file."""

    optimizer: object
    scalars: object  # StepScalars, or None
    done: int  # finished steps in the file
    taken: StepCounter
    rates: list  # per group: (value of the file, learning rate variable or None, factor)
    betas: list  # per group: value of the file that is the cycled momentum, or None
    counters: dict = field(default_factory=dict)  # parameter -> (variable that counts its steps, its value, steps)
    state: dict = field(default_factory=dict)  # state variable -> (parameter, key)


@dataclass(frozen=True)
class Group:
    """One of param_groups."""

    params: list  # names
    hyper: dict
    rate: tuple = (None, None, 1.0)
    beta: str | None = None


def build_optimizer(module, source, index, parts, names):
    """The Built of a training section; None when it trains nothing."""
    if not parts.gradients:
        return None
    graphs = source.graphs
    section = graphs.sections[index]
    after = values_after_gradient(section.algorithm, parts.gradients)
    updates = torch_updates(section, parts.gradients)
    built = _native(module, graphs, section, parts, names, updates, after) if updates is not None else None
    return built or _from_graph(module, source, index, parts, after)


def _count_steps(optimizer):
    taken = StepCounter()

    def count(optimizer, args, kwargs):
        taken.steps += 1

    count.only_counts = True
    optimizer.register_step_post_hook(count)
    return taken


# ---- a class of torch
def _native(module, graphs, section, parts, names, updates, after):
    watched = list(dict.fromkeys(v for u in updates for v in (u.of.rate, u.of.counter, u.of.beta) if v))
    scalars = find_step_scalars(section, graphs.main, watched, after)
    if scalars is None:
        return None
    values = scalars.by_name(scalars.start)
    steps = _steps(updates, values, scalars.by_name(scalars.advance(scalars.start)))
    hook, maximized = _gradient_hook(module, graphs, section, parts, updates)
    stored = {**graphs.main.constants, **section.algorithm.constants}
    if hook is False or steps is None or not _momentum_starts_clean(updates, steps, stored):
        return None
    groups = _groups(module, graphs, section, names, updates, values, maximized)
    optimizer = _optimizer(module, updates[0].torch_class, groups)
    done = _finished(section, steps, stored)
    _load_state(optimizer, module, section, updates, steps, stored)
    frozen_state.read(module, optimizer, names.info, stored)
    if hook:
        optimizer.register_step_pre_hook(hook)
    return Built(optimizer, scalars, done, _count_steps(optimizer), [g.rate for g in groups], [g.beta for g in groups],
                 _counters(section, updates, steps, stored, done),
                 {v: (u.parameter, k) for u in updates for k, v in u.of.state.items()})


def _steps(updates, values, later):
    """{parameter: finished steps} of those with a counter; None when a counter does not count steps."""
    steps = {}
    for u in updates:
        if not u.of.counter:
            continue
        if later[u.of.counter] != values[u.of.counter] + 1:
            return None
        steps[u.parameter] = int(values[u.of.counter]) - (0 if u.of.operator.counts_finished else 1)
        if steps[u.parameter] < 0:
            return None
    return steps


def _momentum_starts_clean(updates, steps, stored):
    """Before its first step torch's SGD has no buffer: the file's must be zero there."""
    return all(not stored[u.of.state["momentum_buffer"]].any() for u in updates
               if "momentum_buffer" in u.of.state and u.torch_class is torch.optim.SGD
               and steps.get(u.parameter, 0) == 0)


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
    if not value:
        return None
    own = section.algorithm.constants
    found = [v for v in leaves_of(section.algorithm.nodes, value)
             if v in section.update and v in own and not own[v].dtype.is_floating_point]
    return found[0] if len(found) == 1 else None


def _groups(module, graphs, section, names, updates, values, maximized):
    """param_groups as from_torch wrote them down, or one per set of hyper-parameters."""
    plans = _declared_groups(module, names, updates)
    if {u.parameter for own, _, _ in plans for u in own} != {u.parameter for u in updates}:
        sets = {}
        for u in updates:
            sets.setdefault((u.signature, u.parameter in maximized), []).append(u)
        plans = [(own, [u.parameter for u in own], {}) for own in sets.values()]
    groups = []
    for own, params, extra in plans:
        hyper = {k: tuple(v) if isinstance(v, list) else v for k, v in extra.items()}
        if not own:  # frozen altogether
            groups.append(Group(params, hyper))
            continue
        u = own[0]
        hyper.update(u.hyper)
        hyper["maximize"] = u.parameter in maximized
        if u.of.rate:
            hyper["lr"] = _rate(graphs, section, u.of.rate, values[u.of.rate])
        if u.of.beta:
            set_momentum(hyper, values[u.of.beta])
        groups.append(Group(params, hyper, _rate_variable(graphs, section, u.of.rate, values), u.of.beta))
    return groups


def _declared_groups(module, names, updates):
    """[(updates, names of all parameters, further settings)] of what from_torch wrote down."""
    by_name = {u.parameter: u for u in updates}
    plans = []
    for g in ((names.info or {}).get("optimizer") or {}).get("groups") or []:
        own = [by_name[n] for n in g.get("params", []) if n in by_name]
        if len({u.signature for u in own}) <= 1:
            fixed = ("params", "rate", "counter", "lr") if own and own[0].of.rate else ("params", "rate", "counter")
            extra = {k: v for k, v in g.items() if k not in fixed and _plain(v)}
            plans.append((own, [n for n in g["params"] if module.has(n)], extra))
    return plans


def _optimizer(module, torch_class, groups):
    settings = [{"params": [module.tensor(n) for n in g.params], **g.hyper} for g in groups]
    return torch_class(settings, **{k: v for k, v in settings[0].items() if k == "lr"})


def _plain(v):
    return v is None or isinstance(v, (bool, int, float, str)) or (isinstance(v, list) and all(_plain(x) for x in v))


def set_momentum(group, value):
    if "betas" in group:
        group["betas"] = (value, group["betas"][1])
    else:
        group["momentum"] = value


def _rate(graphs, section, name, value):
    t = {**graphs.main.constants, **section.algorithm.constants}.get(name)
    return decimal(value, torch.float32 if t is None else t.dtype)


def _rate_variable(graphs, section, rate, values):
    """(value, the one learning rate variable behind it, value / variable)."""
    own = section.algorithm.constants
    leaves = leaves_of(section.algorithm.nodes, rate) if rate else set()
    found = [v for v in leaves if v in own and own[v].dtype.is_floating_point and own[v].numel() == 1
             and (v in section.update or v.startswith("learning_rate") or v == graphs.metadata.get("onnxtrain.rate"))]
    if len(found) != 1 or not float(own[found[0]]):
        return rate, found[0] if len(found) == 1 and found[0] == rate else None, 1.0
    return rate, found[0], 1.0 if found[0] == rate else values[rate] / float(own[found[0]])


_STEPPED = (torch.optim.RMSprop, torch.optim.Adadelta, torch.optim.Rprop)  # count steps without using them


def _step_of(u, section, steps, stored):
    """Finished steps of a parameter, as its state in torch has them; None when it has none."""
    counter = _counter_name(section)
    if u.parameter not in steps and counter and u.torch_class in _STEPPED:
        return int(stored[counter])
    return steps.get(u.parameter)


def _counters(section, updates, steps, stored, done):
    """{parameter: (variable that counts its steps, its value, finished steps)}."""
    found = {}
    for u in updates:
        variable = _counter_of(section, u.of.counter) or _counter_name(section)
        if variable:
            step = _step_of(u, section, steps, stored)
            found[u.parameter] = (variable, int(stored[variable]), done if step is None else step)
    return found


def _load_state(optimizer, module, section, updates, steps, stored):
    for u in updates:
        p, state = module.tensor(u.parameter), u.of.state
        step = _step_of(u, section, steps, stored)
        if u.torch_class is torch.optim.SGD:
            if state and step:
                optimizer.state[p]["momentum_buffer"] = stored[state["momentum_buffer"]]
            continue
        untouched = not step and not any(bool(stored[v].any()) for v in state.values())
        if untouched and u.torch_class is not torch.optim.Adagrad:
            continue  # torch makes its own
        optimizer.state[p].update({"step": torch.tensor(float(step or 0)), **{k: stored[v] for k, v in state.items()}})


def _gradient_hook(module, graphs, section, parts, updates):
    """(hook or None, parameters that are maximised); (False, _) when gradients meet state on their way."""
    algorithm, gradients = section.algorithm, list(parts.gradients)
    if {u.of.gradient for u in updates} <= set(gradients):
        return None, set()
    maker = {o: n for n in algorithm.nodes for o in n.outputs if o}
    negated = {u.parameter for u in updates if u.of.gradient in maker and maker[u.of.gradient].op == "Neg"
               and parts.gradients.get(maker[u.of.gradient].inputs[0]) == u.parameter}
    updates = [u for u in updates if u.parameter not in negated]
    wanted = [u.of.gradient for u in updates]
    if set(wanted) <= set(gradients):
        return None, negated
    if any(v in section.update for n in needed(algorithm.nodes, wanted, gradients) for v in reads(n)):
        return False, set()
    program = Program(algorithm.nodes, gradients, wanted, {**graphs.main.constants, **algorithm.constants})

    def clip(optimizer, args, kwargs):
        with torch.no_grad():
            grads = {}
            for g in gradients:
                p = module.tensor(parts.gradients[g])
                grads[g] = torch.zeros_like(p) if p.grad is None else p.grad
            for u, new in zip(updates, program(grads, module.device)):
                p = module.tensor(u.parameter)
                if p.grad is not None:
                    p.grad = new.to(p.dtype)

    return clip, negated


# ---- the file's own nodes
def _from_graph(module, source, index, parts, after):
    graphs = source.graphs
    section = graphs.sections[index]
    rates = _rates_of(section, graphs)
    scalars = find_step_scalars(section, graphs.main, rates, after) if rates else None
    rates = rates if scalars is not None else []
    values = scalars.by_name(scalars.start) if scalars else {}
    optimizer = GraphOptimizer(module, source.expanded, index, parts, values)
    own = section.algorithm.constants
    counter = _counter_name(section) or ("T" if "T" in own else None)
    return Built(optimizer, scalars, int(own[counter]) if counter in own else 0, _count_steps(optimizer),
                 [_rate_variable(graphs, section, r, values) for r in rates], [None] * len(rates))


def _rates_of(section, graphs):
    """The values that optimizers read as their learning rate; one group each."""
    found = []
    for n in section.algorithm.nodes:
        standard = n.domain == TRAINING and n.op in ("Adam", "Adagrad", "Momentum")
        if standard or n.domain == OWN and graphs.signatures.get(n.kind, [])[:1] == ["R"]:
            found.append(n.inputs[0])
    rate = graphs.metadata.get("onnxtrain.rate")
    if not found and rate in section.algorithm.constants:
        found = [rate]
    return list(dict.fromkeys(found))
