"""How long a new network trains when nobody says so."""

import re
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402


@pytest.fixture
def work(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(640, 2)).round(3)
    rows = [f"{a},{b},{'up' if a > b else 'down'}" for a, b in x]
    (tmp_path / "t.csv").write_text("a,b,way\n" + "\n".join(rows))
    (tmp_path / "few.csv").write_text("a,b,way\n" + "\n".join(rows[:40]))
    return tmp_path


def test_command_line(work):
    """About 2,500 steps; a word about it; the exported model is no new one."""
    cli("new", "linear", "--data", "t.csv", "--target", "way", "-o", "m.onnx", cwd=work)
    r = cli("train", "m.onnx", "--data", "t.csv", "--dry-run", cwd=work)
    assert "139 for a new network and 576 rows" in r.stderr and "139 epochs = 2,502 steps" in r.stderr, r.stderr
    r = cli("train", "m.onnx", "--data", "few.csv", "--out", "run", cwd=work)
    assert "200 epochs" in r.stderr and "--resume run --epochs 400" in r.stderr, r.stderr
    assert re.search(r"epochs = 200 +# file", (work / "run/config.toml").read_text())
    r = cli("train", "m.onnx", "--data", "t.csv", "--epochs", "3", "--dry-run", cwd=work)
    assert "3 epochs" in r.stderr and "new network" not in r.stderr
    r = cli("train", "run/model.onnx", "--data", "t.csv", "--dry-run", cwd=work)
    assert r.returncode == 0 and "10 epochs" in r.stderr, r.stderr
    r = cli("train", "--resume", "run", "--dry-run", cwd=work)
    assert r.returncode == 0 and "200 epochs" in r.stderr, r.stderr


def test_python(work, capsys):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(work / "few.csv")
    model = ot.new("mlp", table, target="way", verbose=False)
    assert len(model.fit(table, "way", verbose=2)) == 200
    assert "200/200" in capsys.readouterr().err
    assert len(model.fit(table, "way")) == 10  # it was trained already
    assert len(ot.new("mlp", table, target="way", verbose=False).fit(table, "way", epochs=2)) == 2


def test_columns_and_targets_as_people_write_them(work):
    """Dashes are missing values, ids are left out, a price with a currency sign is a number, labels of an array are."""
    rows = [f"{7 * k % 50 + 100},{k % 9 if k % 5 else '-'},{'+' if k % 3 else '-'},{k % 4}" for k in range(50)]
    (work / "p.csv").write_text("user_id,size,sign,y\n" + "\n".join(rows))
    r = cli("new", "mlp", "--data", "p.csv", "--target", "y", "-o", "p.onnx", cwd=work)
    assert "'user_id' (an id, different in every row)" in r.stderr and "missing values in 'size' (10)" in r.stderr
    assert "one-hot: 'sign' (2)" in r.stderr, r.stderr
    assert cli("train", "p.onnx", "--data", "p.csv", "--epochs", "2", cwd=work).returncode == 0
    prices = [f'{k},{k % 7} m2,"${1000 * k + 999:,}"' for k in range(1, 60)]
    (work / "c.csv").write_text("a,b,price\n" + "\n".join(prices))
    r = cli("new", "mlp", "--data", "c.csv", "--target", "price", "-o", "c.onnx", cwd=work)
    assert r.returncode == 0 and "'price' ('$10,999' is 10999)" in r.stderr, r.stderr
    assert "a number from 1999 to 59999" in r.stderr, r.stderr
    (work / "u.csv").write_text("a,y\n" + "\n".join(f"{k % 13},{'yes' if k % 10 == 0 else 'no'}" for k in range(200)))
    r = cli("new", "mlp", "--data", "u.csv", "--target", "y", "-o", "u.onnx", cwd=work)
    assert "classes are uneven (20 to 180 rows): train --class-weights balanced" in r.stderr, r.stderr
    x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    assert ot.new("mlp", (x, np.arange(300) % 30), verbose=False).info["outputs"][0]["shape"][1] == 30
    assert ot.new("mlp", (x, np.arange(300) * 7 % 151), verbose=False).outputs == ["prediction"]


def test_tiny_and_huge_targets(work):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)).astype(np.float32)
    for size in (1e-7, 1.0, 1e9):
        y = ((x[:, :1] - 2 * x[:, 1:]) * size).astype(np.float32)
        model = ot.new("linear", (x, y), verbose=False)
        model.compile(optimizer=ot.AdamW(lr=0.01)).fit(x, y, epochs=40)
        assert model.evaluate(x, y)["r2"] > 0.99, size
