"""Processes that a real Slurm starts: the bits of one process; `launch` in a job."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import test_many_processes as many  # noqa: E402

import slurm as s  # noqa: E402

folder = many.folder  # a fixture
pytestmark = [many.needs_mpi, pytest.mark.skipif(bool(s.obstacle()), reason=f"no Slurm: {s.obstacle()}")]


def test_srun_and_launch(folder):
    many.train(folder, "one", "--micro-blocks", 2)
    words = ["train", folder / "mlp.onnx", "--data", folder / "data.npz", "--threads", 1, "--batch", 24, "--epochs", 2,
             "--micro-blocks", 2, "--out"]
    with s.Slurm(folder / "slurm-node") as slurm:
        for name, before in (("srun", ["srun", "--mpi=pmix", "-n", 2, many.ot_program()]),
                             ("launch", ["salloc", "-n", 2, many.ot_program(), "launch", "-n", 2, "--"])):
            done = subprocess.run(list(map(str, [*before, *words, folder / name])), env=slurm.environment(),
                                  capture_output=True, text=True, timeout=240)
            assert done.returncode == 0, done.stderr
            assert many.same(folder / "one", folder / name)
            assert many.losses(folder / "one") == many.losses(folder / name)
    assert "srun --ntasks=2 --kill-on-bad-exit=1 --mpi=pmix" in done.stderr
