"""Images that a table names: a column of file names beside the labels, through every command."""

import csv
import json
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, save  # noqa: E402
from small_images import ppm  # noqa: E402

NAMES = ["cat", "dog", "eel"]


def rows_of(folder, count=20, first=0):
    rows = []
    for k in range(count):
        for kind, name in enumerate(NAMES):
            ppm(folder / f"photos/{k % 3}/{name}{first + k}.ppm", kind, 1000 * kind + first + k)
            rows.append([f"photos/{k % 3}/{name}{first + k}.ppm", 8, name, kind, 10.0 * kind + k % 2])
    return rows


def table(path, rows, head=("file", "width", "what", "number", "weight")):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([head, *rows])


def done(work, *args):
    r = cli(*args, cwd=work)
    assert r.returncode == 0, r.stdout + r.stderr
    return r


@pytest.fixture
def work(tmp_path):
    table(tmp_path / "labels.csv", rows_of(tmp_path))
    table(tmp_path / "test.csv", rows_of(tmp_path, 6, 100))
    return tmp_path


def test_from_new_to_predict(work):
    r = done(work, "new", "cnn", "--data", "labels.csv", "--target", "what", "-o", "m.onnx")
    assert "3 classes (20 rows each)" in r.stderr and "column 'file' names the images" in r.stderr, r.stderr
    assert "not used: 'width', 'number', 'weight'" in r.stderr, r.stderr
    r = done(work, "train", "m.onnx", "--data", "labels.csv", "--epochs", "8", "--out", "run")  # target of the model
    assert "60 images" in r.stderr and "'what'" not in r.stderr.split("plan")[1], r.stderr
    found = json.loads(done(work, "eval", "run", "--data", "test.csv", "--json").stdout)
    assert found["rows"] == 18 and found["accuracy"] == 1.0, found
    table(work / "new.csv", [[row[0]] for row in rows_of(work, 2, 200)], ["file"])
    rows = list(csv.DictReader(done(work, "predict", "run", "--data", "new.csv").stdout.splitlines()))
    assert [r["file"] for r in rows] == [f"photos/{k}/{n}{200 + k}.ppm" for k in (0, 1) for n in NAMES], rows
    assert [r["prediction"] for r in rows] == 2 * NAMES
    named = list(csv.DictReader(done(work, "predict", "run", "--data", "test.csv").stdout.splitlines()))
    assert [r["prediction"] for r in named] == 6 * NAMES
    folder = list(csv.DictReader(done(work, "predict", "run", "--data", "photos/0").stdout.splitlines()))
    assert len(folder) == 30 and all(r["prediction"] in r["file"] for r in folder)
    done(work, "train", "--resume", "run", "--epochs", "9")


def test_a_table_and_folders_of_classes_are_the_same_training(work):
    """The same images in the same order: the same weights."""
    rows = sorted(rows_of(work, 10), key=lambda row: (row[2], f"{row[2]}/{row[0].split('/')[-1]}"))
    for row in rows:
        to = work / "sorted" / row[2] / row[0].split("/")[-1]
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes((work / row[0]).read_bytes())
    table(work / "same.csv", rows)
    for name, args in (("a", ["--data", "sorted"]), ("b", ["--data", "same.csv", "--target", "what"])):
        done(work, "new", "cnn", *args, "-o", name + ".onnx")
        done(work, "train", name + ".onnx", *args, "--epochs", "2", "--out", "run" + name)
    last = [json.loads((work / f"run{n}/metrics.jsonl").read_text().splitlines()[-1]) for n in "ab"]
    assert last[0]["train_loss"] == last[1]["train_loss"] and last[0]["valid_loss"] == last[1]["valid_loss"], last


def test_numbers_and_several_targets_are_learnt_from_images(work):
    r = done(work, "new", "cnn", "--data", "labels.csv", "--target", "weight", "-o", "w.onnx", "--task", "numbers")
    done(work, "train", "w.onnx", "--data", "labels.csv", "--epochs", "10", "--out", "w")
    found = json.loads(done(work, "eval", "w", "--data", "test.csv", "--json").stdout)
    assert found["r2"] > 0.9, found
    r = done(work, "new", "cnn", "--data", "labels.csv", "--target", "weight,what", "-o", "two.onnx")
    assert "an output for each" in r.stderr, r.stderr
    done(work, "train", "two.onnx", "--data", "labels.csv", "--epochs", "10", "--out", "two")
    found = json.loads(done(work, "eval", "two", "--data", "test.csv", "--json").stdout)["outputs"]
    assert found["weight"]["r2"] > 0.8 and found["what"]["accuracy"] > 0.9, found


