"""What large models go through, on small ones: tensors in files, gradients in a temporary file. And the state of frozen
parameters."""

import copy

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxtrain as ot
from onnxtrain.converters import compare, spill
from onnxtrain.torch.from_torch import assemble
from test_both_ways import OPTIMIZERS  # noqa: F401 - puts tests/pytorch on the path
from trips import Architecture, trip


@pytest.fixture
def as_if_large(monkeypatch):
    for module, name, value in ((assemble, "_LARGE", 0), (assemble, "_SMALL", 16), (spill, "LARGE", 0)):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("arch,opt", [("cnn_bn", "adamw"), ("gpt", "momentum"), ("double_mlp", "nadam")])
def test_through_files(arch, opt, as_if_large, tmp_path):
    assert trip(arch, opt).good
    module, inputs, targets, loss, optimizer, _ = Architecture(arch).start(opt)
    model = ot.from_torch(module, inputs, targets, loss, optimizer)
    model.save(tmp_path / "m.train.onnx")
    assert any(t.data_location == onnx.TensorProto.EXTERNAL
               for t in onnx.load(tmp_path / "m.train.onnx", load_external_data=False).graph.initializer)
    for source in (model, tmp_path / "m.train.onnx"):
        weights = ot.torch_state_dict(source)
        assert all(torch.equal(weights[n], t) for n, t in module.state_dict().items()) and len(weights) == len(
            module.state_dict()
        )


def test_stored_tensors_are_compared(monkeypatch):
    """The runs of the self-check are fed from PyTorch's memory; what the file holds is compared for itself."""
    written = assemble.to_numpy
    monkeypatch.setattr(assemble, "to_numpy", lambda t: written(t) + (t.dtype == torch.float32) * np.float32(1e-7))
    m = nn.Linear(3, 2)
    with pytest.raises(ot.ModelError, match="the stored tensor 'weight' is not PyTorch's"):
        ot.from_torch(m, torch.randn(4, 3))


def test_float64_decides(monkeypatch):
    """A ReLU that turns over moves PyTorch's float32 gradients by 2 % (DenseNet, RMSprop); ours are those of
    float64."""
    monkeypatch.setattr(compare, "CHANGES", ())
    assert trip("densenet", "rmsprop").good
    inner = compare.Comparison.same

    def same(self, what, got, want, key=None, *rest):
        return inner(self, what, got * 1.02 if key == ("gradient", "stem.weight") else got, want, key, *rest)

    monkeypatch.setattr(compare.Comparison, "same", same)
    with pytest.raises(ot.ModelError, match="the gradient of 'stem.weight' differs"):
        trip("densenet", "rmsprop")


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def steps(module, optimizer, loss, x, t, n):
    for _ in range(n):
        optimizer.zero_grad()
        loss(module(x), t).backward()
        optimizer.step()


@pytest.mark.parametrize("kind,settings", [("SGD", {"momentum": 0.9}), ("AdamW", {"amsgrad": True}), ("NAdam", {}),
                                           ("Adagrad", {"initial_accumulator_value": 0.25}), ("Rprop", {})])
def test_state_of_frozen_parameters(kind, settings):
    """Frozen after three steps, thawed after it came back: its moments are still there."""
    torch.manual_seed(0)
    x, t, loss, make = (
        torch.randn(8, 3),
        torch.randn(8, 2),
        nn.MSELoss(),
        lambda m: getattr(torch.optim, kind)(m.parameters(), lr=1e-2, **settings),
    )
    module = Tower()
    optimizer = make(module)
    steps(module, optimizer, loss, x, t, 3)
    module.a.requires_grad_(False)
    steps(module, optimizer, loss, x, t, 2)
    trainer = ot.Trainer(ot.from_torch(module, x, t, loss, optimizer))
    trainer.steps({"x": x.numpy(), "target": t.numpy()}, 3)
    steps(module, optimizer, loss, x, t, 3)
    made = ot.to_torch(trainer)
    assert {n for n, p in made.module.named_parameters() if not p.requires_grad} == {"a.weight", "a.bias"}
    for m, o, f in ((module, optimizer, loss), (made.module.train(), made.optimizer, made.loss)):
        m.requires_grad_(True)
        steps(m, o, f, x, t, 3)
    wanted, got = (copy.deepcopy(o.state_dict()["state"]) for o in (optimizer, made.optimizer))
    assert wanted.keys() == got.keys()
    for k, state in wanted.items():
        for key, value in state.items():
            if value is not None:
                torch.testing.assert_close(got[k][key], value, rtol=1e-5, atol=1e-7)
    for name, p in module.named_parameters():
        torch.testing.assert_close(dict(made.module.named_parameters())[name], p, rtol=1e-5, atol=1e-6)
