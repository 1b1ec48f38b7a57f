"""Several processes: a step longer than the fault timeout is no fault (make figures-distributed-long: a minute)."""

import os
import subprocess
import sys

import onnxtrain as ot

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from row_models import MPIRUN, environment, needs_mpi, write_files  # noqa: E402

# Rank 1 computes for longer than the timeout while rank 0 waits for its gradients; then rank 1 is late by as much.
SCRIPT = """
import sys, time
import numpy as np, onnxtrain as ot
file = ot.prepare(sys.argv[1], loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2, fault_timeout=1)
feeds = {"x": np.ones((4, 6), "f4"), "label": np.zeros(4, "i8")}
losses = []
for step in range(3):
    begin = time.monotonic()
    while step == 1 and t.rank == 1 and time.monotonic() < begin + 3.5:
        np.linalg.inv(np.eye(300) + 1)
    if step == 2 and t.rank == 1: time.sleep(3.5)
    losses.append(t.step(feeds).loss)
sys.stdout.write(f"rank {t.rank} losses {losses[0] > losses[1] > losses[2]}\\n")  # in one piece
"""


@needs_mpi
def test_a_process_that_is_late_is_waited_for(tmp_path):
    write_files(tmp_path)
    (tmp_path / "late.py").write_text(SCRIPT)
    environ = dict(environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    words = [MPIRUN, "--oversubscribe", "-n", "2", sys.executable, tmp_path / "late.py", tmp_path / "mlp.onnx"]
    done = subprocess.run(list(map(str, words)), env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "rank 0 losses True", "rank 1 losses True"]
