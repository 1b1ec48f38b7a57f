"""The samples in examples/: each runs, reaches what its README promises, and its file is what make.py writes."""

import gzip
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
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
    form = lambda x: re.sub(r"[-+]?\d[\d.,e-]*|\s+", "#", x.strip()) if re.search(r"\d", x) else "words"
    assert list(map(form, shown)) == list(map(form, printed)), "the README shows other output than the sample prints"
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


def test_two_tower(capsys):
    result = run("two-tower", capsys)
    assert result["first"] > 0.85 and result["five"] > 0.97


def test_two_tower_files():
    make = script(EXAMPLES / "two-tower/make.py")
    same_model(EXAMPLES / "two-tower/towers.onnx", make.towers())
    same_model(EXAMPLES / "two-tower/in_batch.onnx", make.in_batch())


def test_two_tower_from_the_command_line(tmp_path):
    folder = EXAMPLES / "two-tower"
    cli("train", folder / "towers.onnx", "--loss", folder / "in_batch.onnx", "--data", folder / "pairs.npz", "--lr",
        3e-3, "--epochs", 3, "--batch", 100, "--out", tmp_path / "run", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [e["valid_loss"] for e in lines if "valid_loss" in e]
    assert len(losses) == 3 and losses[0] > losses[1] > losses[2] > 0


def test_characters(capsys):
    result = run("characters", capsys)
    assert result["perplexity"] < 2.5 and result["new"] < 6 < result["blind"]


def test_characters_file():
    make = script(EXAMPLES / "characters/make.py")
    same_model(EXAMPLES / "characters/characters.onnx", make.model(make.alphabet()))


def test_transfer(capsys):
    result = run("transfer", capsys)
    assert result["still"] == 0 and result["frozen"] > result["scratch"] and result["frozen"] > 0.8


def test_transfer_files():
    """The new head differs from the old model in the head only."""
    old, new = (ot.load(EXAMPLES / f"transfer/{n}.onnx").parameters for n in ("digits", "new_head"))
    assert list(old) == list(new)
    for name in old:
        assert (old[name].shape == new[name].shape and (old[name] == new[name]).all()) != name.startswith("head.")


def test_transfer_from_the_command_line(tmp_path):
    folder = EXAMPLES / "transfer"
    cli("train", folder / "new_head.onnx", "--data", folder / "data.npz", "--label-offset", -7, "--freeze",
        "backbone.*", "--lr", 3e-3, "--epochs", 40, "--batch", 10, "--out", tmp_path / "run", cwd=tmp_path)
    done = cli("eval", tmp_path / "run", "--data", folder / "data.npz", "--label-offset", -7, cwd=tmp_path)
    assert float(re.search(r"accuracy\s+([\d.]+)", done.stdout)[1]) > 75
    frozen = ot.load(folder / "new_head.onnx").parameters["backbone.fc.weight"]
    assert (ot.load(tmp_path / "run/model.onnx").parameters["backbone.fc.weight"] == frozen).all()


def test_every_sample_is_in_the_index():
    index = (EXAMPLES / "README.md").read_text()
    for folder in EXAMPLES.iterdir():
        if folder.is_dir():
            assert f"({folder.name})" in index and (folder / "README.md").exists(), folder.name


@pytest.mark.parametrize("name, rows", [("mlp", 6000), ("cnn", 2000)])
def test_mnist(name, rows):
    """The file trains by what it carries; a fraction of an epoch is enough to see that."""
    folder = EXAMPLES / "mnist/data"
    read = lambda part, skip: np.frombuffer(gzip.open(folder / part).read(), np.uint8, offset=skip)
    x, y = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28), read("train-labels-idx1-ubyte.gz", 8)
    t = ot.Trainer(EXAMPLES / f"mnist/{name}.train.onnx")
    t.fit(x[:rows], y[:rows], epochs=1, batch_size=32)
    assert t.evaluate(x[-2000:], y[-2000:])["accuracy"] > 0.85
