"""The samples in examples/: each runs, reaches what its README promises, and its file is what make.py writes."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import onnx
import pytest

import onnxtrain as ot

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CLI = pathlib.Path(sys.executable).parent / "onnxtrain"


def script(path):
    spec = importlib.util.spec_from_file_location(path.parent.name.replace("-", "_") + "_" + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, capsys):
    """Runs the sample's main(); what it prints has the form that the README shows."""
    result = script(EXAMPLES / name / "run.py").main()
    printed = capsys.readouterr().out.splitlines()
    readme = (EXAMPLES / name / "README.md").read_text()
    shown = readme.split(f"$ python examples/{name}/run.py\n")[1].split("\n\n")[0].splitlines()
    form = lambda lines: [re.sub(r"[-+]?\d[\d.,e]*|\s+", "#", line.strip()) for line in lines if line.strip()]
    assert form(shown) == form(printed), "the README shows other output than the sample prints"
    return result


def cli(*arguments, cwd):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


FILES = sorted(EXAMPLES.glob("*/*.onnx"))


@pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.name}/{p.name}" for p in FILES])
def test_file_is_valid(path):
    assert ot.check(path) == []
    onnx.checker.check_model(onnx.load(path), full_check=True)
    ot.Session(path)


def same_model(committed, made):
    a, b = onnx.load(committed), made
    assert a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def test_linear(capsys):
    result = run("linear", capsys)
    assert result["error"] < 1e-3


def test_linear_file():
    same_model(EXAMPLES / "linear/linear.train.onnx", script(EXAMPLES / "linear/make.py").model())


def test_linear_from_the_command_line(tmp_path):
    cli("train", EXAMPLES / "linear/linear.train.onnx", "--data", EXAMPLES / "linear/data.csv", "--epochs", 30,
        "--out", tmp_path / "run", cwd=tmp_path)
    weight = ot.load(tmp_path / "run/model.onnx").parameters["weight"][:, 0]
    assert weight == pytest.approx([2.016, 0.295, -0.254], abs=0.05)


def test_gan(capsys):
    result = run("gan", capsys)
    assert result["last"] < 0.25 * result["first"] and result["last"] < 3 * result["floor"]


def test_gan_file():
    same_model(EXAMPLES / "gan/gan.train.onnx", script(EXAMPLES / "gan/make.py").model())
