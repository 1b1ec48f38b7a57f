"""The table of docs/engines.md: the architectures of tests/trajectories as portable steps in other runtimes.

    python tests/engines/figures.py [--runtimes a,b] [--names x,y] [--sizes fixed,open] [--form F] [--for RUNTIME]
                                    [--keep cells.jsonl] [--cpu SECONDS]

`--keep`: results so far, one line each; a cell whose step has the same bytes is not run again. `--cpu`: processor time
for one cell.

Each step runs 10 times with its outputs fed back. `right`: every loss and every state tensor within 1e-4 of the native
trainer (absolute, or relative to the tensor's largest element); `us`: we refuse to write the step; `engine`: the
runtime refuses it; `time`: no result within the limit; `wrong`: other numbers. `right*`: some tensor is farther than
1e-4 from native, because its gradient is zero but for rounding; all are within 4 times PyTorch's own float32 noise
(docs/trajectories.md). The runtimes live in an environment of their own (tools/environment.sh engines); each run is a
process of its own."""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/trajectories"))
sys.path.insert(0, str(ROOT / "tests/engines"))
import compare  # noqa: E402
import onnxtrain as ot  # noqa: E402
import worker  # noqa: E402
from compare import DATA, prepared  # noqa: E402
from trajectory_cases import CASES, STEPS, feeds  # noqa: E402

RUNTIMES = ["reference", "ort_off", "ort_basic", "onnxruntime", "openvino", "iree", "tinygrad", "tract", "emx",
            "opencv"]
LIMIT = 1e-4
SECONDS = 900  # on a busy machine


def environment():
    done = subprocess.run([str(ROOT / "tools/environment.sh"), "engines"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout.strip() + "/bin/python"


def native(train, case):
    """The trajectory of the native trainer: losses of every section and step, final state."""
    t = ot.Trainer(train)
    start = {n: np.array(v) for n, v in t.state.items()}
    losses = [t.step(feeds(case, k), i).loss for k in range(STEPS) for i in range(len(case.sections))]
    return np.array(losses), {n: np.array(v) for n, v in t.state.items()}, start


def write(name, how, fixed, folder, form, runtime=None):
    """The step's files in `folder`; what native computes, and the numbers of nodes before and after."""
    case = CASES[name]
    train = prepared(name, ot.load(DATA / f"{name}.{how}.onnx"))
    options = {"form": form, "runtime": runtime}
    if fixed:
        first = feeds(case, 0)
        options["dims"] = {k: v.shape for k, v in first.items() if v.ndim}
    report = ot.export_step(train, folder / "step.onnx", step="all", **options)
    np.savez(folder / "feeds.npz", **{f"{k}/{n}": v for k in range(STEPS) for n, v in feeds(case, k).items()})
    return native(train, case), [(s["nodes_lowered"], s["nodes"]) for s in report["sections"]]


def distance(a, b):
    if a.shape != b.shape:
        return float("inf")
    if a.size == 0:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not (np.isfinite(a) == np.isfinite(b)).all():
        return float("inf")
    return float(np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b))))


def judge(result, wanted):
    losses, state, _ = wanted
    got = np.load(result)
    worst = ("loss", distance(got["losses"], losses))
    for name, value in state.items():
        if f"state/{name}" in got.files:
            worst = max(worst, (name, distance(got[f"state/{name}"].astype(value.dtype), value)), key=lambda w: w[1])
    return worst


def noise_ratio(name, result, start):
    """The rule of docs/trajectories.md: distance from PyTorch in float64, in units of PyTorch's own float32 noise. For
    tensors whose gradient is zero but for rounding (a bias before a normalisation), where optimizers that divide by
    the gradient's size give every engine other numbers."""
    ref, got = compare.Reference(name), np.load(result)
    scale = np.maximum(np.maximum.accumulate(ref.loss_noise), compare.EPS * abs(ref.losses))
    worst = float(np.max(abs(got["losses"] - ref.losses) / scale))
    final = np.zeros(ref.start.size)
    for n, w in compare.places(ref, start).items():
        final[w] = got[f"state/{n}"].reshape(-1)
    return max(worst, compare.tensor_ratios(final, ref.state, ref.slices, ref.names, ref.state_noise)[0])


