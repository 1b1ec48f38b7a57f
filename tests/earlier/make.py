"""Writes the fixtures of tests/test_earlier_files.py with the build of one commit. Later ones must go on alike.

    git worktree add ../earlier COMMIT         # the commit whose files are wanted, built with `make build`
    cp -r tests/earlier ../earlier/tests/      # these scripts
    cd ../earlier && .venv/bin/pip install torch==2.13.0 && .venv/bin/python tests/earlier/make.py

The fixtures here were written by COMMIT below, with Python 3.11, numpy 2.4, onnx 1.23 and PyTorch 2.13, on an x86-64
CPU with AVX-512. make.py refuses to run on other sources; to record a later commit, change COMMIT and say why.

What is written:
    models/, feeds.npz, table.npz, table.csv, images.npz    inputs of all cases (models.py)
    recipes.json     calls of `prepare` (recipes.py): SHA-256 of the file, losses and state of five steps
    runs/            run folders, made on one thread with ONNXTRAIN_ISA=sse4 (RUNS in scenarios.py). cli-signal got a
                     SIGTERM inside its second epoch. Paths of the folder they were made in are written @HERE@
    configs/         files for --config (CONFIGS in scenarios.py)
    runs.json        what resuming, evaluating, exporting ... those runs gives (scenarios.py)
    torch/, torch.json   files of from_torch and of `onnxtrain convert` (torch_modules.py), and what they give
    model.pickle     a pickled ot.Model
    surface.json     C functions, flags, Python names and arguments, operators (surface.py)

Results are recorded for three instruction sets. For sse4, make.py checks that a resumed run has the bits of the run
that was not interrupted; both are recorded.
"""

import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import models
import recipes
import replay
import scenarios
import surface

COMMIT = "0f3d7fa"
HERE = replay.HERE


def write_json(name, value):
    text = json.dumps(value, indent=1, ensure_ascii=False)
    (HERE / name).write_text(text + "\n")


