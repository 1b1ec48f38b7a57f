"""Attention of PyTorch modules: masks against PyTorch, dropout the same on every number of threads, and no matrix of
scores."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'onnxtrain[torch]'")
pytest.importorskip("onnx")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import onnxtrain as ot  # noqa: E402

BATCH, ROWS, HEADS, WIDTH = 8, 96, 4, 8
SCORES = 4 * BATCH * HEADS * ROWS * ROWS  # bytes


class Attention(nn.Module):
    def __init__(self, kind, p=0.0):
        super().__init__()
        self.kind, self.p = kind, p
        self.qkv, self.out = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH), nn.Linear(HEADS * WIDTH, 3)
        self.bias = nn.Parameter(torch.randn(1, HEADS, ROWS, ROWS) * 0.1) if kind == "bias" else None
        self.layer = (
            nn.MultiheadAttention(HEADS * WIDTH, HEADS, dropout=p, batch_first=True) if kind == "layer" else None
        )

    def forward(self, x, keep):
        if self.layer is not None:
            y = self.layer(x, x, x, key_padding_mask=keep == 0, need_weights=False)[0]
            return self.out(y.mean(1))
        q, k, v = (t.unflatten(2, (HEADS, WIDTH)).transpose(1, 2) for t in self.qkv(x).chunk(3, 2))
        if self.kind == "eager":  # as models spell it by hand
            scores = q @ k.transpose(2, 3) / WIDTH**0.5 + (1 - keep[:, None, None, :]) * -10000.0
            y = F.dropout(scores.softmax(-1), self.p, self.training) @ v
        else:
            open_ = keep[:, None, None, :] > 0
            mask = {"bool": open_, "added": torch.where(open_, 0.5, -torch.inf), "bias": self.bias, "causal": None}[
                self.kind
            ]
            y = F.scaled_dot_product_attention(q, k, v, mask, self.p if self.training else 0.0, self.kind == "causal")
        return self.out(y.transpose(1, 2).flatten(2).mean(1))


def case(kind, p=0.0):
    torch.manual_seed(1)
    x, keep, target = torch.randn(BATCH, ROWS, HEADS * WIDTH), torch.ones(BATCH, ROWS), torch.randint(0, 3, (BATCH,))
    keep[0, 50:] = 0
    keep[1, :30] = 0
    if kind in ("bool", "added"):
        keep[2] = 0  # PyTorch's function gives zero where nothing is seen
    m = Attention(kind, p)
    optimizer = torch.optim.SGD(m.parameters(), lr=0.5)
    model = ot.from_torch(m, (x, keep), target, nn.CrossEntropyLoss(), optimizer)
    feeds = {n: v.numpy() for n, v in {"x": x, "keep": keep, "target": target}.items()
             if n in model.inputs or n == "target"}
    return m, optimizer, model, (x, keep, target), feeds


KINDS = ("eager", "bool", "added", "bias", "causal", "layer")


@pytest.mark.parametrize("kind", KINDS)
def test_masks(kind):
    m, optimizer, model, (x, keep, target), feeds = case(kind)
    trainer = ot.Trainer(model, threads=2)
    ours, theirs = [trainer.step(feeds).loss for _ in range(5)], []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(m(x, keep), target)
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    np.testing.assert_allclose(ours, theirs, rtol=2e-6)
    assert abs(theirs[0] - theirs[-1]) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_dropout(kind):
    _, _, model, _, feeds = case(kind, 0.25)

    def losses(threads, seed):
        trainer = ot.Trainer(model, threads=threads, seed=seed)
        return [trainer.step(feeds).loss for _ in range(4)], trainer.memory["step_bytes"]

    first, used = losses(1, 3)
    assert losses(2, 3)[0] == first and losses(4, 3)[0] == first
    assert losses(1, 4)[0] != first
    # the gradient of a learned bias is that of every score, once
    assert used < (2 if kind == "bias" else 1) * SCORES
