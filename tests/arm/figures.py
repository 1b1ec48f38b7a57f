#!/usr/bin/env python3
"""make figures-arm: the build for 64-bit ARM (preset aarch64) in QEMU.

Compiles with Debian's cross compiler, runs the C++ tests, trains a part of MNIST, and says how far the weights are from
those of this machine's own build. tests/arm/not_in_qemu.txt lists tests that an emulator cannot run, with the reason.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/aarch64"
PART = 12  # tests of one process
SUBSET = {"epochs": 2, "batch": 32}


def not_in_qemu():
    """{pattern of test names: reason}"""
    lines = (ROOT / "tests/arm/not_in_qemu.txt").read_text().splitlines()
    return dict(re.split(r"\s+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))


def emulator():
    done = subprocess.run([ROOT / "tools/sysroot.sh", "arm64"], stdout=subprocess.PIPE, text=True, check=True)
    sysroot = done.stdout.strip()
    runtime = "/usr/aarch64-linux-gnu"
    libraries = f"{runtime}/lib:{sysroot}/usr/lib/aarch64-linux-gnu"
    return ["qemu-aarch64-static", "-L", runtime, "-E", f"LD_LIBRARY_PATH={libraries}"]


def build():
    subprocess.run([ROOT / "tools/setup.sh", "build", "arm"], check=True)
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "aarch64"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    targets = ["onnxtrain_cli", "onnxtrain_shared", "onnxtrain_tests"]
    subprocess.run(["cmake", "--build", BUILD, "-j2", "--target", *targets], check=True)


def results_of(text):
    """What GoogleTest printed: {test: "OK", "FAILED", "SKIPPED" or "crashed"}."""
    found = {}
    for line in text.splitlines():
        if m := re.match(r"\[ RUN      \] (\S+)", line):
            found[m[1]] = "crashed"
        elif m := re.match(r"\[\s+(OK|FAILED|SKIPPED)\s+\] ([^\s,.]+\.[^\s,]+)", line):
            found[m[2]] = m[1]
    return found


def run_part(command, names, timeout, end):
    """The tests `names`, in as many processes as crashes ask for; none is begun after `end`."""
    found, log = {}, []
    while len(found) < len(names) and time.time() < end:
        todo = [n for n in names if n not in found]
        env = {**os.environ, "GTEST_FILTER": ":".join(todo), "OMP_NUM_THREADS": "2"}
        try:
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, errors="replace",
                                  timeout=max(1, min(timeout, end - time.time() + 30)))
            text = done.stdout + done.stderr
        except subprocess.TimeoutExpired as e:
            text = (e.stdout or b"").decode(errors="replace")
            for name, what in results_of(text).items():
                if what == "crashed":
                    text += f"\n{name}: not finished after {timeout} s\n"
        now = results_of(text)
        if not now:
            raise SystemExit(f"{names[0]} and others: nothing was run:\n{text[-2000:]}")
        found.update(now)
        log.append(text)
    return found, "".join(log)


def run_tests(qemu, pattern, timeout, minutes):
    program = [*qemu, str(BUILD / "onnxtrain_tests")]
    listed = subprocess.run([*program, "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True,
                            text=True, check=True).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif re.match(r"\S+\.", line):
            suite = line.split("#")[0].strip()
    reasons = not_in_qemu()
    left_out = {n: why for n in names for p, why in reasons.items() if fnmatch.fnmatch(n, p)}
    names = [n for n in names if n not in left_out]
    found, logs = {}, []
    parts = max(1, -(-len(names) // PART))
    end = time.time() + 60 * minutes
    with ThreadPoolExecutor(2) as pool:
        for part, log in pool.map(lambda k: run_part(program, names[k::parts], timeout, end), range(parts)):
            found.update(part)
            logs.append(log)
    (BUILD / "tests.log").write_text("".join(logs))
    late = [n for n in names if n not in found]
    good = [n for n, what in found.items() if what in ("OK", "SKIPPED")]
    print(f"C++ tests in QEMU: {len(good)} of {len(found)} passed"
          f" ({sum(w == 'SKIPPED' for w in found.values())} skip themselves); {len(left_out)} not run:")
    for name, why in left_out.items():
        print(f"  not run  {name}: {why}")
    if late:
        print(f"  not run  {len(late)} tests: {minutes} minutes were over")
    for name, what in sorted(found.items()):
        if what not in ("OK", "SKIPPED"):
            print(f"  {what:8} {name}")
    return len(good) == len(found) and not late


def weights_of(path):
    return {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(path).graph.initializer}


def train(program, model, data, out):
    flags = ["train", model, "--data", data, "--epochs", SUBSET["epochs"], "--batch", SUBSET["batch"], "--valid", "0.1",
             "--seed", "1", "--threads", "2", "--out", out]
    subprocess.run([*map(str, [*program, *flags])], check=True, capture_output=True, text=True)
    done = subprocess.run([*map(str, [*program, "eval", out / "model.onnx", "--data", data, "--json"])], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def mnist(qemu):
    with tempfile.TemporaryDirectory(prefix="onnxtrain-arm-") as folder:
        folder = pathlib.Path(folder)
        data = folder / "data"
        images = ROOT / "examples/mnist/data"
        subprocess.run([sys.executable, ROOT / "tools/package/mnist_subset.py", images, data], check=True)
        for name in ("mlp", "cnn"):
            model = ROOT / f"examples/mnist/{name}.train.onnx"
            here = train([ROOT / "build/release/onnxtrain"], model, data, folder / f"{name}-here")
            there = train([*qemu, BUILD / "onnxtrain"], model, data, folder / f"{name}-arm")
            a, b = (weights_of(folder / f"{name}-{k}/model.onnx") for k in ("here", "arm"))
            assert a.keys() == b.keys()
            far = max(np.max(np.abs(a[k] - b[k])) / max(np.max(np.abs(a[k])), 1e-30) for k in a if a[k].size)
            same = all(np.array_equal(a[k], b[k]) for k in a)
            accuracy = f"aarch64 {100 * there['accuracy']:.2f} %, x86 {100 * here['accuracy']:.2f} %"
            weights = "the same bits" if same else f"differ by at most {far:.1e} of the largest of their tensor"
            print(f"MNIST {name}, 6,000 images, {SUBSET['epochs']} epochs: test accuracy {accuracy}; weights {weights}")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tests", default="*", metavar="FILTER", help="as GoogleTest's --gtest_filter")
    p.add_argument("--timeout", type=int, default=3600, help=f"seconds for {PART} tests")
    p.add_argument("--minutes", type=float, default=600, help="begin no test after that long")
    p.add_argument("--no-mnist", action="store_true")
    a = p.parse_args()
    build()
    for tool in ("qemu-aarch64-static", "aarch64-linux-gnu-g++"):
        assert shutil.which(tool), f"{tool} is not installed: tools/setup.sh build arm"
    qemu = emulator()
    said = subprocess.run([*qemu, BUILD / "onnxtrain", "doctor"], capture_output=True, text=True, check=True).stdout
    print("\n".join(line for line in said.splitlines() if re.match("onnxtrain|platform|simd|conv", line)))
    good = run_tests(qemu, a.tests, a.timeout, a.minutes)
    if not a.no_mnist:
        mnist(qemu)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
