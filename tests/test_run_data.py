"""A run's data has one meaning: columns by name, classes by the run's list, the target by its name, wherever new data
comes in (--valid, --resume, eval, predict); changed data is noticed."""

import csv
import json
import re
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, done, mlp, refused, save  # noqa: E402

NAMES = ["ant", "bee", "cat"]
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 3, 240)
X = RNG.normal(size=(240, 4)) + np.stack([Y, -Y, 2 * Y, 0 * Y], 1) * 2


def write(path, columns):
    """{name: values} as a csv, in this order."""
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(columns)
        out.writerows(zip(*columns.values()))


def table(rows=slice(None), order=("a", "species", "b", "c", "d"), **more):
    values = {"a": X[rows, 0], "b": X[rows, 1], "c": X[rows, 2], "d": X[rows, 3],
              "species": [NAMES[k] for k in Y[rows]], **more}
    return {name: values[name] for name in order}


@pytest.fixture
def work(tmp_path):
    save(mlp(), tmp_path / "mlp.onnx")
    write(tmp_path / "t.csv", table())
    return tmp_path


def trained(work, *more, data="t.csv", out="run", epochs=25):
    return done(work, "train", "mlp.onnx", "--data", data, "--epochs", epochs, "--lr", "0.02", "--out", out, *more)


def scores(work, *args):
    return json.loads(done(work, "eval", *args, "--json").stdout)


# other columns, another order, another header order of classes: the same rows
TWISTED = ("c", "extra", "d", "species", "b", "a")


def test_eval_takes_columns_and_classes_by_name(work):
    trained(work)
    want = scores(work, "run", "--data", "t.csv")
    assert want["accuracy"] > 0.9
    write(work / "other.csv", table(order=TWISTED, extra=RNG.normal(size=240)))
    assert scores(work, "run", "--data", "other.csv") == want
    # a file that lacks the first class
    rows = np.flatnonzero(Y != 0)
    write(work / "some.csv", table(rows))
    want = scores(work, "run", "--data", "some.csv")
    write(work / "again.csv", table(rows, order=TWISTED, extra=[0] * len(rows)))
    assert want["accuracy"] > 0.9 and scores(work, "run", "--data", "again.csv") == want
    assert scores(work, "run/model.onnx", "--data", "again.csv") == want


def test_eval_of_a_table_without_the_target(work):
    trained(work)
    write(work / "no.csv", table(order=("a", "b", "c", "d")))
    text = refused(work, "OT2160", 4, "eval", "run", "--data", "no.csv")
    assert "'species', which is what the run predicts" in text
    assert done(work, "predict", "run", "--data", "no.csv").stdout == done(work, "predict", "run", "--data",
                                                                           "t.csv").stdout
    assert done(work, "predict", "run", "--data", "no.csv").stdout.startswith("prediction,ant,bee,cat\n")


@pytest.mark.parametrize("command", [("eval", "run"), ("predict", "run"),
                                     ("train", "--resume", "run", "--epochs", "26")])
def test_missing_columns_are_named(work, command):
    trained(work, epochs=1)
    write(work / "less.csv", table(order=("a", "c", "species", "x1", "x2"), x1=X[:, 1], x2=X[:, 3]))
    text = refused(work, "OT2160", 4, *command, "--data", "less.csv")
    assert "no columns 'b', 'd'" in text and "it has 'a', 'c', 'species', 'x1', 'x2'" in text


def test_an_unknown_class_is_named_with_value_and_place(work):
    trained(work, epochs=1)
    columns = table()
    columns["species"][6] = "dog"
    write(work / "dog.csv", columns)
    for command in (("eval", "run"), ("train", "--resume", "run", "--epochs", "2")):
        text = refused(work, "OT2114", 4, *command, "--data", "dog.csv")
        assert "class 'dog'" in text and "line 8, column 'species'" in text and "'ant', 'bee', 'cat'" in text


def test_numbers_where_the_run_has_names_and_names_where_it_has_numbers(work):
    trained(work, epochs=1)
    write(work / "numbers.csv", {**table(), "species": Y})
    assert "class '" in refused(work, "OT2114", 4, "eval", "run", "--data", "numbers.csv")
    trained(work, "--target", "species", data="numbers.csv", out="numbers", epochs=1)
    assert "OT2124" in refused(work, "OT2124", 4, "eval", "numbers", "--data", "t.csv")


def test_a_validation_file_is_read_as_the_training(work):
    rows = np.flatnonzero(Y != 0)
    write(work / "v.csv", table(rows))
    write(work / "w.csv", table(rows, order=TWISTED, extra=[1] * len(rows)))
    write(work / "half.csv", table(slice(0, 120)))
    logs = []
    for name in ("v", "w"):
        trained(work, "--valid", f"{name}.csv", out=name, epochs=3, data="half.csv")
        lines = [json.loads(x) for x in (work / name / "metrics.jsonl").read_text().splitlines()]
        logs.append([(e["valid_loss"], e["valid_accuracy"]) for e in lines])
    assert logs[0] == logs[1]
    # and what it shows is true of the model that was written
    best = max(logs[0], key=lambda e: (e[1], -e[0]))
    assert scores(work, "w", "--data", "w.csv")["accuracy"] == pytest.approx(best[1])


