"""Single nodes of a training step beside PyTorch's kernels: what bench/conv.py and bench/linear.py share."""

import argparse
import json
import math
import subprocess
from pathlib import Path

from harness.contest import interpreter_for
from harness.machine import ROOT
from harness.process import LineProcess

PASSES = ("forward", "input", "weights")
PROGRAM = Path(__file__).resolve().parent / "torch_kernels.py"


def arguments(description, seconds):
    from peers.torch_eager import TorchEager

    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--torch", default=interpreter_for(TorchEager), help="a Python that has torch")
    p.add_argument("--binary", default=str(ROOT / "build/release/onnxtrain"))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=seconds, help="per measurement")
    return p


def trace(o, model, loss, batch, folder):
    """Trains `model` for a moment; -> the events of its steps"""
    command = [o.binary, "bench", model, "--mode", "train", "--loss", loss, "--optimizer", "sgd", "--batch", batch,
               "--threads", o.threads, "--seconds", o.seconds, "--trace", folder / "t"]
    subprocess.run([str(a) for a in command], check=True, stdout=subprocess.DEVNULL)
    events = json.loads((folder / "t.training.json").read_text())["traceEvents"]
    return [e for e in events if e["cat"] != "prepare"]  # stages of making the plan are no kernels


class TorchKernels(LineProcess):
    """Least times of PyTorch's three kernels, in seconds."""

    def __init__(self, o):
        super().__init__([o.torch, PROGRAM, o.threads])

    def times(self, **case):
        return self.must_answer(case)


def least_of(rounds, *measurements):
    """Interleaved rounds; each measurement gives {pass: value}. -> the least per measurement and pass"""
    best = [{} for _ in measurements]
    for _ in range(rounds):
        for found, measurement in zip(best, measurements, strict=True):
            for name, value in measurement().items():
                found[name] = min(value, found.get(name, (math.inf, "") if isinstance(value, tuple) else math.inf))
    return best
