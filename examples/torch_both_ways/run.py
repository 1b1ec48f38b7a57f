"""Moves a training in the middle of an epoch from PyTorch to onnxtrain, trains on there, and moves it back.

    pip install 'onnxtrain[torch]'
    python examples/torch_both_ways/run.py

A second training stays in PyTorch all the time, on the same batches: both must give the same losses.
"""

import torch
from torch import nn

import onnxtrain as ot


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.fc = nn.Linear(64, 4)

    def forward(self, image):
        return self.fc(self.conv(image).flatten(1))


def data(count=960):
    """Bright quarter of a noisy image: which one?"""
    g = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 4, (count,), generator=g)
    images = torch.randn(count, 1, 12, 12, generator=g)
    for k in range(count):
        row, column = divmod(int(labels[k]), 2)
        images[k, 0, 6 * row:6 * row + 6, 6 * column:6 * column + 6] += 0.7
    return list(zip(images.split(32), labels.split(32)))


def torch_steps(batches, module, loss, optimizer, scheduler):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        value = loss(module(x), y)
        value.backward()
        optimizer.step()
        scheduler.step()
        losses.append(value.item())
    return losses


def show(where, first, losses, reference):
    largest = max(abs(a - b) for a, b in zip(losses, reference))
    print(f"{where:10s} steps {first:2d}..{first + len(losses) - 1:2d}   loss {losses[0]:.6f} -> {losses[-1]:.6f}   "
          f"largest difference to PyTorch alone {largest:.1e}")
    return largest


def training():
    torch.manual_seed(0)
    module = Net()
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3)
    return module, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)


def main():
    batches, loss = data(), nn.CrossEntropyLoss()  # one epoch: 30 batches
    alone = training()
    reference = torch_steps(batches, alone[0], loss, *alone[1:])
    module, optimizer, scheduler = training()

    # ten batches in PyTorch
    worst = show("PyTorch", 0, torch_steps(batches[:10], module, loss, optimizer, scheduler), reference[:10])

    # the running training as a file: weights, BatchNorm statistics, AdamW's moments, the schedule's position
    image, label = batches[0]
    model = ot.from_torch(module, image, label, loss=loss, optimizer=optimizer, scheduler=scheduler)
    trainer = ot.Trainer(model)
    losses = [trainer.step({"image": x.numpy(), "target": y.numpy()}).loss for x, y in batches[10:20]]
    worst = max(worst, show("onnxtrain", 10, losses, reference[10:20]))

    # back: new objects over the file's graph ...
    made = ot.to_torch(trainer)
    made.module.train()
    losses = torch_steps(batches[20:], made.module, made.loss, made.optimizer, made.scheduler)
    worst = max(worst, show("PyTorch", 20, losses, reference[20:]))
    print(f"           {type(made.optimizer).__name__}, {type(made.scheduler).__name__}, "
          f"learning rate {made.optimizer.param_groups[0]['lr']:.3g} (alone: {alone[1].param_groups[0]['lr']:.3g})")

    # ... or the state into the objects that there were: the original class, optimizer and scheduler take it
    module.load_state_dict(ot.torch_state_dict(made.model()), strict=True)
    optimizer.load_state_dict(made.optimizer.state_dict())
    scheduler.load_state_dict(made.scheduler.state_dict())
    weights = max((a - b).abs().max().item() for a, b in zip(module.parameters(), alone[0].parameters()))
    print(f"           largest difference of a weight after 30 steps: {weights:.1e}")
    return 0 if worst < 1e-4 else 1


if __name__ == "__main__":
    raise SystemExit(main())
