"""Image folders through the command line: predictions by file name, one image, classes by the run's list."""

import csv
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, save  # noqa: E402
from small_images import ppm  # noqa: E402

NAMES = ["cat", "dog", "eel"]


@pytest.fixture
def work(tmp_path):
    save(cnn(), tmp_path / "cnn.onnx")
    for kind, name in enumerate(NAMES):
        for k in range(20):
            ppm(tmp_path / f"d/{name}/{k:02d}.ppm", kind, 100 * kind + k)
    r = cli("train", "cnn.onnx", "--data", "d", "--epochs", "15", "--lr", "0.01", "--out", "run", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    return tmp_path


def predicted(work, data):
    r = cli("predict", "run", "--data", data, cwd=work)
    assert r.returncode == 0, r.stderr
    return list(csv.DictReader(r.stdout.splitlines()))


def test_predictions_name_the_file_and_the_class(work):
    for k in range(3):
        ppm(work / f"new/{k}.ppm", k, 7 + k)
    rows = predicted(work, "new")
    assert [r["file"] for r in rows] == [f"new/{k}.ppm" for k in range(3)]
    assert [r["prediction"] for r in rows] == NAMES and set(rows[0]) == {"file", "prediction", *NAMES}
    one = predicted(work, "new/1.ppm")
    assert one == [rows[1]]


def test_a_class_that_is_missing_keeps_the_numbers_of_the_others(work):
    for kind in (1, 2):
        for k in range(5):
            ppm(work / f"some/{NAMES[kind]}/{k}.ppm", kind, 900 + 10 * kind + k)
    r = cli("eval", "run", "--data", "some", cwd=work)
    assert r.returncode == 0 and "accuracy  100.00 %" in r.stdout, r.stdout + r.stderr
    assert "classes in order: 'cat', 'dog', 'eel'" in r.stderr  # of the run, not of this folder
    ppm(work / "some/fox/0.ppm", 0, 1)
    r = cli("eval", "run", "--data", "some", cwd=work)
    assert r.returncode == 4 and "OT2114" in r.stderr and "class 'fox' at row 10" in r.stderr
    assert "'cat', 'dog', 'eel'" in r.stderr


def test_an_empty_class_folder_is_refused(work):
    (work / "d/bat").mkdir()
    r = cli("train", "cnn.onnx", "--data", "d", "--epochs", "1", cwd=work)
    assert r.returncode == 4 and "OT2161" in r.stderr and "class folder 'd/bat' holds no images" in r.stderr
    assert "rm -r d/bat" in r.stderr
    (work / "d/bat").rmdir()
    assert cli("train", "cnn.onnx", "--data", "d", "--epochs", "1", "--out", "r2", cwd=work).returncode == 0


def test_a_part_of_a_folder(work):
    """--part chooses train/ or test/; a folder without them is refused, not read whole."""
    for kind, name in enumerate(NAMES):
        ppm(work / f"both/train/{name}/0.ppm", kind, 40 + kind)
        for k in range(2):
            ppm(work / f"both/test/{name}/{k}.ppm", kind, 50 + 10 * kind + k)
    for part, rows in (("train", 3), ("test", 6)):
        r = cli("eval", "run", "--data", "both", "--part", part, "--json", cwd=work)
        assert r.returncode == 0 and f'"rows":{rows},' in r.stdout, r.stdout + r.stderr
        r = cli("eval", "run", "--data", "d", "--part", part, cwd=work)
        assert r.returncode == 2 and "error[OT2194]" in r.stderr and f"--part {part}" in r.stderr, r.stderr
    assert cli("eval", "run", "--data", "d", cwd=work).returncode == 0


def test_images_lie_at_any_depth_below_the_folder_of_their_class(work):
    for kind, name in enumerate(NAMES):
        for k in range(6):
            ppm(work / f"deep/all/{name}/{'ab'[k % 2] + name}/{k}.ppm", kind, 300 + 10 * kind + k)
    (work / "deep/__MACOSX/x").mkdir(parents=True)
    r = cli("eval", "run", "--data", "deep", "--json", cwd=work)  # 'all' is the only folder and holds no image
    assert r.returncode == 0 and '"rows":18,' in r.stdout and '"accuracy":1.0' in r.stdout, r.stdout + r.stderr
    rows = predicted(work, "deep/all/dog")
    assert len(rows) == 6 and rows[0]["file"] == "deep/all/dog/adog/0.ppm"


def test_folders_that_may_be_parts_are_not_taken_for_classes(work):
    for part in ("first", "second"):
        for kind, name in enumerate(NAMES):
            ppm(work / f"parts/{part}/{name}/0.ppm", kind, kind)
    r = cli("new", "cnn", "--data", "parts", "-o", "n.onnx", cwd=work)
    assert r.returncode == 4 and "OT2202" in r.stderr and "'cat', 'dog', 'eel'" in r.stderr, r.stderr
    assert "--data parts/first" in r.stderr
    r = cli("new", "cnn", "--data", "parts/first", "-o", "n.onnx", cwd=work)
    assert r.returncode == 0, r.stderr


def test_formats_and_tables_of_names_are_answered(work):
    (work / "gifs/cat").mkdir(parents=True)
    (work / "gifs/cat/1.gif").write_bytes(b"GIF89a")
    r = cli("new", "cnn", "--data", "gifs", cwd=work)
    assert r.returncode == 4 and "OT2200" in r.stderr and "gifs/cat/1.gif" in r.stderr and "png" in r.stderr, r.stderr
    lines = ["file,what"]
    for kind, name in enumerate(NAMES):
        for k in range(3):
            ppm(work / f"flat/{name}{k}.ppm", kind, k)
            lines.append(f"{name}{k}.ppm,{name}")
    (work / "flat/labels.csv").write_text("\n".join(lines) + "\n")
    for data in ("flat", "flat/labels.csv"):
        r = cli("new", "cnn", "--data", data, "--target", "what", "-o", "n.onnx", cwd=work)
        assert r.returncode == 0 and "3 classes (3 rows each)" in r.stderr, r.stderr


def test_files_of_other_kinds_are_named_for_what_they_are(work):
    for name in ("Thumbs.db", "desktop.ini", ".DS_Store"):  # of other systems
        (work / "d/cat" / name).write_bytes(b"\0")
    (work / "d/cat/notes.txt").write_text("sleepy")
    ppm(work / "d/stray.ppm", 0, 0)
    r = cli("new", "cnn", "--data", "d", "-o", "n.onnx", cwd=work)
    assert r.returncode == 0, r.stderr
    assert "not used: 'd/cat/notes.txt'   (by their names no images)" in r.stderr, r.stderr
    assert "not used: 'd/stray.ppm'   (images lie in one folder per class" in r.stderr, r.stderr


def test_a_dash_is_standard_output(work):
    r = cli("predict", "run", "--data", "d/cat/00.ppm", "-o", "-", cwd=work)
    assert r.returncode == 0 and r.stdout.startswith("file,prediction,"), r.stderr
