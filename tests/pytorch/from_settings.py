"""Optimizers of every kind with their variants, and schedulers, for the round trips."""

import torch
from torch.optim import lr_scheduler as lrs

O = torch.optim  # noqa: E741


def groups(params, *settings):
    """As many param groups as settings, parameters dealt out in turn."""
    made = [{"params": params[k::len(settings)], **s} for k, s in enumerate(settings)]
    return [g for g in made if g["params"]]


OPTIMIZERS = {
    "sgd": lambda p: O.SGD(p, 0.05, weight_decay=1e-3),
    "sgd maximize": lambda p: O.SGD(p, 1e-3, maximize=True),
    "momentum": lambda p: O.SGD(p, 0.02, momentum=0.9, dampening=0.1, weight_decay=1e-3),
    "nesterov": lambda p: O.SGD(p, 0.02, momentum=0.9, nesterov=True),
    "momentum, 3 groups": lambda p: O.SGD(
        groups(p, dict(lr=0.01), dict(momentum=0.5, weight_decay=0.01), dict(nesterov=True)), 0.02, momentum=0.9
    ),
    "adam": lambda p: O.Adam(p, 3e-3, betas=(0.8, 0.95), weight_decay=1e-2),
    "adam amsgrad": lambda p: O.Adam(p, 3e-3, amsgrad=True),
    "adam maximize": lambda p: O.Adam(p, 1e-4, maximize=True),
    "adamw": lambda p: O.AdamW(p, 3e-3, weight_decay=0.1),
    "adamw amsgrad": lambda p: O.AdamW(p, 3e-3, weight_decay=0.1, amsgrad=True),
    "adamw, 2 groups": lambda p: O.AdamW(
        groups(p, dict(lr=1e-3, weight_decay=0.0), dict(betas=(0.85, 0.98))), 3e-3, weight_decay=0.1
    ),
    "adagrad": lambda p: O.Adagrad(p, 0.02, lr_decay=0.05, initial_accumulator_value=0.1),
    "adagrad decay": lambda p: O.Adagrad(p, 0.01, weight_decay=1e-2),
    "rmsprop": lambda p: O.RMSprop(p, 2e-3, weight_decay=1e-3),
    "rmsprop centered": lambda p: O.RMSprop(p, 2e-3, alpha=0.9, centered=True, eps=1e-3),
    "rmsprop momentum": lambda p: O.RMSprop(p, 2e-3, momentum=0.5, eps=1e-3),
    "rmsprop both": lambda p: O.RMSprop(p, 2e-3, alpha=0.9, centered=True, momentum=0.5, eps=1e-3),
    "nadam": lambda p: O.NAdam(p, 3e-3),
    "nadam decoupled": lambda p: O.NAdam(p, 3e-3, weight_decay=1e-2, decoupled_weight_decay=True),
    "radam": lambda p: O.RAdam(p, 3e-3),
    "radam decoupled": lambda p: O.RAdam(p, 3e-3, betas=(0.8, 0.9), weight_decay=1e-2, decoupled_weight_decay=True),
    "adamax": lambda p: O.Adamax(p, 3e-3, weight_decay=1e-3),
    "adadelta": lambda p: O.Adadelta(p, 0.5),
    "adadelta decay": lambda p: O.Adadelta(p, 1.0, rho=0.8, weight_decay=1e-2),
    "rprop": lambda p: O.Rprop(p, 1e-3),
    "rprop, 2 groups": lambda p: O.Rprop(
        groups(p, dict(etas=(0.4, 1.1)), dict(step_sizes=(1e-5, 1e-2), maximize=True)), 1e-3
    ),
}
CLASSES = {
    "sgd": "SGD",
    "momentum": "SGD",
    "nesterov": "SGD",
    "adam": "Adam",
    "adamw": "AdamW",
    "adagrad": "Adagrad",
    "rmsprop": "RMSprop",
    # by the first word
    "nadam": "NAdam",
    "radam": "RAdam",
    "adamax": "Adamax",
    "adadelta": "Adadelta",
    "rprop": "Rprop",
}

SCHEDULERS = {
    "StepLR": lambda o: lrs.StepLR(o, 4, 0.5),
    "MultiStepLR": lambda o: lrs.MultiStepLR(o, [3, 7, 12], 0.5),
    "ExponentialLR": lambda o: lrs.ExponentialLR(o, 0.9),
    "ConstantLR": lambda o: lrs.ConstantLR(o, 0.5, 7),
    "LinearLR": lambda o: lrs.LinearLR(o, 0.2, 1.0, 8),
    "PolynomialLR": lambda o: lrs.PolynomialLR(o, 20, 2.0),
    "CosineAnnealingLR": lambda o: lrs.CosineAnnealingLR(o, 12, 1e-4),
    "CosineAnnealingWarmRestarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 4, 2),
    "OneCycleLR": lambda o: lrs.OneCycleLR(
        o,
        [2 * g["lr"] for g in o.param_groups],
        total_steps=18,
        cycle_momentum=any("betas" in g or g.get("momentum") for g in o.param_groups),
    ),
    "SequentialLR": lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 0.1, 1.0, 7), lrs.CosineAnnealingLR(o, 12)], [7]),
}
