"""Tables as people have them: separators, decimal commas, encodings, quotes, words for what is missing, dates,
identifiers. From the table to predictions that ONNX Runtime gives too, in four commands."""

import csv
import datetime
import io
import sys

import numpy as np
import onnxruntime
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402

NAMES = ["id", "name", "age", "income", "city", "active", "since", "zip", "const", "empty", "outcome"]


def table(n=120):
    r = np.random.default_rng(0)
    age, income = r.integers(18, 80, n), r.normal(40000, 9000, n).round(2)
    rows = []
    for k in range(n):
        since = datetime.date(2020, 1, 1) + datetime.timedelta(int(r.integers(0, 700)))
        rows.append([k + 1, f"Name {k}", int(age[k]), float(income[k]), str(r.choice(["Bern", "Zürich", "a, \"b\""])),
                     str(r.choice(["TRUE", "FALSE"])), since, int(r.integers(3000, 3400)), "x", None,
                     "buys" if (age[k] > 45) ^ (income[k] > 42000) else "leaves"])
        for column in (3, 4, 6):
            if (k + column) % 11 == 3:
                rows[-1][column] = None
    return rows


FORMS = {
    "plain.csv": {},
    "semicolons.csv": {"separator": ";", "decimal": ","},
    "thousands.csv": {"separator": ";", "decimal": ",", "thousands": "."},
    "mark.csv": {"encoding": "utf-8-sig", "missing": "NA"},
    "quoted.csv": {"quoting": csv.QUOTE_ALL, "missing": "?"},
    "blanks.csv": {"missing": "  "},
    "utf16.csv": {"encoding": "utf-16", "missing": "n/a"},
    "windows.csv": {"encoding": "cp1252", "date": "%d.%m.%Y", "flags": ["--encoding", "cp1252"]},
    "tabs.tsv": {"separator": "\t", "missing": "null", "date": "%m/%d/%Y"},
    "pipes.csv": {"separator": "|", "missing": "NaN", "date": "%Y/%m/%d", "end": "\r\n"},
}


def write(path, rows, separator=",", decimal=".", thousands="", encoding="utf-8", missing="", date="%Y-%m-%d",
          quoting=csv.QUOTE_MINIMAL, end="\n", flags=()):
    def field(v):
        if v is None:
            return missing
        if isinstance(v, float):
            whole, part = f"{v:,.2f}".split(".")
            return whole.replace(",", thousands) + decimal + part
        return v.strftime(date) if isinstance(v, datetime.date) else v

    f = io.StringIO()
    w = csv.writer(f, delimiter=separator, quoting=quoting, lineterminator=end)
    w.writerow(NAMES)
    w.writerows([[field(v) for v in row] for row in rows])
    path.write_bytes(f.getvalue().encode(encoding))
    return list(flags)


@pytest.mark.parametrize("name", FORMS)
def test_from_a_table_to_the_same_numbers_in_onnxruntime(tmp_path, name):
    rows = table()
    flags = write(tmp_path / name, rows, **FORMS[name])
    r = cli("new", "mlp", "--data", name, "--target", "outcome", "-o", "m.onnx", *flags, cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    for words in ("numbers", "'id' (counts the rows)", "'name' (120 different texts",
                  "'const' (always 'x')", "'empty' (empty)", "days since 1970-01-01: 'since'"):
        assert words in r.stderr, r.stderr
    assert ("decimal comma" in r.stderr) == (FORMS[name].get("decimal") == ",")
    r = cli("train", "m.onnx", "--data", name, "--epochs", "2", "--out", "run", *flags, cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    r = cli("predict", "run", "--data", name, "-o", "p.csv", *flags, cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    r = cli("export", "run", "-o", "e.onnx", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    got = list(csv.DictReader(open(tmp_path / "p.csv")))
    session = onnxruntime.InferenceSession(str(tmp_path / "e.onnx"))
    feeds = {}
    for i in session.get_inputs():
        column = [row[NAMES.index(i.name)] for row in rows]
        if i.type == "tensor(string)":
            feeds[i.name] = np.array([["" if v is None else v] for v in column], dtype=object)
        else:
            days = [(v - datetime.date(1970, 1, 1)).days if isinstance(v, datetime.date) else v for v in column]
            feeds[i.name] = np.array([[np.nan if v is None else v] for v in days], np.float32)
    assert set(feeds) == {"age", "income", "city", "active", "since", "zip"}
    want = session.run(None, feeds)[0]
    scores = np.array([[float(row[c]) for c in ("buys", "leaves")] for row in got])
    np.testing.assert_allclose(scores, want, rtol=1e-4, atol=1e-5)
    assert [row["prediction"] for row in got] == [("buys", "leaves")[k] for k in want.argmax(1)]


def test_decimal_commas_and_points_in_one_table_are_not_guessed(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;y\n" + "".join(f"{k},5;{k % 7}.5;{k % 2}\n" for k in range(30)))
    r = cli("new", "mlp", "--data", "t.csv", "--target", "y", "--one-hot", "a", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0 and "decimal comma" not in r.stderr and "one-hot: 'a' (30)" in r.stderr, r.stderr
