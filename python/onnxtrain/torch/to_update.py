"""Which optimizer of torch a file's update nodes are: class, hyper-parameters, state, per parameter."""

from dataclasses import dataclass, field

import torch

from .to_clock import decimal
from .to_file import OWN, TRAINING

_ADAM = {"beta1": None, "beta2": None, "epsilon": "eps", "decay": "weight_decay"}
_MOMENTS = ["exp_avg", "exp_avg_sq"]


@dataclass
class Rule:
    torch_class: type
    scalars: str  # which of R, T, B come first
    state: list
    hyper: dict  # attribute -> torch's name
    fixed: dict = field(default_factory=dict)


def _adam(cls, ams=False, cycled=False):
    return Rule(cls, "RTB" if cycled else "RT", _MOMENTS + (["max_exp_avg_sq"] if ams else []), _ADAM, {"amsgrad": ams})


def _rms(centered, buffered, cycled=False):
    state = ["square_avg"] + ["grad_avg"] * centered + ["momentum_buffer"] * buffered
    return Rule(torch.optim.RMSprop, "RB" if cycled else "R", state,
                {"alpha": "alpha", "epsilon": "eps", "momentum": "momentum", "decay": "weight_decay"}, {"centered": centered})


_optim = torch.optim
RULES = {
    (OWN, "Sgd"): Rule(_optim.SGD, "R", [], {"decay": "weight_decay"}),
    (OWN, "Adam"): _adam(_optim.Adam), (OWN, "AdamAms"): _adam(_optim.Adam, True),
    (OWN, "AdamW"): _adam(_optim.AdamW), (OWN, "AdamWAms"): _adam(_optim.AdamW, True),
    (OWN, "AdamCycled"): _adam(_optim.Adam, False, True), (OWN, "AdamAmsCycled"): _adam(_optim.Adam, True, True),
    (OWN, "AdamWCycled"): _adam(_optim.AdamW, False, True), (OWN, "AdamWAmsCycled"): _adam(_optim.AdamW, True, True),
    (OWN, "RMSprop"): _rms(False, False), (OWN, "RMSpropCentered"): _rms(True, False),
    (OWN, "RMSpropMomentum"): _rms(False, True), (OWN, "RMSpropCenteredMomentum"): _rms(True, True),
    (OWN, "RMSpropMomentumCycled"): _rms(False, True, True), (OWN, "RMSpropCenteredMomentumCycled"): _rms(True, True, True),
    (OWN, "NAdam"): Rule(_optim.NAdam, "RT", _MOMENTS + ["mu_product"], {**_ADAM, "momentum_decay": "momentum_decay"}),
    (OWN, "NAdamW"): Rule(_optim.NAdam, "RT", _MOMENTS + ["mu_product"], {**_ADAM, "momentum_decay": "momentum_decay"},
                          {"decoupled_weight_decay": True}),
    (OWN, "RAdam"): Rule(_optim.RAdam, "RT", _MOMENTS, _ADAM),
    (OWN, "RAdamW"): Rule(_optim.RAdam, "RT", _MOMENTS, _ADAM, {"decoupled_weight_decay": True}),
    (OWN, "Adamax"): Rule(_optim.Adamax, "RT", ["exp_avg", "exp_inf"], _ADAM),
    (OWN, "Adadelta"): Rule(_optim.Adadelta, "R", ["square_avg", "acc_delta"],
                            {"rho": "rho", "epsilon": "eps", "decay": "weight_decay"}),
    (OWN, "Adagrad"): Rule(_optim.Adagrad, "RT", ["sum"], {"lr_decay": "lr_decay", "epsilon": "eps", "decay": "weight_decay"}),
    (OWN, "Rprop"): Rule(_optim.Rprop, "", ["prev", "step_size"],
                         {"eta_minus": None, "eta_plus": None, "step_min": None, "step_max": None}),
    (OWN, "MomentumCycled"): Rule(_optim.SGD, "RTB", ["momentum_buffer"], {"decay": "weight_decay", "dampening": "dampening"}),
    (OWN, "NesterovCycled"): Rule(_optim.SGD, "RTB", ["momentum_buffer"], {"decay": "weight_decay", "dampening": "dampening"},
                                  {"nesterov": True}),
    (TRAINING, "Momentum"): Rule(_optim.SGD, "RT", ["momentum_buffer"],
                                 {"alpha": "momentum", "beta": None, "norm_coefficient": "weight_decay", "mode": None}),
    (TRAINING, "Adagrad"): Rule(_optim.Adagrad, "RT", ["sum"],
                                {"decay_factor": "lr_decay", "epsilon": "eps", "norm_coefficient": "weight_decay"}),
}


