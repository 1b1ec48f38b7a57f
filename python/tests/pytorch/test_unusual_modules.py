"""What is off the beaten track either trains with PyTorch's numbers or is refused in words that name every obstacle."""

import dataclasses
import pathlib
import sys

import pytest
import torch
import torch.nn.functional as F

import onnxtrain as ot
import unusual_images  # noqa: F401 - each adds to EXACT
import unusual_losses  # noqa: F401
import unusual_places  # noqa: F401
import unusual_refused  # noqa: F401
import unusual_sequences  # noqa: F401
from unusual import EXACT, RANDOM, REFUSED

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tests" / "pytorch"))
from trips import info_of, torch_steps


def flat(x):
    if x is None or isinstance(x, torch.Tensor):
        return [] if x is None else [x]
    parts = vars(x) if dataclasses.is_dataclass(x) else x
    return [t for v in (parts.values() if isinstance(parts, dict) else parts) for t in flat(v)]


def converted(make):
    torch.manual_seed(0)
    module, x, t, loss = make()
    optimizer = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    model = ot.from_torch(module.train(), x, t, loss, optimizer, dynamic_batch=not hasattr(make, "static"))
    info = info_of(model)
    feeds = {n: v.numpy() for n, v in zip(info["inputs"] + info["targets"], [*flat(x), *flat(t)])}
    return module, x, t, loss, optimizer, model, feeds


@pytest.mark.parametrize("name", EXACT)
def test_exact_both_ways(name):
    module, x, t, loss, optimizer, model, feeds = converted(EXACT[name])
    trainer = ot.Trainer(model)
    ours = [trainer.step(feeds).loss for _ in range(4)]
    assert ours == pytest.approx(torch_steps(module, optimizer, x, t, loss, 4), rel=1e-5, abs=1e-6)
    made, back = ot.to_torch(trainer), ot.torch_state_dict(trainer)
    wanted = module.state_dict()
    assert set(back) == set(wanted)
    for n, v in wanted.items():
        torch.testing.assert_close(back[n], v, rtol=1e-4, atol=1e-5)
    assert made.step(feeds) == pytest.approx(torch_steps(module, optimizer, x, t, loss, 1)[0], rel=1e-5, abs=1e-6)


def test_packed_sequences_of_other_lengths():
    """The longest may be shorter than the padding, and the batch of another size."""
    module, _, _, loss, optimizer, model, _ = converted(EXACT["packed_and_padded"])
    trainer = ot.Trainer(model)
    for lengths in ([3, 4, 1, 2], [1, 1], [5]):
        x, lengths, t = torch.randn(len(lengths), 5, 6), torch.tensor(lengths), torch.randn(len(lengths), 8)
        ours = trainer.step(dict(zip([*model.inputs, "target"], [x.numpy(), lengths.numpy(), t.numpy()]))).loss
        assert ours == pytest.approx(torch_steps(module, optimizer, (x, lengths), t, loss, 1)[0], rel=1e-5)


def test_grid_of_one_image():
    """Any batch, one image too."""
    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.theta = torch.nn.Linear(2, 6)

        def forward(self, x, y):
            grid = F.affine_grid(self.theta(y).view(-1, 2, 3), (x.size(0), 1, 3, 5), align_corners=True)
            return F.grid_sample(
                x,
                grid + F.affine_grid(self.theta(y).view(-1, 2, 3), (x.size(0), 1, 3, 5), align_corners=False),
                align_corners=False,
            )

    module, loss, trainer = Turned(), torch.nn.MSELoss(), None
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for n in (3, 1, 2):
        x, y, t = torch.randn(n, 1, 4, 4), torch.randn(n, 2), torch.randn(n, 1, 3, 5)
        trainer = trainer or ot.Trainer(ot.from_torch(module, (x, y), t, loss, optimizer))
        ours = trainer.step({"x": x.numpy(), "y": y.numpy(), "target": t.numpy()}).loss
        assert ours == pytest.approx(torch_steps(module, optimizer, (x, y), t, loss, 1)[0], rel=1e-5)


@pytest.mark.parametrize("name", RANDOM)
def test_chance_has_the_same_mean(name):
    """Losses of many seeds without learning: the same mean within five standard errors."""
    module, x, t, loss, _, model, feeds = converted(RANDOM[name])
    trainer = ot.Trainer(model, seed=1)
    trainer.lr = 0.0
    ours = torch.tensor([trainer.step(feeds).loss for _ in range(300)])
    with torch.no_grad():
        theirs = torch.stack([loss(module(x), t) for _ in range(300)])
    error = float((ours.var() / 300 + theirs.var() / 300).sqrt())
    assert abs(float(ours.mean() - theirs.mean())) < 5 * error
    assert 0.6 < float(ours.std() / theirs.std()) < 1.6


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_words(name):
    make, words = REFUSED[name]
    with pytest.raises(ot.ModelError) as e:
        converted(make)
    for word in words:
        assert word in str(e.value), (word, str(e.value))
    assert e.value.code == "OT1601"
