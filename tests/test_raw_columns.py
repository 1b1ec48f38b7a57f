"""Tables as people have them: `new` makes a model with its preprocessing inside, `train`, `eval` and `predict` take raw
columns by name, and ONNX Runtime gives the same numbers for the exported model."""

import csv
import io
import json
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, done, refused  # noqa: E402
from tables import houses, rows_of, titanic, write_table  # noqa: E402


def predictions(work, *args):
    return list(csv.reader(io.StringIO(done(work, "predict", *args).stdout)))


def in_onnxruntime(path, columns, days=()):
    """The exported model on raw columns."""
    rt = pytest.importorskip("onnxruntime")
    session = rt.InferenceSession(path)
    feeds = {}
    for i in session.get_inputs():
        values = columns[i.name]
        if i.name in days:
            values = (np.array(values, dtype="datetime64[D]").astype("int64")).tolist()
        feeds[i.name] = (np.array([["" if v is None else str(v)] for v in values], dtype=object)
                         if i.type == "tensor(string)" else
                         np.array([[np.nan if v is None else v] for v in values], dtype=np.float32))
    return session.run(None, feeds)[0]


@pytest.fixture(scope="module")
def ship(tmp_path_factory):
    """A run on the table of passengers."""
    work = tmp_path_factory.mktemp("ship")
    table = titanic()
    write_table(work / "t.csv", rows_of(table, range(700)))
    write_table(work / "test.csv", rows_of(table, range(700, 891)))
    made = done(work, "new", "mlp", "--data", "t.csv", "--target", "Survived", "-o", "m.onnx")
    trained = done(work, "train", "m.onnx", "--data", "t.csv", "--epochs", "15", "--lr", "0.005", "--out", "run")
    return work, table, made.stderr, trained.stderr


def test_from_a_table_to_predictions(ship):
    work, table, made, trained = ship
    assert "one-hot: 'Sex' (2), 'Embarked" in made and "'PassengerId' (counts the rows)" in made
    assert "4 numbers and 2 texts" in trained
    scores = json.loads(done(work, "eval", "run", "--data", "test.csv", "--json").stdout)
    assert scores["accuracy"] > 0.78
    rows = predictions(work, "run", "--data", "test.csv")
    assert rows[0] == ["prediction", "0", "1"] and len(rows) == 192
    assert {r[0] for r in rows[1:]} == {"0", "1"}


def test_the_exported_model_takes_raw_columns_in_onnxruntime(ship):
    work, table, _, _ = ship
    done(work, "export", "run", "-o", "out.onnx")
    rows = rows_of(table, range(700, 891))
    got = np.array([[float(v) for v in r[1:]] for r in predictions(work, "run", "--data", "test.csv")[1:]])
    want = in_onnxruntime(str(work / "out.onnx"), rows)
    assert np.abs(got - want).max() < 1e-5
    assert any(v is None for v in rows["Age"])


def test_columns_go_by_name_and_unknown_categories_are_said(ship):
    work, table, _, _ = ship
    rows = rows_of(table, range(700, 710))
    want = predictions(work, "run", "--data", "test.csv")[1:11]
    write_table(work / "other.csv", {"extra": ["?"] * 10, **{k: rows[k] for k in reversed(rows) if k != "Survived"}})
    assert predictions(work, "run", "--data", "other.csv")[1:] == want
    rows["Sex"] = ["unknown"] * 2 + rows["Sex"][2:]
    write_table(work / "odd.csv", rows)
    r = done(work, "predict", "run", "--data", "odd.csv")
    assert "column 'Sex': 2 rows have values that the training did not have" in r.stderr and "'unknown'" in r.stderr
    del rows["Age"]
    write_table(work / "less.csv", rows)
    assert "'Age'" in refused(work, "OT2160", 4, "predict", "run", "--data", "less.csv")
    rows = rows_of(table, range(700, 710))
    rows["Fare"][3] = "much"
    write_table(work / "word.csv", rows)
    message = refused(work, "OT2124", 4, "predict", "run", "--data", "word.csv")
    assert "'much'" in message and "line 5, column 'Fare'" in message


