"""What would be wrong without a word: refused with the line, and what to change."""

import pathlib
import random

import numpy as np
import pytest
import torch
from torch import nn

import onnxtrain as ot

HERE = pathlib.Path(__file__).name


class Forward(nn.Module):
    """A linear layer `a` and a function as forward."""

    def __init__(self, f):
        super().__init__()
        self.a = nn.Linear(6, 4)
        self.__dict__["f"] = f

    def forward(self, x):
        return self.f(self, x)


def refusal(module, x=None, loss=None, optimizer=None):
    with pytest.raises(ot.Error) as e:
        ot.from_torch(module, torch.randn(4, 6) if x is None else x, torch.randn(4, 4), loss or nn.MSELoss(),
                      optimizer or torch.optim.SGD(module.parameters(), 0.1))
    return str(e.value)


def stored_in_place(m, x):
    m.a.weight.data = m.a.weight.data.clamp(-0.1, 0.1)
    return m.a(x)


def differentiated(m, x):
    x = x.detach().requires_grad_(True)
    y = m.a(x)
    return y + torch.autograd.grad(y.sum(), x, create_graph=True)[0].sum()


@pytest.mark.parametrize("f,words", [
    (lambda m, x: m.a(x) * (2 if random.random() < 0.5 else 1), "random.random"),
    (lambda m, x: m.a(x) * float(np.random.rand()), "numpy.random.rand"),
    (stored_in_place, "x.data = "), (differentiated, "torch.autograd.grad"),
    (lambda m, x: m.a(x)[torch.randperm(x.shape[0])], "aten.randperm")])
def test_line_and_change(f, words):
    text = refusal(Forward(f), loss=lambda o, t: o.mean())
    assert words in text and HERE in text and "change:" in text and "obstacles" not in text


def test_generators_stay():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    refusal(Forward(lambda m, x: m.a(x) * random.random() * np.random.rand()))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before and random.random.__self__ is not None


def test_sizes_that_change_the_way():
    module = Forward(lambda m, x: m.a(x) if x.shape[0] > 2 else m.a(x) * 2)
    assert "another way for a batch of 2" in refusal(module)
    x, t = torch.randn(4, 6), torch.randn(4, 4)
    ot.from_torch(module, x, t, nn.MSELoss(), torch.optim.SGD(module.parameters(), 0.1), dynamic_batch=False)


def test_shared_memory():
    m = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 4))
    m[1].weight = nn.Parameter(m[0].weight.data[:4])
    assert "'0.weight' and '1.weight' share memory" in refusal(m)
    m = nn.Linear(6, 4)
    m.register_buffer("before", m.weight.data)
    assert "'weight' and 'before' share memory" in refusal(m)
    m.register_buffer("before", m.weight.data.clone())
    m.register_buffer("again", m.before)
    both = torch.randn(4, 12)  # two halves of one matrix are two tensors
    m.weight, m.other = nn.Parameter(both[:, :6]), nn.Parameter(both[:, 6:])
    ot.from_torch(m, torch.randn(4, 6), torch.randn(4, 4), nn.MSELoss(), torch.optim.SGD(m.parameters(), 0.1))


def test_examples_that_pytorch_refuses():
    assert "PyTorch itself fails" in (text := refusal(nn.Linear(6, 4), torch.randn(4, 7))) and "4x7" in text
    m = nn.Linear(6, 4)
    m.weight.data[0, 0] = float("nan")
    assert "loss on the examples is nan" in refusal(m)


def test_steps_of_subclasses():
    class Same(torch.optim.Adam):
        pass

    class Other(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    m = nn.Linear(6, 4)
    assert "Other runs code of its own" in refusal(m, optimizer=Other(m.parameters()))
    replaced = torch.optim.SGD(m.parameters(), 0.1)
    replaced.step = lambda closure=None: None
    assert "runs code of its own" in refusal(m, optimizer=replaced)
    ot.from_torch(m, torch.randn(4, 6), torch.randn(4, 4), nn.MSELoss(), Same(m.parameters()))


def test_weights_stay_where_forward_changes_them():
    """A module that is refused is run to see whether it runs at all: with tensors of its own."""
    def f(m, x):
        with torch.no_grad():
            m.a.weight.mul_(0.5)
        return m.a(x) * x.mean().item()

    m = Forward(f)
    before = m.a.weight.detach().clone()
    assert "changes the parameter 'a.weight'" in refusal(m) and torch.equal(before, m.a.weight)
