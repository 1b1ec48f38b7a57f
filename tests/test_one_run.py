"""A run is the same whoever began it: Python goes on with a run of the command line and the other way round."""

import json
import os
import re
import signal
import sys
import threading
import time

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, table  # noqa: E402


def log(run):
    return [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]


def same_state(a, b):
    x, y = (ot.Trainer(str(p / "checkpoints/last.train.onnx")).state for p in (a, b))
    return set(x) == set(y) and all(x[k].tobytes() == y[k].tobytes() for k in x)


def prepared(work):
    return ot.prepare(work / "mlp.onnx", loss="cross_entropy", optimizer=ot.Adam(lr=0.01))


def test_the_command_line_goes_on_with_a_run_from_python(work):
    data = dict(np.load(work / "d.npz"))
    prepared(work).fit(data["x"], data["y"], valid=0.2, batch_size=16, epochs=4, out=work / "whole")
    prepared(work).fit(data["x"], data["y"], valid=0.2, batch_size=16, epochs=2, out=work / "run")
    config = (work / "run/config.toml").read_text()
    for line in ("batch = 16 +# call", 'valid = "0.2" +# call', "no-shuffle = false +# default", "epochs = 2 +# call"):
        assert re.search(f"^{line}$", config, re.M), (line, config)
    assert {"env.json", "data.json", "data.npz", "report.html"} <= set(os.listdir(work / "run"))
    r = cli("train", "--resume", "run", "--data", "d.npz", "--epochs", "4", cwd=work)
    assert r.returncode == 0, r.stderr
    assert same_state(work / "run", work / "whole") and [e["epoch"] for e in log(work / "run")] == [1, 2, 3, 4]
    config = (work / "run/config.toml").read_text()
    assert re.search("^batch = 16 +# run$", config, re.M) and re.search("^epochs = 4 +# flag$", config, re.M)


def test_python_goes_on_with_a_run_of_the_command_line(work):
    data = dict(np.load(work / "d.npz"))
    for out, epochs in (("whole", 4), ("run", 2)):
        flags = ["--data", "d.npz", "--batch", "16", "--epochs", epochs, "--out", out, "--lr", "0.01"]
        assert cli("train", "mlp.onnx", *flags, cwd=work).returncode == 0
    history = ot.resume(work / "run").fit(data["x"], data["y"], epochs=4)
    assert [e["epoch"] for e in history.epochs] == [3, 4] and "valid_accuracy" in history
    assert same_state(work / "run", work / "whole")


def batches(n=8, size=16):
    x, y = table(n * size)
    return [(x[i:i + size], y[i:i + size]) for i in range(0, n * size, size)]


def test_what_a_batch_raises_reaches_the_caller(work):
    def broken():
        yield from batches(2)
        raise ZeroDivisionError("mine")

    t = ot.Trainer(prepared(work))
    with pytest.raises(ZeroDivisionError, match="mine"):
        t.fit(broken, epochs=2)
    assert t.step_count == 2
    with pytest.raises(ot.DataError):
        t.fit([(np.zeros((4, 3), np.float32), np.zeros(4, np.int64))])  # rows of another width
    assert t.step_count == 2


def test_batches_are_saved_inside_an_epoch_and_go_on_there(work):
    whole, t = ot.Trainer(prepared(work)), ot.Trainer(prepared(work))
    whole.fit(batches(), epochs=2, out=work / "whole")
    t.fit(batches(), epochs=2, steps=11, out=work / "run")
    assert t.step_count == 11
    resumed = ot.resume(work / "run")
    resumed.fit(batches(), epochs=1)  # the epoch that was begun
    assert resumed.step_count == 16 and same_state(work / "run", work / "whole")
    assert [e["epoch"] for e in log(work / "run")] == [1, 2, 2]


def test_ctrl_c_saves_batches(work):
    def slow():
        for b in batches(1000):
            time.sleep(0.01)
            yield b

    t = ot.Trainer(prepared(work))
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        t.fit(slow, epochs=1, out=work / "run")
    assert 0 < t.step_count < 1000 and ot.resume(work / "run").step_count == t.step_count


def test_a_rate_that_on_epoch_sets_is_in_the_checkpoint(work):
    data = dict(np.load(work / "d.npz"))
    t = ot.Trainer(prepared(work))

    def slower(epoch):
        t.lr = t.lr / 2

    t.fit(data["x"], data["y"], epochs=2, out=work / "run", on_epoch=slower)
    assert ot.resume(work / "run").lr == pytest.approx(0.01 / 4)


@pytest.mark.parametrize(("head", "values", "loss"), [
    ("y = MatMul (x, w)", "bits", "bce_logits"),
    ("a = MatMul (x, w)  y = Identity (a)", "bits", "bce_logits"),
    ("a = MatMul (x, w)  y = Sigmoid (a)", "bits", "bce_logits"),
    ("a = MatMul (x, w)  y = HardSigmoid (a)", "bits", "bce"),
    ("y = MatMul (x, w)", "numbers", "mse"),
])
def test_the_target_chooses_the_loss_in_python_as_on_the_command_line(work, head, values, loss):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype("f4")
    y = rng.integers(0, 2, 40) if values == "bits" else rng.normal(size=40).astype("f4")
    model = ot.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
        m (float[N,3] x) => (float[N,1] y) <float[3,1] w = {{0.1, 0.2, 0.3}}> {{ {head} }}""")
    model.save(work / "one.onnx")
    np.savez(work / "one.npz", x=x, y=y.astype("f4"))
    done = cli("train", "one.onnx", "--data", "one.npz", "--epochs", "1", "--out", "run", cwd=work)
    assert done.returncode == 0, done.stderr
    assert ot.load(work / "run/checkpoints/last.train.onnx").info["metadata"]["onnxtrain.loss"] == loss
    for target in (y, y[:, None], y.astype("f8")):
        fresh = ot.load(work / "one.onnx")
        fresh.fit(x, target, epochs=1, verbose=0)
        assert fresh.trainer().model().info["metadata"]["onnxtrain.loss"] == loss