def test_resume_and_checkpoints_know_the_columns(ship):
    work, _, _, _ = ship
    done(work, "train", "m.onnx", "--data", "t.csv", "--epochs", "2", "--out", "short")
    done(work, "train", "--resume", "short", "--epochs", "3")
    done(work, "train", "m.onnx", "--data", "t.csv", "--epochs", "3", "--out", "whole")
    assert cli("diff", "short/checkpoints/last.train.onnx", "whole/checkpoints/last.train.onnx",
               cwd=work).returncode == 0


def test_numbers_dates_embeddings_separators_and_encodings(tmp_path):
    table = houses(400)
    table["Quality"] = [{"good": "très bon"}.get(q, q) for q in table["Quality"]]
    write_table(tmp_path / "h.csv", table, separator=";", encoding="latin1")
    message = refused(tmp_path, "OT2125", 4, "new", "mlp", "--data", "h.csv", "--target", "Price", "-o", "m.onnx")
    assert "--encoding" in message
    flags = ["--data", "h.csv", "--encoding", "latin1"]
    r = done(tmp_path, "new", "mlp", *flags, "--target", "Price", "-o", "m.onnx")
    for words in ("dates as days since 1970-01-01: 'Sold'", "embedding: 'District' (25 to 10)",
                  "one-hot: 'Quality' (4)", "'Heating' (always 'central')", "missing values in 'Area' ("):
        assert words in r.stderr
    done(tmp_path, "train", "m.onnx", *flags, "--epochs", "40", "--lr", "0.01", "--out", "run")
    scores = json.loads(done(tmp_path, "eval", "run", *flags, "--json").stdout)
    assert scores["rmse"] < 0.25 * np.std(table["Price"])
    got = np.array([[float(v) for v in r] for r in predictions(tmp_path, "run", *flags)[1:]])
    want = in_onnxruntime(str(tmp_path / "run/model.onnx"), table, days=["Sold"])
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()
    write_table(tmp_path / "wide.csv", table, separator="\t", encoding="utf-16")
    assert json.loads(done(tmp_path, "eval", "run", "--data", "wide.csv", "--json").stdout) == scores
    table["Sold"][7] = "soon"
    write_table(tmp_path / "bad.csv", table)
    message = refused(tmp_path, "OT2181", 4, "eval", "run", "--data", "bad.csv")
    assert "'soon'" in message and "line 9, column 'Sold'" in message
    assert "'soon'" in refused(tmp_path, "OT2181", 4, "new", "mlp", "--data", "bad.csv", "--target", "Price")


def test_class_names_travel_to_predict(tmp_path):
    rng = np.random.default_rng(1)
    kind = rng.choice(["ant", "bee", "cat"], 300)
    size = np.select([kind == "ant", kind == "bee"], [1.0, 2.0], 9.0) + rng.normal(size=300) / 10
    write_table(tmp_path / "k.csv", {"size": size.tolist(), "colour": rng.choice(["r", "g"], 300).tolist(),
                                     "kind": kind.tolist()})
    done(tmp_path, "new", "linear", "--data", "k.csv", "--target", "kind", "-o", "m.onnx")
    done(tmp_path, "train", "m.onnx", "--data", "k.csv", "--epochs", "30", "--lr", "0.1", "--out", "run")
    rows = predictions(tmp_path, "run", "--data", "k.csv")
    assert rows[0] == ["prediction", "ant", "bee", "cat"]
    assert np.mean([r[0] == k for r, k in zip(rows[1:], kind)]) > 0.9
    # whole numbers that do not count from 0 are names of classes, too
    write_table(tmp_path / "n.csv", {"size": size.tolist(), "grade": [{"ant": 3, "bee": 5, "cat": 8}[k] for k in kind]})
    done(tmp_path, "new", "linear", "--data", "n.csv", "--target", "grade", "-o", "n.onnx")
    done(tmp_path, "train", "n.onnx", "--data", "n.csv", "--epochs", "30", "--lr", "0.1", "--out", "grades")
    assert {r[0] for r in predictions(tmp_path, "grades", "--data", "n.csv")[1:]} == {"3", "5", "8"}