for _name in ("NAdam", "NAdamW", "RAdam", "RAdamW", "Adamax"):
    _rule = RULES[OWN, _name]
    RULES[OWN, _name + "Cycled"] = Rule(_rule.torch_class, "RTB", _rule.state, _rule.hyper, _rule.fixed)


@dataclass
class Update:
    """One parameter's update as torch's optimizer would do it."""

    parameter: str
    gradient: str
    torch_class: type
    hyper: dict
    state: dict  # torch's key -> state variable of the file
    rate: str = None  # values of the file
    counter: str = None
    beta: str = None
    first: bool = False  # T counts finished steps (Momentum, Adagrad), not the current one

    @property
    def signature(self):
        return (self.rate, self.beta, tuple(sorted((k, str(v)) for k, v in self.hyper.items())))


def updates_of(section, gradients):
    """A list of Updates that covers everything assigned after the gradient, or None when some of it is not torch's."""
    algorithm = section.algorithm
    maker = {o: n for n in algorithm.nodes for o in n.outputs if o}
    bound = {_origin(v, maker): k for k, v in section.update.items()}
    found = []
    for n in algorithm.nodes:
        rule = RULES.get(n.kind)
        if rule is not None:
            made = _read(n, rule, bound)
            if made is None:
                return None
            found += made
    covered = {u.parameter for u in found} | {v for u in found for v in u.state.values()}
    trained = {x for x in gradients.values()}
    if not found or {u.parameter for u in found} != trained or len({u.torch_class for u in found}) > 1:
        return None
    return found if _only_scalars_left(section, covered) else None


def _only_scalars_left(section, covered):
    """Other state of the algorithm must be counters and rates: anything else is a rule of its own."""
    own = section.algorithm.constants
    return all(own[k].numel() == 1 for k in section.update if k in own and k not in covered)


def _origin(value, maker):
    while value in maker and maker[value].op == "Identity":
        value = maker[value].inputs[0]
    return value


def _read(n, rule, bound):
    inputs, scalars = list(n.inputs), dict(zip(rule.scalars, n.inputs))
    rest = inputs[len(rule.scalars):]
    columns, count = 2 + len(rule.state), len(rest) // (2 + len(rule.state))
    if count * columns != len(rest):
        return None
    hyper = _hyper(n, rule)
    out = []
    for k in range(count):
        x, g, *state = rest[k::count]
        results = list(n.outputs[k::count])
        # everything that it makes is assigned to what it read
        if [bound.get(v) for v in results] != [x, *state]:
            return None
        out.append(Update(x, g, rule.torch_class, hyper, dict(zip(rule.state, state)), scalars.get("R"), scalars.get("T"),
                          scalars.get("B"), n.domain == TRAINING or n.op in ("MomentumCycled", "NesterovCycled", "Adagrad")))
    return out


def _number(v):
    if isinstance(v, torch.Tensor):
        return decimal(v.item(), v.dtype)
    return decimal(v) if isinstance(v, float) else v


def _hyper(n, rule):
    a = {k: _number(v) for k, v in n.attrs.items()}
    out = dict(rule.fixed)
    out.update({theirs: a[mine] for mine, theirs in rule.hyper.items() if theirs and mine in a})
    if "beta1" in rule.hyper:
        out["betas"] = (a.get("beta1", 0.9), a["beta2"])
    if "eta_minus" in a:
        out["etas"], out["step_sizes"] = (a["eta_minus"], a["eta_plus"]), (a["step_min"], a["step_max"])
    if "mode" in a:
        out["nesterov"] = a["mode"] == "nesterov"
        out["dampening"] = decimal(1 - a["beta"])
    return out
