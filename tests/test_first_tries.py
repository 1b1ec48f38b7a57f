"""What people type first with data of their own: it works, or the answer's line does. Units in the target, a feature
called y, dates, several targets, files that need a flag, arrays in files of their own."""

import csv
import io
import re
import shlex
import sys

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402


def write(path, header, rows):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([header, *rows])


def done(cwd, *args, code=0):
    r = cli(*args, cwd=cwd)
    assert r.returncode == code, (args, r.returncode, r.stderr)
    return r


def typed(cwd, line):
    """A line as the answer printed it."""
    words = shlex.split(line)
    assert words[0] == "onnxtrain", line
    return done(cwd, *words[1:])


def following(r, more=""):
    """The commands of the line `next`."""
    found = [line[10:] for line in r.stderr.splitlines() if line.startswith("next ")]
    return [part + more for part in re.split(r" {4}(?=onnxtrain )", found[-1])]


def houses(n=150):
    r = np.random.default_rng(4)
    rooms, plot = r.integers(1, 9, n), r.normal(600, 90, n).round(1)
    price = 90_000 * rooms + 300 * plot + 50_000
    return rooms, plot, price.round(2)


@pytest.mark.parametrize("form", ["${:,.2f}", "{:,.2f} EUR", "{:.0f}%"])
def test_a_target_with_a_unit_is_a_number(tmp_path, form):
    rooms, plot, price = houses()
    write(tmp_path / "h.csv", ["rooms", "plot", "price"], zip(rooms, plot, [form.format(p) for p in price]))
    write(tmp_path / "plain.csv", ["rooms", "plot", "price"], zip(rooms, plot, price))
    write(tmp_path / "other.csv", ["rooms", "plot", "price"], zip(rooms, plot, [f"{p:.0f} kg" for p in price]))
    r = done(tmp_path, "new", "mlp", "--data", "h.csv", "--target", "price", "-o", "h.onnx")
    assert "a number from" in r.stderr and "units and groups of digits taken off: 'price'" in r.stderr
    done(tmp_path, "train", "h.onnx", "--data", "h.csv", "--epochs", "60", "--out", "run")
    same = [done(tmp_path, "eval", "run", "--data", f).stdout for f in ("h.csv", "plain.csv")]
    r2 = [float(re.search(r"r2 +([\d.]+)", s)[1]) for s in same]
    assert r2[0] > 90 and abs(r2[0] - r2[1]) < 0.1
    refused = cli("eval", "run", "--data", "other.csv", cwd=tmp_path)  # another unit than at training
    assert refused.returncode == 4 and "OT2124" in refused.stderr and "'price'" in refused.stderr


def test_few_texts_with_a_unit_stay_classes(tmp_path):
    rooms, plot, _ = houses()
    write(tmp_path / "h.csv", ["rooms", "plot", "band"], zip(rooms, plot, [f"${100 * (k > 4)}" for k in rooms]))
    r = done(tmp_path, "new", "mlp", "--data", "h.csv", "--target", "band", "-o", "h.onnx")
    assert "2 classes" in r.stderr


@pytest.mark.parametrize("targets", ["kind", "kind,size", "kind,y_all"])
def test_a_feature_called_y(tmp_path, targets):
    r = np.random.default_rng(1)
    x = r.normal(size=(200, 3)).round(4)
    rows = [[*v, "ab"[int(v[1] > 0)], round(3 * v[0], 3), round(2 * v[1], 3)] for v in x]
    write(tmp_path / "t.csv", ["x", "y", "z", "kind", "size", "y_all"], rows)
    drop = ",".join({"size", "y_all"} - set(targets.split(",")))
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", targets, "--drop", drop, "-o", "m.onnx")
    typed(tmp_path, following(r)[0] + " --epochs 40 --out run")
    text = done(tmp_path, "eval", "run", "--data", "t.csv").stdout
    assert float(re.search(r"accuracy +([\d.]+)", text)[1]) > 95  # it hangs on 'y' alone
    assert done(tmp_path, "predict", "run", "--data", "t.csv").stdout.count("\n") == 201


@pytest.mark.parametrize("one", ["x", "y", "logits", "target"])
def test_targets_of_usual_names(tmp_path, one):
    r = np.random.default_rng(1)
    x = r.normal(size=(200, 2)).round(4)
    write(tmp_path / "t.csv", ["a", "b", one, "w"], [[*v, round(3 * v[0], 3), round(900 * v[1], 3)] for v in x])
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", f"{one},w", "-o", "m.onnx")
    typed(tmp_path, following(r)[0] + " --epochs 40 --out run")
    rows = list(csv.DictReader(io.StringIO(done(tmp_path, "predict", "run", "--data", "t.csv").stdout)))
    assert list(rows[0]) == [one, "w"]
    for name, true in ((one, 3 * x[:, 0]), ("w", 900 * x[:, 1])):  # whatever their units
        found = np.array([float(v[name]) for v in rows])
        assert 1 - ((found - true) ** 2).mean() / true.var() > 0.95, name


def test_whole_numbers_among_several_targets_are_said(tmp_path):
    x = np.random.default_rng(1).normal(size=(60, 2)).round(3)
    write(tmp_path / "t.csv", ["a", "b", "sport", "news"], [[*v, int(v[0] > 0), int(v[1] > 0)] for v in x])
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "sport,news", "-o", "m.onnx")
    assert "'sport', 'news' hold few different whole numbers" in r.stderr and "--task classes" in r.stderr
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "sport,news", "--task", "classes", "-o", "m.onnx")
    assert "few different" not in r.stderr and "'news' 2 classes" in r.stderr