def test_several_numbers_to_learn(tmp_path):
    table = houses(300)
    write_table(tmp_path / "h.csv", table)
    done(tmp_path, "new", "mlp", "--data", "h.csv", "--target", "Price,Rooms", "-o", "m.onnx")
    roles = {w["name"]: w["role"] for w in ot.load(tmp_path / "m.onnx").weights()}
    assert {n for n, role in roles.items() if n.startswith("head") and role == "trained"} == {
        f"head{k}.{part}" for k in (1, 2) for part in ("weight", "bias")}
    r = done(tmp_path, "train", "m.onnx", "--data", "h.csv", "--epochs", "1", "--out", "run")
    assert "made to learn numbers" in r.stderr
    assert predictions(tmp_path, "run", "--data", "h.csv")[0] == ["Price", "Rooms"]


def test_train_without_a_model_says_the_line(tmp_path):
    write_table(tmp_path / "my table.csv", titanic(100))
    message = refused(tmp_path, "OT0005", 2, "train", "--data", "my table.csv", "--target", "Survived")
    line = message.split("train it:  onnxtrain ")[1].splitlines()[0]
    import shlex

    done(tmp_path, *shlex.split(line))
    done(tmp_path, "train", "model.onnx", "--data", "my table.csv", "--epochs", "1")


def test_preprocessing_in_front_of_a_given_model(tmp_path):
    write_table(tmp_path / "t.csv", titanic(400))
    net = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
g (float[N,10] x) => (float[N,2] logits) <float[10,2] w = {%s}, float[2] b = {0,0}>
{ z = MatMul(x, w)  logits = Add(z, b) }""" % ",".join(["0.1", "-0.1"] * 10))
    net.save(tmp_path / "net.onnx")
    message = refused(tmp_path, "OT2121", 4, "train", "net.onnx", "--data", "t.csv", "--target", "Survived", "--drop",
                      "PassengerId,Name,Sex,Embarked")
    assert "--preprocess auto" in message
    r = done(tmp_path, "train", "net.onnx", "--data", "t.csv", "--target", "Survived", "--preprocess", "auto",
             "--epochs", "5", "--lr", "0.05", "--out", "run")
    assert "one-hot: 'Sex' (2), 'Embarked' (4)" in r.stderr
    assert json.loads(done(tmp_path, "eval", "run", "--data", "t.csv", "--json").stdout)["accuracy"] > 0.7
    done(tmp_path, "train", "--resume", "run", "--epochs", "6")
    message = refused(tmp_path, "OT2172", 4, "train", "net.onnx", "--data", "t.csv", "--target", "Survived",
                      "--one-hot", "Pclass")
    assert "12 numbers per row" in message and "Pclass 3 (one-hot)" in message and "float[N,10]" in message


@pytest.mark.parametrize("flags, says", [
    (["--impute", "mean"], "the mean"), (["--impute", "most_frequent"], "the most frequent value"),
    (["--impute", "constant:-1"], "-1"), (["--scale", "minmax"], "(v - min) / (max - min)"),
    (["--scale", "30:1,10:2", "--drop", "PassengerId,Name,Pclass,Family"], "30:1,10:2"),
    (["--one-hot", "Pclass"], "'Pclass' (3)"), (["--embed", "all"], "'Sex' (2 to 2)")])
def test_choices_of_preprocessing(tmp_path, flags, says):
    table = titanic(150)
    write_table(tmp_path / "t.csv", table)
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "Survived", *flags, "-o", "m.onnx")
    assert says in r.stderr
    done(tmp_path, "train", "m.onnx", "--data", "t.csv", "--epochs", "1", "--out", "run")
    got = np.array([[float(v) for v in r[1:]] for r in predictions(tmp_path, "run", "--data", "t.csv")[1:]])
    assert np.abs(got - in_onnxruntime(str(tmp_path / "run/model.onnx"), table)).max() < 1e-5


def test_wide_tables_of_numbers_are_one_input(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(120, 140)) * 50 + 7
    columns = {f"c{k}": [None if v > 120 else v for v in x[:, k].tolist()] for k in range(140)}
    write_table(tmp_path / "w.csv", {**columns, "y": (x[:, 0] > 7).astype(int).tolist()})
    done(tmp_path, "new", "mlp", "--data", "w.csv", "-o", "m.onnx")
    assert ot.load(tmp_path / "m.onnx").inputs == ["x"]
    done(tmp_path, "train", "m.onnx", "--data", "w.csv", "--epochs", "2", "--out", "run")
    assert len(predictions(tmp_path, "run", "--data", "w.csv")) == 121


# ---- scaling happens once

def test_a_measured_scale_is_part_of_the_model(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3)) * [1, 1000, 5] + [0, 5000, 3]
    y = x[:, 0] + x[:, 1] / 1000
    write_table(tmp_path / "d.csv", {"a": x[:, 0].tolist(), "b": x[:, 1].tolist(), "c": x[:, 2].tolist(),
                                     "y": y.tolist()})
    ot.parse("""<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x) => (float[N,1] out)
