"""Every gradient rule against finite differences, float64 and PyTorch; prints the counts of operators and cases,
and every failure. docs/gradients.md explains the sections.

    .venv/bin/python tests/gradients/run.py -j 2
    .venv/bin/python tests/gradients/run.py --section extra --filter 'LSTM' -v
"""

import argparse
import collections
import multiprocessing
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import sections  # noqa: E402
import table  # noqa: E402
from finite import Result  # noqa: E402

LIST = Path(__file__).with_name("exceptions.txt")
GOOD = ("ok", "nothing", "refused")


def exceptions():
    """[(section, pattern, reason)]"""
    out = []
    for line in LIST.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            section, pattern, reason = (p.strip() for p in line.split(" | "))
            out.append((section, re.compile(pattern), reason))
    return out


def reason_for(section, label):
    for s, pattern, reason in exceptions():
        if s in ("*", section) and pattern.fullmatch(label):
            return reason
    return ""


def run_one(job):
    section, label, ops, f = job
    start = time.time()
    try:
        r = f()
    except Exception as e:  # noqa: BLE001 - whatever goes wrong is the result
        r = Result("error", f"{type(e).__name__}: {e}")
    return section, label, ops, r, time.time() - start


_JOBS = []


def _run_index(k):
    return run_one(_JOBS[k])


def jobs(names, pattern="", take=1):
    """Every `take`-th case of the sections."""
    out = []
    for name in names:
        found = [(name, label, ops, f) for label, ops, f in sections.SECTIONS[name]() if re.search(pattern, label)]
        out += found[:: take]
    return out


def run(todo, processes=1):
    """Yields what run_one returns, in order."""
    global _JOBS
    if processes == 1:
        yield from map(run_one, todo)
        return
    _JOBS = todo
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from pool.imap(_run_index, range(len(todo)), 4)


def failed(section, label, r):
    """"" or why this is a failure."""
    if r.status in GOOD or reason_for(section, label):
        return ""
    return f"{r.status} {r.dtype} {r.probes}+{r.skipped}: {r.text[:400]}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--section", action="append", choices=list(sections.SECTIONS))
    p.add_argument("--filter", default="", help="regular expression on the labels")
    p.add_argument("--take", type=int, default=1, help="every so many-th case only")
    p.add_argument("-j", type=int, default=1, help="processes")
    p.add_argument("-v", action="store_true", help="every case")
    a = p.parse_args()
    start = time.time()
    count, probes, wide, bad, listed = collections.defaultdict(collections.Counter), collections.Counter(), 0, 0, 0
    own = 0
    proven = collections.defaultdict(set)
    for section, label, ops, r, seconds in run(jobs(a.section or sections.SECTIONS, a.filter, a.take), a.j):
        count[section][r.status] += 1
        probes[section] += r.probes
        wide += r.dtype == "float64"
        own += r.text.startswith("own session")
        why = failed(section, label, r)
        bad += bool(why)
        listed += r.status not in GOOD and not why
        if r.status == "ok":
            for op in ops:
                proven[op].add(section)
        if why or a.v:
            print(f"{'FAILED' if why else r.status} {section} {label} {seconds:.1f} s: {why or r.text}", flush=True)
    if own:
        print(f"lowered: {own} cases in our own session instead of ONNX Runtime (own_session.txt says why)")
    for section, c in count.items():
        print(f"{section:9} {c['ok']:5} agree ({probes[section]} probes), {c['nothing']} without anything to compare, "
              f"{c['refused']} refused with a reason, {sum(c.values()) - sum(c[g] for g in GOOD)} do not agree")
    have = {r.name for r in table.rows() if r.kind in ("rule", "standard form", "function body")}
    missing = [r.name for r in table.rows() if r.kind == "missing"]
    print(f"operators: {len(have)} have a gradient, {len(have & set(proven))} of them proven here; {len(missing)} "
          f"missing {missing}")
    print("not proven:", " ".join(sorted(have - set(proven))) or "none")
    print(f"{sum(sum(c.values()) for c in count.values())} cases, {wide} by float64 differences, {listed} "
          f"listed exceptions, "
          f"{bad} FAILED, {time.time() - start:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
