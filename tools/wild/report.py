"""The table of docs/compatibility.md: ONNX files of PyPI packages, each in a process of its own with limits.

Usage: python tools/wild/report.py [-j N] [--only TEXT] [--seconds N] [--fresh]
       make figures-wild
Results are kept beside the files (results-COMMIT.json), so that a run that was stopped goes on. Exit code 1 when
anything is wrong, crashed or refused without words.
"""

import argparse
import collections
import concurrent.futures
import json
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from collect import cache_folder, collect  # noqa: E402

SECONDS = 240
MEMORY = 10 << 30
STAGES = ("inference", "gradients", "training", "export")
GOOD = {"same", "right", "trained", "as trained"}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempt(path, seconds):
    command = [sys.executable, str(Path(__file__).parent / "try_file.py"), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, preexec_fn=limits)
    except subprocess.TimeoutExpired as e:
        lines = (e.stdout or b"").decode().strip().splitlines()
        return {**(json.loads(lines[-1]) if lines else {}), "limit": ["not tried", f"more than {seconds} s"]}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"crash": ["CRASHED", f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"]}
    return json.loads(lines[-1])


def commit():
    def git(*words):
        top = Path(__file__).parents[2]
        return subprocess.run(["git", *words], capture_output=True, text=True, cwd=top).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


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
          f"{sum('limit' in r for r in results.values())}; crashed: {sum('crash' in r for r in results.values())}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=1, help="files at the same time")
    parser.add_argument("--only", default="", help="files whose package or path holds this text")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="limit of one file")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of this commit")
    options = parser.parse_args()
    index = {k: v for k, v in collect().items() if options.only in f"{v['package']}/{v['path']}"}
    kept = cache_folder() / f"results-{commit()}.json"
    results = json.loads(kept.read_text()) if kept.exists() and not options.fresh else {}
    todo = sorted((k for k in index if k not in results), key=lambda k: index[k]["bytes"])
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        jobs = {pool.submit(attempt, cache_folder() / "files" / k / "model.onnx", options.seconds): k for k in todo}
        for job in concurrent.futures.as_completed(jobs):
            results[jobs[job]] = job.result()
            kept.write_text(json.dumps(results))
    results = {k: results[k] for k in index}
    bad = 0
    for key, stages in sorted(results.items(), key=lambda kv: index[kv[0]]["package"]):
        for stage, (outcome, words) in stages.items():
            bad += outcome in ("WRONG", "CRASHED") or (outcome == "refused" and not words.startswith("OT"))
            if outcome not in GOOD:
                print(f"{outcome:10s} {stage:10s} {index[key]['package']} {index[key]['path']} [{key}]: {words}")
    print()
    table(results)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
