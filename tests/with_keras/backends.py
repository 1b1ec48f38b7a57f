"""Interpreters with Keras' other backends (tools/requirements-backends.txt): numpy and jax without TensorFlow, torch
from the environment of the PyTorch tests."""

import functools
import glob
import os
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


@functools.cache
def _folder(name):
    done = subprocess.run([os.path.join(ROOT, "tools", "environment.sh"), name], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr.strip().split("\n")[-1])
    return done.stdout.strip()


def interpreter():
    return os.path.join(_folder("backends"), "bin", "python")


def environment(backend):
    """Variables under which the interpreter runs this checkout with a backend."""
    paths = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests", "with_keras")]
    if backend == "torch":
        paths += glob.glob(os.path.join(_folder("torch"), "lib", "python3.*", "site-packages"))
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
