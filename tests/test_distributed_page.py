"""docs/distributed.md: its commands and programs run, on this machine and on hosts in network namespaces."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/hosts")]
import hosts as h  # noqa: E402
from row_models import MPIRUN, environment, needs_mpi  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs/distributed.md").read_text(), re.M | re.S)
SET_UP = ("apt-get install", "make mpi")  # tools/setup.sh and tools/mpi_plugin.sh have done it
pytestmark = needs_mpi


def block(kind, word):
    [found] = [text for k, text in BLOCKS if k == kind and word in text]
    return found


def commands(text):
    return [part.split("\n")[0] for part in re.split(r"^\$ ", text, flags=re.M)[1:]]


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "examples/transfer/new_head.onnx", tmp_path / "model.onnx")
    data = np.load(ROOT / "examples/transfer/data.npz")
    x, y = data["x_train"][:256], data["y_train"][:256].astype(np.int64) - 7
    for name in ("data", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y)
    return tmp_path


def run(words, folder, **more):
    env = {**environment(), "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"), **more}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done


def test_every_block_is_here():
    played = ("make mpi", "--by processes", "cat hosts", "#SBATCH", "rows_of_rank", "--shard-optimizer", "with Hosts(")
    assert len(BLOCKS) == len(played) and all(any(word in text for _, text in BLOCKS) for word in played)


def test_commands(folder):
    for word in ("make mpi", "--by processes", "--shard-optimizer"):
        for command in commands(block("console", word)):
            if not command.startswith(SET_UP):
                run(["bash", "-c", command], folder)
    assert len(list((folder / "runs").glob("model-*/model.onnx"))) == 4


def test_python(folder):
    start = ("import numpy as np, onnxtrain as ot\n"
             "file = ot.prepare('model.onnx', loss='cross_entropy', optimizer=ot.SGD(lr=0.01), label='label')\n"
             "data = np.load('data.npz')\nx = (data['x'] / np.float32(255))[:, None]\n"
             "batches = [(x[k:k + 32], data['y'][k:k + 32]) for k in range(0, len(x), 32)]\n")
    program = start + block("python", "rows_of_rank")
    # Each process has its own file: mpirun mixes what processes print, within lines too.
    own_file = "import os\nwith open(f'loss-{os.getpid()}', 'w') as f:\n    f.write(repr(loss))\n"
    (folder / "script.py").write_text(program + own_file)
    run([MPIRUN, "-n", "4", sys.executable, "script.py"], folder)
    losses = [file.read_text() for file in folder.glob("loss-*")]
    assert len(losses) == 4 and len(set(losses)) == 1
    assert (folder / "trained.onnx").exists()


def test_slurm_script(folder):
    """A program in the place of srun looks at the flag and starts two processes."""
    (folder / "bin").mkdir()
    stub = folder / "bin/srun"
    stub.write_text(f'#!/bin/bash\n[[ $1 == --mpi=pmix ]] || exit 9\nexec {MPIRUN} --oversubscribe -n 2 "${{@:2}}"\n')
    stub.chmod(0o755)
    (folder / "job.sh").write_text(block("bash", "#SBATCH").replace("/shared", str(folder)))
    run(["bash", "job.sh"], folder, PATH=f"{folder / 'bin'}:{BIN}:{os.environ['PATH']}")
    assert (folder / "runs/eight/model.onnx").exists()


def test_hosts(folder):
    if why := h.obstacle():
        pytest.skip(why)
    text = block("console", "cat hosts")
    (folder / "hosts").write_text("".join(re.findall(r"^node.*\n", text, re.M)))
    [_, command] = commands(text.replace("/shared", str(folder)))
    with h.Hosts(2) as hosts:
        settings = {f"OMPI_MCA_{k}": v for k, v in {
            "plm_rsh_agent": str(ROOT / "tests/hosts/agent.sh"), "btl": "self,tcp", "btl_tcp_if_include": "net0",
            "oob_tcp_if_include": "net0", "hwloc_base_binding_policy": "none"}.items()}
        words = hosts.on(0, ["bash", "-c", f"cd {folder} && {command}"])
        run(words, folder, ONNXTRAIN_HOSTS=hosts.prefix, **settings)
    assert (folder / "runs/both/model.onnx").exists()


def test_hosts_in_python(folder):
    if why := h.obstacle():
        pytest.skip(why)
    (folder / "four.py").write_text("import subprocess\nfrom hosts import Hosts\n" + block("python", "with Hosts("))
    run([sys.executable, "four.py"], folder, PYTHONPATH=f"{ROOT / 'tests/hosts'}:{ROOT / 'python'}")
    assert (folder / "runs/model-001/model.onnx").exists()