<float[3,1] w = {0.1, 0.1, 0.1}, float[1] b = {0}> { z = MatMul(x, w)  out = Add(z, b) }""").save(tmp_path / "m.onnx")
    for scale in ("standard", "minmax"):
        done(tmp_path, "train", "m.onnx", "--data", "d.csv", "--target", "y", "--scale", scale, "--epochs", "20",
             "--lr", "0.1", "--out", scale)
        model = ot.load(tmp_path / scale / "model.onnx")
        assert model.info["metadata"]["onnxtrain.scale"] == "graph"
        got = np.array([float(r[0]) for r in predictions(tmp_path, scale, "--data", "d.csv")[1:]])
        rt = pytest.importorskip("onnxruntime")
        want = rt.InferenceSession(str(tmp_path / scale / "model.onnx")).run(None, {"x": x.astype("f")})[0][:, 0]
        assert np.abs(got - want).max() < 1e-5  # raw numbers in both
        assert np.corrcoef(got, y)[0, 1] > 0.7
        assert np.allclose(model.predict(x)[:, 0], got, atol=1e-5)
        same = predictions(tmp_path, scale, "--data", "d.csv", "--scale", "standard")
        assert [float(r[0]) for r in same[1:]] == got.tolist()
        assert "remove --scale" in refused(tmp_path, "OT0034", 2, "predict", scale, "--data", "d.csv", "--scale", "1,2")
        done(tmp_path, "train", "--resume", scale, "--epochs", "21")
        assert json.loads(done(tmp_path, "eval", scale, "--data", "d.csv", "--json").stdout)["rmse"] < np.std(y)


def test_files_whose_scale_is_only_in_their_metadata_are_scaled_while_reading(tmp_path):
    x = np.arange(12.0).reshape(4, 3) * 100
    write_table(tmp_path / "d.csv", {"a": x[:, 0].tolist(), "b": x[:, 1].tolist(), "c": x[:, 2].tolist()})
    m = ot.parse("""<ir_version: 8, opset_import: ["" : 17], metadata_props: [
"onnxtrain.scale": "standard", "onnxtrain.features": "[\\"a\\", \\"b\\", \\"c\\"]",
"onnxtrain.standard": "{\\"x\\": {\\"mean\\": [100, 200, 300], \\"std\\": [10, 20, 30]}}"]>
g (float[N,3] x) => (float[N,3] out) { out = Identity(x) }""")
    m.save(tmp_path / "old.onnx")
    got = np.array([[float(v) for v in r] for r in predictions(tmp_path, "old.onnx", "--data", "d.csv")[1:]])
    assert np.allclose(got, (x - [100, 200, 300]) / [10, 20, 30])


# ---- arrays and images

@pytest.mark.parametrize("kind, shape, dtype", [
    ("linear", (6,), "f"), ("mlp", (6,), "f"), ("mlp", (28, 28), "u1"), ("cnn", (12, 12), "u1"),
    ("cnn", (3, 8, 8), "f"), ("resnet", (3, 8, 8), "u1"), ("transformer", (7,), "i8"), ("lstm", (7, 2), "f"),
    ("gru", (9,), "f")])
def test_arrays_get_a_model_that_fits(tmp_path, kind, shape, dtype):
    rng = np.random.default_rng(4)
    x = rng.integers(0, 200, (60, *shape)).astype(dtype)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(60) % 3)
    hidden = [] if kind == "linear" else ["--hidden", "8"]
    r = done(tmp_path, "new", kind, "--data", "d.npz", "-o", "m.onnx", *hidden)
    assert "3 classes" in r.stderr
    done(tmp_path, "train", "m.onnx", "--data", "d.npz", "--epochs", "1", "--out", "run")
    got = np.array([[float(v) for v in r[1:]] for r in predictions(tmp_path, "run", "--data", "d.npz")[1:]])
    rt = pytest.importorskip("onnxruntime")
    session = rt.InferenceSession(str(tmp_path / "run/model.onnx"))
    shape = [len(x), *session.get_inputs()[0].shape[1:]]
    assert np.abs(got - session.run(None, {"x": x.reshape(shape)})[0]).max() < 1e-4


def test_image_folders_get_a_model_that_takes_bytes(tmp_path):
    sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/mistakes")
    from workshop import write_images

    write_images(tmp_path / "pictures")
    r = done(tmp_path, "new", "cnn", "--data", "pictures", "--hidden", "8", "-o", "m.onnx")
    assert "per channel: (v - " in r.stderr and "8 x 8, colour" in r.stderr
    assert ot.load(tmp_path / "m.onnx").info["inputs"][0]["type"] == "uint8[N,3,height,width]"
    done(tmp_path, "train", "m.onnx", "--data", "pictures", "--epochs", "1", "--out", "run")
    rows = predictions(tmp_path, "run", "--data", "pictures")
    assert rows[0] == ["file", "prediction", "cat", "dog", "owl"] and len(rows) == 25
    r = done(tmp_path, "new", "cnn", "--data", "pictures", "--hidden", "8", "--image-size", "6,4", "--scale",
         "0.5:0.4:0.3,0.2", "-o", "s.onnx")
    assert ot.load(tmp_path / "s.onnx").info["inputs"][0]["type"] == "uint8[N,3,height,width]"
    assert "6 x 4, colour" in r.stderr


def test_python_makes_the_same_model(tmp_path):
    table = titanic(200)
    write_table(tmp_path / "t.csv", table)
    done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "Survived", "-o", "m.onnx")
    m = ot.new("mlp", tmp_path / "t.csv", target="Survived", verbose=False)
    assert m.proto() == ot.load(tmp_path / "m.onnx").proto()
    columns = {k: v for k, v in table.items() if k != "Survived"}
    m.compile(optimizer=ot.AdamW(lr=0.01))
    m.fit(columns, np.array(table["Survived"]), epochs=10)
    scores = m.predict(columns)
    assert np.mean(scores.argmax(1) == table["Survived"]) > 0.8
    m.export(tmp_path / "out.onnx")
    assert np.abs(in_onnxruntime(str(tmp_path / "out.onnx"), table) - scores).max() < 1e-5
    arrays = np.zeros((30, 4), "f") + np.arange(30)[:, None], np.arange(30) % 2
    small = ot.new("mlp", arrays, hidden=[5], verbose=False)
    assert small.parameters["layer1.weight"].shape == (5, 4)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table)
    again = ot.new("mlp", frame, target="Survived", verbose=False)
    assert again.inputs == m.inputs
    again.compile().fit(frame.drop(columns="Survived"), frame["Survived"], epochs=1)
    assert again.predict(frame).shape == (200, 2)


# ---- metrics, class weights, several losses, probabilities

def test_metrics_of_classes_and_numbers(ship):
    work, table, _, _ = ship
    metrics = pytest.importorskip("sklearn.metrics")
    j = json.loads(done(work, "eval", "run", "--data", "test.csv", "--json").stdout)
    rows = predictions(work, "run", "--data", "test.csv", "--proba")[1:]
    y = np.array(table["Survived"][700:])
    p = np.array([[float(v) for v in r[1:]] for r in rows])
    assert np.allclose(p.sum(1), 1, atol=1e-6) and p.min() >= 0
    guess = p.argmax(1)
    want = metrics.precision_recall_fscore_support(y, guess, average="macro")
    assert np.allclose([j["precision"], j["recall"], j["f1"]], want[:3])
    assert j["auc"] == pytest.approx(metrics.roc_auc_score(y, p[:, 1]), abs=1e-6)
    each = metrics.precision_recall_fscore_support(y, guess)
    assert np.allclose([[c["precision"], c["recall"], c["f1"]] for c in j["per_class"]], np.array(each[:3]).T)
    text = done(work, "eval", "run", "--data", "test.csv").stdout
    assert "f1 " in text and "class     precision" in text
    r = done(work, "train", "m.onnx", "--data", "t.csv", "--epochs", "2", "--metric", "auc", "--out", "watched")
    assert "valid auc" in r.stderr and "parameters trained" in r.stderr
    message = refused(work, "OT0037", 2, "train", "m.onnx", "--data", "t.csv", "--metric", "r2", "--out", "w2")
    assert "--metric accuracy" in message


def test_predict_reads_standard_input(ship):
    import subprocess

    work, _, _, _ = ship
    want = done(work, "predict", "run", "--data", "test.csv").stdout
    from cli_models import BINARY

    r = subprocess.run([BINARY, "predict", "run", "--data", "-"], cwd=work, capture_output=True, text=True,
                       input=(work / "test.csv").read_text())
    assert r.returncode == 0 and r.stdout == want, r.stderr


def test_balanced_class_weights_find_the_rare_class(tmp_path):
    rng = np.random.default_rng(6)
    y = (rng.random(600) < 0.06).astype(int)
    x = rng.normal(size=600) + 1.5 * y
    write_table(tmp_path / "r.csv", {"x1": x.tolist(), "y": y.tolist()})
    done(tmp_path, "new", "linear", "--data", "r.csv", "-o", "m.onnx")
    recall = {}
    for name, flags in (("plain", []), ("balanced", ["--class-weights", "balanced"])):
        r = done(tmp_path, "train", "m.onnx", "--data", "r.csv", "--valid", "0", "--epochs", "30", "--lr", "0.05",
                 *flags, "--out", name)
        recall[name] = json.loads(done(tmp_path, "eval", name, "--data", "r.csv", "--which", "last",
                                       "--json").stdout)["per_class"][1]["recall"]
    assert "weights   0: 0.5" in r.stderr
    assert recall["balanced"] > recall["plain"] + 0.3
    done(tmp_path, "train", "--resume", "balanced", "--epochs", "31")
    refused(tmp_path, "OT0039", 2, "prepare", "m.onnx", "--class-weights", "balanced", "-o", "p.onnx")


def test_several_losses_on_the_command_line(tmp_path):
    ot.parse("""<ir_version: 8, opset_import: ["" : 17]> g (float[N,2] x) => (float[N,1] price, float[N,1] size)
