"""Run folders that are used again, and commands and messages that are shown."""

import json
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import ROOT, cli, table  # noqa: E402


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
    assert [e["epoch"] for e in second] == [1, 2] and second[0]["lr"] == pytest.approx(
        0.1
    )  # its own numbers, not the first run's
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
        assert (
            subprocess.run(
                command.replace("onnxtrain", str(ROOT / "build/release/onnxtrain"), 1), shell=True, capture_output=True
            ).returncode
            == 0
        )


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


def test_arrays_that_no_input_wants_may_have_any_length(work):
    x, y = table(130)
    np.savez(work / "more.npz", x=x, y=y, prices=np.zeros(7), names=np.array(["a", "b"]), none=np.zeros((0, 3)))
    r = train(work, "mlp.onnx", "--data", "more.npz", "--epochs", "2", "--out", "more")
    assert (r.stdout + r.stderr).count("'prices', 'names', 'none'") == 1
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--out", "run")
    assert cli("diff", "run/checkpoints/last.train.onnx", "more/checkpoints/last.train.onnx", cwd=work).returncode == 0
    assert (
        cli("predict", "more", "--data", "more.npz", cwd=work).stdout
        == cli("predict", "run", "--data", "d.npz", cwd=work).stdout
    )
    np.savez(work / "short.npz", x=x, y=y[:100], names=np.array(["a"]))
    r = cli("train", "mlp.onnx", "--data", "short.npz", cwd=work)
    assert r.returncode == 4 and "OT2103" in r.stderr and "'y' has 100" in r.stderr
    np.savez(work / "text.npz", x=x, y=y.astype(str))
    r = cli("train", "mlp.onnx", "--data", "text.npz", cwd=work)
    assert r.returncode == 4 and "OT2146" in r.stderr and "text.npz:y" in r.stderr


def test_a_run_whose_best_checkpoint_is_gone_goes_on(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--lr", "0.05", "--out", "whole")
    shutil.copytree(work / "whole", work / "run")
    whole, run, best = work / "whole", work / "run", "checkpoints/best.train.onnx"
    (run / best).unlink()
    r = train(work, "--resume", "run", "--epochs", "3")
    assert "OT3103" in r.stderr and (run / "model.onnx").exists()
    train(work, "--resume", "whole", "--epochs", "3")
    assert (run / "model.onnx").read_bytes() == (whole / "model.onnx").read_bytes()
    assert cli("diff", run / "checkpoints/last.train.onnx", whole / "checkpoints/last.train.onnx").returncode == 0
    for gone in [run / best, run / "model.onnx"]:
        gone.unlink(missing_ok=True)
    train(work, "--resume", "run")  # nothing left to train: what is known is the last state
    assert cli("diff", run / best, run / "checkpoints/last.train.onnx").returncode == 0
    (run / "model.onnx").unlink()
    train(work, "--resume", "run")
    assert cli("diff", run / "model.onnx", run / best).returncode in (0, 6) and (run / "model.onnx").exists()
    (run / best).unlink()
    r = cli("export", "run", "-o", "e.onnx", cwd=work)
    assert r.returncode == 0 and "the last checkpoint is taken" in r.stdout + r.stderr


def test_stopped_early(work):
    """By a signal that comes as soon as there is a run folder: before the first step, or after a few."""
    p = subprocess.Popen([str(ROOT / "build/release/onnxtrain"), "train", "mlp.onnx", "--data", "d.npz", "--epochs",
                          "1000000", "--out", "run"],
                         cwd=work, stderr=subprocess.PIPE, text=True)
    while not p.stderr.readline().startswith("run "):
        pass
    p.send_signal(signal.SIGINT)
    told = p.communicate(timeout=60)[1]
    assert p.returncode == 130 and "--resume run" in told
    done = len(log(work / "run")) if (work / "run/metrics.jsonl").exists() else 0
    train(work, "--resume", "run", "--epochs", done + 2)
    assert [e["epoch"] for e in log(work / "run")] == list(range(1, done + 3))


def test_resume_of_a_run_without_a_checkpoint_says_why(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "1", "--out", "run")
    last = work / "run/checkpoints/last.train.onnx"
    last.rename(work / "kept.onnx")
    r = cli("train", "--resume", "run", cwd=work)
    assert "OT4205" in r.stderr and "is gone" in r.stderr and "best.train.onnx" in r.stderr
    shutil.rmtree(work / "run/checkpoints")
    (work / "run/checkpoints").mkdir()
    (work / "run/metrics.jsonl").unlink()
    r = cli("train", "--resume", "run", cwd=work)  # killed before anything was saved
    assert "OT4205" in r.stderr and "before its first checkpoint" in r.stderr
    again = r.stderr.split("start it again:", 1)[1].strip()
    command = again.split(" ", 1)[1]
    assert (
        subprocess.run(
            f"{ROOT}/build/release/onnxtrain {command}", shell=True, cwd=work, capture_output=True
        ).returncode
        == 0
    )
    with pytest.raises(ot.CheckpointError, match="before its first checkpoint"):
        (work / "empty/checkpoints").mkdir(parents=True)
        ot.resume(work / "empty")


def test_resume_into_the_folder_of_another_run_keeps_that(work):
    for name in ("a", "b"):
        train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--out", name)
    train(work, "--resume", "a", "--epochs", "3", "--out", "b")
    assert [e["epoch"] for e in log(work / "b")] == [3] and len(log(work / "b/earlier-001")) == 2
    train(work, "a/checkpoints/last.train.onnx", "--data", "d.npz", "--epochs", "3", "--out", "a")
    assert [e["epoch"] for e in log(work / "a")] == [1, 2, 3]
