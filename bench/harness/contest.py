"""Several engines on one workload: processes of their own, all alive, rounds in turn."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness.machine import ROOT, others_during
from harness.process import LineProcess

WORKER = ROOT / "bench/worker.py"
ENVIRONMENTS = Path(os.environ.get("ONNXTRAIN_BENCH_VENV", Path(
    os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "onnxtrain/bench-venv"))


@dataclasses.dataclass(frozen=True)
class Contender:
    """A peer and where it runs."""

    name: str
    peer: str
    python: str = sys.executable
    env: tuple = ()  # (name, value) pairs

    def start(self, workload, threads, log, clock="wall"):
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TF_CPP_MIN_LOG_LEVEL="3", **dict(self.env))
        env |= {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        asked = {"peer": self.peer, "workload": workload.id, "threads": threads, "clock": clock,
                 "started": time.monotonic()}
        return LineProcess([self.python, WORKER, json.dumps(asked)], env, log)


def interpreter_for(peer):
    """The environment that bench/setup.sh made, or this interpreter."""
    python = ENVIRONMENTS / peer.environment / "bin/python"
    return str(python) if peer.environment and python.exists() else sys.executable


def contenders(names):
    """-> (those that can run, {name: why not}); asked of each interpreter once."""
    from peers import PEERS

    found, left_out = [], {}
    for name in names:
        c = Contender(name, name, interpreter_for(PEERS[name]))
        code = f"import sys; sys.path.insert(0, {str(WORKER.parent)!r}); from peers import PEERS; " \
               f"print(PEERS[{name!r}].available() or '')"
        asked = subprocess.run([c.python, "-c", code], capture_output=True, text=True)
        reason = asked.stdout.strip() if asked.returncode == 0 else asked.stderr.strip().splitlines()[-1]
        if reason:
            left_out[name] = reason
        else:
            found.append(c)
    return found, left_out


def refusal(answer):
    """Why an answer of a worker is none."""
    if answer is None:
        return "its process ended early, see the log"
    return answer.get("left_out") or answer.get("failed")


def first_losses(contender, workload, threads, steps, log):
    """-> the worker's answer: losses, how many are comparable, version; or {"failed": why}"""
    process = contender.start(workload, threads, log)
    try:
        answer = process.read()
        if not refusal(answer):
            answer = process.ask({"losses": steps})
        why = refusal(answer)
        return {"failed": why} if why else answer
    finally:
        process.close()


def difference(losses, reference):
    """The largest relative difference, over as many as both have; not a number counts as infinite."""
    gaps = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(losses, reference, strict=False)]
    return max((g if g == g else float("inf") for g in gaps), default=0.0)


@dataclasses.dataclass
class Rounds:
    """How to measure."""

    rounds: int = 3
    seconds: float = 0.5
    warm: float = 1.0
    quiet: float = 0.08  # most CPUs that others may use during a round
    retries: int = 3  # of a round that was disturbed
    clock: str = "wall"  # or cpu: of the process, for one thread on a busy machine


def measure(group, workload, threads, how, log):
    """-> name -> what it gave: ms of every round, version, cold start, peak; or {"failed": why}"""
    found, alive = {}, {}
    try:
        for c in group:
            process = c.start(workload, threads, log, how.clock)
            answer = process.read()
            if not refusal(answer):
                answer = process.ask({"warm": how.warm})
            why = refusal(answer)
            if why:
                process.close()
                found[c.name] = {"failed": why}
            else:
                alive[c.name] = process
                found[c.name] = {**answer, "ms_rounds": [], "others": [], "redone": 0}
        for k in range(how.rounds):
            for name in list(alive) if k % 2 == 0 else list(alive)[::-1]:
                time.sleep(0.15)  # the threads of the one before fall asleep
                _round(alive, name, found[name], how)
    finally:
        for process in alive.values():
            process.close()
    for result in found.values():
        if result.get("ms_rounds"):
            summarise(result)
    return found


def _round(alive, name, result, how):
    process = alive[name]
    for attempt in range(how.retries + 1):
        answer, others = others_during(lambda: process.ask({"seconds": how.seconds}), process.cpu_seconds)
        why = refusal(answer)
        if why:
            result["failed"] = why
            alive.pop(name).close()
            return
        if others < how.quiet or attempt == how.retries:
            break
        result["redone"] += 1
        time.sleep(1)
    result["ms_rounds"].append(answer["ms"])
    result["others"].append(round(others, 3))
    result |= {"loss": answer["loss"], "peak_bytes": answer["peak_bytes"], "steps": answer["steps"]}


def summarise(result):
    ms = result["ms_rounds"]
    result["ms"], result["ms_least"] = statistics.median(ms), min(ms)
    result["spread"] = (max(ms) - min(ms)) / result["ms"]
