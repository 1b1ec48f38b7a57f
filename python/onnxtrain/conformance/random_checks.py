"""What must hold of random numbers, whatever the generator. Bounds are six standard deviations of the statistic."""

import numpy as np


def failures(case, initialized, steps):
    """[text]: what does not hold. `steps`: (outputs, state) after each step; `initialized`: state after initialize."""
    out = []
    for c in case.checks:
        values = [o.get(c.get("output")) for o, _ in steps] if "output" in c else [initialized.get(c.get("state"))]
        why = CHECKS[c["check"]](c, values, steps, case.feeds)
        if why:
            out.append(f"{c['check']}: {why}")
    return out


def normal(c, values, steps, feeds):
    for k, v in enumerate(values):
        n, mean, far = v.size, float(np.mean(v)), float(np.std(v))
        if abs(mean - c["mean"]) > 6 * c["deviation"] / n**0.5:
            return f"mean {mean:.4f} of {n} numbers, wanted {c['mean']} (step {k})"
        if abs(far - c["deviation"]) > 6 * c["deviation"] / (2 * n) ** 0.5:
            return f"deviation {far:.4f} of {n} numbers, wanted {c['deviation']} (step {k})"
    return ""


def dropout(c, values, steps, feeds):
    for k, z in enumerate(values):
        x = feeds[k][c["input"]].astype(np.float64)
        kept = z != 0
        share = 1 - kept.mean()
        if abs(share - c["ratio"]) > 6 * (c["ratio"] * (1 - c["ratio"]) / z.size) ** 0.5:
            return f"{share:.4f} of {z.size} elements were dropped, wanted {c['ratio']} (step {k})"
        far = np.max(np.abs(z[kept] - x[kept] / (1 - c["ratio"])), initial=0)
        if far > 1e-5:
            return f"kept elements are {far:.2g} from x / (1 - ratio) (step {k})"
    return ""


def equal(c, values, steps, feeds):
    for o, _ in steps:
        if not np.allclose(o[c["a"]], o[c["b"]], rtol=1e-5, atol=1e-6):
            return f"'{c['a']}' and '{c['b']}' differ: {c['because']}"
    return ""


def changes(c, values, steps, feeds):
    same = [k for k in range(1, len(values)) if np.array_equal(values[k], values[k - 1])]
    return f"step {same[0]} drew the numbers of step {same[0] - 1}" if same else ""


def differ(c, values, steps, feeds):
    return "two nodes drew the same numbers" if np.array_equal(steps[0][0][c["a"]], steps[0][0][c["b"]]) else ""


def dropped_stay(c, values, steps, feeds):
    z, w = values[0], steps[0][1][c["state"]]
    moved = w != 1
    return "" if np.array_equal(moved, z != 0) else "weights of dropped elements moved, or kept ones did not"


CHECKS = {f.__name__: f for f in (normal, dropout, equal, changes, differ, dropped_stay)}
