"""The table of docs/compatibility.md: ONNX files of PyPI packages, each in a process of its own with limits.

Usage: python tools/wild/report.py [-j N] [--only TEXT] [--over MB] [--seconds N] [--minutes N] [--results NAME]
                                   [--fresh]
       python tools/wild/report.py --again TEXT        files again whose results hold the text, like WRONG
       python tools/wild/report.py --made       the files of make_files.py instead
       make figures-wild
Smallest files first. Results are kept per file beside the files (results-NAME.json; NAME is the last commit that
changed the product or this tool), so that a pass can be made in parts: `--minutes 9`, again and again. Exit code 1 when
anything is wrong, crashed or refused without words, or when files are left.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from collect import cache_folder, collect  # noqa: E402

SECONDS = 60
MEMORY = 10 << 30
STAGES = ("inference", "gradients", "training", "export")
GOOD = {"same", "right", "trained", "as trained"}
SOURCES = ("src", "include", "python/src", "python/onnxtrain", "tools/wild")


def limits(seconds):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def attempt(path, seconds):
    """Stages of one file; the limit is processor time, so that a busy machine changes nothing."""
    command = [sys.executable, str(Path(__file__).parent / "try_file.py"), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * seconds,
                              preexec_fn=lambda: limits(seconds))
        over, said = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL), done.stdout
    except subprocess.TimeoutExpired as e:
        over, said = True, (e.stdout or b"").decode()
    lines = said.strip().splitlines()
    if over:
        return {**(json.loads(lines[-1]) if lines else {}), "limit": ["not tried", f"more than {seconds} s"]}
    if done.returncode != 0 or not lines:
        return {**(json.loads(lines[-1]) if lines else {}),
                "crash": ["CRASHED", f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"]}
    return json.loads(lines[-1])


def commit():
    def git(*words):
        top = Path(__file__).parents[2]
        return subprocess.run(["git", *words], capture_output=True, text=True, cwd=top).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", *SOURCES)
    return git("log", "-1", "--format=%h", "--", *SOURCES) + ("+" if changed else "")


def table(results):
    counts = {s: collections.Counter() for s in STAGES}
    for stages in results.values():
        for s in STAGES:
            if s in stages:
                counts[s][stages[s][0]] += 1
    outcomes = [o for s in STAGES for o in counts[s]]
    order = sorted(set(outcomes), key=lambda o: (o not in GOOD, o))
    print("| | " + " | ".join(order) + " |\n|---|" + "---|" * len(order))
    for s in STAGES:
        print(f"| {s} | " + " | ".join(str(counts[s][o] or "") for o in order) + " |")
    print(f"\n{len(results)} files; over the limits of time or of {MEMORY >> 30} GiB: "
          f"{sum('limit' in r for r in results.values())}; crashed: {sum('crash' in r for r in results.values())}; "
          f"{sum(r.get('seconds', {}).get(s, 0) for r in results.values() for s in STAGES):.0f} s of processor time")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=1, help="files at the same time")
    parser.add_argument("--only", default="", help="files whose package, path or key holds this text")
    parser.add_argument("--over", type=float, default=0, help="files larger than so many megabytes")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="limit of one file, of processor time")
    parser.add_argument("--minutes", type=float, default=1e9, help="begins no file after this time")
    parser.add_argument("--made", action="store_true", help="the files of make_files.py")
    parser.add_argument("--results", default="", help="name of the results, instead of the commit")
    parser.add_argument("--again", default="", help="forget the results that hold this text, like WRONG")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of this name")
    options = parser.parse_args()
    found = json.loads((cache_folder() / "made.json").read_text()) if options.made else collect()
    index = {k: v for k, v in found.items() if options.only in f"{v['package']}/{v['path']} {k}" and
             v["bytes"] > 1e6 * options.over}
    kept = cache_folder() / f"results-{'made-' if options.made else ''}{options.results or commit()}.json"
    results = json.loads(kept.read_text()) if kept.exists() and not options.fresh else {}
    if options.again:
        results = {k: r for k, r in results.items() if k not in index or options.again not in json.dumps(r)}
    todo = sorted((k for k in index if k not in results), key=lambda k: index[k]["bytes"])
    end, lock = time.monotonic() + 60 * options.minutes, threading.Lock()

    def one(key):
        if time.monotonic() >= end:
            return
        found = attempt(cache_folder() / "files" / key / "model.onnx", options.seconds)
        with lock:
            results[key] = found
            kept.with_suffix(".new").write_text(json.dumps(results))
            os.replace(kept.with_suffix(".new"), kept)

    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        list(pool.map(one, todo))
    left = [k for k in index if k not in results]
    results = {k: results[k] for k in index if k in results}
    bad = 0
    for key, stages in sorted(results.items(), key=lambda kv: index[kv[0]]["package"]):
        for stage, (outcome, words) in ((s, a) for s, a in stages.items() if s != "seconds"):
            bad += outcome in ("WRONG", "CRASHED") or (outcome == "refused" and not words.startswith("error[OT"))
            if outcome not in GOOD:
                print(f"{outcome:10s} {stage:10s} {index[key]['package']} {index[key]['path']} [{key}]: {words}")
    print()
    table(results)
    if left:
        print(f"{len(left)} files are left")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
