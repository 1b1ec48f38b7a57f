"""MPI that the program has initialised itself (as mpi4py does): no second Init, no Finalize, own communicators."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from row_models import MPIRUN, environment, needs_mpi, write_files  # noqa: E402

# What mpi4py's communicators have is py2f(). Pairs of processes train in groups of their own.
SCRIPT = """
import ctypes, sys
import numpy as np, onnxtrain as ot
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
mpi.MPI_Comm_f2c.restype = ctypes.c_void_p
assert mpi.MPI_Init(None, None) == 0
world = ctypes.c_void_p(mpi.MPI_Comm_f2c(0))
rank, pair, flag = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
rank = rank.value
assert mpi.MPI_Comm_split(world, rank // 2, rank, ctypes.byref(pair)) == 0
class Comm:
    def py2f(self): return mpi.MPI_Comm_c2f(pair)
folder, kind = sys.argv[1:]
file = ot.prepare(folder + "/mlp.onnx", loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
given = dict(communicator=Comm()) if kind == "pairs" else {}
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=4, **given)
rng = np.random.default_rng(0)
for _ in range(3):
    x, y, rows = rng.normal(size=(10, 6)).astype("f4"), rng.integers(0, 4, 10), t.rows_of_rank(10)
    loss = t.step({"x": x[rows], "label": y[rows]}).loss
assert mpi.MPI_Finalized(ctypes.byref(flag)) == 0 and flag.value == 0
with open(f"{folder}/{kind}-{rank}", "w") as f:
    f.write(f"{t.rank} {t.ranks} {loss!r}")
del t
assert mpi.MPI_Barrier(world) == 0
assert mpi.MPI_Finalize() == 0
"""


@needs_mpi
@pytest.mark.parametrize(("kind", "ranks"), [("all", 4), ("pairs", 2)])
def test_initialised_by_the_program(tmp_path, kind, ranks):
    write_files(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    env = dict(environment(), PYTHONPATH=str(ROOT / "python"))
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "4", *words, kind], env=env, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    found = [(tmp_path / f"{kind}-{r}").read_text().split() for r in range(4)]
    assert [f[:2] for f in found] == [[str(r % ranks), str(ranks)] for r in range(4)]
    assert len({f[2] for f in found}) == 1
