"""Prints the table of docs/torch.md: 5 steps in PyTorch, from_torch, 5 steps here, against 10 steps in PyTorch.

    python tests/pytorch/from_table.py [--archs a,b] [--optimizers x,y] [--all]

Without --all every architecture runs with four optimizers in turn, so that every optimizer meets several architectures;
with --all every pair runs. The difference is the largest of the losses, parameters and buffers after 10 steps, relative to the
largest element of the tensor. Where it exceeds 1e-5 it is compared with the noise of float32 itself: the same tensor's
difference between PyTorch in float32 and PyTorch in float64 (a gradient that is 0 in exact arithmetic, such as that of an
attention's key bias, becomes a step of the size of the rate in Adam's division).
"""

import argparse
import json
import sys
import time
import warnings

import numpy as np
import onnx
import torch

import onnxtrain as ot
from from_zoo import ARCHITECTURES, OPTIMIZERS

warnings.filterwarnings("ignore")


def feeds_of(inputs, targets, names):
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


def start(arch, opt, dtype=None, seed=0):
    torch.manual_seed(seed)
    module, inputs, targets, loss = ARCHITECTURES[arch]()
    if dtype is not None:
        to = lambda t: t.to(dtype) if isinstance(t, torch.Tensor) and t.dtype.is_floating_point else t  # noqa: E731
        module = module.to(dtype)
        inputs = {k: to(v) for k, v in inputs.items()} if isinstance(inputs, dict) else tuple(map(to, inputs)) if isinstance(inputs, tuple) else to(inputs)
        targets = to(targets)
        loss = loss.to(dtype) if isinstance(loss, torch.nn.Module) else loss
    module.train()
    return module, inputs, targets, loss, OPTIMIZERS[opt](module.parameters())


def tensors_of(module):
    return {n: t.detach().numpy() for n, t in [*module.named_parameters(), *module.named_buffers()]}


def run(arch, opt, before=5, after=5, seed=0):
    """(largest difference, where, noise of float32 there or None, seconds of the conversion)."""
    module, inputs, targets, loss, optimizer = start(arch, opt, seed=seed)
    torch_steps(module, optimizer, inputs, targets, loss, before)
    t0 = time.time()
    model = ot.from_torch(module, inputs, targets, loss, optimizer)
    seconds = time.time() - t0
    meta = {p.key: p.value for p in onnx.ModelProto.FromString(model.proto()).metadata_props}
    info = json.loads(meta["onnxtrain.torch"])
    trainer = ot.Trainer(model, seed=0)
    feeds = feeds_of(inputs, targets, info["inputs"] + info["targets"])
    ours = {"loss": [trainer.step(feeds).loss for _ in range(after)]}
    theirs = {"loss": torch_steps(module, optimizer, inputs, targets, loss, after), **tensors_of(module)}
    ours |= {n: trainer.state[n] if n in trainer.state else model.parameters[n] for n in theirs if n in trainer.state or n in model.parameters}
    worst, where = max((distance(ours[n], theirs[n]), n) for n in theirs if n in ours)
    noise = None
    if worst > 1e-5:
        m, x, t, f, o = start(arch, opt, torch.float64, seed)
        exact = {"loss": torch_steps(m, o, x, t, f, before + after)[before:], **tensors_of(m)}
        excess = {n: (distance(ours[n], theirs[n]) / max(distance(theirs[n], exact[n]), 1e-6), n) for n in theirs if n in ours}
        _, where = max(excess.values())
        worst, noise = distance(ours[where], theirs[where]), distance(theirs[where], exact[where])
    return worst, where, noise, seconds


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
                d, where, noise, seconds = run(arch, opt)
                bad = not (d <= 1e-5 or (noise is not None and d <= 10 * noise))
                told = "" if noise is None else f"float32 noise {noise:.1e}"
                print(f"{arch:16s} {opt:10s} {d:9.1e}  {where:40s} {told:22s} {seconds:6.1f} s{'  DIFFERS' if bad else ''}", flush=True)
            except Exception as e:
                bad = True
                print(f"{arch:16s} {opt:10s} {type(e).__name__}: {str(e)[:1500]}", flush=True)
            failed += bad
    print(f"{count - failed} of {count} pairs agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
