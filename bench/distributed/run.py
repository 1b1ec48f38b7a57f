"""Two ranks of one thread beside one process of one thread, onnxtrain beside PyTorch's DistributedDataParallel (gloo).

    python bench/distributed/run.py [--workloads W1,W4] [--rounds 5] [--seconds 1] [--rate 1gbit]

weak: each rank has the workload's batch; 100 % is the speed of two trainings of that batch that know nothing of each
other and run at the same time. strong: the ranks share the workload's batch; 100 % is half the time of two trainings,
at the same time, of the whole batch. All processes of a workload live through all rounds; one pair runs at a time, in
turn, and the rest sleep. Numbers are medians over the rounds. --rate: the ranks are hosts in network namespaces with
links of that speed (tests/hosts), and the bytes on the wire are counted.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests/hosts")]
from distributed.workloads import gradient_bytes  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

ENGINES = ("onnxtrain", "torch")
# name -> (rows of a rank for a batch of b, together)
KINDS = {"alone": (lambda b: b, False), "weak": (lambda b: b, True), "strong": (lambda b: b // 2, True)}


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Pair:
    """Two processes, each with a connection to this one."""

    def __init__(self, engine, workload, kind, hosts, folder):
        self.engine, self.workload, self.kind, self.hosts = engine, workload, kind, hosts
        rows, together = KINDS[kind]
        path = folder / f"{engine}-{kind}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(2)
        self.listener.settimeout(600)
        asked = {"engine": engine, "workload": workload, "rows": rows(WORKLOADS[workload].input_shape[0]),
                 "together": together, "id": path.name}
        words = [sys.executable, HERE / "worker.py", path]
        environment = dict(os.environ, OMP_NUM_THREADS="1", MASTER_PORT=str(free_port()), MASTER_ADDR="127.0.0.1",
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_btl_vader_single_copy_mechanism="none")
        self.log = open(folder / f"{path.name}.log", "wb")
        options = {"stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": self.log}
        if not together:
            self.processes = [subprocess.Popen([*map(str, words), json.dumps(asked | {"rank": k})], env=environment,
                                               **options) for k in range(2)]
        elif hosts is None:
            start = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
            self.processes = [subprocess.Popen([*start, *map(str, words), json.dumps(asked)], env=environment,
                                               **options)]
        else:
            environment |= {"MASTER_ADDR": "10.99.0.1", "GLOO_SOCKET_IFNAME": "net0", "ONNXTRAIN_HOSTS": hosts.prefix}
            words = ["env", *(f"{k}={environment[k]}" for k in ("MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME",
                                                                "OMP_NUM_THREADS")), *words]
            self.processes = [subprocess.Popen(hosts.mpirun(2, [*words, json.dumps(asked)]), env=environment,
                                               **options)]
        self.lines = []
        for _ in range(2):
            lines = self.listener.accept()[0].makefile("rw")
            self.lines.append(lines)
        for lines in self.lines:
            self._heard(lines)

    def _heard(self, lines):
        answer = json.loads(lines.readline() or '{"failed": "it ended"}')
        if "failed" in answer:
            raise RuntimeError(f"{self.engine} {self.workload} {self.kind}: {answer['failed']}; {self.log.name}")
        return answer

    def steps(self, n):
        """-> (seconds of a step: those of the slower rank, bytes and messages of a step that a rank sent, or None)"""
        before = self.hosts.sent(1)[0] if self.hosts else 0
        for lines in self.lines:
            lines.write(json.dumps({"steps": n}) + "\n")
            lines.flush()
        answers = [self._heard(lines) for lines in self.lines]
        wire = (self.hosts.sent(1)[0] - before) / n if self.hosts else None
        sent = answers[0]["sent"] and [v / n for v in answers[0]["sent"]]
        return max(a["seconds"] for a in answers) / n, sent, wire

    def close(self):
        for lines in self.lines:
            with contextlib.suppress(OSError):
                lines.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
        self.listener.close()
        self.log.close()


def contest(workload, engines, rounds, seconds, hosts, folder):
    """engine -> kind -> list of (seconds, sent, wire) by round"""
    pairs, found = [], {e: {k: [] for k in KINDS} for e in engines}
    try:
        for kind in KINDS:
            for engine in engines:
                pairs.append(Pair(engine, workload, kind, hosts, folder))
        many = {id(p): max(2, round(seconds / p.steps(2)[0])) for p in pairs}
        for _ in range(rounds):
            for p in pairs:
                found[p.engine][p.kind].append(p.steps(many[id(p)]))
    finally:
        for p in pairs:
            p.close()
    return found


def row(workload, engine, found):
    """Efficiencies are medians of ratios within a round."""
    def middle(kind):
        return statistics.median(s for s, _, _ in found[kind])

    weak = statistics.median(a[0] / w[0] for a, w in zip(found["alone"], found["weak"]))
    strong = statistics.median(a[0] / 2 / s[0] for a, s in zip(found["alone"], found["strong"]))
    _, sent, wire = found["weak"][-1]
    told = f"{sent[0] / 1e6:.3f} MB, {sent[1]:g}" if sent else "-"
    return (f"| {workload} | {engine} | {middle('alone') * 1e3:.1f} | {middle('weak') * 1e3:.1f} | "
            f"{middle('strong') * 1e3:.1f} | {weak:.0%} | {strong:.0%} | {told} | "
            f"{gradient_bytes(workload)[1] / 1e6:.3f} MB | {f'{wire / 1e6:.3f} MB' if wire else '-'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default="W1,W4,W6,W9")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rate", help="links between two hosts, for example 1gbit; without it: one machine")
    a = parser.parse_args()
    if shutil.which("mpirun") is None:
        raise SystemExit("mpirun is not installed")
    print("| | engine | two alone, ms | weak, ms | strong, ms | weak | strong | a rank sends: bytes, messages | "
          "theory | wire |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    hosts = None
    with contextlib.ExitStack() as stack:
        if a.rate:
            import hosts as h

            hosts = stack.enter_context(h.Hosts(2, rate=a.rate))
        for workload in a.workloads.split(","):
            engines = a.engines.split(",")
            with tempfile.TemporaryDirectory() as folder:
                found = contest(workload, engines, a.rounds, a.seconds, hosts, Path(folder))
            for engine in engines:
                print(row(workload, engine, found[engine]), flush=True)


if __name__ == "__main__":
    main()
