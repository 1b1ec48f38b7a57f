"""Small models whose batches are cut into blocks of rows, and runs of them in one process or under mpirun."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

MPIRUN = shutil.which("mpirun")
PLUGIN = os.path.join(os.path.dirname(ot.__file__), "libonnxtrain_mpi_openmpi.so")
needs_mpi = pytest.mark.skipif(not MPIRUN or not os.path.exists(PLUGIN),
                               reason="Open MPI or the plug-in is not there (tools/setup.sh test, tools/mpi_plugin.sh)")

MLP = """
<ir_version: 8, opset_import: ["": 17]>
mlp (float[N,6] x) => (float[N,4] scores)
<WEIGHTS>
{
  h = MatMul(x, w1)
  hb = Add(h, b1)
  NORM
  ratio = Constant<value = float {0.25}>()
  d = Dropout(r, ratio)
  scores = MatMul(d, w2)
}
"""
WEIGHTS = {"mlp": {"w1": (6, 16), "b1": (16,), "w2": (16, 4)}}
# convolutions with normalisation between them, one in a branch of its own
CNN = """
<ir_version: 8, opset_import: ["": 17]>
cnn (float[N,2,6,5] x) => (float[N,4] scores)
<WEIGHTS>
{
  a = Conv<pads = [1, 1, 1, 1]>(x, w1)
  an = BatchNormalization(a, g1, b1, m1, v1)
  r = Relu(an)
  b = Conv<pads = [1, 1, 1, 1]>(r, w2)
  bn = BatchNormalization(b, g2, b2, m2, v2)
  s = Conv(r, w3)
  sn = BatchNormalization<momentum = 0.7>(s, g3, b3, m3, v3)
  t = Add(bn, sn)
  p = GlobalAveragePool(t)
  f = Flatten(p)
  fn = BatchNormalization(f, g4, b4, m4, v4)
  scores = MatMul(fn, w4)
}
"""
WEIGHTS["cnn"] = {"w1": (8, 2, 3, 3), "w2": (8, 8, 3, 3), "w3": (8, 8, 1, 1), "w4": (8, 4)}
WEIGHTS["cnn"] |= {f"{kind}{k}": (8,) for kind in "gbmv" for k in range(1, 5)}
WEIGHTS["norm"] = WEIGHTS["mlp"] | {"g": (16,), "m": (16,), "v": (16,)}
NORM = {"mlp": "r = Relu(hb)", "norm": "n = BatchNormalization(hb, g, b1, m, v)\n  r = Relu(n)"}


def model_text(name, rng):
    def tensor(key, shape):
        numbers = np.abs(rng.normal(size=shape) * 0.3) + 0.5 if key[0] in "gv" else rng.normal(size=shape) * 0.3
        return f"float[{','.join(map(str, shape))}] {key} = {{{', '.join(f'{v:.6f}' for v in numbers.ravel())}}}"
    weights = ", ".join(tensor(k, shape) for k, shape in WEIGHTS[name].items())
    return (CNN if name == "cnn" else MLP).replace("WEIGHTS", weights).replace("NORM", NORM.get(name, ""))


def environment():
    """Open MPI as root, with more processes than cores."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def write_files(path):
    """The models and their data, in this folder."""
    rng = np.random.default_rng(3)
    for name in WEIGHTS:
        ot.parse(model_text(name, rng)).save(path / f"{name}.onnx")
    np.savez(path / "data.npz", x=rng.normal(size=(203, 6)).astype("f4"), label=rng.integers(0, 4, 203))
    np.savez(path / "images.npz", x=rng.normal(1, 2, (203, 2, 6, 5)).astype("f4"), label=rng.integers(0, 4, 203))
    return path


def command(*arguments):
    return [ot_program(), "train", *map(str, arguments)]


def ot_program():
    beside = os.path.join(os.path.dirname(sys.executable), "onnxtrain")
    return beside if os.path.exists(beside) else shutil.which("onnxtrain")


def train(folder, out, *flags, ranks=0, model="mlp", check=True, **options):
    given = {"--batch": 24, "--epochs": 2} | dict(zip(flags[::2], flags[1::2], strict=True))
    data = folder / ("images.npz" if model == "cnn" else "data.npz")
    words = command(folder / f"{model}.onnx", "--data", data, "--threads", 1, "--out", folder / out,
                    *[w for pair in given.items() for w in pair])
    if ranks:
        words = [MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=240, **options)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def weights(path):
    return {n: np.array(v) for n, v in ot.load(path / "checkpoints" / "last.train.onnx").parameters.items()}


def same(a, b):
    a, b = weights(a), weights(b)
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def losses(path):
    return [(e["train_loss"], e["valid_loss"]) for e in map(json.loads, open(path / "metrics.jsonl"))]
