"""Batches in blocks of rows, and several processes under mpirun: the same bits, faults, resuming."""

import json
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
WEIGHTS["norm"] = WEIGHTS["mlp"] | {"g": (16,), "m": (16,), "v": (16,)}
NORM = {"mlp": "r = Relu(hb)", "norm": "n = BatchNormalization(hb, g, b1, m, v)\n  r = Relu(n)"}


def model_text(name, rng):
    def tensor(key, shape):
        numbers = np.abs(rng.normal(size=shape) * 0.3) + 0.5 if key in "gv" else rng.normal(size=shape) * 0.3
        return f"float[{','.join(map(str, shape))}] {key} = {{{', '.join(f'{v:.6f}' for v in numbers.ravel())}}}"
    weights = ", ".join(tensor(k, shape) for k, shape in WEIGHTS[name].items())
    return MLP.replace("WEIGHTS", weights).replace("NORM", NORM[name])


def environment():
    """Open MPI as root, with more processes than cores."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes")
    rng = np.random.default_rng(3)
    for name in NORM:
        ot.parse(model_text(name, rng)).save(path / f"{name}.onnx")
    np.savez(path / "data.npz", x=rng.normal(size=(203, 6)).astype("f4"), label=rng.integers(0, 4, 203))
    return path


def command(*arguments):
    return [ot_program(), "train", *map(str, arguments)]


def ot_program():
    beside = os.path.join(os.path.dirname(sys.executable), "onnxtrain")
    return beside if os.path.exists(beside) else shutil.which("onnxtrain")


def train(folder, out, *flags, ranks=0, model="mlp", check=True, **options):
    given = {"--batch": 24, "--epochs": 2} | dict(zip(flags[::2], flags[1::2], strict=True))
    words = command(folder / f"{model}.onnx", "--data", folder / "data.npz", "--threads", 1, "--out", folder / out,
                    *[w for pair in given.items() for w in pair])
    if ranks:
        words = [MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=120, **options)
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


@pytest.mark.parametrize("flags", [("--ignore-index", 2), ("--label-smoothing", 0.1, "--accumulate", 2),
                                   ("--optimizer", "momentum", "--schedule", "cosine", "--clip", 0.3)])
def test_blocks_give_what_whole_batches_give(folder, flags):
    """Means, counts, dropout and clipping are those of the whole batch: only rounding differs."""
    train(folder, "whole", *flags)
    train(folder, "blocks", "--micro-blocks", 5, *flags)
    np.testing.assert_allclose(losses(folder / "whole"), losses(folder / "blocks"), rtol=2e-6)
    whole, blocks = weights(folder / "whole"), weights(folder / "blocks")
    for name in whole:
        np.testing.assert_allclose(whole[name], blocks[name], rtol=1e-3, atol=2e-5, err_msg=name)
    shutil.rmtree(folder / "whole")
    shutil.rmtree(folder / "blocks")


def test_sums_and_weights_are_those_of_the_batch(folder):
    """Losses by sum and with class weights, more blocks than rows, against whole batches."""
    rng = np.random.default_rng(0)
    for loss in (ot.losses.CrossEntropy(reduction="sum"), ot.losses.CrossEntropy(weight=[1, 2, 0.5, 3]),
                 ot.losses.CrossEntropy(weight=[1, 2, 0.5, 3], ignore_index=1)):
        file = ot.prepare(folder / "mlp.onnx", loss=loss, optimizer=ot.SGD(lr=0.05), label="label")
        one, many = ot.Trainer(file, threads=1), ot.Trainer(file, threads=1, micro_blocks=8)
        for rows in (24, 5, 1, 7):
            feeds = {"x": rng.normal(size=(rows, 6)).astype("f4"), "label": rng.integers(0, 4, rows)}
            assert one.step(feeds).loss == pytest.approx(many.step(feeds).loss, rel=1e-6)
        for name in one.state:
            np.testing.assert_allclose(one.state[name], many.state[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_outputs_are_put_together(folder):
    """Rows of an output come in order; what is a sum over the batch is one."""
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1), label="label")
    t = ot.Trainer(file, micro_blocks=3, threads=1)
    r = t.step({"x": np.ones((7, 6), "f4"), "label": np.zeros(7, "i8")})
    assert np.isfinite(r.loss) and r.outputs["loss"] == pytest.approx(r.loss)


def test_what_cannot_be_cut_is_named(folder):
    """A loss that is no sum over rows names the node; a file that fixes its batch says so."""
    loss = ot.parse("""
        <ir_version: 8, opset_import: ["": 17]>
        rmse (float[N,4] scores, float[N,4] target) => (float loss)
        {
          d = Sub(scores, target)
          s = Mul(d, d)
          m = ReduceMean<keepdims = 0>(s)
          loss = Sqrt(m)
        }""")
    loss.save(folder / "rmse.onnx")
    file = ot.prepare(folder / "mlp.onnx", loss=str(folder / "rmse.onnx"), optimizer=ot.SGD(lr=0.1))
    feeds = {"x": np.ones((4, 6), "f4"), "target": np.ones((4, 4), "f4")}
    ot.Trainer(file).step(feeds)
    with pytest.raises(ot.ModelError, match=r"(?s)cannot be cut into blocks of rows.*Sqrt.*no sum over rows") as e:
        ot.Trainer(file, micro_blocks=2).step(feeds)
    assert e.value.code == "OT5010"
    fixed = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", batch=4, label="label")
    with pytest.raises(ot.ModelError, match="fixes its batch size"):
        ot.Trainer(fixed, micro_blocks=2).step({"x": np.ones((4, 6), "f4"), "label": np.zeros(4, "i8")})


def test_not_finite_in_one_block_is_traced(folder):
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1), label="label")
    t = ot.Trainer(file, micro_blocks=4, threads=1)
    x = np.ones((8, 6), "f4")
    x[6, 2] = np.nan
    before = {n: np.array(v) for n, v in t.state.items()}
    with pytest.raises(ot.DivergedError, match="loss became NaN"):
        t.step({"x": x, "label": np.zeros(8, "i8")})
    assert all(np.array_equal(before[n], t.state[n]) for n in before)


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
def test_resume_on_another_number_of_processes(folder):
    train(folder, "whole", "--micro-blocks", 4, "--epochs", 3)
    train(folder, "parts", "--micro-blocks", 4, "--epochs", 3, "--steps", 5, ranks=4)
    for ranks, steps in ((2, 13), (0, 0)):
        words = command("--resume", folder / "parts", "--threads", 1, "--steps", steps)
        if ranks:
            words = [MPIRUN, "--oversubscribe", "-n", str(ranks), *words]
        subprocess.run(words, env=environment(), check=True, capture_output=True, timeout=120)
    assert same(folder / "whole", folder / "parts")
    shutil.rmtree(folder / "whole")
    shutil.rmtree(folder / "parts")


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
                          timeout=60)
    assert done.returncode == 2 and done.stderr.count("error[") == 1
    assert re.search(r"error\[OT5007\]: rank 1 on host \S+ has another data than rank 0", done.stderr)
    alone = dict(environment(), ONNXTRAIN_MPI_PLUGIN=str(folder / "nowhere.so"))
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *words, str(folder / "data.npz")], env=alone,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("error[OT5003]") == 1 and not (folder / "no").exists()
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *words, str(folder / "data.npz"), "--bath", "3"],
                          env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("error[") == 1


def started(folder, out, ranks, *flags):
    """A training that does not end by itself, and the processes of its ranks."""
    shutil.rmtree(folder / out, ignore_errors=True)
    words = command(folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 8, "--epochs", 100000, "--threads",
                    1, "--micro-blocks", ranks, "--save-every", 20, "--out", folder / out, "--valid", 0, *flags)
    run = subprocess.Popen([MPIRUN, "--oversubscribe", "-n", str(ranks), *words], env=environment(), text=True,
                           stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    last = folder / out / "checkpoints" / "last.train.onnx"
    for _ in range(300):
        if last.exists():
            break
        time.sleep(0.1)
    assert last.exists(), run.communicate()[1]
    time.sleep(0.3)
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split("\n")[1:]
    children = [int(line.split()[0]) for line in listed if line.split()[1:] == [str(run.pid)]]
    assert len(children) == ranks
    return run, sorted(children)


def ends(run, seconds):
    begin = time.monotonic()
    error = run.communicate(timeout=seconds + 30)[1]
    assert time.monotonic() - begin < seconds
    return error


def resumes_exactly(folder, out, ranks):
    """What was saved goes on to the bits of a run that nobody disturbed."""
    step = int(ot.load(folder / out / "checkpoints" / "last.train.onnx").info["metadata"]["onnxtrain.step"]) + 30
    subprocess.run(command("--resume", folder / out, "--threads", 1, "--steps", step), env=environment(), check=True,
                   capture_output=True, timeout=120)
    subprocess.run(command(folder / "mlp.onnx", "--data", folder / "data.npz", "--batch", 8, "--epochs", 100000,
                           "--threads", 1, "--micro-blocks", ranks, "--valid", 0, "--out", folder / "undisturbed",
                           "--steps", step), env=environment(), check=True, capture_output=True, timeout=120)
    assert same(folder / out, folder / "undisturbed")
    shutil.rmtree(folder / out)
    shutil.rmtree(folder / "undisturbed")


@needs_mpi
@pytest.mark.parametrize(("how", "rank"), [(signal.SIGKILL, 1), (signal.SIGSTOP, 1), (signal.SIGSTOP, 0)])
def test_a_lost_process_ends_all(folder, how, rank):
    run, ranks = started(folder, "lost", 2, "--fault-timeout", 3)
    os.kill(ranks[rank], how)
    error = ends(run, 13)
    assert run.returncode != 0
    assert error.count("error[OT") <= 1, error
    if how == signal.SIGSTOP:
        assert re.search(rf"error\[OT5030\]: rank {rank} on host \S+ .* gave no sign of life for 3 s", error)
    resumes_exactly(folder, "lost", 2)


@needs_mpi
def test_a_signal_to_one_process_saves_once(folder):
    run, ranks = started(folder, "signal", 2)
    os.kill(ranks[1], signal.SIGTERM)
    error = ends(run, 20)
    assert run.returncode == 130, error
    assert error.count("stopped ") == 1 and "error[" not in error
    resumes_exactly(folder, "signal", 2)


@needs_mpi
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_launch_that_is_interrupted_says_so(folder, how):
    """The exit code of an interrupted training, and its checkpoint."""
    out = folder / "launched"
    words = [ot_program(), "launch", "-n", 2, "--", *command(folder / "mlp.onnx", "--data", folder / "data.npz")[1:],
             "--batch", 8, "--epochs", 100000, "--threads", 1, "--save-every", 20, "--out", out, "--valid", 0]
    run = subprocess.Popen([str(w) for w in words], env=environment(), text=True, stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL)
    last = out / "checkpoints" / "last.train.onnx"
    for _ in range(300):
        if last.exists():
            break
        time.sleep(0.1)
    assert last.exists(), run.communicate()[1]
    os.kill(run.pid, how)
    error = ends(run, 20)
    assert run.returncode == 130, error
    assert last.exists() and "error[" not in error
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
        subprocess.run([*before, sys.executable, str(folder / "script.py")], env=environ, check=True, timeout=120)
    one, two = (ot.load(folder / f"steps{n}.train.onnx").parameters for n in (1, 2))
    assert all(np.array_equal(one[k], two[k]) for k in one)
