"""A project of somebody else finds the installed library through CMake and through pkg-config."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONSUMER = ROOT / "tests" / "consumer"
sys.path.insert(0, str(ROOT / "tests" / "support"))
from cli_models import mlp, save, table  # noqa: E402


def run(*args, **env):
    done = subprocess.run(args, capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", str(ROOT / "build/release"), "--prefix", str(path))
    return path


def test_installed_command(prefix):
    assert run(str(prefix / "bin/onnxtrain"), "--version").startswith("onnxtrain ")


def test_cmake(prefix, tmp_path):
    run("cmake", "-S", str(CONSUMER), "-B", str(tmp_path), "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", str(tmp_path))
    assert run(str(tmp_path / "consumer")).strip()
    # the C++ header: train, save, resume, export, run
    x, y = table(200)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    model = save(mlp(), tmp_path / "mlp.onnx")
    assert run(str(tmp_path / "misuse"), str(model)) == ""
    assert float(run(str(tmp_path / "train"), str(model),
                     str(tmp_path))) > np.bincount(y).max() / len(y)  # better than any constant guess


def test_pkg_config(prefix, tmp_path):
    [pc] = prefix.rglob("onnxtrain.pc")
    flags = run("pkg-config", "--cflags", "--libs", "onnxtrain", PKG_CONFIG_PATH=str(pc.parent)).split()
    program = tmp_path / "consumer"
    libdir = pc.parent.parent
    run("cc", str(CONSUMER / "main.c"), "-o", str(program), *flags, f"-Wl,-rpath,{libdir}")
    assert run(str(program)).strip()
