"""One peer on one workload in a process of its own; bench/run.py starts it and asks in lines of JSON.

    worker.py '{"peer": "torch", "workload": "W1", "threads": 2, "clock": "wall", "started": MONOTONIC_SECONDS}'

It first says {"ready": ...}, {"left_out": reason} or {"failed": message}. Then
    {"losses": 6}      the first six losses, of the variant with a real learning rate and without dropout
    {"warm": 1.0}      the first step, then steps for a second
    {"seconds": 0.5}   one round: milliseconds per step, loss, peak memory
"""

import json
import os
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever a framework prints goes to the log


def say(**answer):
    answers.write(json.dumps(answer) + "\n")


class Worker:
    def __init__(self, peer, workload, clock, started):
        self.peer, self.workload, self.started = peer, workload, started
        self.clock = {"wall": time.perf_counter, "cpu": time.process_time}[clock]
        self.estimate = 0.0

    def timed(self, n):
        """-> (loss, seconds) of n steps"""
        from peers.base import Timed

        begin = self.clock()
        found = self.peer.step(n)
        spent = self.clock() - begin
        return found if isinstance(found, Timed) else Timed(float(found), spent)

    def losses(self, n):
        check = self.workload.for_check()
        self.peer.prepare(check)
        return {"losses": self.peer.losses(n), "comparable": self.peer.comparable_losses(check, n), **self.version()}

    def warm(self, seconds):
        self.peer.prepare(self.workload)
        prepared = time.monotonic()
        loss, _ = self.timed(1)
        now = time.monotonic()
        found = {"cold_seconds": now - self.started, "first_step_seconds": now - prepared, "first_loss": loss}
        steps = 0
        while steps < 3 or time.monotonic() - now < seconds:
            self.timed(1)
            steps += 1
        self.estimate = self.timed(2).seconds / 2
        return {**found, **self.version()}

    def version(self):
        return {"version": self.peer.version(), "origin": self.peer.origin()}

    def seconds(self, seconds):
        n = max(1, round(seconds / self.estimate))
        loss, spent = self.timed(n)
        self.estimate = spent / n
        return {"ms": self.estimate * 1e3, "steps": n, "loss": loss, "peak_bytes": self.peer.peak_bytes()}


def main():
    asked = json.loads(sys.argv[1])
    if asked["threads"] == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        from peers import PEERS
        from workloads import WORKLOADS

        kind = PEERS[asked["peer"]]
        reason = kind.available()
        if reason:
            say(left_out=reason)
            return
        worker = Worker(kind(asked["threads"]), WORKLOADS[asked["workload"]], asked["clock"], asked["started"])
        say(ready=True)
        for line in sys.stdin:
            (question, argument), = json.loads(line).items()
            say(**getattr(worker, question)(argument))
    except Exception as e:  # one peer's failure is a line of the table, not the end of the run
        traceback.print_exc()
        say(failed=f"{type(e).__name__}: {' '.join(str(e).split())[:300]}")


if __name__ == "__main__":
    main()
    answers.flush()
    os._exit(0)  # frameworks take long to end
