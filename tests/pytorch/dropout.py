"""Round trips with dropout on: do losses have PyTorch's distribution?    python tests/pytorch/dropout.py [--seeds 50]
[attention|channels|layers|selu]...

For every seed: five steps in PyTorch, from_torch, five steps here, to_torch, five steps in PyTorch; and fifteen in
PyTorch. Both begin with the same weights and differ by chance alone. The losses of step 10 (the last here) and 15 are
compared over the seeds: the gap of their means in standard errors, the ratio of their spreads, and the two-sample
Kolmogorov-Smirnov test. Exits with 1 when a p-value is below 0.001."""

import argparse
import os
import sys
import warnings

import numpy as np
import torch
from torch import nn

import onnxtrain as ot
from from_zoo import Encoder
from trips import Architecture, feeds_of, info_of, torch_steps


def attention():
    """Dropout in embeddings, attention weights and feed-forward layers."""
    return Encoder(p=0.3), torch.randint(1, 20, (16, 7)), torch.randint(0, 5, (16,)), nn.CrossEntropyLoss()


def channels():
    """Whole channels, beside BatchNorm."""
    m = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout2d(0.4),
        nn.Flatten(),
        nn.Linear(8 * 36, 16),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(16, 5),
    )
    return m, torch.randn(16, 3, 8, 8), torch.randint(0, 5, (16,)), nn.CrossEntropyLoss()


class Recurrent(nn.Module):
    """Dropout between the layers of a recurrent network."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.GRU(6, 8, 3, batch_first=True, dropout=0.5), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


def layers():
    return Recurrent(), torch.randn(16, 5, 6), torch.randn(16, 3), nn.MSELoss()


def selu():
    m = nn.Sequential(
        nn.Linear(8, 32),
        nn.SELU(),
        nn.AlphaDropout(0.2),
        nn.Linear(32, 32),
        nn.SELU(),
        nn.AlphaDropout(0.1),
        nn.Linear(32, 1),
    )
    return m, torch.randn(16, 8), torch.randn(16, 1), nn.MSELoss()


def trip_losses(arch, seed):
    torch.manual_seed(seed)
    m, x, t, f, o, _ = arch.start("adamw")
    torch_steps(m, o, x, t, f, 5)
    model = arch.from_torch(m, x, t, f, o)
    info, trainer = info_of(model), ot.Trainer(model, seed=seed)
    here = [trainer.step(feeds_of(x, t, info["inputs"] + info["targets"])).loss for _ in range(5)]
    made = ot.to_torch(trainer)
    return here[-1], torch_steps(made.module.train(), made.optimizer, x, t, made.loss, 5)[-1]


def torch_losses(arch, seed):
    torch.manual_seed(seed)
    m, x, t, f, o, _ = arch.start("adamw")
    losses = torch_steps(m, o, x, t, f, 15)
    return losses[9], losses[14]


def smirnov(a, b):
    """p-value of the two-sample test (the asymptotic distribution)."""
    a, b = np.sort(a), np.sort(b)
    every = np.concatenate([a, b])
    gap = np.abs(np.searchsorted(a, every, "right") / len(a) - np.searchsorted(b, every, "right") / len(b)).max()
    n = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    scale = (n + 0.12 + 0.11 / n) * gap
    return float(min(1.0, max(0.0, 2 * sum((-1) ** (k - 1) * np.exp(-2 * (k * scale) ** 2) for k in range(1, 101)))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=50)
    p.add_argument("names", nargs="*", default=["attention", "channels", "layers", "selu"])
    a = p.parse_args()
    seeds, worst = a.seeds, 1.0
    os.environ.setdefault("ONNXTRAIN_THREADS", "1")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for make in (globals()[n] for n in a.names):
        arch = Architecture(make)
        ours = np.array([trip_losses(arch, s) for s in range(seeds)])
        theirs = np.array([torch_losses(arch, 1000 + s) for s in range(seeds)])  # other numbers than ours
        for k, step in enumerate((10, 15)):
            x, y = ours[:, k], theirs[:, k]
            gap = (x.mean() - y.mean()) / np.sqrt((x.var() + y.var()) / seeds)
            p_value = smirnov(x, y)
            worst = min(worst, p_value)
            print(
                f"{make.__name__:9} step {step}: mean {x.mean():.4f} and {y.mean():.4f} ({gap:+.1f} standard errors), "
                f"spread {x.std():.4f} and {y.std():.4f}, Kolmogorov-Smirnov p = {p_value:.2f}",
                flush=True,
            )
    return 1 if worst < 0.001 else 0


if __name__ == "__main__":
    sys.exit(main())
