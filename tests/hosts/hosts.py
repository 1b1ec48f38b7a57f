"""Hosts on one machine: network namespaces with names and addresses of their own, for mpirun over TCP.

    with Hosts(4, rate="1gbit") as hosts:                 # links of 1 Gbit/s (tbf)
        subprocess.run(hosts.mpirun(4, ["onnxtrain", "train", ...]), env=hosts.environment())
    Hosts(4, rate="1gbit", delay_us=500)                  # latency too, by a relay (relay.c): no netem needed

`obstacle()` says in one line why this machine does not allow it, or gives None. Needs root, ip and tc.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
UNITS = {"gbit": 10**9, "mbit": 10**6}


def bits(rate):
    """'1gbit' -> 1000000000"""
    return int(float(rate[:-4]) * UNITS[rate[-4:]])


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


def obstacle():
    """One line that says what is missing here, or None."""
    if os.geteuid() != 0:
        return "hosts in network namespaces need root"
    for tool in ("ip", "tc", "unshare", "mpirun"):
        if shutil.which(tool) is None:
            return f"hosts in network namespaces need {tool}"
    try:
        with Hosts(2, rate="1gbit") as hosts:
            done = subprocess.run(hosts.on(1, ["hostname"]), capture_output=True, text=True, timeout=30)
            return None if done.stdout.strip() == "node2" else "a namespace with a host name cannot be made"
    except (subprocess.CalledProcessError, OSError) as e:
        said = (getattr(e, "stderr", "") or str(e)).strip().splitlines()
        return f"network namespaces cannot be made here: {said[-1] if said else e}"


class Hosts:
    """node1, node2, ...: address 10.99.0.k on the device net0."""

    def __init__(self, count=4, rate=None, delay_us=0):
        self.names = [f"node{k + 1}" for k in range(count)]
        self.prefix = f"ot{os.getpid()}x{id(self) % 9973}"
        self.rate, self.delay_us, self.relay = rate, delay_us, None
        self.folder = None

    def namespace(self, k):
        return f"{self.prefix}-{self.names[k]}"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        known = "".join(f"10.99.0.{k + 1} {name}\n" for k, name in enumerate(self.names))
        for k in range(len(self.names)):
            ip("netns", "add", self.namespace(k))
            etc = pathlib.Path("/etc/netns") / self.namespace(k)  # ip netns exec puts it over /etc
            etc.mkdir(parents=True)
            (etc / "hosts").write_text(f"127.0.0.1 localhost\n{known}")
            ip("-n", self.namespace(k), "link", "set", "lo", "up")
        (self._relayed if self.delay_us else self._bridged)()
        for k in range(len(self.names)):
            ip("-n", self.namespace(k), "addr", "add", f"10.99.0.{k + 1}/24", "dev", "net0")
            ip("-n", self.namespace(k), "link", "set", "net0", "up")

    def _bridged(self):
        middle = f"{self.prefix}-switch"
        ip("netns", "add", middle)
        ip("-n", middle, "link", "add", "br0", "type", "bridge")
        ip("-n", middle, "link", "set", "br0", "up")
        for k in range(len(self.names)):
            ip("-n", self.namespace(k), "link", "add", "net0", "type", "veth", "peer", "name", f"port{k}", "netns",
               middle)
            ip("-n", middle, "link", "set", f"port{k}", "master", "br0", "up")
            if self.rate:
                burst = max(bits(self.rate) // 8 // 250, 131072)  # what passes between two ticks
                subprocess.run(["ip", "netns", "exec", self.namespace(k), "tc", "qdisc", "add", "dev", "net0", "root",
                                "tbf", "rate", self.rate, "burst", str(burst), "latency", "50ms"], check=True,
                               capture_output=True, text=True)

    def _relayed(self):
        program = self.folder / "relay"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "relay.c"], check=True, capture_output=True, text=True)
        words = [program, str(self.delay_us), str(bits(self.rate) if self.rate else 0)]
        self.relay = subprocess.Popen([*words, *map(self.namespace, range(len(self.names)))], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise OSError("the relay did not start")
        for k in range(len(self.names)):
            ip("-n", self.namespace(k), "link", "set", "net0", "mtu", "65000")

    def __exit__(self, *_):
        if self.relay is not None:
            self.relay.stdin.close()
            self.relay.wait()
        for k in range(len(self.names)):  # what hangs there: daemons of mpirun whose host was cut off
            for pid in self.processes(k):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for name in [*map(self.namespace, range(len(self.names))), f"{self.prefix}-switch"]:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
            shutil.rmtree(pathlib.Path("/etc/netns") / name, ignore_errors=True)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def on(self, k, words):
        """The command that runs `words` on host k."""
        return ["ip", "netns", "exec", self.namespace(k), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"',
                self.names[k], *map(str, words)]

    def mpirun(self, ranks, words, hosts=None):
        """mpirun on the first host: ranks spread over `hosts` of them, over TCP, started by agent.sh."""
        used = self.names[:hosts or min(ranks, len(self.names))]
        slots = -(-ranks // len(used))
        return self.on(0, ["mpirun", "-n", ranks, "--host", ",".join(f"{name}:{slots}" for name in used), "--mca",
                           "plm_rsh_agent", HERE / "agent.sh", "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "btl",
                           "self,tcp", "--mca", "btl_tcp_if_include", "net0", "--mca", "oob_tcp_if_include", "net0",
                           "--bind-to", "none", *words])

    def processes(self, k):
        """pid -> name of the program, of everything that runs on host k"""
        listed = subprocess.run(["ip", "netns", "pids", self.namespace(k)], capture_output=True, text=True).stdout
        found = {}
        for pid in map(int, listed.split()):
            with contextlib.suppress(OSError):
                found[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        return found

    def environment(self):
        return dict(os.environ, ONNXTRAIN_HOSTS=self.prefix, OMPI_ALLOW_RUN_AS_ROOT="1",
                    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")

    def sent(self, k):
        """(bytes, packets) that host k has put on its link, headers of IP and TCP included."""
        words = ["ip", "netns", "exec", self.namespace(k), "cat", "/sys/class/net/net0/statistics/tx_bytes",
                 "/sys/class/net/net0/statistics/tx_packets"]
        return tuple(map(int, subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()))

    def unplug(self, k):
        """Host k is not reachable any more."""
        ip("-n", self.namespace(k), "link", "set", "net0", "down")
