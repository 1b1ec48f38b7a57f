"""Several processes under mpirun: the same bits, faults, resuming. Blocks in one process: test_row_blocks.py."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from row_models import (  # noqa: E402
    MPIRUN,
    PLUGIN,
    command,
    environment,
    losses,
    needs_mpi,
    ot_program,
    same,
    train,
    weights,
    write_files,
)

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def mpich_home():
    """The folder of an MPICH: MPICH_HOME (/usr with Debian's mpich), or that of `tools/environment.sh mpich`."""
    if given := os.environ.get("MPICH_HOME", ""):
        return given
    made = subprocess.run([f"{TOP}/tools/environment.sh", "mpich"], capture_output=True, text=True, cwd=TOP)
    return made.stdout.strip() if made.returncode == 0 else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("processes"))


@needs_mpi
@pytest.mark.parametrize("model", ["mlp", "norm"])
def test_same_bits_on_any_number_of_processes(folder, model):
    train(folder, "one", "--micro-blocks", 4, model=model)
    for ranks in (2, 4):
        train(folder, f"many{ranks}", "--micro-blocks", 4, ranks=ranks, model=model)
        assert same(folder / "one", folder / f"many{ranks}")
        assert losses(folder / "one") == losses(folder / f"many{ranks}")
        shutil.rmtree(folder / f"many{ranks}")
    shutil.rmtree(folder / "one")


@needs_mpi
def test_same_bits_with_norm_of_the_whole_batch(folder):
    """Ranks without rows in the last batch take part in the sums; a resumed run keeps what it had."""
    flags = ("--micro-blocks", 4, "--batch-norm", "sync", "--batch", 20, "--valid", 0)
    train(folder, "one", *flags, model="cnn")
    for ranks in (2, 4):
        train(folder, "many", *flags, ranks=ranks, model="cnn")
        assert same(folder / "one", folder / "many")
        shutil.rmtree(folder / "many")
    train(folder, "many", *flags, "--steps", 5, ranks=4, model="cnn")
    subprocess.run(command("--resume", folder / "many", "--threads", 1, "--steps", 0), env=environment(), check=True,
                   capture_output=True, timeout=240)
    assert same(folder / "one", folder / "many")
    shutil.rmtree(folder / "one")
    shutil.rmtree(folder / "many")


@needs_mpi
def test_narrow_gradients_are_said_and_near(folder):
    train(folder, "wide", "--micro-blocks", 2, ranks=2)
    done = train(folder, "narrow", "--micro-blocks", 2, "--reduce-dtype", "bf16", ranks=2)
    assert "--reduce-dtype bf16" in done.stderr + done.stdout
    wide, narrow = weights(folder / "wide"), weights(folder / "narrow")
    assert not same(folder / "wide", folder / "narrow")
    for name in wide:
        np.testing.assert_allclose(wide[name], narrow[name], atol=0.02, err_msg=name)
    shutil.rmtree(folder / "wide")
    shutil.rmtree(folder / "narrow")


@needs_mpi
def test_eval_and_predict_are_shared_out(folder):
    """The same metrics to the bit, and rows in order, by any number of processes."""
    train(folder, "model", "--epochs", 1)
    run = [ot_program(), "eval", str(folder / "model"), "--data", str(folder / "data.npz"), "--batch", "16", "--json"]
    rows = [ot_program(), "predict", str(folder / "model"), "--data", str(folder / "data.npz"), "--batch", "16"]
    found = []
    for before in ([], [MPIRUN, "--oversubscribe", "-n", "2"], [MPIRUN, "--oversubscribe", "-n", "3"]):
        done = [subprocess.run([*before, *words], env=environment(), capture_output=True, text=True, timeout=240)
                for words in (run, rows)]
        assert all(d.returncode == 0 for d in done), done
        found.append([d.stdout for d in done])
    assert found[0] == found[1] == found[2] and found[0][1].count("\n") == 204
    shutil.rmtree(folder / "model")


