"""The one interface of every peer. bench/worker.py runs one peer on one workload in a process of its own:

    reason = SomePeer.available()     # None, or why it cannot run here
    peer = SomePeer(threads)
    peer.prepare(workload)            # model, data, optimizer; nothing is trained yet
    loss = peer.step(n)               # n whole training steps on the fixed batch; or Timed(loss, seconds)

A peer's file imports its framework inside its methods: the runner reads the table of peers without any of them.
"""

import importlib.util
from typing import NamedTuple


class Timed(NamedTuple):
    """What `step` gives when a peer measures its own time."""

    loss: float
    seconds: float


class Peer:
    title = ""
    package = ""  # that must be importable
    environment = ""  # which environment of bench/setup.sh; none: the interpreter of the runner

    def __init__(self, threads):
        self.threads = threads

    @classmethod
    def available(cls):
        if importlib.util.find_spec(cls.package) is None:
            return f"{cls.package} is not installed ({cls.how_to_install()})"
        return None

    @classmethod
    def how_to_install(cls):
        return f"bench/setup.sh {cls.environment}"

    def version(self):
        import importlib.metadata

        return importlib.metadata.version(self.package)

    def origin(self):
        """The folder that the package was taken from."""
        return str(importlib.util.find_spec(self.package).origin) if self.package else ""

    def prepare(self, workload):
        raise NotImplementedError

    def step(self, n):
        raise NotImplementedError

    def losses(self, n):
        """Of the first n steps."""
        return [float(self.step(1)) for _ in range(n)]

    def comparable_losses(self, workload, n):
        """How many of the first n losses must be those of the other peers."""
        return n

    def peak_bytes(self):
        """Of the process that trains; not ru_maxrss, which starts with the size of the process that forked."""
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