def test_the_models_own_input_decides(work):
    """A model of another tool: a table that names images feeds its images, and its number of classes holds."""
    save(cnn(), work / "cnn.onnx")
    r = done(work, "train", "cnn.onnx", "--data", "labels.csv", "--target", "what", "--epochs", "2", "--out", "run")
    assert "60 images" in r.stderr, r.stderr
    r = done(work, "new", "mlp", "--data", "labels.csv", "--target", "what", "-o", "m.onnx")
    assert "left out" in r.stderr and "'file'" in r.stderr, r.stderr  # other columns: a table like any other


def test_images_elsewhere_and_names_of_another_system(work):
    rows = [[row[0].split("/", 1)[1].replace("/", "\\"), row[2]] for row in rows_of(work, 4)]
    (work / "elsewhere").mkdir()
    table(work / "elsewhere/l.csv", rows, ["image", "label"])
    r = cli("new", "cnn", "--data", "elsewhere/l.csv", "-o", "m.onnx", cwd=work)
    assert r.returncode == 4 and "OT2207" in r.stderr and "none of the 12 images" in r.stderr, r.stderr
    assert "--images FOLDER" in r.stderr
    r = done(work, "new", "cnn", "--data", "elsewhere/l.csv", "--images", "photos", "-o", "m.onnx")
    assert "--images photos" in r.stderr.split("next")[1], r.stderr
    done(work, "train", "m.onnx", "--data", "elsewhere/l.csv", "--images", "photos", "--epochs", "1", "--out", "run")
    (work / "other").mkdir()
    r = cli("train", "--resume", "../run", "--epochs", "2", cwd=work / "other")  # the run knows where
    assert r.returncode == 0, r.stderr


def test_whole_paths_and_a_folder_written_with_a_slash(work):
    table(work / "whole.csv", [[str(work / row[0]), row[2]] for row in rows_of(work, 4)], ["path", "label"])
    r = done(work, "new", "cnn", "--data", "whole.csv", "-o", "m.onnx")
    assert "3 classes (4 rows each)" in r.stderr, r.stderr
    done(work, "train", "m.onnx", "--data", "whole.csv", "--epochs", "1", "--out", "run")
    table(work / "names.csv", [[row[0].split("/", 1)[1], row[2]] for row in rows_of(work, 4)], ["path", "label"])
    r = done(work, "eval", "run", "--data", "names.csv", "--images", "photos/")
    assert "12 images" in r.stderr, r.stderr


def test_mistakes(work):
    rows = rows_of(work, 4)
    (work / rows[5][0]).unlink()
    (work / rows[7][0]).write_bytes(b"P6\nnothing")
    table(work / "t.csv", rows)
    new = ["new", "cnn", "--data", "t.csv", "--target", "what", "-o", "m.onnx"]
    r = cli(*new, cwd=work)
    assert r.returncode == 4 and "1 of the 12 images" in r.stderr and rows[5][0] in r.stderr, r.stderr
    r = done(work, *new, "--skip-bad")
    assert "2 damaged images of 12 are left out" in r.stderr and rows[7][0] in r.stderr, r.stderr
    rows = rows_of(work, 4)
    table(work / "two.csv", [[*row, row[0]] for row in rows], ["file", "width", "what", "number", "weight", "mask"])
    r = cli("new", "cnn", "--data", "two.csv", "--target", "what", "-o", "m.onnx", cwd=work)
    assert r.returncode == 4 and "OT2207" in r.stderr and "--drop mask" in r.stderr, r.stderr
    r = done(work, "new", "cnn", "--data", "two.csv", "--target", "what", "--drop", "mask", "-o", "m.onnx")
    rows[3][0] = ""
    table(work / "gap.csv", rows)
    r = cli("new", "cnn", "--data", "gap.csv", "--target", "what", "-o", "m.onnx", cwd=work)
    assert r.returncode == 4 and "OT2121" in r.stderr and "row 4" in r.stderr, r.stderr
    table(work / "only.csv", [[row[0]] for row in rows_of(work, 4)], ["file"])
    r = cli("new", "cnn", "--data", "only.csv", "-o", "m.onnx", cwd=work)
    assert r.returncode == 4 and "OT2160" in r.stderr and "to be learnt" in r.stderr, r.stderr


def test_numbers_of_classes_that_are_not_0_1_2(work):
    rows = [[row[0], 5 * (row[3] + 1)] for row in rows_of(work)]
    table(work / "n.csv", rows, ["id", "label"])
    r = done(work, "new", "cnn", "--data", "n.csv", "-o", "m.onnx")
    assert "3 classes" in r.stderr, r.stderr
    done(work, "train", "m.onnx", "--data", "n.csv", "--epochs", "8", "--out", "run")
    rows = list(csv.DictReader(done(work, "predict", "run", "--data", "n.csv").stdout.splitlines()))
    assert sum(int(r["prediction"]) == 5 * (NAMES.index(r["file"].split("/")[-1][:3]) + 1) for r in rows) > 55, rows
