"""onnxtrain by its command line: `onnxtrain bench` for the time, `onnxtrain train` for the losses."""

import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

from peers.base import Peer, Timed
from workloads import files

BINARY = Path(os.environ.get("ONNXTRAIN_BINARY", Path(__file__).resolve().parents[2] / "build/release/onnxtrain"))


class OnnxtrainCli(Peer):
    title = "onnxtrain, command line"

    @classmethod
    def available(cls):
        return None if BINARY.exists() else f"there is no {BINARY} (make build)"

    def version(self):
        return self._run("--version").split()[-1]

    def prepare(self, workload):
        self.folder, self.workload = files.write(workload), workload
        o = workload.optimizer
        self.recipe = ["--loss", "cross_entropy", "--label", "label", "--optimizer", o.kind, "--lr", o.lr,
                       "--weight-decay", o.weight_decay]
        if o.momentum:
            self.recipe += ["--momentum", o.momentum]
        self.seconds_per_step = self.peak = 0

    def step(self, n):
        """`bench` takes its own median and reports no loss."""
        out = self._run("bench", self.folder / "model.onnx", "--inputs", self.folder / "batch.npz", "--mode", "train",
                        *self.recipe, "--seconds", max(0.05, n * self.seconds_per_step), "--json")
        found = json.loads(out)["training"]
        self.peak = max(self.peak, found["peak_rss_bytes"])
        self.seconds_per_step = found["ms_per_step"] / 1e3
        return Timed(math.nan, n * self.seconds_per_step)

    def losses(self, n):
        """One epoch of one batch per loss."""
        with tempfile.TemporaryDirectory() as folder:
            self._run("train", self.folder / "model.onnx", "--data", self.folder / "batch.npz", "--valid", 0,
                      "--no-shuffle", "--batch", self.workload.input_shape[0], "--epochs", n, *self.recipe,
                      "--scale", "none", "--out", f"{folder}/run", "--progress", "none")
            lines = (Path(folder) / "run/metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["train_loss"] for line in lines]

    def peak_bytes(self):
        return self.peak

    def _run(self, *arguments):
        env = dict(os.environ, ONNXTRAIN_THREADS=str(self.threads))
        done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, env=env)
        if done.returncode:
            raise RuntimeError(f"{BINARY.name} {arguments[0]}: {done.stderr.strip()[-400:]}")
        return done.stdout
