"""From PyTorch and back: fifteen steps in PyTorch against five there, five here, five there again.

A small part of the table that tests/pytorch/round_trips.py runs: every architecture, every optimizer and every
scheduler once."""

import importlib.util
import pathlib
import re
import sys

import pytest
import torch
import torch.nn.functional as F

from architectures import ZOO, target_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "pytorch"))
from from_settings import CLASSES, OPTIMIZERS, SCHEDULERS  # noqa: E402
from from_zoo import ARCHITECTURES  # noqa: E402
from trips import trip  # noqa: E402

EXAMPLE = ROOT / "examples" / "torch_both_ways" / "run.py"
TURNS = list(zip(ARCHITECTURES, list(OPTIMIZERS) + list(OPTIMIZERS)))


@pytest.mark.parametrize("arch,opt", TURNS)
def test_architecture(arch, opt):
    t = trip(arch, opt)
    assert t.good, t
    assert t.optimizer == CLASSES[opt.split(",")[0].split()[0]]


def loss_of(name):
    kind, classes = ZOO[name][1:]
    if kind == "output":
        return lambda outputs, targets: outputs.mean()
    if kind == "mse":
        return F.mse_loss
    if classes == 20:
        return lambda outputs, targets: F.cross_entropy(outputs.flatten(0, 1), targets.flatten())
    if name == "softmax_head":
        return lambda outputs, targets: F.nll_loss(torch.log(outputs), targets)
    return F.cross_entropy


@pytest.mark.parametrize("name", ["dlrm", "softmax_head", "superresolution", "vae", "volume"])
def test_other_architecture(name):
    def make():
        module, args = ZOO[name][0]()
        return module, args, target_for(name, module.eval()(*args).detach()), loss_of(name)

    assert trip(make, "momentum").good


SCHEDULED = [
    (s, "mlp", "momentum") if k % 2 else (s, "frozen_backbone", "adamw, 2 groups") for k, s in enumerate(SCHEDULERS)
]


@pytest.mark.parametrize(
    "scheduler,arch,opt",
    [
        *SCHEDULED,
        ("StepLR", "mlp", "rprop"),
        *[("OneCycleLR", "mlp", o) for o in ("rmsprop both", "nadam", "radam decoupled", "adamax", "adamw")],
    ],
)
def test_scheduler(scheduler, arch, opt):
    t = trip(arch, opt, scheduler)
    assert t.good and t.scheduler == scheduler, t


@pytest.mark.parametrize("opt", ["momentum", "nesterov", "adagrad decay", "rmsprop both"])
def test_double_precision(opt):
    t = trip("double_mlp", opt)
    assert t.difference < 1e-12 and t.optimizer == CLASSES[opt.split()[0]], t


def test_tables_are_complete():
    assert len(ARCHITECTURES) >= 20 and {"moe", "llama", "unet", "vae", "vit", "gru"} <= set(ARCHITECTURES)
    assert set(CLASSES.values()) == {"SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax",
                                     "Adadelta", "Rprop"}
    assert {CLASSES[o.split(",")[0].split()[0]] for o in OPTIMIZERS} == set(CLASSES.values())
    assert set(dict(TURNS)) == set(ARCHITECTURES) and {o for _, o in TURNS} == set(OPTIMIZERS)


def test_example(capsys):
    """Same losses; the README shows what it prints."""
    spec = importlib.util.spec_from_file_location("torch_both_ways", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    shown = [line.strip() for line in EXAMPLE.with_name("README.md").read_text().splitlines()]
    losses = re.compile(r"[\d.]+e[+-]\d+")  # differences in the last bit are a machine's own
    for line in capsys.readouterr().out.splitlines():
        assert losses.sub("D", line.strip()) in [losses.sub("D", s) for s in shown], line
