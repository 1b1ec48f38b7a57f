"""One rank of a contest: connects to the runner, says what it is, then makes as many steps as it is asked for.

    python worker.py SOCKET '{"engine": "onnxtrain", "workload": "W1", "rows": 64, "together": true, "id": "..."}'

Its rank is mpirun's (OMPI_COMM_WORLD_RANK) or that of "rank". together: with the other rank, by MPI or by gloo.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


class Onnxtrain:
    def __init__(self, asked, rank, ranks):
        import onnxtrain as ot
        from distributed.workloads import training, workload_of

        x, label = workload_of(asked["workload"], asked["rows"]).data()
        self.feeds = {"x": x, "label": label}
        self.trainer = ot.Trainer(training(asked["workload"]), threads=1,
                                  distributed="mpi" if asked["together"] else "off")

    def steps(self, n):
        for _ in range(n):
            result = self.trainer.step(self.feeds)
        return float(result.loss)

    def traffic(self):
        return list(self.trainer.traffic) if self.trainer.ranks > 1 else None


class Torch:
    """The eager peer of bench/, in DistributedDataParallel with gloo."""

    def __init__(self, asked, rank, ranks):
        import torch

        from distributed.workloads import workload_of
        from peers.torch_eager import TorchEager

        self.peer = TorchEager(1)
        self.peer.prepare(workload_of(asked["workload"], asked["rows"]))
        if asked["together"]:
            torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
            from workloads.torch_layers import cross_entropy

            network = torch.nn.parallel.DistributedDataParallel(self.peer.network)
            self.peer.loss = lambda x, labels: cross_entropy(network(x), labels)

    def steps(self, n):
        return self.peer.step(n)

    def traffic(self):
        return None


def main():
    asked = json.loads(sys.argv[2])
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", asked.get("rank", 0)))
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    runner = socket.socket(socket.AF_UNIX)
    runner.connect(sys.argv[1])
    lines = runner.makefile("rw")

    def say(**answer):
        lines.write(json.dumps(answer) + "\n")
        lines.flush()

    try:
        engine = {"onnxtrain": Onnxtrain, "torch": Torch}[asked["engine"]](asked, rank, ranks)
        engine.steps(3)
        say(id=asked["id"], rank=rank)
        for line in lines:
            n = json.loads(line)["steps"]
            sent, begin = engine.traffic(), time.perf_counter()
            loss = engine.steps(n)
            spent, now = time.perf_counter() - begin, engine.traffic()
            say(seconds=spent, loss=loss, sent=[b - a for a, b in zip(sent, now)] if sent else None)
    except Exception as e:  # the runner tells it
        say(failed=f"{type(e).__name__}: {e}")
        raise
    os._exit(0)  # nobody waits for the other rank here


if __name__ == "__main__":
    main()
