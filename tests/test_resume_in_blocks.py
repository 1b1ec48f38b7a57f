"""Runs that were cut into blocks of rows: resumed in Python, alone and under mpirun; what differs between processes."""

import re
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from row_models import MPIRUN, command, environment, needs_mpi, same, write_files  # noqa: E402

SCRIPT = """
import sys, numpy as np, onnxtrain as ot
folder, run, epochs, resumed = sys.argv[1:]
data = np.load(folder + "/data.npz")
given = dict(epochs=int(epochs), batch_size=24, valid=0.1, verbose=0)
if resumed == "no":
    model = ot.load(folder + "/mlp.onnx").compile(loss="cross_entropy", optimizer=ot.Adam(lr=0.01))
    model.fit(data["x"], data["label"], out=run, micro_blocks=4, threads=1, **given)
else:
    ot.resume(run, threads=1, distributed=resumed).fit(data["x"], data["label"], **given)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_files(tmp_path_factory.mktemp("resumed"))
    (path / "script.py").write_text(SCRIPT)
    run(path, "whole", 3, "no")
    return path


def run(folder, out, epochs, resumed, ranks=1):
    words = [sys.executable, folder / "script.py", folder, folder / out, epochs, resumed]
    if ranks > 1:
        words = [MPIRUN, "--oversubscribe", "-n", ranks, *words]
    subprocess.run(list(map(str, words)), env=environment(), check=True, timeout=240)


def test_a_resumed_trainer_keeps_the_blocks_of_its_run(folder):
    run(folder, "alone", 1, "no")
    run(folder, "alone", 3, "off")
    assert same(folder / "whole", folder / "alone")


@needs_mpi
def test_a_run_is_resumed_by_two_processes(folder):
    run(folder, "two", 1, "no")
    run(folder, "two", 3, "auto", ranks=2)
    assert same(folder / "whole", folder / "two")


@needs_mpi
def test_a_process_has_one_communicator(folder):
    """The handle of all processes is 0 in Open MPI; another one is refused, and so is one that would not be used."""
    (folder / "communicators.py").write_text(f"""
import onnxtrain as ot
class Comm:
    def __init__(self, handle): self.handle = handle
    def py2f(self): return self.handle
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
first = ot.Trainer(file, distributed="auto", communicator=Comm(0))
again = ot.Trainer(file, distributed="auto", communicator=Comm(0)), ot.Trainer(file, distributed="auto")
assert [t.ranks for t in (first, *again)] == [2, 2, 2]
for given in (dict(distributed="auto", communicator=Comm(1)), dict(communicator=Comm(0))):
    try:
        ot.Trainer(file, **given)
    except ot.UsageError as e:
        assert e.code == "OT5014", e
    else:
        raise SystemExit("not refused")
""")
    words = [MPIRUN, "--oversubscribe", "-n", "2", sys.executable, str(folder / "communicators.py")]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@needs_mpi
@pytest.mark.parametrize(("one", "other", "said"), [
    (("--valid", "0.3"), (), r"another division of the data into rows for training and validation \(--valid\)"),
    (("--seed", "1"), ("--seed", "2"), r"settings differ: seed = 2 on rank 1 on host \S+, seed = 1 on rank 0"),
    (("--metric", "loss"), (), r'settings differ: metric = "" on rank 1')])
def test_what_differs_between_processes_is_named(folder, one, other, said):
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--epochs", 1, "--threads", 1, "--out",
                    folder / "different")
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *words, *one, ":", "-n", "1", *words, *other],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and done.stderr.count("error[OT5007]") == 1, done.stderr
    assert re.search(said, done.stderr), done.stderr


def test_settings_that_nobody_reads_are_refused(folder):
    """Words are looked at in one process too; a model that trains already does not change its settings."""
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
    with pytest.raises(ot.UsageError, match="OT5052"):
        ot.Trainer(file, batch_norm="all")
    x, y = np.ones((8, 6), "f4"), np.arange(8) % 4
    model = ot.load(folder / "mlp.onnx").compile(loss="cross_entropy", optimizer=ot.Adam(lr=0.01))
    model.fit(x, y, epochs=1, micro_blocks=2, verbose=0)
    model.fit(x, y, epochs=1, verbose=0)
    with pytest.raises(ot.UsageError, match="micro_blocks is 4, but this model trains with 2 already"):
        model.fit(x, y, epochs=1, micro_blocks=4, verbose=0)
