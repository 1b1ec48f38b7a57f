"""Two builds of onnxtrain beside each other: rounds in pairs, the ratio of each pair, its median and interval."""

import math
import statistics
import sys
from pathlib import Path

from harness.contest import Contender, difference, first_losses, measure


def builds(before, after):
    """The same interpreter for both; PYTHONPATH decides whose package is imported."""
    found = []
    for name, folder in (("before", Path(before).resolve()), ("after", Path(after).resolve())):
        package = folder / "python/onnxtrain"
        if not list(package.glob("_native*.so")):
            raise SystemExit(f"{package} has no native module (make build there)")
        found.append(Contender(name, "onnxtrain", sys.executable, (("PYTHONPATH", str(folder / "python")),)))
    return found


def check_origin(contender, answer):
    """A pair of processes that import the same package would prove nothing."""
    folder = dict(contender.env)["PYTHONPATH"]
    if not answer["origin"].startswith(folder + "/"):
        raise SystemExit(f"{contender.name}: imported {answer['origin']}, not the package of {folder}")


def median_interval(values, confidence=0.95):
    """Bounds of the median by the sign test: ranks that the binomial distribution allows."""
    values, n = sorted(values), len(values)
    tail, rank = 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 1 - confidence:
            break
        rank = k + 1
    return values[max(rank - 1, 0)], values[n - max(rank, 1)]


def compare(group, workload, threads, how, launches, log):
    """Fresh processes `launches` times: where memory happens to lie differs between processes."""
    answers = [first_losses(c, workload, threads, 6, log) for c in group]
    for c, answer in zip(group, answers, strict=True):
        if "failed" in answer:
            return {"failed": f"{c.name}: {answer['failed']}"}
        check_origin(c, answer)
    rows = {c.name: [] for c in group}
    others = []
    for launch in range(launches):
        order = group if launch % 2 == 0 else group[::-1]
        for name, r in measure(order, workload, threads, how, log).items():
            if "failed" in r:
                return {"failed": f"{name}: {r['failed']}"}
            rows[name] += r["ms_rounds"]
            others += r["others"]
    ratios = [a / b for a, b in zip(rows["after"], rows["before"], strict=True)]
    low, high = median_interval(ratios)
    return {"before_ms": statistics.median(rows["before"]), "after_ms": statistics.median(rows["after"]),
            "ratio": statistics.median(ratios), "low": low, "high": high,
            "ratio_of_least": min(rows["after"]) / min(rows["before"]), "pairs": len(ratios), "rounds": rows,
            "same_losses": answers[0]["losses"] == answers[1]["losses"],
            "loss_difference": difference(answers[1]["losses"], answers[0]["losses"]),
            "others": statistics.mean(others)}
