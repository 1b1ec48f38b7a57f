"""How a run's data was read is known to everything that follows: encoding, separator, order of channels."""

import json
import sys

import numpy as np
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402


def done(work, *args):
    r = cli(*args, cwd=work)
    assert r.returncode == 0, r.stdout + r.stderr
    return r


def refused(work, code, *args):
    r = cli(*args, cwd=work)
    assert r.returncode not in (0, 1) and code in r.stderr, r.stdout + r.stderr
    return r.stderr


def scores(work, *args):
    return json.loads(done(work, "eval", *args, "--json").stdout)


# A colon is no separator that is found out. The sort of the fruit decides.
def text(rows=90):
    kinds = ["süß", "sauer", "bitter"]
    return "Größe:Sorte:Art\n" + "".join(f"{k % 7}.5:{'äöü'[k % 3]}-{k % 2}:{kinds[k % 3]}\n" for k in range(rows))


NEW = ["new", "mlp", "--data", "d.csv", "--encoding", "cp1252", "--separator", ":", "-o", "m.onnx"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    work = tmp_path_factory.mktemp("reading")
    (work / "d.csv").write_bytes(text().encode("cp1252"))
    (work / "utf8.csv").write_text(text(), encoding="utf-8")
    (work / "utf16.csv").write_bytes(text().encode("utf-16"))
    (work / "commas.csv").write_bytes(text().replace(":", ",").encode("cp1252"))
    (work / "ascii.csv").write_text("x:kind\n" + "".join(f"{k * 7 % 11}:{'ab'[k % 2]}\n" for k in range(40)))
    done(work, *NEW)
    done(work, "train", "m.onnx", "--data", "d.csv", "--epochs", "60", "--lr", "0.01", "--out", "run")
    return work


def test_a_new_model_knows_how_its_table_is_read(tables):
    r = done(tables, *NEW)
    assert "--encoding" not in r.stderr.split("next")[1], r.stderr  # nothing to be typed again
    r = done(tables, "train", "m.onnx", "--data", "d.csv", "--epochs", "1", "--out", "one")
    assert "read as cp1252, as the data of the training was" in r.stderr, r.stderr
    assert "--encoding" not in r.stderr.split("next")[1], r.stderr


@pytest.mark.parametrize("name", ["d", "utf8", "utf16", "commas"])
def test_eval_and_predict_read_every_form_of_the_table(tables, name):
    found = scores(tables, "run", "--data", name + ".csv")
    assert found["rows"] == 90 and found["accuracy"] == 1.0, found
    assert scores(tables, "run/model.onnx", "--data", name + ".csv")["accuracy"] == 1.0
    lines = done(tables, "predict", "run", "--data", name + ".csv").stdout.splitlines()
    assert [line.split(",")[0] for line in lines[1:4]] == ["süß", "sauer", "bitter"], lines[:4]


def test_resume_and_validation_files(tables):
    for name in ("d", "utf8"):  # the flags are about --data
        r = done(tables, "train", "m.onnx", "--data", "d.csv", "--encoding", "cp1252", "--separator", ":", "--valid",
                 name + ".csv", "--epochs", "60", "--lr", "0.01", "--out", "valid-" + name)
        assert "valid accuracy 100.00 %" in r.stderr, r.stderr
    done(tables, "train", "--resume", "run", "--epochs", "61")
    done(tables, "train", "--resume", "run/checkpoints/last.train.onnx", "--epochs", "62", "--out", "elsewhere")
    done(tables, "export", "run", "-o", "plain.onnx")
    done(tables, "train", "plain.onnx", "--data", "d.csv", "--epochs", "1", "--out", "again")


def test_the_flag_decides_and_mistakes_are_answered(tables):
    (tables / "other.csv").write_bytes(text().encode("utf-16-le"))  # without its mark
    refused(tables, "OT2102", "eval", "run", "--data", "other.csv")
    assert scores(tables, "run", "--data", "other.csv", "--encoding", "utf-16")["accuracy"] == 1.0
    assert "is not UTF-8" in refused(tables, "OT2125", "eval", "run", "--data", "d.csv", "--encoding", "utf-8")
    message = refused(tables, "OT2160", "eval", "run", "--data", "utf8.csv", "--encoding", "latin1")
    assert "'Größe'" in message, message  # the file has 'GrÃ¶Ã\x9fe' then
    lines = "".join(f"{k * 7 % 11},{'é' if k % 2 else 'b'}\n" for k in range(40))
    (tables / "words.csv").write_text("x,kind\n" + lines, encoding="utf-8")
    r = done(tables, "new", "mlp", "--data", "words.csv", "--encoding", "latin1", "-o", "w.onnx")
    assert "the text is UTF-8 and is read as latin1" in r.stderr, r.stderr
    done(tables, "new", "mlp", "--data", "ascii.csv", "--separator", ":", "-o", "a.onnx")
    done(tables, "train", "a.onnx", "--data", "ascii.csv", "--epochs", "1", "--out", "a")
    assert scores(tables, "a", "--data", "ascii.csv")["rows"] == 40


def test_a_file_without_the_keys_is_read_as_before(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{k % 5},{k % 3},{k % 2}\n" for k in range(40)))
    done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "y", "-o", "m.onnx")
    done(tmp_path, "train", "m.onnx", "--data", "t.csv", "--epochs", "1", "--out", "run")
    meta = json.loads(done(tmp_path, "info", "run/model.onnx", "--json").stdout).get("metadata", {})
    assert "onnxtrain.encoding" not in meta and "onnxtrain.separator" not in meta


# ---- order of channels

@pytest.fixture(scope="module")
def images(tmp_path_factory):
    work = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = rng.random((120, 8, 6, 3)).astype(np.float32)
    x[np.arange(120), :, :, y] += 1.5
    np.savez(work / "last.npz", x=x, y=y)
    np.savez(work / "first.npz", x=x.transpose(0, 3, 1, 2).copy(), y=y)
    done(work, "new", "cnn", "--data", "last.npz", "--layout", "nhwc", "-o", "m.onnx")
    return work


def test_training_follows_the_layout_of_the_model(images):
    losses = []
    for k, flags in enumerate((["--data", "last.npz"], ["--data", "last.npz", "--layout", "nhwc"],
                               ["--data", "first.npz"], ["--data", "first.npz", "--layout", "nchw"])):
        r = done(images, "train", "m.onnx", *flags, "--epochs", "2", "--out", f"run{k}")
        said = "channels last, as in the data that the model was made for" in r.stderr
        assert said == (k == 0), r.stderr
        losses.append(json.loads((images / f"run{k}/metrics.jsonl").read_text().splitlines()[-1])["train_loss"])
    assert len(set(losses)) == 1, losses  # the same numbers, however they lie
    assert 'layout = "nhwc"' in (images / "run0/config.toml").read_text()
    assert 'layout = "nchw"' in (images / "run2/config.toml").read_text()
    for run in ("run0", "run2"):
        for data in ("last.npz", "first.npz"):
            if run == "run2" and data == "last.npz":
                assert "--layout nhwc" in refused(images, "OT2110", "eval", run, "--data", data)
                continue
            assert scores(images, run, "--data", data)["rows"] == 120
    done(images, "train", "--resume", "run0", "--epochs", "3")
    assert "--layout nhwc" in refused(images, "OT2110", "train", "m.onnx", "--data", "last.npz", "--layout", "nchw",
                                      "--out", "x")


def test_rows_that_have_the_models_order_are_not_turned(tmp_path):
    """One channel: moved or not, there are as many numbers."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 8, 8, 1)).astype(np.float32)
    np.savez(tmp_path / "last.npz", x=x, y=np.arange(60) % 2)
    np.savez(tmp_path / "first.npz", x=x.transpose(0, 3, 1, 2).copy(), y=np.arange(60) % 2)
    done(tmp_path, "new", "cnn", "--data", "last.npz", "--layout", "nhwc", "-o", "m.onnx")
    losses = []
    for name in ("last", "first"):
        done(tmp_path, "train", "m.onnx", "--data", name + ".npz", "--epochs", "1", "--out", name)
        losses.append(json.loads((tmp_path / name / "metrics.jsonl").read_text())["train_loss"])
    assert losses[0] == losses[1], losses
    message = refused(tmp_path, "OT2110", "train", "m.onnx", "--data", "first.npz", "--layout", "nhwc", "--out", "x")
    assert "leave --layout nhwc out" in message, message


def test_arrays_in_python_follow_the_model(images):
    import onnxtrain as ot

    with np.load(images / "last.npz") as d:
        x, y = d["x"], d["y"]
    model = ot.new("cnn", (x, y), layout="nhwc", verbose=False)
    losses = [ot.load(str(images / "m.onnx")).fit(a, y, epochs=2, verbose=0).epochs[-1]["loss"]
              for a in (x, x.transpose(0, 3, 1, 2))]
    assert losses[0] == losses[1], losses
    model.fit(x, y, epochs=6, verbose=0)
    assert model.evaluate(x, y)["accuracy"] == model.evaluate(x.transpose(0, 3, 1, 2), y)["accuracy"] > 0.9
    a, b = model.predict(x), model.predict(x.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(a, b)
