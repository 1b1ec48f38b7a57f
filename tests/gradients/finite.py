"""Gradients against central finite differences of the same model, in random and in single directions.

A direction whose two step sizes disagree is at a kink or lost in noise: it says nothing and is counted as
skipped. What it says is compared within the error that the two step sizes show."""

import dataclasses

import numpy as np

import onnxtrain as ot
from retype import is_float

SINGLE = 40   # inputs with up to so many elements are probed element by element
SAMPLED = 20  # of larger ones: so many elements
DENSE = 3     # and so many directions over all elements


@dataclasses.dataclass
class Result:
    status: str  # "ok", "wrong", "error", "refused", "unmeasured", "nothing"
    text: str = ""
    probes: int = 0
    skipped: int = 0
    dtype: str = ""


def leaves(value):
    """The floating-point arrays of a value: a tensor or a nested list."""
    if isinstance(value, list):
        return [x for v in value for x in leaves(v)]
    return [value] if is_float(value) else []


def _replaced(value, target, new):
    if value is target:
        return new
    if isinstance(value, list):
        return [_replaced(v, target, new) for v in value]
    return value


class Function:
    """f(feeds) = sum over floating-point outputs of <cotangent, output>. `exact`: the outputs by other means, where
    the operator stops short of them."""

    def __init__(self, model, feeds, rng, threads=1, exact=None):
        self.exact = exact
        self.model = ot.load(model.SerializeToString())
        self.session = ot.Session(self.model, threads=threads)
        out = self.session.run(feeds)
        self.base = out
        self.cotangents = {}
        for name, y in out.items():
            if is_float(y):
                c = rng.standard_normal(y.shape)
                c[~np.isfinite(y.astype(np.float64))] = 0
                self.cotangents[name] = c.astype(y.dtype)
        self.shapes = {n: out[n].shape for n in self.cotangents}
        # a gradient of 0 times infinity is not a number: then it says nothing
        self.finite = all(np.isfinite(out[n].astype(np.float64)).all() for n in self.cotangents)

    def __call__(self, feeds):
        """(value, sum of magnitudes), or None when a shape changed or a value is not finite."""
        try:
            out = self.exact(feeds) if self.exact else self.session.run(feeds, list(self.cotangents))
        except ot.Error:
            return None  # a step out of the domain
        total = size = 0.0
        for name, c in self.cotangents.items():
            y = out[name].astype(np.float64)
            if y.shape != self.shapes[name]:
                return None
            p = np.where(c == 0, 0, np.where(np.isfinite(y), y, np.nan)) * c.astype(np.float64)
            total += p.sum()
            size += np.abs(p).sum()
        return (total, size) if np.isfinite(total) else None

    def gradients(self, feeds, wrt):
        return ot.gradients(self.model, feeds, of=list(self.cotangents), wrt=wrt, cotangent=self.cotangents, threads=1)


def _directions(x, rng):
    finite = np.flatnonzero(np.isfinite(x.astype(np.float64)).ravel())
    if len(finite) == 0:
        return
    picks = finite if len(finite) <= SINGLE else rng.choice(finite, SAMPLED, replace=False)
    for k in picks:
        u = np.zeros(x.size)
        u[k] = 1
        yield f"element {k}", u.reshape(x.shape)
    if x.size > 1:
        for k in range(DENSE):
            u = np.zeros(x.size)
            u[finite] = rng.uniform(-1, 1, len(finite))
            yield f"direction {k}", u.reshape(x.shape)


def _difference(f, feeds, name, leaf, u, h):
    values = []
    for s in (1, -1):
        moved = (leaf.astype(np.float64) + s * h * u).astype(leaf.dtype)
        got = f({**feeds, name: _replaced(feeds[name], leaf, moved)})
        if got is None:
            return None
        values.append(got)
    return (values[0][0] - values[1][0]) / (2 * h), max(values[0][1], values[1][1])


def _probe(f, feeds, name, leaf, u, g, wide):
    """None: says nothing; "" agrees; otherwise what differs."""
    finite = np.abs(leaf[np.isfinite(leaf.astype(np.float64))]).astype(np.float64)
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    eps, h, rel = (2.0**-52, 2e-5, 2e-6) if wide else (2.0**-23, 2.0**-6, 2e-2)
    h *= scale
    one, two = _difference(f, feeds, name, leaf, u, h), _difference(f, feeds, name, leaf, u, h / 2)
    if one is None or two is None:
        return None
    noise = 40 * eps * max(one[1], two[1]) / h
    numeric = (4 * two[0] - one[0]) / 3
    mine = float((np.where(u == 0, 0, g.astype(np.float64)) * u).sum())
    size = max(abs(numeric), float(np.sqrt(((np.where(u == 0, 0, g.astype(np.float64)) * u) ** 2).sum())), 1e-3)
    apart = abs(one[0] - two[0])
    if apart > 50 * rel * size + noise:
        return None
    if not f.finite and not np.isfinite(mine):
        return None
    if not np.isfinite(mine) or abs(mine - numeric) > rel * size + 2 * apart + noise:
        return f"gradient {mine:.9g}, difference {numeric:.9g} (step halved: {apart:.1e}, noise {noise:.1e})"
    return ""


def check(model, feeds, wrt, seed=0, exact=None):
    """Compares the gradients of every floating-point output with respect to `wrt`."""
    rng = np.random.default_rng(seed)
    f = Function(model, feeds, rng, exact=exact)
    if not f.cotangents:
        return Result("nothing", "no floating-point output")
    grads = f.gradients(feeds, wrt)
    r = Result("ok")
    wide = all(x.dtype == np.float64 for n in wrt for x in leaves(feeds[n])) and (exact or all(
        c.dtype == np.float64 for c in f.cotangents.values()))
    r.dtype = "float64" if wide else "float32"
    base = f(feeds)
    for name in wrt:
        xs, gs = leaves(feeds[name]), leaves(grads[name])
        if len(xs) != len(gs):
            return Result("wrong", f"{name}: {len(xs)} tensors, {len(gs)} gradients")
        for x, g in zip(xs, gs):
            if x.shape != g.shape or x.dtype != g.dtype:
                return Result("wrong", f"{name}: {x.dtype}{x.shape}, its gradient {g.dtype}{g.shape}")
            if base is None:
                continue
            for what, u in _directions(x, rng):
                bad = _probe(f, feeds, name, x, u, g, wide)
                if bad is None:
                    r.skipped += 1
                    continue
                r.probes += 1
                if bad:
                    return Result("wrong", f"{name} {list(x.shape)} {what}: {bad}", r.probes, r.skipped, r.dtype)
    if r.skipped > r.probes:
        r.status = "unmeasured"
    return r
