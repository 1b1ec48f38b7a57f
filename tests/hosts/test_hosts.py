"""Four hosts in network namespaces: the same bits as one process, a host that is cut off, one that is not there."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
import hosts as h  # noqa: E402
import row_models as t  # noqa: E402

WHY = h.obstacle()
pytestmark = [t.needs_mpi, pytest.mark.skipif(WHY is not None, reason=WHY or "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hosts")
    rng = np.random.default_rng(3)
    t.ot.parse(t.model_text("mlp", rng)).save(path / "mlp.onnx")
    np.savez(path / "data.npz", x=rng.normal(size=(203, 6)).astype("f4"), label=rng.integers(0, 4, 203))
    return path


def words(folder, out, *more):
    return t.command(folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 24, "--threads", 1,
                     "--micro-blocks", 4, "--out", folder / out, *more)


@pytest.mark.parametrize("network", [{"rate": "1gbit"}, {"rate": "1gbit", "delay_us": 500}])
def test_four_hosts_give_the_bits_of_one_process(folder, network):
    if not (folder / "one").exists():
        subprocess.run(words(folder, "one", "--epochs", 2), env=t.environment(), check=True, capture_output=True)
    with h.Hosts(4, **network) as hosts:
        out = f"four{len(network)}"
        done = subprocess.run(hosts.mpirun(4, words(folder, out, "--epochs", 2)), env=hosts.environment(), text=True,
                              capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        sent, _ = hosts.sent(3)
    assert t.same(folder / "one", folder / out)
    assert t.losses(folder / "one") == t.losses(folder / out)
    assert sent > 2 * 8 * 1000  # gradients did go over the network: about 1 kB in each of 16 steps


def test_a_host_that_is_cut_off_ends_all(folder):
    with h.Hosts(2) as hosts:
        run = subprocess.Popen(hosts.mpirun(2, words(folder, "cut", "--epochs", 100000, "--save-every", 20, "--valid",
                                                     0, "--fault-timeout", 3)),
                               env=hosts.environment(), text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(600):
            if (folder / "cut/checkpoints/last.train.onnx").exists():
                break
            time.sleep(0.1)
        assert any(name == "onnxtrain" for name in hosts.processes(1).values())
        hosts.unplug(1)
        for _ in range(120):
            if not any(name == "onnxtrain" for k in (0, 1) for name in hosts.processes(k).values()):
                break
            time.sleep(0.5)
        left = [name for k in (0, 1) for name in hosts.processes(k).values()]
        assert "onnxtrain" not in left, left
        run.kill()  # mpirun itself waits for its daemon on the lost host
    error = run.communicate(timeout=60)[1]
    assert run.returncode != 0 and error.count("error[OT") <= 1, error
    assert re.search(r"error\[OT5030\]: rank 1 on host node2", error), error
    subprocess.run(t.command("--resume", folder / "cut", "--threads", 1, "--steps", 1000), env=t.environment(),
                   check=True, capture_output=True, timeout=120)


def test_a_host_that_is_not_there(folder):
    with h.Hosts(2) as hosts:
        hosts.names[1] = "node9"  # no such host
        done = subprocess.run(hosts.mpirun(2, words(folder, "no")), env=hosts.environment(), text=True,
                              capture_output=True, timeout=120)
        hosts.names[1] = "node2"
    assert done.returncode != 0 and "node9" in done.stderr and not (folder / "no").exists()
