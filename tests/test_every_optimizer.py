"""Every optimizer of the command line: a run that is resumed has the weights and state of one that was not stopped."""

import re
import subprocess
import sys

import onnx
import pytest
from onnx import numpy_helper

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from row_models import command, environment, ot_program, write_files  # noqa: E402

HELP = subprocess.run([ot_program(), "train", "--help"], capture_output=True, text=True, check=True).stdout
[NAMES] = re.findall(r"--optimizer TEXT=\w+ +(\S+)", HELP)
NAMES = sorted(name for name in NAMES.split("|") if name.isalpha())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("optimizers"))


def state(run):
    """Weights, optimizer state and counters of the last checkpoint."""
    model = onnx.load(run / "checkpoints/last.train.onnx")
    graphs = [model.graph, *(t.algorithm for t in model.training_info)]
    return {t.name: numpy_helper.to_array(t).tobytes() for g in graphs for t in g.initializer}


def test_the_list():
    assert {"adamw", "lamb", "lion", "rprop", "sgd"} <= set(NAMES) and len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_resumed(folder, name):
    def run(*words):
        done = subprocess.run(command(*words, "--threads", 1), env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    flags = (folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 24, "--epochs", 3, "--optimizer", name)
    run(*flags, "--out", folder / f"{name}-whole")
    run(*flags, "--steps", 11, "--out", folder / f"{name}-parts")
    run("--resume", folder / f"{name}-parts", "--steps", 0)
    assert state(folder / f"{name}-whole") == state(folder / f"{name}-parts")
