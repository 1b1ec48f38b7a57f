"""The documents for newcomers say what is so: their commands run, their code runs, their flags exist."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
NOT_HERE = ("make demo", "export PATH")  # the build itself


def blocks(path):
    """(kind, text) of every fenced block."""
    return re.findall(r"^```(console|python)\n(.*?)^```", (ROOT / path).read_text(), re.M | re.S)


def console(text, cwd):
    """Runs the lines that begin with $; what follows one, if anything, is what it prints (numbers apart)."""
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", NO_COLOR="1")
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        if command.startswith(NOT_HERE):
            continue
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=cwd, env=environment)
        printed = done.stdout + done.stderr
        fails = bool(shown) and shown[0].startswith("error[")
        assert (done.returncode != 0) == fails, f"{command}\n{printed}"
        form = lambda text: re.sub(r"[ \t]+", " ", re.sub(r"[\d.,]+", "#", text.strip()))
        for line in shown:
            assert form(line) in form(printed), f"{command}\n{printed}"


def python(text, cwd, names):
    with contextlib.chdir(cwd), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        exec(compile(text, "document", "exec"), names)


def play(path, cwd, names=None):
    names = names if names is not None else {}
    for kind, text in blocks(path):
        console(text, cwd) if kind == "console" else python(text, cwd, names)


@pytest.fixture
def project(tmp_path):
    """A folder that looks like the project's, with a model and data of one's own in it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "examples/transfer/new_head.onnx", tmp_path / "model.onnx")
    data = np.load(ROOT / "examples/transfer/data.npz")
    x, y = data["x_train"], data["y_train"].astype(np.int64) - 7
    np.savez(tmp_path / "data.npz", x=x, y=y)
    return tmp_path, {"x": (x / np.float32(255))[:, None], "y": y}


def test_readme(project):
    folder, names = project
    play("README.md", folder, names)
    assert (folder / "trained.onnx").exists() and (folder / "runs/model-001/model.onnx").exists()


def test_tutorial(project):
    folder, _ = project
    play("docs/tutorial.md", folder)
    lines = (folder / "predictions.csv").read_text().splitlines()
    assert lines[0] == "prediction,0,1,2" and len(lines) == 1 + 600


def test_python_page(project):
    import onnxtrain as ot

    folder, names = project
    play("docs/python.md", folder, names | {"ot": ot, "xb": names["x"][:8], "yb": names["y"][:8]})


def test_command_page():
    """Every flag that the page names belongs to a command it names."""
    page = (ROOT / "docs/cli.md").read_text()
    listed = re.findall(r"^\| `(\w+)", page, re.M)
    commands = [c for c in listed if c not in ("data", "table", "synthetic")]
    helps = [subprocess.run([BIN / "onnxtrain", c, *more], capture_output=True, text=True)
             for c in commands for more in (["--help"], ["--help-all"])]
    known = "".join(h.stdout for h in helps)
    assert all(h.returncode == 0 for h in helps[::2]), commands
    for flag in set(re.findall(r"`(--[a-z-]+)", page)) - {"--help"}:
        assert flag in known, flag
