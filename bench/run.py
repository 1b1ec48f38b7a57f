#!/usr/bin/env python3
"""Whole training steps of the nine workloads beside other engines, in interleaved rounds of one run.

    .venv/bin/python bench/run.py                                     # all workloads, all peers that are installed
    .venv/bin/python bench/run.py --peers onnxtrain,torch --workloads W1,W4 --rounds 5
    .venv/bin/python bench/run.py --quick                             # a few minutes
    .venv/bin/python bench/run.py --check                             # losses only
    .venv/bin/python bench/run.py --before ../other-checkout          # two builds of onnxtrain, after / before

Every peer has a process of its own; all of a workload stay alive and run in turn, forwards and backwards; the time is
the median of the rounds. A round in which others used more than --quiet CPUs is taken again. Before that the first six
losses of every peer are compared (real learning rate, no dropout): a peer that trains something else is left out.
Writes OUT.json and OUT.md, both with the commit, the processor and the versions.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from harness import contest, machine, pairs, report
from peers import OURS, PEERS, REFERENCE
from workloads import WORKLOADS, files

QUICK_PEERS = [OURS, "torch", "torch_tuned", "ort_training"]


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peers", default=None, help="of " + ",".join(PEERS) + " (default: all)")
    p.add_argument("--workloads", default=",".join(WORKLOADS))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=None, help="default 3; with --before 6 per launch")
    p.add_argument("--seconds", type=float, default=None, help="length of a round, at least one step")
    p.add_argument("--warm", type=float, default=1.0, help="seconds before the first round")
    p.add_argument("--quiet", type=float, default=0.08, help="most CPUs that others may use during a round")
    p.add_argument("--retries", type=int, default=3, help="of a round that others disturbed")
    p.add_argument("--cpu-time", action="store_true",
                   help="of the process instead of the clock, whatever others do: with --threads 1 on a busy machine")
    p.add_argument("--quick", action="store_true", help="fewer peers (" + ",".join(QUICK_PEERS) + "), short rounds")
    p.add_argument("--check", action="store_true", help="compare the losses, measure nothing")
    p.add_argument("--no-check", action="store_true", help="measure without comparing losses")
    p.add_argument("--steps", type=int, default=6, help="losses to compare")
    p.add_argument("--before", metavar="DIR", help="another checkout, built: compare it with this one")
    p.add_argument("--after", metavar="DIR", default=str(machine.ROOT), help="with --before: instead of this checkout")
    p.add_argument("--launches", type=int, default=3, help="with --before: fresh processes that many times")
    p.add_argument("--out", default=str(machine.ROOT / "build/bench/speed"))
    o = p.parse_args(argv)
    peers = o.peers.split(",") if o.peers else QUICK_PEERS if o.quick else list(PEERS)
    o.peers = [name for name in PEERS if name in peers]
    o.workloads = o.workloads.split(",")
    for given, known in ((peers, PEERS), (o.workloads, WORKLOADS)):
        for name in given:
            if name not in known:
                p.error(f"'{name}' is none of {', '.join(known)}")
    o.how = contest.Rounds(o.rounds or (6 if o.before else 3), o.seconds or (0.3 if o.quick or o.before else 0.5),
                           o.warm, o.quiet, *((0, "cpu") if o.cpu_time else (o.retries, "wall")))
    return o


def compare_losses(group, workload, o, log):
    """-> name -> losses and their difference; "wrong" where it is above what rounding explains"""
    found = {c.name: contest.first_losses(c, workload, o.threads, o.steps, log) for c in group}
    reference = next((n for n in (REFERENCE, OURS) if "losses" in found.get(n, {})), None)
    if reference:
        right = found[reference]["losses"]
        for r in found.values():
            if "losses" in r:
                gap = contest.difference(r["losses"][:r["comparable"]], right)
                r |= {"loss_difference": gap, "compared_with": reference}
                if gap > workload.tolerance:
                    r["wrong"] = f"its losses differ from those of {reference} by {gap:.1e}"
    return found


def run_workload(group, workload, o, log):
    files.write(workload)
    files.write(workload.for_check())
    checked = {} if o.no_check else compare_losses(group, workload, o, log)
    if o.check:
        return checked
    group = [c for c in group if "failed" not in checked.get(c.name, {}) and "wrong" not in checked.get(c.name, {})]
    measured = contest.measure(group, workload, o.threads, o.how, log)
    return {name: {**checked.get(name, {}), **measured.get(name, {})} for name in {**checked, **measured}}


def line(workload, name, r):
    start = f"{workload.id} {name:14} "
    if "failed" in r:
        return start + "failed: " + r["failed"]
    if r.get("wrong"):
        return start + "left out: " + r["wrong"]
    parts = []
    if "ms" in r:
        parts.append(f"{r['ms']:10.4f} ms, spread {r['spread']:.2f}, {r['peak_bytes'] / 2**20:5.0f} MB, "
                     f"first step after {r['cold_seconds']:.2f} s, others {max(r['others']):.2f} CPUs")
    if "loss_difference" in r:
        parts.append(f"losses differ by {r['loss_difference']:.1e}")
    return start + "; ".join(parts)


def compare_builds(o, log, save):
    group, results = pairs.builds(o.before, o.after), {}
    run = {"machine": machine.describe(), "threads": o.threads, "how": dataclasses.asdict(o.how),
           "launches": o.launches, "workloads": results,
           "commits": {"before": machine.commit_of(o.before), "after": machine.commit_of(o.after)}}
    for wid in o.workloads:
        files.write(WORKLOADS[wid])
        files.write(WORKLOADS[wid].for_check())
        r = results[wid] = pairs.compare(group, WORKLOADS[wid], o.threads, o.how, o.launches, log)
        print(f"{wid} " + (r.get("failed") or f"after / before {r['ratio']:.3f} ({r['low']:.3f} to {r['high']:.3f}), "
              f"least times {r['ratio_of_least']:.3f}, same losses: {r['same_losses']}"), flush=True)
        save(run)
    return run


def compare_peers(o, log, save):
    group, left_out = contest.contenders(o.peers)
    for name, why in left_out.items():
        print(f"peer {name}: left out, {why}", flush=True)
    if not group:
        raise SystemExit("no peer can run here")
    run = {"machine": machine.describe(), "threads": o.threads, "how": dataclasses.asdict(o.how),
           "left_out": left_out, "workloads": {}}
    for wid in o.workloads:
        results = run["workloads"][wid] = run_workload(group, WORKLOADS[wid], o, log)
        for name, r in results.items():
            print(line(WORKLOADS[wid], name, r), flush=True)
        save(run)
    return run


def main(argv=None):
    o = arguments(argv)
    out = Path(o.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{out}.log", "w") as log:
        run = (compare_builds if o.before else compare_peers)(
            o, log, lambda run: Path(f"{out}.json").write_text(json.dumps(run, indent=1)))
    text = report.markdown(run)
    Path(f"{out}.md").write_text(text)
    print("\n" + text)
    ours = [r if o.before else r.get(OURS, {}) for r in run["workloads"].values()]
    return int(any("failed" in r or r.get("wrong") for r in ours))


if __name__ == "__main__":
    sys.exit(main())
