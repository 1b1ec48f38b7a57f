"""Trains the exported files with onnxtrain and measures how far the numbers are from torch's.

    python tests/trajectories/compare.py [NAME ...]      prints docs/trajectories.md's table

The rule. r is torch in float64, s are torch's float32 runs (as it is, without oneDNN, the batch in
other orders). For a tensor: noise = max over s of |s - r| in the 2-norm. Its scale is the largest of
  noise,                                      what torch's float32 does to this tensor;
  (model's noise / model's norm) * |r|,       a small tensor's own estimate may be small by accident;
  2^-23 * |r|,                                float32 cannot say more.
Model's noise and norm are taken over all tensors together. Loss of step k: the largest noise of
steps up to k, and 2^-23 of the loss. ratio = |ours - r| / scale must not be above LIMIT."""

import json
import sys
from pathlib import Path

import numpy as np

import onnxtrain as ot
from onnxtrain.recipe import Term
from trajectory_cases import CASES, STEPS, feeds

DATA = Path(__file__).parent / "data"
LIMIT = 4.0
EPS = 2.0**-23
OWN = ("T", "learning_rate", "accumulated_steps")  # names begin so
SLOTS = (".momentum", ".exp_avg", ".exp_avg_sq", ".max_exp_avg_sq", ".sum", ".square_avg", ".grad_avg",
         ".momentum_buffer", ".accumulated")


class Reference:
    def __init__(self, name):
        for key, value in np.load(DATA / f"{name}.npz").items():
            setattr(self, key, value)
        self.names, self.grad_names = list(self.names), list(self.grad_names)
        self.order = np.argsort(self.start, kind="stable")
        ends = np.cumsum(self.sizes)
        self.slices = {n: slice(e - s, e) for n, s, e in zip(self.names, self.sizes, ends)}

    def find(self, a):
        """Where in the flat state the elements of `a` stand, by value; None if some stand nowhere."""
        at = np.searchsorted(self.start[self.order], a.reshape(-1))
        where = self.order[np.minimum(at, self.start.size - 1)]
        return where if a.size and np.array_equal(self.start[where], a.reshape(-1)) else None


def optimizer(spec):
    name, args = spec
    return getattr(ot, name)(**args)


def terms(name, section):
    out = []
    for t in section.loss:
        t = {k: v for k, v in t.items() if k != "inputs"}
        if t["kind"][0].isupper():
            t["kind"] = str(DATA / f"{name}.{t['kind']}.onnx")
        out.append(Term(**t))
    return out


def prepared(name, model, sections=None, **more):
    """The training model: one section after the other."""
    case = CASES[name]
    for k, s in enumerate(case.sections if sections is None else sections):
        model = ot.prepare(model, loss=terms(name, s), optimizer=optimizer(s.optimizer), only=s.only or None,
                           schedule=s.schedule, clip_norm=s.clip_norm, clip_value=s.clip_value,
                           accumulate=s.accumulate, **({"append": True} if k else {}), **more)
    return model


def places(ref, state):
    """state variable -> where its elements stand in torch's state."""
    found = {n: ref.find(a) for n, a in state.items() if a.dtype == np.float32}
    found = {n: w for n, w in found.items() if w is not None}
    strange = [n for n in state if n not in found and not n.startswith(OWN) and not n.endswith(SLOTS)]
    assert not strange, f"trained, but not a parameter of the network: {strange}"
    return found


def first_gradients(name, path, ref):
    """By way of a momentum, which is the gradient after one step. Adds up what an exporter doubled."""
    total = np.zeros(ref.start.size)
    for s in CASES[name].sections:
        train = ot.prepare(ot.load(path), loss=terms(name, s), optimizer=ot.SGD(lr=0.0, momentum=0.9),
                           only=s.only or None)
        t = ot.Trainer(train)
        where = places(ref, dict(t.state))
        t.step(feeds(CASES[name], 0))
        state = dict(t.state)
        for n, w in where.items():
            if n + ".momentum" in state:
                np.add.at(total, w, state[n + ".momentum"].reshape(-1).astype(np.float64))
    return total


def scales(norms, noise):
    """Of each tensor, by the rule above."""
    whole = np.sqrt(np.sum(noise**2)) / max(np.sqrt(np.sum(norms**2)), 1e-300)
    return np.maximum.reduce([noise, whole * norms, EPS * norms])


def tensor_ratios(got, want, slices, names, noise):
    """Worst ratio and the tensor that has it."""
    norms = np.array([np.linalg.norm(want[slices[n]]) for n in names])
    far = np.array([np.linalg.norm(got[slices[n]] - want[slices[n]]) for n in names])
    ratio = far / np.maximum(scales(norms, noise), 1e-300)
    return float(np.max(ratio)), names[int(np.argmax(ratio))]


def run(name, how, threads=2):
    """Losses, gradients of step 1 and final state of one exported file, as ratios."""
    ref, case, path = Reference(name), CASES[name], DATA / f"{name}.{how}.onnx"
    train = prepared(name, ot.load(path))
    t = ot.Trainer(train, threads=threads)
    where = places(ref, dict(t.state))
    count = np.zeros(ref.start.size, int)
    for w in where.values():
        np.add.at(count, w, 1)
    missing = [n for n, s in ref.slices.items() if not count[s].all()]
    assert not missing, f"not trained: {missing}"
    losses = [t.step(feeds(case, k), which=i).loss for k in range(STEPS) for i in range(len(case.sections))]
    scale = np.maximum(np.maximum.accumulate(ref.loss_noise), EPS * abs(ref.losses))
    result = {"losses": (float(np.max(abs(np.array(losses) - ref.losses) / scale)), "loss")}

    grads = first_gradients(name, path, ref)
    at = 0
    want = np.zeros(ref.start.size)
    for n in ref.grad_names:
        size = ref.slices[n].stop - ref.slices[n].start
        want[ref.slices[n]] = ref.grads[at:at + size]
        at += size
    result["gradients"] = tensor_ratios(grads, want, ref.slices, ref.grad_names, ref.grad_noise)
    final = np.zeros(ref.start.size)
    for n, w in where.items():
        final[w] = t.state[n].reshape(-1)
    result["state"] = tensor_ratios(final, ref.state, ref.slices, ref.names, ref.state_noise)
    return result


def exports():
    index = json.loads((DATA / "index.json").read_text())
    return [(n, how) for n in CASES for how, said in index.get(n, {}).items() if said == "ok"]


def main(names):
    for name, how in exports():
        if names and name not in names:
            continue
        try:
            r = run(name, how)
            print(f"{name:13s} {how:13s} " + "  ".join(f"{k} {v:.2f} ({n})" for k, (v, n) in r.items()), flush=True)
        except Exception as e:  # noqa: BLE001
            print(f"{name:13s} {how:13s} {type(e).__name__}: {str(e)[:600]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
