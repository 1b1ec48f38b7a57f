"""The whole table of round trips between PyTorch and onnxtrain, with its counts (docs/torch.md):

    python tests/pytorch/round_trips.py                      # every architecture x every optimizer, then the schedulers
    python tests/pytorch/round_trips.py --every              # every architecture x every setting of every optimizer
    python tests/pytorch/round_trips.py --archs gpt,resnet --optimizers "adam,rprop, 2 groups"
    python tests/pytorch/round_trips.py --schedulers-only

The settings of an optimizer (momentum, amsgrad, groups, ...) take turns over the architectures unless --every. It takes
five minutes (--every: ten) on one free core, runs niced, prints a line per pair and what is done so far, and exits with
1 when a pair differs. trips.py says what one round trip is and how it is judged.
"""

import argparse
import collections
import multiprocessing
import os
import statistics
import sys
import time

from from_settings import CLASSES, OPTIMIZERS, SCHEDULERS
from from_zoo import ARCHITECTURES

# schedulers meet a network with momentum, one with groups, one with dropout layers and ties, one whose optimizer counts
# its steps
WITH_SCHEDULER = [("mlp", "momentum"), ("cnn_bn", "momentum, 3 groups"), ("gpt", "adamw"), ("lstm", "nadam"),
                  ("frozen_backbone", "adamw, 2 groups"), ("mlp", "rmsprop both"), ("mlp", "rprop"),
                  ("mlp", "radam decoupled"), ("mlp", "adamax")]


def class_of(setting):
    return CLASSES[setting.split(",")[0].split()[0]]


def pairs(archs, optimizers, schedulers_only, every_setting):
    every = [(a, o, None) for a in archs for o in optimizers]
    if schedulers_only:
        every = []
    elif not every_setting:
        settings = {}
        for o in optimizers:
            settings.setdefault(class_of(o), []).append(o)
        every = [(a, s[k % len(s)], None) for k, a in enumerate(archs) for s in settings.values()]
    return every + [(a, o, s) for a, o in WITH_SCHEDULER if a in archs and o in optimizers for s in SCHEDULERS]


def run(task):
    """Rows of one architecture."""
    import torch

    from trips import Architecture, trip

    torch.set_num_threads(1)
    name, todo = task
    arch, rows = Architecture(name), []
    for opt, scheduler in todo:
        pair = name, opt, scheduler
        try:
            t = trip(arch, opt, scheduler)
            said = "" if t.noise is None else f"float32 noise there {t.noise:.1e}"
            native = t.optimizer == class_of(opt) and t.scheduler == (scheduler or "")
            rows.append(
                (
                    pair,
                    "exact" if t.noise is None and t.good else "noise" if t.good else "differs",
                    t.difference,
                    f"{t.where}  {said}",
                    native,
                )
            )
        except Exception as e:  # noqa: BLE001 - one pair's failure is a row of the table
            rows.append((pair, "failed", float("inf"), f"{type(e).__name__}: {e}", False))
    return rows


def summary(rows):
    count = collections.Counter(kind for _, kind, *_ in rows)
    for title, chosen in (
        ("architectures x optimizers", [r for r in rows if r[0][2] is None]),
        ("with scheduler", [r for r in rows if r[0][2]]),
    ):
        if not chosen:
            continue
        c = collections.Counter(r[1] for r in chosen)
        exact = [r[2] for r in chosen if r[1] == "exact"]
        shape = (
            ""
            if chosen[0][0][2]
            else f" ({len({r[0][0] for r in chosen})} architectures, {len({r[0][1] for r in chosen})} settings of "
            f"{len({class_of(r[0][1]) for r in chosen})} optimizers)"
        )
        print(f"{title}{shape}: {c['exact'] + c['noise']} of {len(chosen)} agree: {c['exact']} within 1e-5"
              + (f" (median {statistics.median(exact):.1e}, largest {max(exact):.1e})" if exact else "")
              + f", {c['noise']} within PyTorch's float32 noise; {c['differs']} differ, {c['failed']} failed; "
              f"torch's own classes came back in {sum(r[4] for r in chosen)}")
    return 1 if count["differs"] + count["failed"] else 0


def listed(text, known):
    """Names of a comma-separated list; some names have a comma."""
    left, found = text, []
    while left:
        name = max((n for n in known if left == n or left.startswith(n + ",")), key=len, default=None)
        if name is None:
            raise SystemExit(f"unknown: {left}; there are {'; '.join(known)}")
        found.append(name)
        left = left[len(name) + 1:].lstrip()
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--archs", default=",".join(ARCHITECTURES))
    p.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    p.add_argument("--every", action="store_true")
    p.add_argument("--schedulers-only", action="store_true")
    p.add_argument("-j", type=int, default=1)
    a = p.parse_args()
    os.nice(10)
    os.environ.update(OMP_NUM_THREADS="1", ONNXTRAIN_THREADS="1")
    chosen = listed(a.archs, ARCHITECTURES), listed(a.optimizers, OPTIMIZERS)
    todo, began, rows = pairs(*chosen, a.schedulers_only, a.every or len(chosen[1]) < len(OPTIMIZERS)), time.time(), []
    tasks = [(arch, [(o, s) for x, o, s in todo if x == arch]) for arch in dict.fromkeys(x for x, *_ in todo)]
    with multiprocessing.get_context("spawn").Pool(a.j, maxtasksperchild=4) as pool:
        for done in pool.imap(run, tasks):
            for (arch, opt, scheduler), kind, d, where, _ in done:
                print(f"{arch} x {opt}{' x ' + scheduler if scheduler else ''}: {kind} {d:.1e} {where}")
            rows += done
            print(f"[{len(rows)} of {len(todo)} pairs, {(time.time() - began) / 60:.0f} min]", flush=True)
    return summary(rows)


if __name__ == "__main__":
    sys.exit(main())
