"""Writes data/small.npz: PyTorch's numbers for small_cases.py, in float64, with the noise of its float32 runs.

    python tests/trajectories/small_dump.py        (torch 2.13; never needed to train)"""

import fnmatch
from pathlib import Path

import numpy as np
import torch

import keras_rules
import oracle
from small_cases import CASES, STEPS, feeds, weights
from trajectory_cases import Section

TAILS = {"LogSoftmax": lambda z: torch.log_softmax(z, -1), "Softmax": lambda z: torch.softmax(z, -1),
         "Sigmoid": torch.sigmoid, "": lambda z: z}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(4, 16), torch.nn.Linear(16, 3)
        self.load_state_dict({n: torch.from_numpy(w.copy()) for n, w in weights().items()})

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def term_loss(case, term, z, t):
    tail = case.tail.split()[0] if case.tail else ""
    if term["kind"] == "kl" and tail == "Softmax":
        tail = "LogSoftmax"
    y = z if case.scores else TAILS[tail](z)
    if term["kind"] == "FILE":
        return (torch.exp(y - t) - (y - t)).sum(1).mean()
    return oracle.term_loss(term, {"y": y}, {"label": t})


def optimizer(case, params):
    name, args = case.optimizer
    args = dict(args)
    if name == "FILE":
        return keras_rules.Softsign(list(params.values()), **args)
    if args.pop("style", "torch") == "keras":
        return getattr(keras_rules, name.replace("AdamW", "Adam"))(list(params.values()), **args)
    return oracle.optimizer(Section((name, args)), params)


def scheduler(case, opt):
    s = dict(case.schedule or {})
    if s.get("three_phase"):
        s = {**s, "three_phase": True}
        s["anneal_strategy"] = "linear" if s.pop("anneal_linear", 0) else "cos"
    if "min_lr" in s:
        s["eta_min"] = s.pop("min_lr")
    return oracle.scheduler(Section(None, schedule=s or None), opt)


def trajectory(case, dtype, seed=None):
    """(losses, state); with a seed the rows come in another order: the same but for rounding."""
    net, rng, losses = Net().to(dtype), np.random.RandomState(seed or 0), []
    params = {n: p for n, p in net.named_parameters() if any(fnmatch.fnmatch(n, g) for g in case.only)}
    opt = optimizer(case, params)
    plan = scheduler(case, opt)
    for step in range(STEPS):
        x, t = (torch.from_numpy(a) for a in feeds(case, step))
        if seed is not None:
            order = torch.from_numpy(rng.permutation(len(x)))
            x, t = x[order], t[order]
        x, t = x.to(dtype), t.to(dtype) if t.is_floating_point() else t
        if step % case.accumulate == 0:
            net.zero_grad()
        z = net(x)
        loss = sum(term.get("weight", 1.0) * term_loss(case, term, z, t) for term in case.loss)
        losses.append(float(loss.detach()))
        oracle.learn(case, step, loss, params, opt, plan)
    return np.array(losses), {n: p.detach().double().numpy() for n, p in net.named_parameters()}


def main():
    out = {}
    for name, case in CASES.items():
        losses, state = trajectory(case, torch.float64)
        runs = [trajectory(case, torch.float32, seed) for seed in (None, 1, 2, 3)]
        out[f"{name}/losses"] = losses
        out[f"{name}/loss_noise"] = np.max([abs(r[0] - losses) for r in runs], 0)
        out[f"{name}/state"] = np.concatenate([state[n].reshape(-1) for n in weights()])
        out[f"{name}/state_noise"] = np.array([max(np.linalg.norm(r[1][n] - state[n]) for r in runs)
                                               for n in weights()])
    np.savez_compressed(Path(__file__).parent / "data/small.npz", **out)


if __name__ == "__main__":
    main()
