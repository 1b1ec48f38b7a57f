#!/usr/bin/env python3
"""Resume = uninterrupted, bit-exact.

A model with Dropout, BatchNormalization and Adam is trained once without interruption. Then, again and
again, it is stopped - at the end of an epoch, by SIGTERM, by kill -9 at a random moment, several times
in a row until it is done - and resumed. Weights, moments, counters, the best model and the logged
numbers must be equal to the uninterrupted run's.

    tools/resume_check.py [--count 20] [--seed 0]
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from cli_models import BINARY, cnn, images, save  # noqa: E402

FLAGS = ["--data", "d.npz", "--optimizer", "adam", "--lr", "0.01", "--batch", "16", "--threads", "1", "--seed", "7",
         "--schedule", "cosine", "--save-every", "3", "-q"]
EPOCHS = 4
TIMES = {"seconds", "wait_seconds", "samples_per_second", "steps"}


def command(folder, *more):
    # a resumed run takes its settings from its own config.toml
    flags = ["--threads", "1", "-q"] if more[0] == "--resume" else FLAGS
    return [str(BINARY), "train", *more, "--epochs", str(EPOCHS), "--out", str(folder), *flags]


def run(work, folder, *more, stop_after=None, how=None):
    """Runs until it ends or is stopped; returns the exit code."""
    p = subprocess.Popen(command(folder, *more), cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if stop_after is not None:
        time.sleep(stop_after)
        p.send_signal(how)
    err = p.communicate()[1].decode()
    if p.returncode not in (0, 130, -9, -15):
        raise SystemExit(f"exit {p.returncode}: {err}")
    return p.returncode


def state(folder):
    """Every initializer of last and best, byte for byte, and the logged numbers."""
    import onnx
    from onnx import numpy_helper
    result = {}
    for name in ("last", "best"):
        m = onnx.load(folder / f"checkpoints/{name}.train.onnx")
        graphs = [m.graph, *(t.algorithm for t in m.training_info)]
        result[name] = {t.name: numpy_helper.to_array(t).tobytes() for g in graphs for t in g.initializer}
        result[name + " position"] = {p.key: p.value for p in m.metadata_props  # how it was typed differs
                                      if "checksum" not in p.key and p.key != "onnxtrain.settings"}
    lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
    result["log"] = [{k: v for k, v in x.items() if k not in TIMES} for x in lines]
    result["model"] = (folder / "model.onnx").read_bytes()
    return result


def begin_or_resume(folder):
    return ["--resume", str(folder)] if (folder / "checkpoints/last.train.onnx").exists() else ["cnn.onnx"]


def one_trial(work, kind, number, rng, whole_seconds):
    folder = work / f"{kind}-{number}"
    stops = 0
    if kind == "epoch":
        first = rng.randrange(1, EPOCHS)
        args = command(folder, "cnn.onnx")
        args[args.index("--epochs") + 1] = str(EPOCHS)
        # the same schedule, ended after some epochs: --steps at an epoch's end
        subprocess.run([*args, "--schedule-arg", f"total_steps={EPOCHS * 6}", "--steps", str(first * 6)], cwd=work,
                       check=True, capture_output=True)
        subprocess.run([*command(folder, "--resume", str(folder)), "--schedule-arg", f"total_steps={EPOCHS * 6}",
                        "--steps", "0"], cwd=work, check=True, capture_output=True)
        return folder, 1
    how = signal.SIGTERM if kind == "SIGTERM" else signal.SIGKILL
    for _ in range(3):
        code = run(work, folder, *begin_or_resume(folder), stop_after=rng.uniform(0.02, whole_seconds), how=how)
        if code == 0:
            break
        stops += 1
    run(work, folder, *begin_or_resume(folder))
    return folder, stops


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        save(cnn(), work / "cnn.onnx")
        x, y = images(rows=100)
        np.savez(work / "d.npz", x=x, y=y)
        begin = time.time()
        run(work, work / "whole", "cnn.onnx")
        seconds = time.time() - begin
        want, failures = state(work / "whole"), 0
        for kind in ("epoch", "SIGTERM", "kill -9"):
            equal = interruptions = 0
            for number in range(args.count):
                folder, stops = one_trial(work, kind.replace(" ", ""), number, rng, seconds)
                got = state(folder)
                wrong = [k for k in want if got[k] != want[k]]
                equal += not wrong
                interruptions += stops
                if wrong:
                    print(f"{kind} {number}: differs in {wrong}")
            failures += args.count - equal
            print(f"{kind}: {equal} of {args.count} runs equal to the uninterrupted one ({interruptions} "
                  f"interruptions)")
        print(f"time {time.time() - begin:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
