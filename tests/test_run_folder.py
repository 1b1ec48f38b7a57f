"""Run folders that are used again, and commands and messages that are shown."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import ROOT, cli, mlp, save, table, work  # noqa: E402, F401


def train(work, *args):
    r = cli("train", *args, cwd=work)
    assert r.returncode == 0, r.stderr
    return r


def log(run):
    return [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_in_the_folder_of_another_keeps_both(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "3", "--lr", "0.001", "--out", "run")
    first = log(work / "run")
    (work / "run/notes.txt").write_text("mine")
    r = train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--lr", "0.1", "--out", "run")
    assert "earlier-001" in r.stdout + r.stderr
    second = log(work / "run")
    assert [e["epoch"] for e in second] == [1, 2] and second[0]["lr"] == pytest.approx(0.1)  # its own numbers, not the first run's
    assert log(work / "run/earlier-001") == first
    assert (work / "run/notes.txt").exists()  # what is no run's stays
    assert cli("eval", work / "run/earlier-001", "--data", work / "d.npz").returncode == 0
    train(work, "--resume", "run", "--epochs", "3")
    assert len(log(work / "run")) == 3 and not (work / "run/earlier-002").exists()
    x, y = table(50)
    for _ in range(2):
        ot.load(work / "mlp.onnx").fit(x, y, epochs=2, out=work / "py")
    assert len(log(work / "py")) == 2 and len(log(work / "py/earlier-001")) == 2


def test_commands_that_are_shown_work_when_typed(work):
    folder = work / "a folder's name"
    folder.mkdir()
    shutil.copy(work / "d.npz", folder / "my data.npz")
    r = train(work, "mlp.onnx", "--data", folder / "my data.npz", "--steps", "4", "--out", folder / "run 1")
    shown = (r.stdout + r.stderr).split("next", 1)[1].strip()
    for command in shown.split("    "):
        assert subprocess.run(command.replace("onnxtrain", str(ROOT / "build/release/onnxtrain"), 1), shell=True, capture_output=True).returncode == 0


@pytest.mark.parametrize("path, code", [("nothing", "OT4202"), (".", "OT4102")])
def test_resume_of_what_is_no_run_says_so(work, path, code):
    r = cli("train", "--resume", path, cwd=work)
    assert r.returncode == 1 and code in r.stderr


def test_usage_errors_name_the_option(work):
    for option, value in (("--accumulate", "0"), ("--patience", "-1"), ("--batch", "0")):
        r = cli("train", "mlp.onnx", "--data", "d.npz", option, value, cwd=work)
        assert r.returncode == 2 and f"OT0001]: {option}:" in r.stderr


def test_a_limit_of_memory_is_told_as_it_was_given(work):
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--memory", "3K", "--steps", "1", cwd=work)
    assert r.returncode == 3 and "limit is 3K" in r.stderr
    need = re.search(r"--memory (\d+K)", r.stderr).group(1)
    train(work, "mlp.onnx", "--data", "d.npz", "--memory", need, "--steps", "1")
