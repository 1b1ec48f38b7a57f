"""Optimizer state that processes share out (--shard-optimizer): the bits of one process, memory, resuming, mistakes."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import test_many_processes as many
from onnx import numpy_helper

import onnxtrain as ot

folder = many.folder  # a fixture

SETTINGS = {
    "adamw": ("--optimizer", "adamw", "--weight-decay", 0.1),
    "clipped": ("--optimizer", "adam", "--clip", 0.05, "--accumulate", 3, "--schedule", "cosine"),
    "lamb": ("--optimizer", "lamb", "--lr", 0.01),  # a norm of each tensor: whole tensors are shared out
    "rmsprop": ("--optimizer", "rmsprop", "--lr", 0.01),
    "nadam": ("--optimizer", "nadam", "--lr", 0.01),  # a number beside each tensor
}


def everything(run):
    """All initializers of a checkpoint: weights and the optimizer's state."""
    model = onnx.load(run / "checkpoints" / "last.train.onnx" if run.is_dir() else run)
    graphs = [model.graph, *(t.algorithm for t in model.training_info)]
    return {t.name: numpy_helper.to_array(t).tobytes() for g in graphs for t in g.initializer}


def launched(folder, out, ranks, *flags, model="mlp"):
    words = ["launch", "-n", ranks, "--by", "processes", "--", "train", folder / f"{model}.onnx", "--data",
             folder / "data.npz", "--threads", 1, "--batch", 24, "--out", folder / out, "--shard-optimizer", *flags]
    return subprocess.run([many.ot_program(), *map(str, words)], capture_output=True, text=True, timeout=240)


def remove(folder, *names):
    for name in names:
        shutil.rmtree(folder / name)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_bits_of_one_process(folder, name):
    flags = (*SETTINGS[name], "--micro-blocks", 4, "--epochs", 2)
    many.train(folder, "one", *flags)
    for ranks in (2, 4):
        done = launched(folder, "many", ranks, *flags)
        assert done.returncode == 0, done.stderr
        assert everything(folder / "one") == everything(folder / "many")
        assert many.losses(folder / "one") == many.losses(folder / "many")
        kept = json.loads((folder / "many" / "env.json").read_text())["optimizer_state"]
        assert sum(kept["bytes_of_rank"]) == kept["bytes"] and len(kept["bytes_of_rank"]) == ranks
        assert max(kept["bytes_of_rank"]) < kept["bytes"]
        if name in ("adamw", "rmsprop"):  # by elements: no rank has more than its part and a few elements
            assert max(kept["bytes_of_rank"]) <= kept["bytes"] / ranks + 2 * 3 * 64
        assert re.search(r"optimizer state .* shared out, about .*\(--shard-optimizer\)", done.stderr)
        assert re.search(rf"memory .*optimizer state .* in each of {ranks} processes", done.stderr), done.stderr
        remove(folder, "many")
    remove(folder, "one")


def test_resumed_on_another_number_of_processes(folder):
    flags = (*SETTINGS["clipped"][:-2], "--micro-blocks", 4, "--epochs", 3)  # a schedule follows from --steps
    many.train(folder, "one", *flags)
    assert launched(folder, "many", 4, *flags, "--steps", 5).returncode == 0
    resume = ["train", "--resume", folder / "many", "--threads", 1, "--steps"]
    start = [many.ot_program(), "launch", "-n", 2, "--by", "processes", "--"]
    for words in ([*start, *resume, 13, "--shard-optimizer"], [many.ot_program(), *resume, 0]):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
    assert everything(folder / "one") == everything(folder / "many")
    remove(folder, "one", "many")


def test_mistakes(folder):
    """Nothing to share out is said once; alone the flag changes nothing."""
    done = launched(folder, "no", 2, "--optimizer", "sgd")
    assert done.returncode == 3 and done.stderr.count("error[") == 1, done.stderr
    assert "error[OT5055]" in done.stderr and "keeps no state" in done.stderr
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.Adam(), label="label")
    alone = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2, shard_optimizer=True)
    alone.step({"x": np.ones((4, 6), "f4"), "label": np.zeros(4, "i8")})
    assert "optimizer_state_bytes" not in alone.memory