class Kept:
    """Cells of earlier runs. A cell belongs to a runtime and to the bytes of a step and of what it is compared with."""

    def __init__(self, path):
        self.path = path and Path(path)
        self.cells = {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                cell = json.loads(line)
                self.cells[cell["step"], cell["runtime"]] = cell["got"]

    @staticmethod
    def digest(folder, wanted):
        h = hashlib.sha256(wanted[0].tobytes())
        for f in sorted(folder.glob("step*")):
            h.update(f.read_bytes())
        return h.hexdigest()[:16]

    def run(self, python, name, runtime, size, folder, wanted, cpu):
        key = (self.digest(folder, wanted), runtime)
        if key in self.cells:
            return self.cells[key]
        got = one(python, name, runtime, folder, wanted, cpu)
        if self.path:
            with self.path.open("a") as f:
                f.write(json.dumps({"step": key[0], "runtime": runtime, "name": name, "size": size, "got": got}) + "\n")
        return got


def limited(seconds):
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)) if seconds else None


def one(python, name, runtime, folder, wanted, cpu=0):
    result = folder / f"{runtime}.npz"
    start = time.time()
    if python is None:  # in this process: quicker, for runtimes that do not crash
        try:
            worker.main(runtime, folder, result)
        except Exception as e:  # noqa: BLE001
            return "engine", f"{type(e).__name__}: {e}"[:300], time.time() - start
        return verdict(name, result, wanted, start)
    try:
        done = subprocess.run([python, str(ROOT / "tests/engines/worker.py"), runtime, str(folder), str(result)],
                              capture_output=True, text=True, timeout=SECONDS, preexec_fn=limited(cpu),
                              env=os.environ | {"OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return "time", f"no result in {SECONDS} s", time.time() - start
    if done.returncode in (-9, -24):  # SIGKILL, SIGXCPU
        return "time", f"ended after {cpu} s of processor time, or for want of memory", time.time() - start
    if done.returncode:
        lines = [x for x in done.stderr.strip().splitlines() if x.strip()] or [f"exit {done.returncode}"]
        said = next((x for kind in (" error: ", "error") for x in lines if kind in x.lower()), lines[-1])
        return "engine", f"{said[:160]} | {lines[-1][:200]}", time.time() - start
    return verdict(name, result, wanted, start)


def verdict(name, result, wanted, start):
    where, far = judge(result, wanted)
    if far <= LIMIT:
        return "right", f"{far:.1e} at {where}", time.time() - start
    ratio = noise_ratio(name, result, wanted[2])
    return ("right*" if ratio <= compare.LIMIT else "wrong"), f"{far:.1e} at {where}, {ratio:.1f} times PyTorch's " \
        "noise", time.time() - start


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--runtimes", default=",".join(RUNTIMES))
    p.add_argument("--names", default=",".join(CASES))
    p.add_argument("--sizes", default="fixed,open")
    p.add_argument("--form", default="portable")
    p.add_argument("--for", dest="runtime", help="steps written for this runtime")
    p.add_argument("--exporter", default="dynamo")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--json")
    p.add_argument("--here", action="store_true", help="in this process and environment: reference, ort_*, onnxruntime")
    p.add_argument("--keep", help="file of results so far")
    p.add_argument("--cpu", type=int, default=0, help="seconds of processor time for a cell")
    p.add_argument("-v", action="store_true", help="say why of everything that is not right")
    a = p.parse_args()
    python, runtimes = None if a.here else environment(), a.runtimes.split(",")
    table, counts, kept = [], {r: {} for r in runtimes}, Kept(a.keep)
    print("| architecture | size | nodes lowered | written | " + " | ".join(runtimes) + " |")
    print("|---" * (4 + len(runtimes)) + "|")
    for name in a.names.split(","):
        for size in a.sizes.split(","):
            with tempfile.TemporaryDirectory() as folder:
                row = {"name": name, "size": size}
                try:
                    wanted, nodes = write(name, a.exporter, size == "fixed", Path(folder), a.form, a.runtime)
                    row["nodes"] = nodes
                    with ThreadPoolExecutor(a.jobs) as pool:
                        one_of = partial(kept.run, python, name, size=size, folder=Path(folder), wanted=wanted,
                                         cpu=a.cpu)
                        got = list(pool.map(one_of, runtimes))
                except ot.Error as e:
                    got = [("us", str(e).replace("\n", " "), 0.0)] * len(runtimes)
                row |= {r: list(g) for r, g in zip(runtimes, got)}
            for r, g in zip(runtimes, got):
                counts[r][g[0]] = counts[r].get(g[0], 0) + 1
            before, after = (" + ".join(str(n[k]) for n in row.get("nodes", [])) for k in (0, 1))
            print(f"| {name} | {size} | {before} | {after} | " + " | ".join(g[0] for g in got) + " |", flush=True)
            if a.v:
                for r, g in zip(runtimes, got):
                    if g[0] != "right":
                        print(f"    {r}: {g[0]}: {g[1]}", flush=True)
            table.append(row)
    print()
    for r in runtimes:
        print(f"{r:12s} " + ", ".join(f"{k} {v}" for k, v in sorted(counts[r].items())))
    if a.json:
        Path(a.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