<float[2,1] w = {0.1, 0.1}, float[2,1] v = {0.1, 0.1}> { price = MatMul(x, w)  size = MatMul(x, v) }""").save(
        tmp_path / "two.onnx")
    rng = np.random.default_rng(7)
    x = rng.normal(size=(80, 2))
    write_table(tmp_path / "d.csv", {"a": x[:, 0].tolist(), "b": x[:, 1].tolist(), "p": (x[:, 0] * 3).tolist(),
                                     "s": (x[:, 1] * 2).tolist()})
    done(tmp_path, "train", "two.onnx", "--data", "d.csv", "--target", "p,s", "--loss", "price=mse:1", "--loss",
         "size=l1:0.5", "--epochs", "40", "--lr", "0.2", "--out", "run")
    w = ot.load(tmp_path / "run/model.onnx").parameters
    assert np.allclose(w["w"][:, 0], [3, 0], atol=0.3) and np.allclose(w["v"][:, 0], [0, 2], atol=0.3)
    assert 'loss = "price=mse:1,size=l1:0.5"' in (tmp_path / "run/config.toml").read_text()
    done(tmp_path, "train", "--resume", "run", "--epochs", "41")
    assert "price=mse" in refused(tmp_path, "OT0003", 2, "train", "two.onnx", "--data", "d.csv", "--target", "p,s",
                                  "--loss", "price=mse:1", "--loss", "l1")
