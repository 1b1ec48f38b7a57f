"""Writes houses.csv and new.csv: house prices by a seed, with text, dates and gaps."""

import csv
import io
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/support"))
from tables import houses  # noqa: E402


def tables(rows=800):
    """(with prices, 20 more houses without)"""
    table = houses(rows + 20, seed=7)
    first = {name: values[:rows] for name, values in table.items()}
    rest = {name: values[rows:] for name, values in table.items() if name != "Price"}
    return first, rest


def text(table):
    out = io.StringIO()
    w = csv.writer(out, lineterminator="\n")
    w.writerow(table)
    w.writerows([["" if v is None else v for v in row] for row in zip(*table.values())])
    return out.getvalue()


if __name__ == "__main__":
    for name, table in zip(("houses.csv", "new.csv"), tables()):
        (HERE / name).write_text(text(table))