@needs_mpi
def test_mpich(folder):
    """The other ABI: the same bits; its mpirun with the plug-in of Open MPI is one clear error. The plug-in of packages
    does not know where the MPI library is: it is found beside the launcher."""
    if not (mpich := mpich_home()):
        pytest.skip("no MPICH: neither MPICH_HOME nor PyPI's")
    subprocess.run([f"{TOP}/tools/mpi_plugin.sh", "--all", str(folder / "plugins")], check=True, cwd=TOP)
    plugin = folder / "plugins" / "libonnxtrain_mpi_mpich.so"
    train(folder, "one", "--micro-blocks", 4)
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--threads", 1, "--batch", 24, "--epochs", 2,
                    "--micro-blocks", 4, "--out", folder / "many")
    start = [f"{mpich}/bin/mpirun", "-n", "4", *words]
    done = subprocess.run(start, env=dict(os.environ, ONNXTRAIN_MPI_PLUGIN=str(plugin)), capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    assert same(folder / "one", folder / "many") and losses(folder / "one") == losses(folder / "many")
    shutil.rmtree(folder / "many")
    said = subprocess.run([ot_program(), "doctor"], capture_output=True, text=True, timeout=240, env=dict(
        os.environ, ONNXTRAIN_MPI_PLUGIN=str(plugin), PATH=f"{mpich}/bin:{os.environ['PATH']}")).stdout
    assert re.search(r"^mpi .*libonnxtrain_mpi_mpich.so +loads$", said, re.M), said
    mixed = subprocess.run(start, env=dict(environment(), ONNXTRAIN_MPI_PLUGIN=PLUGIN), capture_output=True, text=True,
                           timeout=240)
    assert mixed.returncode != 0 and mixed.stderr.count("error[") == 1, mixed.stderr
    assert "error[OT5004]" in mixed.stderr and "two MPI libraries are mixed" in mixed.stderr
    bad = subprocess.run([*start, "--bath", "3"], env=dict(os.environ, ONNXTRAIN_MPI_PLUGIN=str(plugin)),
                         capture_output=True, text=True, timeout=240)
    assert bad.returncode != 0 and bad.stderr.count("error[") == 1, bad.stderr
    assert not (folder / "many").exists()


def launched(folder, out, ranks, *flags, env=None):
    words = ["launch", "-n", str(ranks), "--by", "processes", "--", "train", str(folder / "mlp.onnx"), "--data",
             str(folder / "data.npz"), "--threads", "1", "--out", str(folder / out), "--batch", "24", *map(str, flags)]
    return subprocess.run([ot_program(), *words], env=env, capture_output=True, text=True, timeout=240)


def test_launch_without_mpi(folder):
    """Plain processes of this host give the bits of one process; a mistake is told once."""
    train(folder, "one", "--micro-blocks", 4)
    done = launched(folder, "plain", 4, "--micro-blocks", 4, "--epochs", 2)
    assert done.returncode == 0 and "in 4 processes of this host" in done.stderr, done.stderr
    assert same(folder / "one", folder / "plain") and losses(folder / "one") == losses(folder / "plain")
    done = launched(folder, "no", 2, "--micro-blocks", 3)
    assert done.returncode == 2 and done.stderr.count("error[") == 1 and "error[OT5001]" in done.stderr
    shutil.rmtree(folder / "one")
    shutil.rmtree(folder / "plain")


def test_launch_without_mpi_goes_on_after_a_kill(folder):
    """A process that is killed ends all; --restarts goes on from the last checkpoint, to the same bits."""
    train(folder, "one", "--micro-blocks", 2, "--epochs", 400, "--valid", 0)
    words = [ot_program(), "launch", "-n", "2", "--by", "processes", "--restarts", "1", "--", "train",
             folder / "mlp.onnx", "--data", folder / "data.npz", "--threads", "1", "--out", folder / "killed",
             "--batch", "24", "--micro-blocks", "2", "--epochs", "400", "--valid", "0", "--save-every", "20"]
    run = subprocess.Popen(list(map(str, words)), text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    last = folder / "killed" / "checkpoints" / "last.train.onnx"
    wait_for(last, run, 0.02)
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split("\n")[1:]
    children = [int(line.split()[0]) for line in listed if line.split()[1:] == [str(run.pid)]]
    assert len(children) == 2
    os.kill(children[1], signal.SIGKILL)
    error = run.communicate(timeout=240)[1]
    assert run.returncode == 0 and error.count("error[OT5030]") == 1, error
    assert re.search(r"\nrestart .*\nlaunch .* train --resume \S+/killed --threads 1 ", error), error
    assert same(folder / "one", folder / "killed")
    shutil.rmtree(folder / "one")
    shutil.rmtree(folder / "killed")


def test_launch_by_srun(folder):
    """In a Slurm job srun starts the processes; a script stands for it here."""
    tools = folder / "slurm"
    tools.mkdir()
    (tools / "srun").write_text("#!/bin/sh\n[ $1 = --ntasks=3 ] && [ $2 = --kill-on-bad-exit=1 ] || exit 9\nshift 2\n"
                                "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 exec \"$@\"\n")
    (tools / "srun").chmod(0o755)
    env = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", SLURM_JOB_ID="7")
    words = [ot_program(), "launch", "-n", "3", "--", "train", folder / "mlp.onnx", "--data", folder / "data.npz",
             "--epochs", "1", "--out", folder / "slurm-run"]
    done = subprocess.run(list(map(str, words)), env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "srun --ntasks=3 --kill-on-bad-exit=1" in done.stderr, done.stderr


@needs_mpi
def test_resume_on_another_number_of_processes(folder):
    train(folder, "whole", "--micro-blocks", 4, "--epochs", 3)
    train(folder, "parts", "--micro-blocks", 4, "--epochs", 3, "--steps", 5, ranks=4)
    for ranks, steps in ((2, 13), (0, 0)):
        words = command("--resume", folder / "parts", "--threads", 1, "--steps", steps)
        if ranks:
            words = [MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
        subprocess.run(words, env=environment(), check=True, capture_output=True, timeout=240)
    assert same(folder / "whole", folder / "parts")
    shutil.rmtree(folder / "whole")
    shutil.rmtree(folder / "parts")


@needs_mpi
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="file systems of one's own need root")
def test_a_run_that_only_rank_0_sees(folder):
    """Rank 1 has an empty folder in the place of the run: both train, and resume to the bits of one process."""
    own = folder / "own"
    own.mkdir()
    train(folder, "seen", "--micro-blocks", 2)

    def both(*words):
        words = [str(w) for w in words]
        hidden = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs tmpfs "{own}" && exec "$@"', "sh", *words]
        return subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *words, ":", "-n", "1", *hidden],
                              env=environment(), capture_output=True, text=True, timeout=240)

    done = both(*command(folder / "mlp.onnx", "--data", folder / "data.npz", "--threads", 1, "--batch", 24,
                         "--epochs", 2, "--micro-blocks", 2, "--out", own / "run", "--steps", 5))
    if "mount" in done.stderr and "denied" in done.stderr:
        pytest.skip("a file system cannot be mounted here")
    assert done.returncode == 0, done.stderr
    done = both(*command("--resume", own / "run", "--threads", 1, "--steps", 0))
    assert done.returncode == 0, done.stderr
    assert same(folder / "seen", own / "run")
    done = both(*command("--resume", own / "nothing"))
    assert done.returncode != 0 and done.stderr.count("error[") == 1 and "error[OT4202]" in done.stderr, done.stderr
    shutil.copy(own / "run/model.onnx", own / "alone.onnx")
    reads = [["eval", own / "run", "--json"], ["eval", own / "run/checkpoints/last.train.onnx", "--json"],
             ["predict", own / "run"], ["predict", own / "run/model.onnx"], ["predict", own / "alone.onnx"]]
    for words in reads:
        words = [ot_program(), *words, "--data", folder / "data.npz", "--batch", 16]
        alone = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True, timeout=240)
        done = both(*words)
        assert done.returncode == 0 and done.stdout == alone.stdout, (words, done.stderr)
        done = both(*[str(w).replace("/run", "/nothing").replace("alone.onnx", "nothing.onnx") for w in words])
        assert done.returncode != 0 and done.stderr.count("error[") == 1, (words, done.stderr)
    shutil.rmtree(folder / "seen")


