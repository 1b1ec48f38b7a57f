"""Runs that were cut into blocks of rows: resumed in Python, alone and under mpirun; what differs between processes."""

import re
import subprocess
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from row_models import MPIRUN, command, environment, needs_mpi, ot_program, same, write_files  # noqa: E402

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


@needs_mpi
def test_batches_of_an_iterator(folder):
    """Every process gives the whole batches and takes its rows: the bits of one process, with a last batch of one row.
    Batches that differ between processes, as loaders that share the rows out themselves give them, are refused."""
    (folder / "iterator.py").write_text(f"""
import sys
import numpy as np, onnxtrain as ot
data = np.load({str(folder / 'data.npz')!r})
def batches():
    for k in range(0, 41, 20):
        yield data["x"][k:min(k + 20, 41)], data["label"][k:min(k + 20, 41)]
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2)
if sys.argv[1] == "shared":
    t.fit([(x[t.rows_of_rank(len(x))], y[t.rows_of_rank(len(y))]) for x, y in batches()], epochs=1)
t.fit(batches, epochs=2, verbose=0)
t.fit(batches(), epochs=1, verbose=0)
t.fit([{{"x": x, "label": y}} for x, y in batches()], epochs=1, verbose=0)
if t.rank == 0: t.save({str(folder)!r} + f"/iterator{{t.ranks}}.train.onnx")
""")
    for before in ([], [MPIRUN, "--oversubscribe", "-n", "2"]):
        subprocess.run([*before, sys.executable, str(folder / "iterator.py"), "whole"], env=environment(), check=True,
                       timeout=240)
    one, two = (ot.load(folder / f"iterator{n}.train.onnx").parameters for n in (1, 2))
    assert all(np.array_equal(one[k], two[k]) for k in one)
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", sys.executable, str(folder / "iterator.py"), "shared"],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode != 0 and done.stderr.count("error[OT") == 1, done.stderr
    said = r"OT5007\]: rank 1 on host \S+ has another batch \(fit takes whole batches"
    assert re.search(said, done.stderr), done.stderr


@needs_mpi
def test_warnings_and_progress_come_once(folder):
    (folder / "warned.py").write_text(f"""
import os, numpy as np, onnxtrain as ot
data = np.load({str(folder / 'data.npz')!r})
model = ot.load({str(folder / 'mlp.onnx')!r}).compile(loss="cross_entropy")
rank = os.environ["OMPI_COMM_WORLD_RANK"]
log = ot.callbacks.CSVLogger({str(folder)!r} + "/log-" + rank)
model.fit(data["x"], data["label"], valid=0.1, epochs=1, verbose=2, callbacks=[log])
""")
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", sys.executable, str(folder / "warned.py")],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stderr.count("[OT3113]") == 1, done.stderr
    assert (done.stdout + done.stderr).count(" samples/s") == 1, done.stdout + done.stderr
    assert (folder / "log-0").read_text().count("\n") == 2 and not (folder / "log-1").exists()


@needs_mpi
@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 0), (0, 2), (2, 1), (0, 3)])
def test_other_commands_in_one_process(folder, one, other):
    """Processes that do different things say so before they tell each other anything else."""
    if not (folder / "begun").exists():
        subprocess.run(command(folder / "mlp.onnx", "--data", folder / "data.npz", "--epochs", 1, "--micro-blocks", 2,
                               "--out", folder / "begun"), env=environment(), check=True, capture_output=True)
    (folder / "loop.py").write_text(f"""
import onnxtrain as ot
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
ot.Trainer(file, threads=1, distributed="auto")
""")
    new = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--out", folder / "different")
    said = ["onnxtrain train", "onnxtrain train --resume", "onnxtrain eval", "a program"]
    words = [new, command("--resume", folder / "begun", "--epochs", 2),
             [ot_program(), "eval", str(folder / "begun"), "--data", str(folder / "data.npz")],
             [sys.executable, str(folder / "loop.py")]]
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *words[one], ":", "-n", "1", *words[other]],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode != 0 and done.stderr.count("error[OT") == 1, done.stderr
    expected = rf"error\[OT5007\]: rank 1 on host \S+ runs {said[other]}, rank 0 on host \S+ runs {said[one]}\n"
    assert re.search(expected, done.stderr), done.stderr
    assert not (folder / "different").exists()


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
