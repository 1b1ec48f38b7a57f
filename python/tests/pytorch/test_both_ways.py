"""From PyTorch and back: fifteen steps in PyTorch against five there, five here, five there again."""

import importlib.util
import pathlib

import pytest

import onnxtrain as ot
import roundtrip

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "torch_both_ways" / "run.py"


@pytest.mark.parametrize("name", ["resnet", "gpt", "lstm", "unet", "moe", "softmax_head", "vae"])
def test_architecture(name):
    off, weights, made = roundtrip.trip(name)
    assert off < 1e-4 and weights < 1e-4, (off, weights)
    assert type(made.optimizer).__name__ == "SGD"


@pytest.mark.parametrize("optimizer", roundtrip.OPTIMIZERS)
def test_optimizer(optimizer):
    off, weights, made = roundtrip.trip("mlp", optimizer)
    assert off < 1e-4 and weights < 1e-4, (off, weights)
    assert type(made.optimizer).__name__ in (optimizer, "SGD")


@pytest.mark.parametrize("scheduler", roundtrip.SCHEDULERS)
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_scheduler(optimizer, scheduler):
    off, weights, made = roundtrip.trip("mlp", optimizer, scheduler)
    assert off < 1e-4 and weights < 1e-4, (off, weights)
    assert type(made.scheduler).__name__ == scheduler and made.scheduler.last_epoch == 15


def test_example(capsys):
    """Same losses; the README shows what it prints."""
    spec = importlib.util.spec_from_file_location("torch_both_ways", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    printed, readme = capsys.readouterr().out, EXAMPLE.with_name("README.md").read_text()
    for line in printed.splitlines():
        assert line.split()[0] in readme
