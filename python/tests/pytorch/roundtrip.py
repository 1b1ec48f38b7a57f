"""The table of round trips: five steps in PyTorch, five in onnxtrain, five in PyTorch again, against fifteen in PyTorch.

    python python/tests/pytorch/roundtrip.py                       # every architecture, every optimizer, every scheduler
    python python/tests/pytorch/roundtrip.py resnet gpt            # some architectures
    python python/tests/pytorch/roundtrip.py --road exporter       # files by torch.onnx.export and ot.prepare instead of from_torch

Columns: largest difference of a loss (relative), of a weight or buffer (absolute), whether the original class, optimizer
and scheduler load the state that came back.
"""

import argparse
import copy
import json
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler as schedulers

import onnxtrain as ot
from architectures import ZOO, target_for

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), "SGD plain": lambda p: torch.optim.SGD(p, lr=0.05),
    "Adam": lambda p: torch.optim.Adam(p, amsgrad=True, weight_decay=0.01), "AdamW": lambda p: torch.optim.AdamW(p),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr_decay=0.1), "NAdam": lambda p: torch.optim.NAdam(p),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True), "RAdam": lambda p: torch.optim.RAdam(p),
    "Adamax": lambda p: torch.optim.Adamax(p), "Adadelta": lambda p: torch.optim.Adadelta(p), "Rprop": lambda p: torch.optim.Rprop(p),
    "maximize": lambda p: torch.optim.SGD(p, lr=0.001, maximize=True),
}
SCHEDULERS = {
    "StepLR": lambda o: schedulers.StepLR(o, 4), "MultiStepLR": lambda o: schedulers.MultiStepLR(o, [3, 9]),
    "ExponentialLR": lambda o: schedulers.ExponentialLR(o, 0.9), "CosineAnnealingLR": lambda o: schedulers.CosineAnnealingLR(o, 30),
    "LinearLR": lambda o: schedulers.LinearLR(o, 0.2, 1.0, 8), "OneCycleLR": lambda o: schedulers.OneCycleLR(o, 0.05, total_steps=40),
    "SequentialLR": lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o, 0.1, 1.0, 4), schedulers.CosineAnnealingLR(o, 30)], [4]),
}


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


def steps(count, module, loss, optimizer, scheduler, args, target):
    out = []
    for _ in range(count):
        optimizer.zero_grad()
        value = loss(module(*args), target)
        value.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        out.append(float(value.detach()))
    return out


def _training(module, optimizer, scheduler):
    opt = OPTIMIZERS[optimizer](module.parameters())
    return opt, SCHEDULERS[scheduler](opt) if scheduler else None


def trip(name, optimizer="SGD", scheduler=None):
    """(largest relative loss difference, largest weight difference, torch-side result) of 5 + 5 + 5 steps against 15."""
    torch.manual_seed(0)
    module, args = ZOO[name][0]()
    target = target_for(name, module.eval()(*args).detach())
    loss, reference = loss_of(name), copy.deepcopy(module)
    module.train()
    opt, sched = _training(module, optimizer, scheduler)
    want = steps(15, reference.train(), loss, *_training(reference, optimizer, scheduler), args, target)
    got = steps(5, module, loss, opt, sched, args, target)
    model = ot.from_torch(module, args, target, loss=loss, optimizer=opt, scheduler=sched)
    info = _info(model)
    feeds = {n: a.numpy() for n, a in zip(info["inputs"], args)}
    feeds.update({n: target.numpy() for n in info["targets"] or ()})
    trainer = ot.Trainer(model)
    got += [trainer.step(feeds).loss for _ in range(5)]
    made = ot.to_torch(trainer)
    made.module.train()
    got += steps(5, made.module, made.loss, made.optimizer, made.scheduler, args, target)
    module.load_state_dict(ot.torch_state_dict(made.model()), strict=True)
    opt.load_state_dict(made.optimizer.state_dict())
    if sched is not None:
        sched.load_state_dict(made.scheduler.state_dict())
    off = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(want, got))
    weights = max(float((a.double() - b.double()).abs().max())
                  for a, b in zip(reference.state_dict().values(), module.state_dict().values()))
    return off, weights, made


def exporter_trip(name):
    """Files by torch.onnx.export and prepare: five steps here, then five on both sides."""
    from graphs import largest_difference, prepared, torch_step

    _, args, target, feeds, model = prepared(name, ot.SGD(lr=0.05, momentum=0.9))
    trainer = ot.Trainer(model)
    for _ in range(5):
        trainer.step(feeds)
    made = ot.to_torch(trainer)
    made.module.train()
    there = [torch_step(made, args, target) for _ in range(5)]
    here = [trainer.step(feeds).loss for _ in range(5)]
    off = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(here, there))
    return off, largest_difference(trainer, ot.Trainer(made.model()), 1e-3)[0], made


def _info(model):
    import onnx

    return json.loads({p.key: p.value for p in onnx.ModelProto.FromString(model.proto()).metadata_props}["onnxtrain.torch"])


def row(label, run, *arguments):
    try:
        off, weights, made = run(*arguments)
        kinds = f"{type(made.optimizer).__name__:10s} {'' if made.scheduler is None else type(made.scheduler).__name__}"
        print(f"{label:26s} {off:10.1e} {weights:10.1e}   {kinds}", flush=True)
        return off < 1e-4 and np.isfinite(weights)
    except ot.Error as e:
        print(f"{label:26s} refused: {str(e).splitlines()[0][:120]}", flush=True)
        return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--road", choices=["from_torch", "exporter"], default="from_torch")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':26s} {'loss':>10s} {'weights':>10s}   in PyTorch")
    good = [row(n, trip if a.road == "from_torch" else exporter_trip, n) for n in a.names or ZOO]
    if a.road == "from_torch" and not a.names:
        good += [row(f"mlp, {o}", trip, "mlp", o) for o in OPTIMIZERS]
        good += [row(f"mlp, AdamW, {s}", trip, "mlp", "AdamW", s) for s in SCHEDULERS]
    print(f"{sum(good)} of {len(good)} within 1e-4")
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