def test_resume_with_a_file_in_another_order_goes_on_with_the_same_bits(work):
    trained(work, out="whole", epochs=4)
    trained(work, out="run", epochs=2)
    write(work / "other.csv", table(order=TWISTED, extra=[0] * 240))
    r = done(work, "train", "--resume", "run", "--data", "other.csv", "--epochs", "4")
    assert "OT3116" not in r.stderr
    assert cli("diff", "run/checkpoints/last.train.onnx", "whole/checkpoints/last.train.onnx", cwd=work).returncode == 0


def test_changed_data_is_said_on_resume(work):
    trained(work, epochs=1)
    assert json.loads((work / "run/data.json").read_text())["onnxtrain.data"].startswith("240 rows ")
    r = done(work, "train", "--resume", "run", "--epochs", "2")
    assert "OT3116" not in r.stderr
    changed = table()
    changed["a"] = [*changed["a"][:-1], 3.5]
    write(work / "t.csv", changed)
    r = done(work, "train", "--resume", "run", "--epochs", "3")
    assert "warning[OT3116]" in r.stderr and "240 rows" in r.stderr
    write(work / "t.csv", table(slice(0, 200)))
    r = done(work, "train", "--resume", "run", "--epochs", "4")
    assert "warning[OT3116]" in r.stderr and "240 rows" in r.stderr and "200 rows" in r.stderr


def test_validation_data_that_is_training_data_is_said(work):
    assert "warning[OT3112]" in trained(work, "--valid", "t.csv", epochs=1, out="r1").stderr
    (work / "copy.csv").write_text((work / "t.csv").read_text())
    assert "is the training data" in trained(work, "--valid", "copy.csv", epochs=1, out="r2").stderr
    write(work / "part.csv", table(RNG.permutation(240)[:80]))
    assert "each of the 80 validation rows" in trained(work, "--valid", "part.csv", epochs=1, out="r3").stderr
    assert "OT3112" not in trained(work, epochs=1, out="r4").stderr


# ---- columns: which are targets, which are left out

