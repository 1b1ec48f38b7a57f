"""PyTorch trainings that make.py converts, built from exact numbers so that every machine has the same bits.

    torch_modules.py     prints as JSON what from_torch, to_torch and `onnxtrain convert` give for all of them
"""

import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
from torch import nn
from torch.optim import lr_scheduler as lrs

import onnxtrain as ot
import replay


def exact(shape, dtype=torch.float32, start=0):
    """Fractions from -1/4 to 1/4 that any machine computes alike."""
    n = int(np.prod(shape))
    whole = (torch.arange(start, start + n) * 37 + 11) % 101 - 50
    return (whole.to(dtype) / 200).reshape(shape)


def fill(tensors, positive=()):
    with torch.no_grad():
        for k, (name, t) in enumerate(tensors):
            if t.dtype.is_floating_point and t.dim():
                t.copy_(exact(t.shape, t.dtype, 7 * k))
                if any(word in name for word in positive):
                    t.abs_().add_(0.5)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 6)
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(6, 12, bias=False)
        self.out.weight = self.words.weight

    def forward(self, ids):
        return self.out(self.norm(self.words(ids))).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 5, batch_first=True)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1])


def mlp():
    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3))
    groups = [{"params": m[0].parameters(), "lr": 0.01}, {"params": m[3].parameters(), "weight_decay": 0.2}]
    o = torch.optim.AdamW(groups, lr=0.02)
    return m, exact((6, 4)), torch.arange(6) % 3, nn.CrossEntropyLoss(), o, lrs.CosineAnnealingLR(o, 9)


def cnn():
    m = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                      nn.Flatten(), nn.Linear(16, 3))
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return m, exact((6, 2, 6, 6)), torch.arange(6) % 3, loss, o, lrs.OneCycleLR(o, 0.1, total_steps=20)


def tied():
    m = Tied()
    ids = torch.arange(24).reshape(4, 6) * 5 % 12
    return m, ids, (ids + 1) % 12, nn.CrossEntropyLoss(), torch.optim.Adam(m.parameters(), lr=0.01, amsgrad=True), None


def recurrent():
    m = Recurrent()
    o = torch.optim.RMSprop(m.parameters(), lr=0.01, momentum=0.5, centered=True)
    return m, exact((5, 4, 3)), exact((5, 2), start=50), nn.MSELoss(), o, lrs.StepLR(o, 2, 0.5)


def attention():
    m = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Flatten(),
                      nn.Linear(24, 2))
    o = torch.optim.NAdam(m.parameters(), lr=0.01, weight_decay=0.01, decoupled_weight_decay=True)
    return m, exact((4, 3, 8)), exact((4, 2), start=30), nn.SmoothL1Loss(), o, None


TRAININGS = {"mlp": mlp, "cnn": cnn, "tied": tied, "recurrent": recurrent, "attention": attention}


def build(name):
    """A training in its middle: weights, buffers and the optimizer's state are exact numbers."""
    module, x, y, loss, optimizer, scheduler = TRAININGS[name]()
    for k, p in enumerate(module.parameters()):
        p.grad = exact(p.shape, p.dtype, 13 * k)
    for _ in range(3):
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    optimizer.zero_grad()
    positive = ("var", "sq", "max_exp", "square", "norm")
    fill([*module.named_parameters(), *module.named_buffers()], positive)
    state = [(key, v) for p in module.parameters() for key, v in optimizer.state[p].items() if torch.is_tensor(v)]
    fill(state, positive)
    averages = [s for p in module.parameters() for s in [optimizer.state[p]] if "grad_avg" in s]
    for s in averages:  # of a centered RMSprop: its square is no more than the mean of squares
        s["grad_avg"].mul_(0.5)
    return module.train(), x, y, loss, optimizer, scheduler


def feeds(model, x, y):
    """Arrays by the names that the file gives them."""
    text = {p.key: p.value for p in onnx.ModelProto.FromString(model.proto()).metadata_props}["onnxtrain.torch"]
    info = json.loads(text)
    return {name: t.numpy() for name, t in zip(info["inputs"] + info["targets"], (x, y), strict=True)}


def state_of(made):
    """Everything that a training of to_torch holds, by name."""
    optimizer = made.optimizer.state_dict()
    tensors = {f"module {n}": t for n, t in made.module.state_dict().items()}
    for k, state in optimizer["state"].items():
        tensors |= {f"optimizer {k} {key}": torch.as_tensor(v) for key, v in state.items() if v is not None}
    groups = [{k: v for k, v in g.items() if isinstance(v, (int, float, list, tuple, bool))}
              for g in optimizer["param_groups"]]
    return {"tensors": {n: replay.tensor(t.detach().numpy()) for n, t in tensors.items()}, "groups": groups,
            "classes": [type(v).__name__ for v in (made.module, made.optimizer, made.scheduler)]}


def next_steps(made, x, y, n=3):
    """Losses of PyTorch from there; its sums depend on the machine."""
    made.module.train()
    losses = []
    for _ in range(n):
        made.optimizer.zero_grad()
        loss = made.loss(made.module(x), y)
        loss.backward()
        made.optimizer.step()
        if made.scheduler is not None:
            made.scheduler.step()
        losses.append(float(loss.detach()))
    return losses


def back_from_pt(name, folder):
    """A .pt of `onnxtrain convert` as an ONNX file again."""
    out = pathlib.Path(folder) / f"{name}.onnx"
    done = subprocess.run([sys.executable, "-m", "onnxtrain.convert", f"torch/{name}.pt", out], capture_output=True,
                          text=True)
    if done.returncode:
        return done.stderr
    return replay.tensors(out)


def seen(name, folder):
    module, x, y, loss, optimizer, scheduler = build(name)
    again = ot.from_torch(module, x, y, loss, optimizer, scheduler)
    path = f"torch/{name}.train.onnx"
    made = ot.to_torch(path)
    found = {"from_torch": replay.file_digest(again.proto()), "to_torch": state_of(made),
             "back": replay.file_digest(made.model().proto()),
             "weights": {n: replay.tensor(t.numpy()) for n, t in ot.torch_state_dict(path).items()}}
    module.load_state_dict(ot.torch_state_dict(path), strict=True)
    if name != "mlp":  # its dropout draws other numbers on another machine
        found["next"] = next_steps(made, x, y)
    return found


def main():
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = {name: seen(name, folder) for name in TRAININGS}
        for name in ("mlp", "cnn"):
            found[name]["pt"] = back_from_pt(name, folder)
            saved = torch.load(f"torch/{name}.pt", weights_only=True)
            found[name]["pt keys"] = {k: "there" for k in saved}
            weights = torch.load(f"torch/{name}.weights.pt", weights_only=True)
            found[name]["weights pt"] = {n: replay.tensor(t.numpy()) for n, t in weights.items()}
    print(json.dumps({"torch": torch.__version__.split("+")[0], "trainings": found}))


if __name__ == "__main__":
    main()
