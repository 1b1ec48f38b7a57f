"""A run goes on with its own settings and rows: lines that are printed work when typed, a deleted config.toml changes
nothing, the best epoch is the best one."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import BINARY, cli, table  # noqa: E402


def train(work, *args):
    r = cli("train", *args, cwd=work)
    assert r.returncode == 0, r.stderr
    return r.stderr


def log(run):
    return [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]


def same(work, a, b):
    return cli("diff", f"{a}/checkpoints/last.train.onnx", f"{b}/checkpoints/last.train.onnx", cwd=work).returncode == 0


def printed_commands(text):
    """Every command that narration shows: `next` lines and those behind `help:` and `go on with`."""
    shown = re.findall(r"(?:^next |go on with|help: .*?:) .*", text, re.M)
    return [c.strip() for line in shown for c in re.findall(r"onnxtrain .*?(?=    |$)", line)]


def typed(command, work):
    return subprocess.run(command.replace("onnxtrain", shlex.quote(str(BINARY)), 1), shell=True, cwd=work,
                          capture_output=True, text=True)


# ---- printed lines

def write_table(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")


FLAGS = {
    "map": ["--data", "named.npz", "--map", "x=my inputs", "--map", "label=kinds"],
    "offset": ["--data", "one.npz", "--label-offset", "-1"],
    "target": ["--data", "t t.csv", "--target", "the kind", "--drop", "id"],
    "layout": ["--data", "d.npz", "--scale", "0.1,2", "--valid", "d.npz"],
    "overfit": ["--data", "d.npz", "--overfit", "16"],
}


@pytest.mark.parametrize("name", FLAGS)
def test_next_lines_work_when_typed(work, name):
    x, y = table(130)
    np.savez(work / "named.npz", **{"my inputs": x, "kinds": y})
    np.savez(work / "one.npz", x=x, y=y + 1)
    write_table(work / "t t.csv", "id,the kind,a,b,c,d",
                [f"{k},{c}," + ",".join(map(str, row)) for k, (row, c) in enumerate(zip(x, y))])
    told = train(work, "mlp.onnx", *FLAGS[name], "--epochs", "2", "--out", "a run")
    commands = printed_commands(told)
    assert [c.split()[1] for c in commands] == ["eval", "train"], told
    for command in commands:
        r = typed(command, work)
        assert r.returncode == 0, (command, r.stderr)
    assert [e["epoch"] for e in log(work / "a run")] == [1, 2, 3, 4]
    # the resumed run is the one that was begun
    train(work, "mlp.onnx", *FLAGS[name], "--epochs", "4", "--out", "whole")
    assert same(work, "a run", "whole")
    for command in (["predict", "a run", *FLAGS[name][:2]], ["export", "a run", "-o", "e.onnx"]):
        assert cli(*command, cwd=work).returncode == 0, command


def test_the_line_of_a_stopped_run_works_when_typed(work):
    p = subprocess.Popen([str(BINARY), "train", "mlp.onnx", "--data", "d.npz", "--epochs", "200000", "--out", "my run"],
                         cwd=work, stderr=subprocess.PIPE, text=True)
    while not p.stderr.readline().startswith("run "):
        pass
    p.terminate()
    told = p.communicate(timeout=60)[1]
    command, = printed_commands(told)
    assert p.returncode == 130
    done = len(log(work / "my run")) if (work / "my run/metrics.jsonl").exists() else 0
    r = typed(command.replace("--epochs 200000", f"--epochs {done + 1}"), work)
    assert r.returncode == 0, (command, r.stderr)


# ---- settings

def test_overfit_goes_on_with_its_rows(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--overfit", "16", "--epochs", "2", "--out", "run")
    told = train(work, "--resume", "run", "--epochs", "4")
    assert "overfit   16 rows" in told and log(work / "run")[-1]["steps"] == 1
    train(work, "mlp.onnx", "--data", "d.npz", "--overfit", "16", "--epochs", "4", "--out", "whole")
    assert same(work, "run", "whole")
    told = train(work, "--resume", "run", "--epochs", "5", "--overfit", "0")  # the user's word
    assert "\noverfit  " not in told and log(work / "run")[-1]["steps"] == 4


SETTINGS = ["--batch", "13", "--valid", "0.25", "--schedule", "exponential", "--schedule-arg", "gamma=0.98", "--lr",
            "0.02", "--seed", "3", "--no-shuffle"]


def test_a_deleted_config_changes_nothing(work):
    train(work, "mlp.onnx", "--data", "d.npz", *SETTINGS, "--epochs", "5", "--out", "whole")
    train(work, "mlp.onnx", "--data", "d.npz", *SETTINGS, "--epochs", "5", "--steps", "16", "--out", "run")
    shutil.copytree(work / "run", work / "py")
    (work / "run/config.toml").unlink()
    told = train(work, "--resume", "run", "--steps", "0")
    assert "batch 13" in told and "schedule" not in told and same(work, "run", "whole")
    assert "batch = 13" in (work / "run/config.toml").read_text()
    (work / "py/config.toml").unlink()
    data = dict(np.load(work / "d.npz"))
    ot.resume(work / "py").fit(data["x"], data["y"], epochs=5)
    assert same(work, "py", "whole")
    # a checkpoint elsewhere knows them, too
    shutil.copy(work / "run/checkpoints/last.train.onnx", work / "kept.train.onnx")
    assert "batch 13" in train(work, "--resume", "kept.train.onnx", "--epochs", "6", "--out", "other")
    # and the exported model does not carry them
    assert "onnxtrain.settings" not in ot.load(work / "run/model.onnx").info["metadata"]
    assert "onnxtrain.settings" in ot.load(work / "run/checkpoints/last.train.onnx").info["metadata"]


def test_diff_of_a_resumed_and_an_uninterrupted_run(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "4", "--out", "whole")
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--out", "run", "-q")
    train(work, "--resume", "run", "--epochs", "4", "--threads", "1")
    r = cli("diff", "run", "whole", cwd=work)
    assert r.returncode == 0, r.stdout
    assert re.search('^model = "mlp.onnx" +# run$', (work / "run/config.toml").read_text(), re.M)


# ---- the best epoch

def test_ties_are_decided_by_the_validation_loss(work):
    # classes that are far apart, and few rows of validation: many epochs have the same accuracy
    y = np.arange(95) % 3
    x = (np.eye(4)[y] * 3 + np.random.default_rng(0).normal(size=(95, 4)) * 0.3).astype("f")
    np.savez(work / "d.npz", x=x[5:], y=y[5:])
    np.savez(work / "v.npz", x=x[:5], y=y[:5])
    told = train(work, "mlp.onnx", "--data", "d.npz", "--valid", "v.npz", "--epochs", "30", "--lr", "0.02", "--out",
                 "run")
    epochs = log(work / "run")
    best = max(epochs, key=lambda e: (e["valid_accuracy"], -e["valid_loss"]))
    assert sum(e["valid_accuracy"] == best["valid_accuracy"] for e in epochs) > 1
    assert f"best      epoch {best['epoch']}:" in told and "* best: same accuracy, lower loss" in told
    assert "warning[OT3113]" in told and "has 5 rows" in told
    loss = json.loads(cli("eval", "run", "--data", "v.npz", "--json", cwd=work).stdout)["loss"]
    assert loss == pytest.approx(best["valid_loss"], rel=1e-5)


def test_the_confusion_matrix_is_that_of_the_best_epoch(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--valid", "0.4", "--epochs", "6", "--lr", "0.3", "--optimizer", "sgd",
          "--out", "run")
    epochs = log(work / "run")
    best = [e for e in epochs if "best" in e][-1]
    confusion = np.array(json.loads((work / "run/confusion.json").read_text()))
    assert np.trace(confusion) / confusion.sum() == pytest.approx(best["valid_accuracy"])
    assert f"Confusion of epoch {best['epoch']}, the best" in (work / "run/report.html").read_text()


# ---- files that commands write

@pytest.mark.parametrize("command, wrong, right", [
    (["predict", "run", "--data", "d.npz"], "p.onnx", "p.csv"),
    (["predict", "run", "--data", "d.npz"], "p.txt", "p.csv"),
    (["export", "run"], "m.pt", "m.onnx"), (["prepare", "mlp.onnx"], "m.npz", "m.onnx"),
    (["run", "mlp.onnx", "--inputs", "in.npz"], "o.csv", "o.npz")])
def test_an_ending_that_says_another_format(work, command, wrong, right):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "1", "--out", "run")
    np.savez(work / "in.npz", x=table(5)[0])
    r = cli(*command, "-o", wrong, cwd=work)
    assert r.returncode == 2 and "OT0011" in r.stderr and f"help: -o {right}" in r.stderr, r.stderr
    assert not (work / wrong).exists()
    assert cli(*command, "-o", right, cwd=work).returncode == 0


def test_a_training_that_prepare_replaces_is_said(work):
    assert cli("prepare", "mlp.onnx", "-o", "a.train.onnx", cwd=work).stderr.count("OT3115") == 0
    r = cli("prepare", "a.train.onnx", "-o", "b.train.onnx", cwd=work)
    assert r.returncode == 0 and "warning[OT3115]" in r.stderr
    with pytest.warns(UserWarning, match="carries a training already"):
        ot.prepare(work / "a.train.onnx", loss="cross_entropy")


def test_arrays_that_nobody_reads_are_said(work):
    x, y = table(130)
    with pytest.warns(UserWarning, match="not used: 'other'"):
        ot.load(work / "mlp.onnx").compile(loss="cross_entropy").fit({"x": x, "other": x}, y, epochs=1)
    np.savez(work / "more.npz", x=x, y=y, other=x)
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "1", "--out", "run")
    for command in ("eval", "predict"):
        assert re.search("not used: .*'other'", cli(command, "run", "--data", "more.npz", cwd=work).stderr)