SCRIPT = """
import sys, numpy as np, onnxtrain as ot
folder, kind = sys.argv[1:3]
shard = kind != "plain"
t = ot.Trainer(folder + "/gan.train.onnx", threads=1, distributed="auto", micro_blocks=4, shard_optimizer=shard)
rng = np.random.default_rng(0)
for rows in (16, 16, 3, 7):                     # two training sections, fewer rows than blocks
    mine = t.rows_of_rank(rows)
    noise, data = rng.standard_normal((2, rows, 4)).astype("f4")
    t.step({"noise": noise[mine], "data": data[mine, :2]}, which=0)
    t.step({"noise": noise[mine]}, which=1)
    names = list(t.state)
    kept = t.state[names[-1]]                   # whole in every process
    if kind == "alone" and t.rank == 0: t.save(folder + "/no.train.onnx")
print(t.rank, float(np.abs(kept).sum()))
t.save(folder + f"/{kind}.train.onnx")
if t.rank == 0: print(t.memory)
"""


@many.needs_mpi
def test_sections_and_python(folder):
    """Two sections under mpirun; saving in one process only is told, and does not hang."""
    shutil.copy(os.path.join(many.TOP, "examples", "gan", "gan.train.onnx"), folder)
    (folder / "sharded.py").write_text(SCRIPT)
    environ = dict(many.environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    words = [sys.executable, folder / "sharded.py", folder]
    ranks = [many.MPIRUN, "--oversubscribe", "-n", "2"]
    subprocess.run(list(map(str, [*words, "plain"])), env=environ, check=True, timeout=240)
    done = subprocess.run(list(map(str, [*ranks, *words, "sharded"])), env=environ, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0 and "optimizer_state_bytes_of_rank" in done.stdout, done.stderr
    assert everything(folder / "plain.train.onnx") == everything(folder / "sharded.train.onnx")
    done = subprocess.run(list(map(str, [*ranks, *words, "alone"])), env=environ, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode != 0 and "OT5057" in done.stderr, done.stderr


# the loss is finite, its gradient is not: 0/0 at the square root of a row of zeros
ROOTS = """
<ir_version: 8, opset_import: ["": 17]>
roots (float[N,6] x) => (float[N,4] scores)
<float[6,4] w = {WEIGHTS}>
{
  h = MatMul(x, w)
  a = Mul(h, h)
  scores = Sqrt(a)
}
"""


@pytest.mark.parametrize("sharded", [False, True])
def test_a_gradient_that_is_not_finite(folder, sharded):
    """On one rank only, with a finite loss: nothing is written anywhere, and all stop with one error."""
    rng = np.random.default_rng(0)
    numbers = ", ".join(f"{v:.5f}" for v in rng.normal(size=24))
    ot.parse(ROOTS.replace("WEIGHTS", numbers)).save(folder / "roots.onnx")
    x = rng.normal(size=(64, 6)).astype("f4")
    x[60] = 0
    np.savez(folder / "roots.npz", x=x, label=rng.integers(0, 4, 64))
    flags = ["--optimizer", "adam", "--batch", 16, "--epochs", 1, "--valid", 0, "--threads", 1, "--no-shuffle",
             "--data", folder / "roots.npz", "--out", folder / "roots", *(["--shard-optimizer"] if sharded else [])]
    words = [many.ot_program(), "launch", "-n", 2, "--by", "processes", "--", "train", folder / "roots.onnx", *flags]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=240)
    assert done.returncode == 5 and done.stderr.count("error[") == 1, done.stderr
    assert "error[OT3001]" in done.stderr and "in the rows of rank 1" in done.stderr and "at step 4" in done.stderr
    last = ot.load(folder / "roots" / "checkpoints" / "last.train.onnx")
    assert all(np.isfinite(v).all() for v in last.parameters.values())
    remove(folder, "roots")


@many.needs_mpi
def test_other_settings_in_one_process(folder):
    """A Trainer that is told something else in one process is refused in all."""
    (folder / "other.py").write_text(f"""
import os, onnxtrain as ot
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
rank = os.environ["OMPI_COMM_WORLD_RANK"]
ot.Trainer(file, threads=1, distributed="auto", shard_optimizer=rank == "1")
""")
    environ = dict(many.environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    words = [many.MPIRUN, "--oversubscribe", "-n", "2", sys.executable, str(folder / "other.py")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode != 0 and done.stderr.count("error[") == 1, done.stderr
    assert re.search(r"error\[OT5007\]: rank 1 .* has another number of blocks, .* shard_optimizer", done.stderr)