def numbers_model(path, features, outputs):
    r = np.random.default_rng(1)
    w = ", ".join(f"{v:.4f}" for v in r.normal(size=features * outputs) * 0.3)
    ot.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,{features}] x) => (float[N,{outputs}] y)
        <float[{features},{outputs}] w = {{{w}}}, float[{outputs}] b = {{{", ".join(["0"] * outputs)}}}>
        {{ z = MatMul(x, w)  y = Add(z, b) }}""").save(path)


def test_several_target_columns(work):
    numbers_model(work / "two.onnx", 3, 2)
    p, q = X[:, 0] - X[:, 1], 3 * X[:, 2] + 1
    write(work / "two.csv", {"p": p, "a": X[:, 0], "b": X[:, 1], "q": q, "c": X[:, 2]})
    r = done(work, "train", "two.onnx", "--data", "two.csv", "--target", "p,q", "--loss", "mse", "--epochs", "80",
             "--lr", "0.05", "--out", "two")
    assert "constant guess" in r.stderr
    # targets in this order, whatever their order in another file
    write(work / "swapped.csv", {"c": X[:, 2], "q": q, "b": X[:, 1], "p": p, "a": X[:, 0]})
    want = scores(work, "two", "--data", "two.csv")["loss"]
    assert scores(work, "two", "--data", "swapped.csv")["loss"] == want < 0.1
    rows = list(csv.DictReader(done(work, "predict", "two", "--data", "swapped.csv").stdout.splitlines()))
    assert abs(float(rows[0]["y_0"]) - p[0]) < 0.7 and abs(float(rows[0]["y_1"]) - q[0]) < 0.7
    write(work / "bad.csv", {"p": ["x"] * 240, "a": X[:, 0], "b": X[:, 1], "q": q, "c": X[:, 2]})
    assert "line 2, column 'p'" in refused(work, "OT2124", 4, "train", "two.onnx", "--data", "bad.csv", "--target",
                                           "p,q", "--loss", "mse")


def test_columns_that_are_left_out(work):
    more = {"id": np.arange(240) + 1000, "town": [["Rome", "Oslo"][k % 2] for k in range(240)]}
    order = ("id", "a", "b", "town", "c", "d", "species")
    write(work / "more.csv", table(order=order, **more))
    text = refused(work, "OT2124", 4, "train", "mlp.onnx", "--data", "more.csv", "--target", "species")
    assert "help: leave the column out:  --drop town" in text
    text = refused(work, "OT2110", 4, "train", "mlp.onnx", "--data", "more.csv", "--target", "species", "--drop",
                   "town")
    assert "help: leave columns out:  --drop id" in text
    trained(work, "--target", "species", "--drop", "town,id", data="more.csv")
    trained(work, data="t.csv", out="plain")
    assert cli("diff", "run/checkpoints/last.train.onnx", "plain/checkpoints/last.train.onnx", cwd=work).returncode == 0
    # it travels with the run and the exported model, and files without these columns are as good
    for what in ("run", "run/model.onnx"):
        assert scores(work, what, "--data", "more.csv") == scores(work, what, "--data", "t.csv")
        assert done(work, "predict", what, "--data", "more.csv").stdout == done(work, "predict", what, "--data",
                                                                                "t.csv").stdout
    done(work, "train", "--resume", "run", "--epochs", "26")
    assert refused(work, "OT2105", 4, "train", "mlp.onnx", "--data", "more.csv", "--drop", "towns").count("--drop town")
    np.savez(work / "d.npz", x=X.astype("f"), y=Y)
    refused(work, "OT2116", 2, "train", "mlp.onnx", "--data", "d.npz", "--drop", "x")


def test_a_column_that_a_target_is_mapped_to_is_no_feature(work):
    write(work / "m.csv", table(order=("a", "b", "c", "d", "species")))
    numbers = {**table(order=("a", "b", "c", "d", "species")), "species": Y}
    write(work / "m.csv", {"species": numbers.pop("species"), **numbers})
    trained(work, "--map", "label=species", data="m.csv", out="mapped", epochs=3)
    trained(work, "--target", "species", data="m.csv", out="named", epochs=3)
    assert cli("diff", "mapped/checkpoints/last.train.onnx", "named/checkpoints/last.train.onnx",
               cwd=work).returncode == 0


def test_fine_tuning_keeps_the_classes_of_the_model(work):
    trained(work)
    rows = np.flatnonzero(Y != 0)
    write(work / "new.csv", table(rows, order=TWISTED[:1] + TWISTED[2:]))
    done(work, "train", "run/model.onnx", "--data", "new.csv", "--epochs", "1", "--lr", "1e-5", "--out", "tuned")
    assert scores(work, "tuned", "--data", "t.csv")["accuracy"] > 0.9
    write(work / "others.csv", {"p": X[:, 0], "q": X[:, 1], "r": X[:, 2], "s": X[:, 3], "kind": Y})
    r = done(work, "train", "run/model.onnx", "--data", "others.csv", "--target", "kind", "--epochs", "1", "--out", "o")
    assert "warning[OT3111]" in r.stderr


# ---- arrays

def test_map_and_label_offset_travel_with_the_run(work):
    np.savez(work / "d.npz", pixels=X.astype("f"), kinds=Y + 1, junk=np.zeros(240))
    trained(work, "--map", "x=pixels", "--map", "label=kinds", "--label-offset", "-1", data="d.npz")
    assert scores(work, "run", "--data", "d.npz")["accuracy"] > 0.9
    assert done(work, "predict", "run", "--data", "d.npz").stdout
    np.savez(work / "e.npz", x=X.astype("f"), label=Y + 1)  # other names: by the usual ones
    assert scores(work, "run", "--data", "e.npz")["accuracy"] > 0.9


def test_labels_that_never_are_zero_are_mentioned(work):
    np.savez(work / "d.npz", x=X.astype("f"), y=np.where(Y == 0, 1, Y))
    assert "no row has class 0" in trained(work, data="d.npz", epochs=1).stderr


def test_a_standardised_run_is_standardised_everywhere(work):
    numbers_model(work / "one.onnx", 3, 1)
    columns = {"rooms": X[:, 0], "area": 5e4 * X[:, 1] + 2e5, "age": X[:, 2] * 10, "price": X[:, 0] - X[:, 1]}
    write(work / "h.csv", columns)
    plain = done(work, "train", "one.onnx", "--data", "h.csv", "--target", "price", "--epochs", "3", "--out", "plain")
    assert "warning[OT3114]" in plain.stderr and "'area'" in plain.stderr and "warning[OT3118]" in plain.stderr
    hint = re.search(r"standardise the columns:  (--scale \w+)", plain.stderr).group(1).split()
    r = done(work, "train", "one.onnx", "--data", "h.csv", "--target", "price", *hint, "--epochs", "60", "--lr", "0.05",
             "--out", "s", "--valid", "h.csv")
    assert "OT3114" not in r.stderr and "OT3118" not in r.stderr
    assert "a constant guess (the mean) gives mae" in r.stderr
    want = scores(work, "s", "--data", "h.csv")
    assert want["rmse"] < 0.2
    for what in ("s/model.onnx", "s/checkpoints/best.train.onnx"):
        assert scores(work, what, "--data", "h.csv")["rmse"] == pytest.approx(want["rmse"], rel=1e-5)
    got = [float(v) for v in done(work, "predict", "s", "--data", "h.csv").stdout.split()[1:]]
    assert np.abs(np.array(got) - columns["price"]).max() < 1
    x = np.column_stack([columns[c] for c in ("rooms", "area", "age")])
    assert np.allclose(ot.load(work / "s/model.onnx").predict(x)[:, 0], got, atol=1e-5)
    assert ot.resume(work / "s").evaluate(x, columns["price"])["rmse"] < 0.2
    done(work, "train", "--resume", "s", "--epochs", "61")
