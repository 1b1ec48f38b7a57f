"""Tables of docs/distributed.md:  python tests/many_processes.py bits | norm | cost | long

bits: weights after 200 steps on 1, 2 and 4 processes, resumed from 4 to 2 to 1; cost: blocks in one process;
norm: a CNN with BatchNormalization over the whole batch beside one process with whole batches;
long: steps of more than a minute on two processes, with the default --fault-timeout of 20 s.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
import row_models as t  # noqa: E402


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(16 * 36, 10))


class CnnNorm(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
                         nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.layer(self.embed(x)).mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 24, batch_first=True)
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def networks(folder, rows=203):
    """ONNX files with open batch size, and data."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    made = {"mlp": (Mlp(), rng.normal(size=(rows, 20)).astype("f4")),
            "cnn_norm": (CnnNorm(), rng.normal(size=(rows, 1, 14, 14)).astype("f4")),
            "cnn": (Cnn(), rng.normal(size=(rows, 1, 14, 14)).astype("f4")),
            "transformer": (Transformer(), rng.integers(0, 50, (rows, 12))),
            "lstm": (Lstm(), rng.normal(size=(rows, 7, 8)).astype("f4"))}
    for name, (module, x) in made.items():
        torch.onnx.export(module.train(), (torch.from_numpy(x[:4]),), folder / f"{name}.onnx", input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, opset_version=17,
                          dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        np.savez(folder / f"{name}.npz", x=x, label=rng.integers(0, 10, rows))
    return [name for name in made if name != "cnn_norm"]


def run(folder, name, out, *flags, ranks=1):
    words = t.command(folder / f"{name}.onnx", "--data", folder / f"{name}.npz", "--batch", 24, "--epochs", 50,
                      "--valid", 0, "--threads", 1, "--out", folder / out, *flags)
    return start(words, ranks)


def start(words, ranks):
    if ranks > 1:
        words = [t.MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
    begin = time.perf_counter()
    subprocess.run(words, env=t.environment(), check=True, capture_output=True, timeout=600)
    return time.perf_counter() - begin


def bits(folder):
    print("| model | 1 process | 2 | 4 | resumed 4 -> 2 -> 1 |\n|---|---|---|---|---|")
    for name in networks(folder):
        run(folder, name, "one", "--micro-blocks", 4, "--steps", 200)
        row = []
        for ranks in (2, 4):
            run(folder, name, "many", "--micro-blocks", 4, "--steps", 200, ranks=ranks)
            row.append("the same bits" if t.same(folder / "one", folder / "many") else "DIFFERENT")
            shutil.rmtree(folder / "many")
        run(folder, name, "many", "--micro-blocks", 4, "--steps", 70, ranks=4)
        for ranks, steps in ((2, 140), (1, 200)):
            start(t.command("--resume", folder / "many", "--threads", 1, "--steps", steps), ranks)
        row.append("the same bits" if t.same(folder / "one", folder / "many") else "DIFFERENT")
        print(f"| {name} | 200 steps | {' | '.join(row)} |", flush=True)
        for out in ("one", "many"):
            shutil.rmtree(folder / out)


def norm(folder):
    """Largest distance of a weight or statistic from one process with whole batches, over the largest number of it.
    By SGD: a bias before a normalisation has no gradient, and Adam would divide rounding by rounding."""
    networks(folder)
    sgd = ("--optimizer", "sgd", "--lr", 0.05)

    def distance(out):
        one, other = t.weights(folder / "one"), t.weights(folder / out)
        return max(np.abs(one[n] - other[n]).max() / np.abs(one[n]).max() for n in one)

    print("| model, 200 steps | K = 4, 1 process | 2 | 4 |\n|---|---|---|---|")
    for name, flags in (("cnn_norm", ("--batch-norm", "sync")), ("cnn_norm", ("--batch-norm", "local")), ("cnn", ())):
        run(folder, name, "one", "--steps", 200, *sgd)
        row = []
        for ranks in (1, 2, 4):
            run(folder, name, "many", "--micro-blocks", 4, "--steps", 200, *sgd, *flags, ranks=ranks)
            row.append(f"{distance('many'):.1e}")
            shutil.rmtree(folder / "many")
        shutil.rmtree(folder / "one")
        print(f"| {name} {' '.join(flags)} | {' | '.join(row)} |", flush=True)


def cost(folder):
    print("| model | K = 1 | K = 2 | K = 4 |\n|---|---|---|---|")
    for name in networks(folder):
        took = {k: [] for k in (1, 2, 4)}
        for _ in range(3):  # interleaved; the time of 10 steps is that of starting
            for k in took:
                pair = []
                for steps in (10, 410):
                    pair.append(run(folder, name, "cost", "--micro-blocks", k, "--steps", steps))
                    shutil.rmtree(folder / "cost")
                took[k].append((pair[1] - pair[0]) / 400 * 1e3)
        print(f"| {name} | " + " | ".join(f"{min(v):.2f} ms" for v in took.values()) + " |", flush=True)


def wide_layers(folder, width, rows):
    """An MLP of six layers that are that wide, and that many rows of data."""
    torch.manual_seed(0)
    module = nn.Sequential(*[nn.Linear(width, width) for _ in range(6)], nn.Linear(width, 10))
    torch.onnx.export(module, (torch.zeros(2, width),), folder / "wide.onnx", input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "N"}, "y": {0: "N"}}, opset_version=17, dynamo=False)
    rng = np.random.default_rng(0)
    np.savez(folder / "wide.npz", x=rng.normal(size=(rows, width)).astype("f4"), label=rng.integers(0, 10, rows))


def one_step(folder, rows):
    """Seconds of a run of one step, by one thread in each process."""
    words = t.command(folder / "wide.onnx", "--data", folder / "wide.npz", "--batch", rows, "--steps", 1, "--valid", 0,
                      "--micro-blocks", 2, "--threads", 1, "--out", folder / "wide")
    took = start(words, 2)
    shutil.rmtree(folder / "wide")
    return took


def long(folder, seconds=62, width=1536):
    """A step of at least that many seconds: rows are added until it is that long, whatever else the machine does."""
    wide_layers(folder, width, 512)
    short = one_step(folder, 512)
    rows, took = 2048, 0
    while took < seconds:
        rows = int(rows * min(8, 1.2 * seconds / took)) if took else rows
        wide_layers(folder, width, rows)
        took = one_step(folder, rows) - short
    print(f"one step of {rows} rows took {took:.0f} s on two processes, --fault-timeout 20: it was waited for")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        what = sys.argv[1] if len(sys.argv) > 1 else "bits"
        {"bits": bits, "norm": norm, "cost": cost, "long": long}[what](pathlib.Path(name))
