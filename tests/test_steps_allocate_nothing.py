"""Steps of a batch in blocks, in one process and in two: from the second of a shape on nothing is allocated."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import onnxtrain as ot

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from row_models import MPIRUN, environment, needs_mpi, write_files  # noqa: E402

LIBRARY = ROOT / "build/release"
CASES = {  # file, optimizer, blocks, batch norm, sharded, rows of the batches
    "mlp": ("mlp", ot.Adam(lr=0.01), 4, "local", "whole", 16),
    "blocks of different sizes": ("mlp", ot.Adam(lr=0.01), 4, "local", "whole", 10, 16),
    "momentum": ("mlp", ot.SGD(lr=0.01, momentum=0.9), 2, "local", "whole", 16),
    "local": ("cnn", ot.Adam(lr=0.01), 2, "local", "whole", 16),
    "sync": ("cnn", ot.Adam(lr=0.01), 2, "sync", "whole", 16),
    "sharded": ("mlp", ot.Adam(lr=0.01), 4, "local", "shard", 16),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_files(tmp_path_factory.mktemp("allocations"))
    for name, compiler in (("alone", ["cc"]), ("ranks", ["mpicc", "-DWITH_MPI"])):
        if shutil.which(compiler[0]):
            compiled(compiler, ROOT / "tests/support/step_allocations.c", path / name)
    return path


def compiled(compiler, source, program):
    subprocess.run([*compiler, "-std=gnu11", "-O1", "-Wall", "-rdynamic", str(source), f"-I{ROOT / 'include'}",
                    f"-L{LIBRARY}", "-lonnxtrain", f"-Wl,-rpath,{LIBRARY}", "-o", str(program)], check=True)


def counted(folder, program, name, before=()):
    model, optimizer, *rest = CASES[name]
    file = folder / f"{model}-{name.replace(' ', '-')}.train.onnx"
    ot.prepare(folder / f"{model}.onnx", loss="cross_entropy", optimizer=optimizer, label="label").save(file)
    done = subprocess.run([*before, str(folder / program), str(file), *map(str, rest)], env=environment(),
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.strip().split("\n"))


@pytest.mark.parametrize("name", [n for n in CASES if n != "sharded"])
def test_in_one_process(folder, name):
    steps = 3 * len(CASES[name][5:])
    assert counted(folder, "alone", name) == [f"0 allocations in {steps} steps"]


@needs_mpi
@pytest.mark.parametrize("name", CASES)
def test_in_two_processes(folder, name):
    """What the MPI library allocates for its own messages does not count."""
    steps = 3 * len(CASES[name][5:])
    found = counted(folder, "ranks", name, [MPIRUN, "--oversubscribe", "-n", "2"])
    assert found == [f"0 allocations in {steps} steps"] * 2


def test_allocations_are_seen(folder):
    """The counter counts: steps of a batch size that was not there before make plans."""
    text = (ROOT / "tests/support/step_allocations.c").read_text()
    assert text.count("all = atoi(argv[k])") == 1
    (folder / "new.c").write_text(text.replace("all = atoi(argv[k])", "all = atoi(argv[k]) + turn"))
    compiled(["cc"], folder / "new.c", folder / "new")
    [line] = counted(folder, "new", "mlp")
    assert int(line.split()[0]) > 100