def checked(done):
    if done.returncode:
        sys.exit(f"{done.args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_sources():
    changed = subprocess.run(["git", "diff", "--quiet", COMMIT, "--", "src", "python/onnxtrain", "include"],
                             cwd=replay.ROOT)
    if changed.returncode:
        sys.exit(f"the sources are not those of {COMMIT}")


# ---- run folders

def begin_and_signal(arguments, folder, run):
    """Sends SIGTERM inside the second epoch."""
    for wait in (0.02, 0.05, 0.1, 0.01, 0.2) * 5:
        shutil.rmtree(folder / run, ignore_errors=True)
        p = subprocess.Popen([str(replay.BINARY), *arguments, "--out", run], cwd=folder,
                             env=replay.environment("sse4"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = folder / run / "metrics.jsonl"
        while p.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.001)
        time.sleep(wait)
        p.send_signal(signal.SIGTERM)
        if p.wait() == 130:
            at = replay.metadata(folder / run / "checkpoints/last.train.onnx")
            if at["onnxtrain.epoch"] == "1" and int(at["onnxtrain.batch"]) > 0:
                return
    sys.exit(f"{run}: no signal came inside the second epoch")


def run_once(step, folder, run):
    if "python" in step:
        code = "\n".join([f"OUT = {run!r}", *step["python"]])
        checked(replay.python([HERE / "worker.py", "code", code], folder))
    elif step.get("signal"):
        begin_and_signal(step["cli"], folder, run)
    else:
        checked(replay.cli([*step["cli"], "--out", run], folder))


def without_path(folder, path):
    """Texts say @HERE@; nothing else may name the folder. env.json does not say which kernel the machine has."""
    for file in sorted(folder.glob("*/env.json")):
        file.write_text(file.read_text().replace(" ".join(os.uname()[::2]), "Linux x86_64"))
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        data = file.read_bytes().replace(str(path).encode(), replay.PLACE.encode())
        if file in replay.texts(folder):
            file.write_bytes(data)
        elif str(path).encode() in file.read_bytes():
            sys.exit(f"{file} names the folder that it was made in")


def make_runs(folder):
    """The run folders, into runs/; {run: bits of the run that was not interrupted}."""
    whole = {}
    for name, run in scenarios.RUNS.items():
        run_once(run["begin"], folder, f"runs/{name}")
        if "whole" in run:
            run_once(run["whole"], folder, f"whole/{name}")
            seen = [f for f in ("last", "best") if any(f"{f}.train" in w for w in scenarios.run_looks(name))]
            whole[name] = {f: replay.tensors(folder / f"whole/{name}/checkpoints/{f}.train.onnx") for f in seen}
    without_path(folder / "runs", folder)
    shutil.copytree(folder / "runs", HERE / "runs", symlinks=True)
    return whole


# ---- records

def record_runs(whole):
    table = []
    for case in scenarios.cases():
        seen = {}
        for isa in case.get("sets", replay.INSTRUCTION_SETS):
            with tempfile.TemporaryDirectory() as t:
                found = replay.play(case, replay.copy_to(pathlib.Path(t)), isa)
                seen[isa] = found if isa == "sse4" else replay.compact(found)
        table.append({**case, "recorded": seen})
        bits = whole.get(case.get("run"))
        for which, tensors in (bits or {}).items():
            got = seen["sse4"][f"tensors runs/{case['run']}/checkpoints/{which}.train.onnx"]
            if differing := replay.differences(tensors, got, True):
                sys.exit(f"{case['name']} does not end where the whole run ends: {differing[:3]}")
        print(case["name"], flush=True)
    return {"commit": COMMIT, "cpu": replay.cpu(), "uninterrupted": whole, "cases": table}


def record_recipes():
    cases = recipes.cases()
    for isa in replay.INSTRUCTION_SETS:
        got = json.loads(checked(replay.python([HERE / "worker.py", "steps"], HERE, isa, cases)))
        for case in cases:
            seen = got[case["name"]]
            if "losses" not in seen or case.setdefault("file", seen["file"]) != seen["file"]:
                sys.exit(f"{case['name']} on {isa}: {seen}")
            case[isa] = {k: seen[k] for k in ("losses", "state")}
    return {"commit": COMMIT, "cpu": replay.cpu(), "cases": cases}


def make_torch():
    import onnxtrain as ot
    import torch_modules

    (HERE / "torch").mkdir()
    for name in torch_modules.TRAININGS:
        module, x, y, loss, optimizer, scheduler = torch_modules.build(name)
        model = ot.from_torch(module, x, y, loss, optimizer, scheduler)
        model.save(HERE / f"torch/{name}.train.onnx")
        np.savez_compressed(HERE / f"torch/{name}.npz", **torch_modules.feeds(model, x, y))
    for name in ("mlp", "cnn"):
        source = f"torch/{name}.train.onnx"
        checked(replay.python(["-m", "onnxtrain.convert", source, f"torch/{name}.pt"], HERE))
        checked(replay.python(["-m", "onnxtrain.convert", source, f"torch/{name}.weights.pt", "--to", "state_dict"],
                              HERE))
    names = list(torch_modules.TRAININGS)
    steps = {isa: json.loads(checked(replay.python([HERE / "worker.py", "torch"], HERE, isa, names)))
             for isa in replay.INSTRUCTION_SETS}
    pytorch = json.loads(checked(replay.python([HERE / "torch_modules.py"], HERE)))
    return {"commit": COMMIT, "cpu": replay.cpu(), "steps": steps, "pytorch": pytorch}


def make_surface():
    python = json.loads(checked(replay.python([HERE / "surface.py"], HERE)))
    return {"commit": COMMIT, "symbols": surface.symbols(), "commands": surface.commands(), "python": python,
            "operators": surface.operators()}


def main():
    check_sources()
    import onnxtrain as ot

    for name in ("models", "runs", "configs", "torch"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    models.write(HERE)
    os.chdir(HERE)
    ot.prepare("models/cnn.onnx", optimizer=ot.SGD(lr=0.05, momentum=0.9, nesterov=True)).save("models/cnn.train.onnx")
    (HERE / "configs").mkdir()
    for name, text in scenarios.CONFIGS.items():
        (HERE / "configs" / name).write_text(text)
    (HERE / "model.pickle").write_bytes(pickle.dumps(ot.prepare("models/mlp.onnx", optimizer=ot.Adam(lr=0.01)), 4))
    write_json("surface.json", make_surface())
    write_json("recipes.json", record_recipes())
    with tempfile.TemporaryDirectory() as t:
        whole = make_runs(replay.copy_to(pathlib.Path(t)))
    write_json("runs.json", record_runs(whole))
    write_json("torch.json", make_torch())


if __name__ == "__main__":
    main()
