"""docs/c-and-cpp.md: its programs are written to files, compiled against the installed library and run."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from row_models import MPIRUN, environment, same  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "c-and-cpp.md").read_text()


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", ROOT / "build/release", "--prefix", path], check=True, capture_output=True)
    return path


def test_the_page(prefix, tmp_path):
    for name, text in re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", PAGE, re.M | re.S):
        (tmp_path / name).write_text(text)
    files = {"train.cpp", "CMakeLists.txt", "loop.cpp", "train.c", "parallel.cpp", "parallel.c"}
    assert {p.name for p in tmp_path.iterdir()} == files
    shutil.copy(ROOT / "examples/transfer/new_head.onnx", tmp_path / "model.onnx")
    data = np.load(ROOT / "examples/transfer/data.npz")
    np.savez(tmp_path / "data.npz", x=data["x_train"], y=data["y_train"].astype(np.int64) - 7)
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE, re.M | re.S)
    alone = "" if MPIRUN else 'mpirun() { shift 2; "$@"; }\n'
    script = "set -euo pipefail\n" + alone + "".join(re.sub(r"^\$ ", "", block, flags=re.M) for block in blocks)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          env={**environment(), "PREFIX": str(prefix), "CMAKE_GENERATOR": "Ninja"})
    assert done.returncode == 0, done.stdout + done.stderr
    epochs = re.findall(r"^epoch (\d): loss ([\d.]+), accuracy ([\d.]+)$", done.stdout, re.M)
    assert len(epochs) == 5 and float(epochs[-1][1]) < float(epochs[0][1]) and float(epochs[-1][2]) > 0.5
    assert "OT4001" in done.stdout or "OT1001" in done.stdout
    for made in ("trained.onnx", "last.train.onnx", "runs/cpp/model.onnx", "runs/c/model.onnx"):
        assert (tmp_path / made).exists(), made
    assert done.stdout.count("2 processes" if MPIRUN else "1 processes") == 2, done.stdout
    same_as_the_command(tmp_path, prefix)


def same_as_the_command(folder, prefix):
    """C and C++ under mpirun give the bits of the command line, under mpirun and in one process."""
    words = [str(prefix / "bin/onnxtrain"), "train", "model.onnx", "--data", "data.npz", "--loss", "cross_entropy",
             "--optimizer", "adamw", "--lr", "0.003", "--epochs", "2", "--micro-blocks", "2", "--valid", "0", "--out"]
    for name, before in (("one", []), ("two", [MPIRUN, "--oversubscribe", "-n", "2"] if MPIRUN else [])):
        subprocess.run([*before, *words, f"runs/{name}"], cwd=folder, env=environment(), check=True,
                       capture_output=True)
    for name in ("two", "cpp-parallel", "c-parallel"):
        assert same(folder / "runs/one", folder / "runs" / name), name


def test_what_is_installed(prefix):
    share = prefix / "share"
    man = (share / "man/man1/onnxtrain.1").read_text()
    assert man.startswith(".TH ONNXTRAIN 1") and '.SS "onnxtrain train"' in man and "\\-\\-epochs" in man
    for path in ("bash-completion/completions/onnxtrain", "zsh/vendor-completions/_onnxtrain",
                 "fish/vendor_completions.d/onnxtrain.fish"):
        assert "--epochs" in (share / path).read_text() or "-l epochs" in (share / path).read_text(), path


    sbom = json.loads((share / "doc/onnxtrain/sbom.cdx.json").read_text())
    assert {c["name"] for c in sbom["components"]} >= {"onnx", "protobuf", "oneDNN", "highway", "zlib"}
    assert all(c["version"] != "unknown" for c in sbom["components"])
    for c in sbom["components"]:
        assert len((share / f"doc/onnxtrain/licences/{c['name']}.txt").read_text()) > 500, c["name"]


def test_demo_of_an_installed_program(prefix, tmp_path):
    """The part of MNIST that packages carry: every digit equally often, and the demo learns from it."""
    done = subprocess.run([prefix / "bin/onnxtrain", "demo", "mlp"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "6,000 training and 1,000 test images of MNIST" in done.stderr
    accuracy = float(re.search(r"test accuracy ([\d.]+) % on 1,000 images", done.stdout)[1])
    assert accuracy > 90


@pytest.mark.parametrize("site", ["lib/python3.11/site-packages", "lib/python3.11/dist-packages", "."])
def test_script_of_the_wheel(site, tmp_path):
    """It finds the program of its own environment, also through a link, and names that environment's Python."""
    (tmp_path / "bin").mkdir()
    package = tmp_path / site / "onnxtrain/bin"
    package.mkdir(parents=True)
    (package / "onnxtrain").write_text('#!/bin/sh\necho "$ONNXTRAIN_PYTHON|$*"\n')
    shutil.copy(ROOT / "tools/package/onnxtrain", tmp_path / "bin/onnxtrain")
    (tmp_path / "bin/python3").write_text("#!/bin/sh\nexit 1\n")  # an environment without the package
    for program in (package / "onnxtrain", tmp_path / "bin/python3"):
        program.chmod(0o755)
    (tmp_path / "elsewhere").symlink_to(tmp_path / "bin/onnxtrain")
    for script in (tmp_path / "bin/onnxtrain", tmp_path / "elsewhere"):
        done = subprocess.run([script, "a b", "--c"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        assert done.stdout == f"{tmp_path}/bin/python3|a b --c\n", done.stderr
    shutil.rmtree(package)
    done = subprocess.run([tmp_path / "bin/onnxtrain"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
                          timeout=20)
    assert done.returncode == 1 and "is not installed where this script is" in done.stderr
