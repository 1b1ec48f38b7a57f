"""Bad input through the command line: each kind has its own code and exit code, names the place and a fix
that works when typed, and loses nothing."""

import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import BINARY, cli, cnn, images, mlp, save, table  # noqa: E402


@pytest.fixture
def work(tmp_path):
    save(mlp(), tmp_path / "mlp.onnx")
    save(cnn(), tmp_path / "cnn.onnx")
    x, y = table()
    np.savez(tmp_path / "good.npz", x=x, y=y)
    return tmp_path


def refused(work, code, exit_code, *args, **more):
    r = cli("train", *args, cwd=work, **more)
    assert r.returncode == exit_code, r.stderr
    assert f"error[{code}]" in r.stderr, r.stderr
    return r.stderr


def test_label_out_of_range_names_row_values_and_offset(work):
    x, y = table()
    y = y % 3 + 1
    y[47] = 3
    np.savez(work / "d.npz", x=x, y=y)
    text = refused(work, "OT2104", 4, "mlp.onnx", "--data", "d.npz")
    first = int(np.argmax(y == 3))
    assert f"label 3 at row {first} of 'y' is outside 0..2 (model output 'logits' has 3 classes)" in text
    assert "--label-offset -1" in text and "values seen: 1..3" in text
    assert (
        cli("train", "mlp.onnx", "--data", "d.npz", "--label-offset", "-1", "--epochs", "1", cwd=work).returncode == 0
    )


def test_wrong_shape(work):
    np.savez(work / "d.npz", x=np.zeros((20, 5), np.float32), y=np.zeros(20, np.int64))
    assert "file has [20,5], model wants [N,4]" in refused(work, "OT2110", 4, "mlp.onnx", "--data", "d.npz")


def test_nhwc_data_for_an_nchw_model(work):
    x, y = images()
    np.savez(work / "d.npz", x=x.transpose(0, 2, 3, 1), y=y)
    text = refused(work, "OT2110", 4, "cnn.onnx", "--data", "d.npz")
    assert "file has [96,8,8,3], model wants [N,3,8,8]" in text and "--layout nhwc" in text
    r = cli("train", "cnn.onnx", "--data", "d.npz", "--layout", "nhwc", "--epochs", "1", cwd=work)
    assert r.returncode == 0, r.stderr


def test_help_that_fits_the_data(work):
    x, y = table()
    cases = {"targets": (dict(x=x, y=np.zeros((len(x), 3), np.float32)), "OT2110", "--loss mse"),
             "no_labels": (dict(x=x), "OT2106", "all columns are in use: save one more, named 'label'"),
             "names": (dict(x=x, q=y, r=y), "OT2106", "--map label=q"),
             "one_number": (dict(x=x[:, 0], y=y), "OT2110", "the model takes rows of shape [4]")}
    for name, (arrays, code, words) in cases.items():
        np.savez(work / f"{name}.npz", **arrays)
        assert words in refused(work, code, 4, "mlp.onnx", "--data", f"{name}.npz"), name
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--threads", "-3", cwd=work)
    assert r.returncode == 2 and "--threads" in r.stderr
    # a batch of more rows than there are needs no more memory than the rows
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--batch", "99999999999", "--epochs", "1", cwd=work)
    assert r.returncode == 0, r.stderr