def test_dates_are_not_taken_for_the_target(tmp_path):
    write(tmp_path / "s.csv", ["time", "load", "value"],
          [[f"2024-01-{1 + k % 28:02d} {k % 24:02d}:00", k % 7, k * 0.37 % 5] for k in range(60)])
    r = done(tmp_path, "new", "mlp", "--data", "s.csv", "-o", "m.onnx")
    assert "target 'value', the last column" in r.stderr and "dates as days" in r.stderr


def test_a_line_of_sums_is_to_be_removed(tmp_path):
    """No other column looks like a target: none is proposed."""
    x = np.random.default_rng(1).normal(size=(60, 2)).round(3)
    write(tmp_path / "t.csv", ["a", "b", "ok"], [[*v, "yes" if v[0] > 0 else "no"] for v in x] + [["Total", "", ""]])
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", code=4)
    assert "OT2121" in r.stderr and "line 62" in r.stderr and "remove the row" in r.stderr, r.stderr
    assert "--target" not in r.stderr


def test_a_guessed_target_with_gaps_names_another(tmp_path):
    write(tmp_path / "t.csv", ["id", "survived", "age", "port"],
          [[k, int(k % 3 == 0), 20 + k % 40, "" if k == 9 else "SCQ"[k % 3]] for k in range(60)])
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", code=4)
    assert "OT2121" in r.stderr and "'port' was taken because no target is named" in r.stderr
    fix = re.search(r"--target \S+", r.stderr)[0]
    assert fix == "--target survived"
    done(tmp_path, "new", "mlp", "--data", "t.csv", *fix.split(), "-o", "m.onnx")
    # named by the user: there is nothing else to say
    r = done(tmp_path, "new", "mlp", "--data", "t.csv", "--target", "port", code=4)
    assert "remove the row" in r.stderr


def test_running_text_is_shown_to_a_tokenizer(tmp_path):
    words = "a good film with a bad end and much else that is long".split()
    write(tmp_path / "r.csv", ["review", "mood"], [[" ".join(words[k % 7:]) + f" {k}", "ab"[k % 2]] for k in range(60)])
    r = done(tmp_path, "new", "mlp", "--data", "r.csv", code=4)
    assert "OT2180" in r.stderr and "--text review --tokenizer tokenizer.json" in r.stderr
    write(tmp_path / "n.csv", ["name", "mood"], [[f"Name{k}", "ab"[k % 2]] for k in range(60)])
    r = done(tmp_path, "new", "mlp", "--data", "n.csv", code=4)
    assert "--embed name" in r.stderr


def pictures(folder):
    for k, kind in enumerate(("cat", "dog")):
        (folder / kind).mkdir(parents=True)
        for j in range(12):
            pixels = np.random.default_rng(j).integers(0, 120, (8, 8, 3)).astype(np.uint8)
            pixels[:, :, k] += 120
            Image.fromarray(pixels).save(folder / kind / f"{j}.png")
    (folder / "dog" / "3.png").write_bytes((folder / "dog" / "4.png").read_bytes()[:90])


@pytest.mark.parametrize("case", ["damaged images", "channels last", "another encoding"])
def test_the_next_lines_can_be_typed(tmp_path, case):
    if case == "damaged images":
        pictures(tmp_path / "images")
        args = ["cnn", "--data", "images", "--skip-bad"]
    elif case == "channels last":
        x = np.random.default_rng(0).random((40, 8, 8, 3))
        np.savez(tmp_path / "d.npz", x=x, y=(x.mean((1, 2))[:, 0] > 0.5).astype(int))
        args = ["cnn", "--data", "d.npz", "--layout", "nhwc"]
    else:
        text = "Größe;Art\n" + "".join(f"{k * 7 % 11},5;{'süß' if k % 2 else 'sauer'}\n" for k in range(40))
        (tmp_path / "d.csv").write_bytes(text.encode("latin-1"))
        args = ["mlp", "--data", "d.csv", "--encoding", "latin1"]
    r = done(tmp_path, "new", *args, "-o", "m.onnx")
    r = typed(tmp_path, following(r)[0] + " --epochs 1 --out run")
    for line in following(r):
        typed(tmp_path, line)


def test_arrays_in_files_of_their_own(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "X_train.npy", x)
    np.save(tmp_path / "y_train.npy", (x[:, 0] > 0).astype(int))
    r = done(tmp_path, "new", "mlp", "--data", "X_train.npy", code=4)
    fix = r.stderr.split("folder:  ")[1].split()
    assert fix[0] == "--data"
    r = done(tmp_path, "new", "mlp", *fix, "-o", "m.onnx")
    typed(tmp_path, following(r)[0] + " --epochs 2 --out run")


def test_equal_classes_are_counted_once(tmp_path):
    write(tmp_path / "t.csv", ["a", "kind"], [[k * 0.3, "ab"[k % 2]] for k in range(40)])
    assert "2 classes (20 rows each)" in done(tmp_path, "new", "mlp", "--data", "t.csv", "-o", "m.onnx").stderr