@needs_mpi
def test_mistakes_are_told_once(folder):
    """Processes that do not divide the blocks, a batch smaller than their number, other data in one."""
    done = train(folder, "no", "--micro-blocks", 3, ranks=2, check=False)
    assert done.returncode == 2 and done.stderr.count("error[") == 1 and "error[OT5001]" in done.stderr
    done = train(folder, "no", "--batch", 1, ranks=2, check=False)
    assert done.returncode == 2 and done.stderr.count("error[") == 1 and "error[OT5006]" in done.stderr
    data = np.load(folder / "data.npz")
    np.savez(folder / "other.npz", x=data["x"] + 1, label=data["label"])
    words = command(folder / "mlp.onnx", "--out", folder / "no", "--threads", 1, "--data")
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *words, str(folder / "data.npz"), ":", "-n", "1",
                           *words, str(folder / "other.npz")], env=environment(), capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 2 and done.stderr.count("error[") == 1
    assert re.search(r"error\[OT5007\]: rank 1 on host \S+ has another data than rank 0", done.stderr)
    data = str(folder / "data.npz")
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *words, data, ":", "-n", "1", *words, data, "--lr",
                           "0.5"], env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and done.stderr.count("error[") == 1
    assert re.search(r"error\[OT5007\]: rank 1 .* has another training \(loss, optimizer, learning rate", done.stderr)
    alone = dict(environment(), ONNXTRAIN_MPI_PLUGIN=str(folder / "nowhere.so"))
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *words, str(folder / "data.npz")], env=alone,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and "error[OT0008]" in done.stderr and not (folder / "no").exists()
    alone["ONNXTRAIN_MPI_PLUGIN"] = str(folder / "data.npz")  # there, and no library
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *words, str(folder / "data.npz")], env=alone,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 1 and done.stderr.count("error[OT5003]") == 1 and not (folder / "no").exists()
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *words, str(folder / "data.npz"), "--bath", "3"],
                          env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and done.stderr.count("error[") == 1


