"""Federated training with real processes of Flower on this machine: one SuperLink, one SuperNode for each client.

    python run.py                      # SuperLink and SuperNodes, every client in processes of its own
    python run.py --simulation         # the same app in Flower's simulation (needs flwr[simulation])

On several machines the same commands are typed by hand: README.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

from spirals.task import spirals

import onnxtrain as ot

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.executable).parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ended(process):
    """Ends a process that was started here, and those that it started (its session)."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            return


class Federation:
    """A SuperLink and SuperNodes; everything that they write lies in `folder`."""

    def __init__(self, folder, app=HERE, simulation=0):
        self.folder, self.app, self.nodes = pathlib.Path(folder), pathlib.Path(app), {}
        package = str(pathlib.Path(ot.__file__).resolve().parents[1])  # the apps' processes find the same onnxtrain
        self.environment = dict(os.environ, PYTHONPATH=package, FLWR_TELEMETRY_ENABLED="0",
                                FLWR_DISABLE_UPDATE_CHECK="1", FLWR_HOME=str(self.folder / "flwr"),
                                RAY_USAGE_STATS_ENABLED="0",
                                PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")
        self.port = free_port()
        home = self.folder / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        options = f"options.num-supernodes = {simulation}\n" if simulation else ""
        (home / "config.toml").write_text(f'[superlink]\ndefault = "here"\n\n[superlink.here]\n'
                                          f'address = "127.0.0.1:{self.port}"\ninsecure = true\n{options}')
        self.link = self._start("superlink", "flower-superlink", "--insecure", "--port", self.port,
                                "--disable-runtime-dependency-installation", *(["--simulation"] if simulation else []))
        self._reached(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.nodes.values(), self.link]:
            ended(process)

    def _start(self, name, *words):
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen([BIN / words[0], *map(str, words[1:])], stdout=log, stderr=log, cwd=self.folder,
                                    env=self.environment, start_new_session=True)

    def _reached(self, port, seconds=120):
        for _ in range(seconds * 10):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.1)
        raise SystemExit(f"the SuperLink does not listen: {self.folder / 'superlink.log'}")

    def add_node(self, k):
        """The SuperNode of client k."""
        self.nodes[k] = self._start(f"node{k}", "flower-supernode", "--insecure", "--superlink",
                                    f"127.0.0.1:{self.port}", "--port", free_port(), "--node-config",
                                    f"partition-id={k}")

    def submit(self, **config):
        """Starts a run of the app; its number."""
        text = " ".join(f"{k.replace('_', '-')}={json.dumps(v)}" for k, v in config.items())
        done = self._flwr("run", self.app, "here", "--run-config", text, "--format", "json")
        return str(done["run-id"])

    def _flwr(self, *words):
        done = subprocess.run([BIN / "flwr", *map(str, words)], env=self.environment, cwd=self.folder, text=True,
                              capture_output=True, timeout=300)
        start = done.stdout.find("{")
        if done.returncode or start < 0:
            raise SystemExit(f"flwr {words[0]} failed:\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout[start:])

    def status(self, run):
        """For example 'running', 'finished:completed', 'finished:failed'."""
        runs = self._flwr("list", "here", "--run-id", run, "--format", "json")["runs"]
        return runs[0]["status"]

    def wait(self, run, seconds=1800):
        for _ in range(seconds // 2):
            if (status := self.status(run)).startswith("finished"):
                return status
            time.sleep(2)
        return "not finished"

    def log(self, run):
        """What the ServerApp has said."""
        words = [BIN / "flwr", "log", run, "here", "--show"]
        return subprocess.run(words, env=self.environment, cwd=self.folder, text=True, capture_output=True).stdout


def accuracy(path):
    """Of an exported model, on rows that no client has."""
    x, y = spirals(1000, seed=1)
    return float((ot.load(path).predict(x).argmax(1) == y).mean())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--travel", choices=("all", "trainable"), default="all")
    parser.add_argument("--simulation", action="store_true")
    parser.add_argument("--export", type=pathlib.Path, default=pathlib.Path("averaged.onnx"))
    a = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Federation(folder, simulation=a.simulation and a.clients) as flower:
        for k in range(0 if a.simulation else a.clients):
            flower.add_node(k)
        run = flower.submit(num_server_rounds=a.rounds, export=str(a.export.resolve()), travel=a.travel,
                            clients=a.clients, file=str(HERE / "model.train.onnx"))
        print(f"run {run}: {a.clients} clients, {a.rounds} rounds", flush=True)
        status = flower.wait(run)
        if status != "finished:completed":
            raise SystemExit(f"{flower.log(run)[-4000:]}\nthe run is {status}")
    print(f"{a.export}: test accuracy of the averaged model {accuracy(a.export):.1%}")
    return accuracy(a.export)


if __name__ == "__main__":
    main()