def test_a_model_that_takes_text(work):
    m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g (string[N] word)
        => (float[N,3] y) {
        i = ai.onnx.ml.LabelEncoder <keys_strings = ["red","green"], values_int64s = [0,1], default_int64 = 2> (word)
        y = Gather (w, i) }""")
    m.graph.initializer.append(numpy_helper.from_array(np.eye(3, dtype=np.float32), "w"))
    onnx.save(m, work / "text.onnx")
    (work / "d.csv").write_text("word,y\n" + "red,0\ngreen,1\n" * 9)
    r = cli("train", "text.onnx", "--data", "d.csv", "--epochs", "2", cwd=work)
    assert r.returncode == 0 and "csv   18 rows text" in r.stdout + r.stderr, r.stderr
    words, y = np.array(["red", "green", "blue", "red"]), np.array([1, 0, 2, 1])
    t = ot.Trainer(ot.prepare(m, loss="cross_entropy", optimizer=ot.SGD(lr=0.5)))
    history = t.fit(lambda: iter([{"word": words, "label": y}, {"word": words[:1], "label": y[:1]}]), epochs=3)
    assert history["loss"][2] < history["loss"][0] and t.predict({"word": words}).shape == (4, 3)
    with pytest.raises(ot.Error) as e:
        t.fit({"word": words}, y)
    assert e.value.code == "OT2105" and "fit(iterable)" in str(e.value)


@pytest.mark.parametrize("value,word", [(np.nan, "a NaN"), (np.inf, "an infinity"), (-np.inf, "an infinity")])
def test_not_finite_data_names_row_and_column(work, value, word):
    x, y = table()
    x[31, 2] = value
    np.savez(work / "d.npz", x=x, y=y)
    text = refused(work, "OT2120", 4, "mlp.onnx", "--data", "d.npz", "--valid", "0")
    assert f"the data has {word}" in text and "row 31 of 'x', element [2]" in text


def test_empty_data(work):
    np.savez(work / "d.npz", x=np.zeros((0, 4), np.float32), y=np.zeros(0, np.int64))
    refused(work, "OT2101", 4, "mlp.onnx", "--data", "d.npz")
    (work / "empty.csv").write_text("")
    refused(work, "OT2101", 4, "mlp.onnx", "--data", "empty.csv")
    refused(work, "OT4001", 4, "mlp.onnx", "--data", "nothing.npz")


def test_csv_with_text(work):
    x, y = table(20)
    rows = [",".join(map(str, [*r, c])) for r, c in zip(x, y)]
    rows[7] = "1,2,many,4,0"
    (work / "d.csv").write_text("a,b,c,d,y\n" + "\n".join(rows) + "\n")
    text = refused(work, "OT2124", 4, "mlp.onnx", "--data", "d.csv", "--target", "y")
    assert "'many'" in text and "'c'" in text and "line 9" in text


def test_file_that_shrinks_while_read(work):
    folder = work / "d"
    folder.mkdir()
    rows = 300_000  # more than is taken into memory when a file is opened: rows are read on demand
    np.save(folder / "x.npy", np.zeros((rows, 64), np.float32))
    np.save(folder / "y.npy", np.zeros(rows, np.int64))
    save(mlp(inputs=64), work / "wide.onnx")
    p = subprocess.Popen([str(BINARY), "train", "wide.onnx", "--data", "d", "--batch", "64", "--valid", "0",
                          "--epochs", "3", "--progress", "bar"], cwd=work, stderr=subprocess.PIPE, bufsize=0,
                         env={**os.environ, "ONNXTRAIN_MEMORY_LIMIT": "200M"})
    seen = b""
    while b"loss " not in seen.partition(b"epochs = ")[2]:  # it is running
        piece = p.stderr.read(256)
        assert piece, seen
        seen += piece
    os.truncate(folder / "x.npy", 5000)
    err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 4 and "error[OT4005]" in err and "bytes when it was opened" in err, err


# ---- checkpoints

def trained(work, *more):
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--epochs", "2", "--out", "run", *more, cwd=work)
    assert r.returncode == 0, r.stderr
    return work / "run/checkpoints/last.train.onnx"


def test_damaged_checkpoints_are_refused_and_the_previous_one_is_offered(work):
    last = trained(work)
    good = last.read_bytes()
    previous = last.with_name("last.train.onnx.previous")
    assert previous.exists()
    rng = np.random.default_rng(0)
    cases = {"truncated": good[: len(good) // 2], "empty": b"", "zeros": bytes(len(good)),
             "tail zeroed": good[:-2000] + bytes(2000)}
    for k in range(12):
        flipped = bytearray(good)
        at = int(rng.integers(0, len(good)))
        flipped[at] ^= 1 << int(rng.integers(0, 8))
        cases[f"bit {k} at byte {at}"] = bytes(flipped)
    for name, data in cases.items():
        last.write_bytes(data)
        r = cli("train", "--resume", "run", "--epochs", "3", cwd=work)
        assert r.returncode == 1, (name, r.stderr)
        assert "error[OT4201]" in r.stderr and "is damaged" in r.stderr, (name, r.stderr)
        assert f"cp {previous.relative_to(work)} {last.relative_to(work)}" in r.stderr, (name, r.stderr)
    shutil.copy(previous, last)  # what the message says
    assert cli("train", "--resume", "run", "--epochs", "3", cwd=work).returncode == 0


def test_damage_in_a_tensor_names_it(work):
    last = trained(work)
    import onnx
    from onnx import numpy_helper
    m = onnx.load(last)
    for t in m.graph.initializer:
        if t.name == "fc2.bias":
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t) + 1, t.name))
    last.write_bytes(m.SerializeToString())
    r = cli("train", "--resume", "run", "--epochs", "3", cwd=work)
    assert r.returncode == 1 and "tensor 'fc2.bias' does not match its checksum" in r.stderr


def test_an_older_checkpoint_in_place_of_the_last_is_noticed(work):
    last = trained(work, "--keep", "5")
    r = cli("train", "--resume", "run", "--epochs", "5", "--keep", "5", cwd=work)
    assert r.returncode == 0, r.stderr
    shutil.copy(work / "run/checkpoints/epoch-0001.train.onnx", last)
    r = cli("train", "--resume", "run", "--epochs", "6", cwd=work)
    assert r.returncode == 1 and "error[OT4204]" in r.stderr, r.stderr
    assert cli("train", "--resume", "run", "--epochs", "6", "--out", "other", cwd=work).returncode == 0


def test_no_checkpoint(work):
    (work / "empty").mkdir()
    assert "error[OT4102]" in cli("train", "--resume", "empty", "--data", "good.npz", cwd=work).stderr
    assert "error[OT4202]" in cli("train", "--resume", "no.train.onnx", "--data", "good.npz", cwd=work).stderr


# ---- writing

def limit_files(bytes_):
    def set_limit():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    return set_limit


def test_a_disk_that_is_full_keeps_the_last_checkpoint(work):
    last = trained(work)
    before = last.read_bytes()
    r = cli("train", "--resume", "run", "--epochs", "4", cwd=work, preexec_fn=limit_files(len(before) // 2))
    assert r.returncode == 1, r.stderr
    assert "error[OT401" in r.stderr and "the file that was there before is unchanged" in r.stderr
    assert last.read_bytes() == before
    assert not list((work / "run").rglob("*.tmp.*"))
    r = cli("train", "--resume", "run", "--epochs", "4", cwd=work)
    assert r.returncode == 0, r.stderr
    whole = cli("train", "mlp.onnx", "--data", "good.npz", "--epochs", "4", "--out", "whole", cwd=work)
    assert whole.returncode == 0
    d = cli("diff", "run/checkpoints/last.train.onnx", "whole/checkpoints/last.train.onnx", cwd=work)
    assert d.returncode == 0, d.stdout


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """A library that makes the k-th call of write, fsync, rename or link, or the k-th allocation, fail."""
    path = tmp_path_factory.mktemp("shim") / "fail_io.so"
    source = __file__.rsplit("/", 1)[0] + "/support/fail_io.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", str(path), "-ldl"], check=True)
    return str(path)


def test_every_kth_write_fails(work, shim):
    """What is on disk afterwards loads and goes on to the same result."""
    trained(work)
    shutil.copytree(work / "run", work / "start")
    assert cli("train", "--resume", "run", "--epochs", "3", cwd=work).returncode == 0
    failed = 0
    for k in range(1, 200):
        shutil.rmtree(work / "run")
        shutil.copytree(work / "start", work / "run")
        r = cli("train", "--resume", "run", "--epochs", "3", cwd=work, env={"LD_PRELOAD": shim, "FAIL_IO": str(k)})
        if r.returncode == 0:
            break
        failed += 1
        assert r.returncode == 1 and "error[OT40" in r.stderr, (k, r.stderr)
        assert not list((work / "run").rglob("*.tmp.*")), k
        half = [text for text in lines(work / "run/metrics.jsonl") if not text.endswith("}")]
        assert not half, (k, half)
        if k % 4 == 1 or metrics(work / "run") != metrics(work / "start"):
            r = cli("train", "--resume", "run", "--epochs", "3", cwd=work)
            assert r.returncode == 0, (k, r.stderr)
            assert metrics(work / "run") == ([1, 2, 3], ["1", "2", "3"]), k
    assert failed > 10


def lines(path):
    return path.read_text().splitlines()


def metrics(run):
    """The epochs that both logs have."""
    return ([json.loads(text)["epoch"] for text in lines(run / "metrics.jsonl")],
            [text.partition(",")[0] for text in lines(run / "metrics.csv")[1:]])


def test_file_size_limit_is_an_error_with_a_code(work):
    """The system ends a process that writes past its limit, unless the process says otherwise."""
    last = trained(work)
    before = last.read_bytes(), metrics(work / "run")
    r = cli("train", "--resume", "run", "--epochs", "3", cwd=work,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY)))
    assert r.returncode == 1 and "error[OT4011]" in r.stderr, (r.returncode, r.stderr)
    assert last.read_bytes() == before[0]
    assert cli("train", "--resume", "run", "--epochs", "3", cwd=work).returncode == 0
    assert metrics(work / "run") == ([1, 2, 3], ["1", "2", "3"])


def test_every_kth_allocation_fails(work, shim):
    trained(work)
    last = work / "run/checkpoints/last.train.onnx"
    for k in [*range(1, 12), 20, 35, 60, 100]:
        before = last.read_bytes()
        r = cli("train", "--resume", "run", "--epochs", "3", cwd=work,
                env={"LD_PRELOAD": shim, "FAIL_ALLOC": str(k), "FAIL_ALLOC_BYTES": "4096"})
        if r.returncode == 0:
            continue
        assert r.returncode in (1, 3) and "error[OT" in r.stderr, (k, r.returncode, r.stderr)
        assert last.read_bytes() == before
    assert cli("train", "--resume", "run", "--epochs", "4", cwd=work).returncode == 0


def test_run_folder_that_cannot_be_written(work):
    (work / "file").write_text("x")
    text = refused(work, "OT4101", 1, "mlp.onnx", "--data", "good.npz", "--out", "file/run")
    assert "--out FOLDER" in text
    assert "error[OT4101]" in cli("train", "mlp.onnx", "--data", "good.npz", "--out", "/proc/run", cwd=work).stderr


# ---- names

def test_unknown_names_are_errors_with_a_suggestion(work):
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--epoch", "3", cwd=work)
    assert r.returncode == 2 and "error[OT0001]" in r.stderr and "did you mean --epochs?" in r.stderr
    r = cli("trian", cwd=work)
    assert r.returncode == 2 and "did you mean train?" in r.stderr
    (work / "run.toml").write_text("epochs = 2\nbacth = 8\n")
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--config", "run.toml", cwd=work)
    assert r.returncode == 2 and "error[OT0007]" in r.stderr and "did you mean 'batch'?" in r.stderr
    r = cli("train", "mlp.onnx", "--data", "good.npz", "--optimizer", "adma", cwd=work)
    assert r.returncode == 2 and "adam" in r.stderr
    r = cli("train", "mlp.onnx", "--data", "good.npz", cwd=work, env={"ONNXTRAIN_EPOCHS": "many"})
    assert r.returncode == 2 and "ONNXTRAIN_EPOCHS" in r.stderr


def test_flags_that_describe_another_training_are_refused(work):
    assert cli("prepare", "mlp.onnx", "-o", "mlp.train.onnx", cwd=work).returncode == 0
    text = refused(work, "OT0004", 2, "mlp.train.onnx", "--data", "good.npz", "--optimizer", "sgd")
    assert "--optimizer" in text