@needs_mpi
@pytest.mark.parametrize(("rank", "body"), [(1, "raise(SIGSTOP); return PMPI_Finalize();"),
                                            (1, "int e = PMPI_Finalize(); raise(SIGSTOP); return e;"),
                                            (0, "int e = PMPI_Finalize(); raise(SIGSTOP); return e;")])
def test_a_process_that_stops_while_all_end(folder, rank, body):
    """Stopped between its last step and the end of MPI, or behind that: nobody waits for ever, mpirun neither."""
    code = folder / "stops.c"
    code.write_text(f"#include <mpi.h>\n#include <signal.h>\nint MPI_Finalize(void) {{ {body} }}\n")
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", str(folder / "stops.so"), str(code)], check=True)
    words = command(folder / "mlp.onnx", "--out", folder / "stops", "--threads", 1, "--fault-timeout", 3, "--epochs", 1,
                    "--data", folder / "data.npz")
    both = [words, ["env", f"LD_PRELOAD={folder / 'stops.so'}", *words]]
    if rank == 0:
        both.reverse()
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "1", *both[0], ":", "-n", "1", *both[1]],
                          env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.count("error[") == 1, done.stderr
    assert re.search(rf"error\[OT5030\]: rank {rank} on host \S+ .* gave no sign of life for 3 s", done.stderr)
    assert (folder / "stops/checkpoints/last.train.onnx").exists()
    shutil.rmtree(folder / "stops")


