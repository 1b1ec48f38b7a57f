"""Columns as people write them: currencies, percent, groups of digits, dates with names of months. The rule is the same
in files and in tables of pandas."""

import csv
import json
import sys

import numpy as np
import onnxruntime
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402


def rows(n=160):
    r = np.random.default_rng(3)
    pay, share = r.normal(50000, 20000, n).round(2), r.uniform(0, 100, n).round(1)
    day = np.datetime64("2019-01-01") + r.integers(0, 1500, n)
    price = (pay / 1000 + share + (day - np.datetime64("2019-01-01")).astype(int) / 20).round(3)
    return pay, share, day.astype(object), price


def write(path, date="%d %b %Y"):
    pay, share, day, price = rows()
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["pay", "share", "day", "used", "price"])
        for k, (a, b, d, y) in enumerate(zip(pay, share, day, price)):
            money = "" if k % 17 == 3 else f"-${-a:,.2f}" if a < 0 else f"${a:,.2f}"
            w.writerow([money, f"{b} %", d.strftime(date), "TRUE" if k % 3 else "FALSE", y])


@pytest.mark.parametrize("date", ["%d %b %Y", "%B %d, %Y", "%m/%d/%y", "%m/%d/%Y %I:%M %p"])
def test_units_and_dates_are_numbers_in_files(tmp_path, date):
    write(tmp_path / "t.csv", date)
    r = cli("new", "mlp", "--data", "t.csv", "--target", "price", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0 and "taken off: 'pay' ('$" in r.stderr and "1970-01-01: 'day'" in r.stderr, r.stderr
    if date != "%d %b %Y":
        return
    r = cli("train", "m.onnx", "--data", "t.csv", "--epochs", "30", "--lr", "0.01", "--out", "run", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    r = cli("eval", "run", "--data", "t.csv", "--json", cwd=tmp_path)
    assert json.loads(r.stdout)["r2"] > 0.9, r.stdout
    r = cli("predict", "run", "--data", "t.csv", "-o", "p.npz", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    session = onnxruntime.InferenceSession(str(tmp_path / "run/model.onnx"))
    pay, share, day, _ = rows()
    pay[3::17] = np.nan
    days = (day.astype("datetime64[D]") - np.datetime64("1970-01-01")).astype(int)
    feeds = {k: v.astype(np.float32)[:, None] for k, v in (("pay", pay), ("share", share), ("day", days))}
    feeds["used"] = np.array([["TRUE" if k % 3 else "FALSE"] for k in range(len(pay))], dtype=object)
    want = session.run(None, feeds)[0]
    np.testing.assert_allclose(np.load(tmp_path / "p.npz")["prediction"], want, rtol=1e-4, atol=1e-3)
    (tmp_path / "euro.csv").write_text("pay,share,day,used\n5 EUR,3 %,3 Feb 2019,True\n")
    r = cli("predict", "run", "--data", "euro.csv", cwd=tmp_path)
    assert r.returncode == 4 and "OT2124" in r.stderr and "'5 EUR'" in r.stderr, r.stderr
    (tmp_path / "plain.csv").write_text("pay,share,day,used\n5,3,2019-02-03,True\n")
    r = cli("predict", "run", "--data", "plain.csv", cwd=tmp_path)
    assert r.returncode == 0 and "unknown" not in r.stderr, r.stderr


def test_tables_of_pandas_mean_what_files_mean(tmp_path):
    """A model made from the file, trained on the table: True is TRUE, 3.0 is 3, $5 is 5."""
    pandas = pytest.importorskip("pandas")
    write(tmp_path / "t.csv")
    table = pandas.read_csv(tmp_path / "t.csv")
    assert table["used"].dtype == bool
    model = ot.new("mlp", str(tmp_path / "t.csv"), target="price", verbose=False)
    model.compile(optimizer=ot.AdamW(lr=0.01)).fit(table, "price", epochs=30, verbose=0)
    assert model.evaluate(table, "price")["r2"] > 0.9
    model.export(str(tmp_path / "e.onnx"))
    r = cli("predict", "e.onnx", "--data", "t.csv", "-o", "p.npz", cwd=tmp_path)
    assert r.returncode == 0 and "unknown" not in r.stderr, r.stderr
    found = model.predict(table.drop(columns="price"))
    np.testing.assert_allclose(np.load(tmp_path / "p.npz")["prediction"], found, rtol=1e-4, atol=1e-3)
    other = table.drop(columns="price").assign(used="perhaps")
    with pytest.warns(UserWarning, match="column 'used': 160 rows have values that the training did not have.*perhaps"):
        model.predict(other)
    with pytest.raises(ot.DataError, match="OT2124|'5 EUR' in row 0 of column 'pay'"):
        model.predict(other.assign(used=True, pay="5 EUR"))


def test_categories_of_whole_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    r = np.random.default_rng(0)
    kind = r.integers(1, 5, 200)
    table = pandas.DataFrame({"kind": kind, "a": r.normal(size=200), "y": np.where(kind % 2, "odd", "even")})
    model = ot.new("mlp", table, target="y", one_hot="kind", verbose=False)
    model.compile(optimizer=ot.AdamW(lr=0.01)).fit(table, "y", epochs=10, verbose=0)
    assert model.evaluate(table.assign(kind=kind.astype(float)), "y")["accuracy"] == 1
