"""Which optimizer of torch a file's update nodes are: class and hyper-parameters, per parameter."""

from dataclasses import dataclass, field

import torch

from ...converters.optimizers import Update, read_updates
from ...graph import OWN, TRAINING
from .step_scalars import decimal

_ADAM = {"beta1": None, "beta2": None, "epsilon": "eps", "decay": "weight_decay"}
_NADAM = {**_ADAM, "momentum_decay": "momentum_decay"}
_RMS = {"alpha": "alpha", "epsilon": "eps", "momentum": "momentum", "decay": "weight_decay"}
_CYCLED_SGD = {"decay": "weight_decay", "dampening": "dampening"}


@dataclass(frozen=True)
class Rule:
    torch_class: type
    hyper: dict  # attribute -> torch's name; None: read by name in _hyper
    fixed: dict = field(default_factory=dict)


_optim = torch.optim
RULES = {
    (OWN, "Sgd"): Rule(_optim.SGD, {"decay": "weight_decay"}),
    (OWN, "Adam"): Rule(_optim.Adam, _ADAM, {"amsgrad": False}),
    (OWN, "AdamAms"): Rule(_optim.Adam, _ADAM, {"amsgrad": True}),
    (OWN, "AdamW"): Rule(_optim.AdamW, _ADAM, {"amsgrad": False}),
    (OWN, "AdamWAms"): Rule(_optim.AdamW, _ADAM, {"amsgrad": True}),
    (OWN, "RMSprop"): Rule(_optim.RMSprop, _RMS, {"centered": False}),
    (OWN, "RMSpropCentered"): Rule(_optim.RMSprop, _RMS, {"centered": True}),
    (OWN, "RMSpropMomentum"): Rule(_optim.RMSprop, _RMS, {"centered": False}),
    (OWN, "RMSpropCenteredMomentum"): Rule(_optim.RMSprop, _RMS, {"centered": True}),
    (OWN, "NAdam"): Rule(_optim.NAdam, _NADAM),
    (OWN, "NAdamW"): Rule(_optim.NAdam, _NADAM, {"decoupled_weight_decay": True}),
    (OWN, "RAdam"): Rule(_optim.RAdam, _ADAM),
    (OWN, "RAdamW"): Rule(_optim.RAdam, _ADAM, {"decoupled_weight_decay": True}),
    (OWN, "Adamax"): Rule(_optim.Adamax, _ADAM),
    (OWN, "Adadelta"): Rule(_optim.Adadelta, {"rho": "rho", "epsilon": "eps", "decay": "weight_decay"}),
    (OWN, "Adagrad"): Rule(_optim.Adagrad, {"lr_decay": "lr_decay", "epsilon": "eps", "decay": "weight_decay"}),
    (OWN, "Rprop"): Rule(_optim.Rprop, {"eta_minus": None, "eta_plus": None, "step_min": None, "step_max": None}),
    (OWN, "MomentumCycled"): Rule(_optim.SGD, _CYCLED_SGD),
    (OWN, "NesterovCycled"): Rule(_optim.SGD, _CYCLED_SGD, {"nesterov": True}),
    (TRAINING, "Momentum"): Rule(_optim.SGD, {"alpha": "momentum", "beta": None, "norm_coefficient": "weight_decay",
                                              "mode": None}),
    (TRAINING, "Adagrad"): Rule(_optim.Adagrad, {"decay_factor": "lr_decay", "epsilon": "eps",
                                                 "norm_coefficient": "weight_decay"}),
}
for _kind in ("Adam", "AdamAms", "AdamW", "AdamWAms", "NAdam", "NAdamW", "RAdam", "RAdamW", "Adamax",
              "RMSpropMomentum", "RMSpropCenteredMomentum"):
    RULES[OWN, _kind + "Cycled"] = RULES[OWN, _kind]


@dataclass(frozen=True)
class TorchUpdate:
    """One parameter's update as torch's optimizer would do it."""

    of: Update
    torch_class: type
    hyper: dict

    @property
    def parameter(self):
        return self.of.parameter

    @property
    def signature(self):
        return (self.of.rate, self.of.beta, tuple(sorted((k, str(v)) for k, v in self.hyper.items())))


def torch_updates(section, gradients):
    """A TorchUpdate per trained parameter, or None when the step is not one of torch's optimizers."""
    updates = read_updates(section, gradients)
    if updates is None or any(u.kind not in RULES for u in updates):
        return None
    made = [TorchUpdate(u, RULES[u.kind].torch_class, _hyper(u.attrs, RULES[u.kind])) for u in updates]
    return made if len({u.torch_class for u in made}) == 1 else None


def _number(v):
    if isinstance(v, torch.Tensor):
        return decimal(v.item(), v.dtype)
    return decimal(v) if isinstance(v, float) else v


def _hyper(attrs, rule):
    a = {k: _number(v) for k, v in attrs.items()}
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
