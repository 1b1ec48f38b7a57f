"""Prints the table of docs/torch.md: 5 steps in PyTorch, from_torch, 5 steps here, against 10 steps in PyTorch.

    python tests/pytorch/roundtrip.py [--archs a,b] [--optimizers x,y] [--all]

Without --all every architecture runs with four optimizers in turn, so that every optimizer meets several architectures;
with --all every pair runs. The difference is that of the parameters and losses after 10 steps, relative to the largest
element; `noise` is what PyTorch itself differs by when one step of the 10 sees its batch in another order.
"""

import argparse
import copy
import sys
import time
import warnings

import numpy as np
import torch

import onnxtrain as ot
from zoo import ARCHITECTURES, OPTIMIZERS

warnings.filterwarnings("ignore")


def feeds_of(call_names, inputs, targets, names):
    flat = list(inputs.values()) if isinstance(inputs, dict) else list(inputs) if isinstance(inputs, tuple) else [inputs]
    if targets is not None:
        flat.append(targets)
    return {n: t.numpy() for n, t in zip(names, flat)}


def torch_steps(module, optimizer, inputs, targets, loss, n, scheduler=None):
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        out = module(**inputs) if isinstance(inputs, dict) else module(*inputs) if isinstance(inputs, tuple) else module(inputs)
        value = loss(out, targets)
        value.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(float(value.detach()))
    return losses


def distance(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-3)) if b.size else 0.0


def run(arch, opt, before=5, after=5, seed=0):
    torch.manual_seed(seed)
    module, inputs, targets, loss = ARCHITECTURES[arch]()
    module.train()
    optimizer = OPTIMIZERS[opt](module.parameters())
    torch_steps(module, optimizer, inputs, targets, loss, before)
    t0 = time.time()
    model = ot.from_torch(module, inputs, targets, loss, optimizer)
    seconds = time.time() - t0
    import json

    import onnx

    meta = {p.key: p.value for p in onnx.ModelProto.FromString(model.proto()).metadata_props}
    info = json.loads(meta["onnxtrain.torch"])
    trainer = ot.Trainer(model, seed=0)
    feeds = feeds_of(None, inputs, targets, info["inputs"] + info["targets"])
    ours = [trainer.step(feeds).loss for _ in range(after)]
    theirs = torch_steps(module, optimizer, inputs, targets, loss, after)
    worst, where = max((distance(ours, theirs), "loss"), (0.0, ""))
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    for name in trainer.state:
        if name in named:
            d = distance(trainer.state[name], named[name].detach().numpy())
            if d > worst:
                worst, where = d, name
    return worst, where, seconds


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--archs")
    p.add_argument("--optimizers")
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    archs = a.archs.split(",") if a.archs else list(ARCHITECTURES)
    every = a.optimizers.split(",") if a.optimizers else list(OPTIMIZERS)
    failed, count, k = 0, 0, 0
    for arch in archs:
        chosen = every if a.all or a.optimizers else [every[(k + 3 * j) % len(every)] for j in range(4)]
        k += 1
        for opt in chosen:
            count += 1
            try:
                d, where, seconds = run(arch, opt)
                bad = not d < 2e-3
                print(f"{arch:16s} {opt:10s} {d:9.1e}  {where:32s} {seconds:6.1f} s{'  DIFFERS' if bad else ''}", flush=True)
            except Exception as e:
                bad = True
                print(f"{arch:16s} {opt:10s} {type(e).__name__}: {str(e)[:1500]}", flush=True)
            failed += bad
    print(f"{count - failed} of {count} pairs agree")
    return 1 if failed else 0


if __name__ == "__main__":
    del copy
    sys.exit(main())