def wait_for(file, run, every=0.1):
    """Until the file is there; a run that has ended makes none."""
    for _ in range(int(180 / every)):
        if file.exists() or run.poll() is not None:
            break
        time.sleep(every)
    assert file.exists(), run.communicate()[1]


def started(folder, out, ranks, *flags):
    """A training that does not end by itself, and the processes of its ranks."""
    shutil.rmtree(folder / out, ignore_errors=True)
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 8, "--epochs", 100000, "--threads",
                    1, "--micro-blocks", ranks, "--save-every", 20, "--out", folder / out, "--valid", 0, *flags)
    run = subprocess.Popen([MPIRUN, "--oversubscribe", "-n", str(ranks), *words], env=environment(), text=True,
                           stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    last = folder / out / "checkpoints" / "last.train.onnx"
    wait_for(last, run)
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split("\n")[1:]
    children = [int(line.split()[0]) for line in listed if line.split()[1:] == [str(run.pid)]]
    assert len(children) == ranks
    return run, sorted(children)


def ends(run):
    """Nothing hangs; how soon it ends is measured by tests/fault_campaign.py, on a machine that is not busy."""
    return run.communicate(timeout=180)[1]


def resumes_exactly(folder, out, ranks):
    """What was saved goes on to the bits of a run that nobody disturbed."""
    step = int(ot.load(folder / out / "checkpoints" / "last.train.onnx").info["metadata"]["onnxtrain.step"]) + 30
    subprocess.run(command("--resume", folder / out, "--threads", 1, "--steps", step), env=environment(), check=True,
                   capture_output=True, timeout=240)
    subprocess.run(command(folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 8, "--epochs", 100000,
                           "--threads", 1, "--micro-blocks", ranks, "--valid", 0, "--out", folder / "undisturbed",
                           "--steps", step), env=environment(), check=True, capture_output=True, timeout=240)
    assert same(folder / out, folder / "undisturbed")
    shutil.rmtree(folder / out)
    shutil.rmtree(folder / "undisturbed")


@needs_mpi
@pytest.mark.parametrize(("how", "rank"), [(signal.SIGKILL, 1), (signal.SIGSTOP, 1), (signal.SIGSTOP, 0)])
def test_a_lost_process_ends_all(folder, how, rank):
    run, ranks = started(folder, "lost", 2, "--fault-timeout", 3)
    os.kill(ranks[rank], how)
    error = ends(run)
    assert run.returncode != 0
    assert error.count("error[OT") <= 1, error
    if how == signal.SIGSTOP:
        assert re.search(rf"error\[OT5030\]: rank {rank} on host \S+ .* gave no sign of life for 3 s", error)
    resumes_exactly(folder, "lost", 2)


@needs_mpi
def test_a_signal_to_one_process_saves_once(folder):
    run, ranks = started(folder, "signal", 2)
    os.kill(ranks[1], signal.SIGTERM)
    error = ends(run)
    assert run.returncode == 130, error
    assert error.count("stopped ") == 1 and "error[" not in error
    resumes_exactly(folder, "signal", 2)


@needs_mpi
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_launch_that_is_interrupted_says_so(folder, how):
    """The exit code of an interrupted training, and its checkpoint."""
    out = folder / "launched"
    shutil.rmtree(out, ignore_errors=True)
    words = [ot_program(), "launch", "-n", 2, "--", *command(folder / "mlp.onnx", "--data", folder / "data.npz")[1:],
             "--batch", 8, "--epochs", 100000, "--threads", 1, "--save-every", 20, "--out", out, "--valid", 0]
    run = subprocess.Popen([str(w) for w in words], env=environment(), text=True, stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL)
    last = out / "checkpoints" / "last.train.onnx"
    wait_for(last, run)
    os.kill(run.pid, how)
    error = ends(run)
    assert run.returncode == 130, error
    assert error.count("stopped ") == 1 and "error[" not in error, error
    shutil.rmtree(out)


@needs_mpi
def test_python_steps_and_fit(folder):
    """A loop of one's own and `fit` under mpirun give the bits of one process with as many blocks."""
    (folder / "script.py").write_text(f"""
import numpy as np, onnxtrain as ot
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
data = np.load({str(folder / 'data.npz')!r})
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2)
for k in range(6):
    rows = np.arange(k * 20, k * 20 + 20 - k)[t.rows_of_rank(20 - k)]
    loss = t.step({{"x": data["x"][rows], "label": data["label"][rows]}}).loss
    sent = t.traffic if k == 0 else sent
if t.ranks == 2:  # gradients and loss, each rounded up to 64 bytes, once there and back; who has how many rows
    assert (t.traffic[0] - sent[0], t.traffic[1] - sent[1]) == (5 * (384 + 64 + 256 + 64 + 24), 5 * 3)
t.fit(data["x"], data["label"], epochs=1, batch_size=16)
t.save({str(folder)!r} + f"/steps{{t.ranks}}.train.onnx")
if t.rank == 0: print(t.ranks, loss)
""")
    environ = dict(environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    for before in ([], [MPIRUN, "--oversubscribe", "-n", "2"]):
        subprocess.run([*before, sys.executable, str(folder / "script.py")], env=environ, check=True, timeout=240)
    one, two = (ot.load(folder / f"steps{n}.train.onnx").parameters for n in (1, 2))
    assert all(np.array_equal(one[k], two[k]) for k in one)


TIME_FIRST = """
import numpy as np, onnxtrain as ot
rng = np.random.default_rng(1)
def tensor(name, *shape):
    return f"float{list(shape)} {name} = " + "{" + ",".join(f"{v:.6f}" for v in rng.normal(0, 0.4, shape).ravel()) + "}"
weights = ", ".join([tensor("w", 1, 12, 5), tensor("r", 1, 12, 4), tensor("v", 4, 3), "int64[1] first = {0}"])
model = ot.parse('<ir_version: 8, opset_import: ["": 17]> gru (float[T,N,5] x) => (float[N,3] y) <' + weights + "> {"
                 "all, last = GRU<hidden_size = 4>(x, w, r) h = Squeeze(last, first) y = MatMul(h, v) }")
file = ot.prepare(model, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2)
for n in (20, 13, 1, 20):
    x, label, rows = rng.normal(size=(6, n, 5)).astype("f4"), rng.integers(0, 3, n), t.rows_of_rank(n)
    loss = t.step({"x": x[:, rows], "label": label[rows]}).loss
if t.rank == 0:
    print(repr(loss), *[np.asarray(t.state[n]).tobytes().hex() for n in "wrv"])
"""


@needs_mpi
def test_rows_along_the_second_dimension(folder):
    """A GRU as ONNX has it by default, [time, batch, features]: each process gives its rows of dimension 1."""
    (folder / "time_first.py").write_text(TIME_FIRST)
    found = [subprocess.run([*before, sys.executable, str(folder / "time_first.py")], env=environment(),
                            capture_output=True, text=True, timeout=240)
             for before in ([], [MPIRUN, "--oversubscribe", "-n", "2"])]
    assert all(f.returncode == 0 for f in found), [f.stderr for f in found]
    assert found[0].stdout == found[1].stdout and len(found[0].stdout) > 100


@needs_mpi
def test_a_rank_without_rows(folder):
    """One process has no row of a batch; a batch that has none at all is refused by every process."""
    (folder / "empty.py").write_text(f"""
import numpy as np, onnxtrain as ot
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
data = np.load({str(folder / 'data.npz')!r})
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2)
for n in (8, 1, 3):
    rows = np.arange(n)[t.rows_of_rank(n)]
    t.step({{"x": data["x"][rows], "label": data["label"][rows]}})
try:
    t.step({{"x": data["x"][:0], "label": data["label"][:0]}})
except ot.DataError as e:
    assert e.code == "OT2101" and t.step_count == 3
else:
    raise SystemExit("an empty batch made a step")
t.save({str(folder)!r} + f"/empty{{t.ranks}}.train.onnx")
""")
    environ = dict(environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    for before in ([], [MPIRUN, "--oversubscribe", "-n", "2"]):
        subprocess.run([*before, sys.executable, str(folder / "empty.py")], env=environ, check=True, timeout=240)
    one, two = (ot.load(folder / f"empty{n}.train.onnx").parameters for n in (1, 2))
    assert all(np.array_equal(one[k], two[k]) for k in one)


def test_gradients_of_several_buckets(folder):
    """More than 8 MiB of gradients go in several messages, and give the bits of one process."""
    rng = np.random.default_rng(9)
    wide = {"w1": (6, 1600), "b1": (1600,), "w2": (1600, 1600), "w3": (1600, 4)}
    from onnx import TensorProto, helper, numpy_helper
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Add", ["h", "b1"], ["hb"]),
             helper.make_node("Relu", ["hb"], ["r"]), helper.make_node("MatMul", ["r", "w2"], ["m"]),
             helper.make_node("Relu", ["m"], ["n"]), helper.make_node("MatMul", ["n", "w3"], ["scores"])]
    made = [numpy_helper.from_array((rng.normal(size=s) / 40).astype("f4"), n) for n, s in wide.items()]
    graph = helper.make_graph(nodes, "wide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 4])], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "wide.onnx").write_bytes(model.SerializeToString())
    assert sum(int(np.prod(s)) for s in wide.values()) * 4 > 8 << 20
    flags = ("--micro-blocks", 2, "--steps", 4, "--valid", 0, "--optimizer", "momentum", "--lr", 0.01)
    train(folder, "wide1", *flags, model="wide")
    words = [ot_program(), "launch", "-n", 2, "--by", "processes", "--", "train", folder / "wide.onnx", "--data",
             folder / "data.npz", "--threads", 1, "--out", folder / "wide2", "--batch", 24, "--epochs", 2, *flags]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    begin = {t.name: numpy_helper.to_array(t) for t in made}
    after = weights(folder / "wide1")
    assert not any(np.array_equal(begin[n], after[n]) for n in begin) and same(folder / "wide1", folder / "wide2")
    if MPIRUN and os.path.exists(PLUGIN):
        train(folder, "wide3", *flags, model="wide", ranks=2)
        assert same(folder / "wide1", folder / "wide3")


@needs_mpi
def test_a_process_that_ends_early(folder):
    """One process makes fewer steps than the other: that is told once, and nothing hangs."""
    (folder / "uneven.py").write_text(f"""
import numpy as np, onnxtrain as ot
file = ot.prepare({str(folder / 'mlp.onnx')!r}, loss="cross_entropy", optimizer=ot.Adam(lr=0.01), label="label")
t = ot.Trainer(file, threads=1, distributed="auto", micro_blocks=2, fault_timeout=2)
for _ in range(4 - t.rank):
    t.step({{"x": np.ones((4, 6), "f4"), "label": np.zeros(4, "i8")}})
""")
    environ = dict(environment(), PYTHONPATH=os.path.dirname(os.path.dirname(ot.__file__)))
    words = [MPIRUN, "--oversubscribe", "-n", "2", sys.executable, str(folder / "uneven.py")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode != 0 and done.stderr.count("error[") == 1, done.stderr
    assert re.search(r"error\[OT5030\]: rank 1 .* has ended its training, but rank 0 still waits for it", done.stderr)
