"""Mistakes in data: arrays, tables, images, labels and how they fit the model."""

import numpy as np

from mistake import Mistake as M
from workshop import both, cut, flipped, idx, npz, raw, removed, text, x, y

T = "onnxtrain train mlp.onnx --epochs 1 --out o --data "
R = "onnxtrain train reg.onnx --epochs 1 --out o --data "
C = "onnxtrain train cnn.onnx --epochs 1 --out o --data "


def labels(f):
    return lambda: f(y())


def with_nan():
    v = x()
    v[16, 2] = np.nan
    return v


def with_inf():
    v = x()
    v[3, 0] = np.inf
    return v


def objects():
    a = np.empty(3, object)
    a[:] = [1, "a", None]
    return a


def table(header="a,b,c,d,kind", rows=None):
    rows = rows or [f"{i * 0.1:.1f},{i % 3},{i % 5},{i % 7},{'red green blue'.split()[i % 3]}" for i in range(60)]
    return "\n".join([header, *rows]) + "\n"


def rows(change, n=60):
    out = [f"{i * 0.1:.1f},{i % 3},{i % 5},{i % 7},{'red green blue'.split()[i % 3]}" for i in range(n)]
    change(out)
    return out


def at(k, line):
    return lambda out: out.__setitem__(k, line)


CASES = [
    M("a part of data without parts", "onnxtrain eval run --data data.npz --part train", 2, ["data.npz", "no parts"],
      "leave --part out", "onnxtrain eval run --data data.npz"),
    # ---- the file
    M("data file is not there", T + "nothing.npz", 4, ["nothing.npz"]),
    M("data file misspelt", T + "dta.npz", 4, ["dta.npz"], "data.npz", T + "{fix}"),
    M("npz cut short", T + "data.npz", 4, ["data.npz"], plant=cut("data.npz", 500)),
    M("npz with a flipped byte", T + "data.npz", 4, ["data.npz"], plant=flipped("data.npz", 300)),
    M("empty npz file", T + "e.npz", 4, ["e.npz", "empty"], plant=raw("e.npz", b"")),
    M(
        "npz without rows",
        T + "e.npz",
        4,
        ["e.npz"],
        plant=npz("e.npz", x=np.zeros((0, 4), np.float32), y=np.zeros(0, np.int64)),
    ),
    M("npz of Python objects", T + "o.npz", 4, ["o.npz"], plant=npz("o.npz", x=objects, y=np.arange(3))),
    M("a pickle as data", T + "d.pkl", 4, ["d.pkl", "pickle"], plant=raw("d.pkl", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}.")),
    M(
        "parquet as data",
        T + "d.parquet",
        4,
        ["d.parquet", "parquet"],
        plant=raw("d.parquet", b"PAR1" + bytes(50) + b"PAR1"),
    ),
    M("a model as data", T + "reg.onnx", 4, ["reg.onnx", "ONNX"]),
    M(
        "an Excel sheet as data",
        T + "d.xlsx",
        4,
        ["d.xlsx"],
        plant=raw("d.xlsx", b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml" + bytes(60)),
    ),
    M("JSON as data", T + "d.json", 4, ["d.json"], plant=text("d.json", '[{"a": 1, "b": 2}]')),
    M(
        "HTML as data",
        T + "d.csv",
        4,
        ["d.csv", "HTML"],
        plant=text("d.csv", "<!DOCTYPE html>\n<html>\n<body>404</body></html>\n"),
    ),
    M(
        "LFS pointer as data",
        T + "d.csv",
        4,
        ["d.csv", "LFS"],
        plant=text("d.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n"),
    ),
    M("folder without data", T + "nothing", 4, ["nothing"], plant=lambda d: (d / "nothing").mkdir()),
    M(
        "folder with several tables",
        T + "many",
        4,
        ["many"],
        "--data many/a.csv",
        "onnxtrain train mlp.onnx --epochs 1 --out o {fix}",
        plant=lambda d: (
            (d / "many").mkdir(),
            (d / "many" / "a.csv").write_text((d / "data.csv").read_text()),
            (d / "many" / "b.csv").write_text((d / "data.csv").read_text()),
        ),
    ),
    M("synthetic with an unknown key", T + "synthetic:row=10", 2, ["row"], "rows", T + "synthetic:{fix}=10"),
    # ---- arrays and the model
    M("labels missing", T + "only_x.npz", 4, ["only_x.npz"]),
    M("features missing", T + "y.npz", 4, ["'x'"], plant=npz("y.npz", y=y)),
    M("another count of features", T + "w.npz", 4, ["'x'", "5", "4"], plant=npz("w.npz", x=lambda: x(120, 5), y=y)),
    M("images for a table's model", T + "images.npz", 4, ["'x'", "[60,3,8,8]"]),
    M(
        "channels last",
        C + "nhwc.npz",
        4,
        ["'x'"],
        "--layout nhwc",
        C + "nhwc.npz {fix}",
        plant=lambda d: np.savez(
            d / "nhwc.npz", x=np.load(d / "images.npz")["x"].transpose(0, 2, 3, 1), y=np.load(d / "images.npz")["y"]
        ),
    ),
    M(
        "images of another size",
        C + "big.npz",
        4,
        ["'x'", "16"],
        plant=npz("big.npz", x=np.zeros((9, 3, 16, 16), np.float32), y=np.arange(9) % 3),
    ),
    M("different counts of rows", T + "r.npz", 4, ["119", "120"], plant=npz("r.npz", x=x, y=lambda: y()[:-1])),
    M(
        "another array would fit",
        T + "n.npz",
        4,
        ["'x'", "[120,7]"],
        "--map",
        T + "n.npz {fix} x=features",
        plant=npz("n.npz", features=x, x=lambda: np.zeros((120, 7), np.float32), y=y),
    ),
    M("NaN in the features", T + "nan.npz", 4, ["NaN", "row 16", "'x'"], plant=npz("nan.npz", x=with_nan, y=y)),
    M("infinity in the features", T + "inf.npz", 4, ["infinity", "row 3"], plant=npz("inf.npz", x=with_inf, y=y)),
    M(
        "NaN in the target",
        R + "nan.npz",
        4,
        ["NaN", "'y'"],
        plant=npz("nan.npz", x=x, y=lambda: np.where(np.arange(120) == 5, np.nan, 1.0)),
    ),
    M("complex numbers", T + "c.npz", 4, ["c.npz:x"], plant=npz("c.npz", x=lambda: x().astype(np.complex64), y=y)),
    M("dates", T + "d.npz", 4, ["d.npz:x"], plant=npz("d.npz", x=np.zeros((120, 4), "datetime64[s]"), y=y)),
    M("text in an array", T + "s.npz", 4, ["s.npz:x"], plant=npz("s.npz", x=np.full((120, 4), "a"), y=y)),
    # ---- labels
    M(
        "labels from 1",
        T + "l.npz",
        4,
        ["label 3", "0..2", "'y'"],
        "--label-offset -1",
        T + "l.npz {fix}",
        plant=npz("l.npz", x=x, y=labels(lambda v: v + 1)),
    ),
    M(
        "a label far outside",
        T + "l.npz",
        4,
        ["label 9", "row 7"],
        plant=npz("l.npz", x=x, y=labels(lambda v: np.where(np.arange(120) == 7, 9, v))),
    ),
    M(
        "negative labels",
        T + "l.npz",
        4,
        ["label -1"],
        "--label-offset 1",
        T + "l.npz {fix}",
        plant=npz("l.npz", x=x, y=labels(lambda v: v - 1)),
    ),
    M(
        "one-hot labels",
        T + "l.npz",
        4,
        ["one-hot"],
        plant=npz("l.npz", x=x, y=labels(lambda v: np.eye(3, dtype=np.float32)[v])),
    ),
    M("fractional labels", T + "l.npz", 4, ["'y'", "0.5"], plant=npz("l.npz", x=x, y=labels(lambda v: v * 0.5))),
    M(
        "class numbers for a regression of three",
        T + "data.npz --loss mse",
        4,
        ["[120]"],
        "--loss cross_entropy",
        T + "data.npz {fix}",
    ),
    M(
        "two targets for a model with one output",
        R + "l.npz",
        4,
        ["[120,2]"],
        plant=npz("l.npz", x=x, y=lambda: x()[:, :2]),
    ),
    M(
        "text labels in an npz",
        T + "l.npz",
        4,
        ["l.npz:y"],
        plant=npz("l.npz", x=x, y=labels(lambda v: np.array(["red", "green", "blue"])[v])),
    ),
    # ---- tables
    M("target column misspelt", T + "data.csv --target knd", 4, ["knd"], "--target kind", T + "data.csv {fix}"),
    M("target column of an npz", T + "data.npz --target y", 2, ["--target", "npz"]),
    M(
        "text in a feature",
        T + "t.csv --target kind",
        4,
        ["t.csv", "'b'", "line 6"],
        plant=text("t.csv", table(rows=rows(at(4, "0.4,many,4,4,green")))),
    ),
    M(
        "a missing value",
        T + "t.csv",
        4,
        ["t.csv", "line 6", "'b'"],
        plant=text("t.csv", table(rows=rows(at(4, "0.4,,4,4,green")))),
    ),
    M(
        "a line with too few fields",
        T + "t.csv",
        4,
        ["t.csv", "line 6"],
        plant=text("t.csv", table(rows=rows(at(4, "0.4,1,4")))),
    ),
    M(
        "a line with too many fields",
        T + "t.csv",
        4,
        ["t.csv", "line 6"],
        plant=text("t.csv", table(rows=rows(at(4, "0.4,1,4,4,green,7")))),
    ),
    M("an open quote", T + "t.csv", 4, ["t.csv"], plant=text("t.csv", table(rows=rows(at(4, '0.4,1,4,4,"green'))))),
    M("a header alone", T + "t.csv", 4, ["t.csv"], plant=text("t.csv", "a,b,c,d,kind\n")),
    M(
        "too many columns",
        T + "t.csv",
        4,
        ["'x'", "5", "4"],
        plant=text("t.csv", table("id,a,b,c,d,kind", [f"{i}," + r for i, r in enumerate(rows(lambda o: None))])),
    ),
    M(
        "more classes than outputs",
        T + "t.csv",
        4,
        ["4 classes", "3"],
        plant=text("t.csv", table(rows=rows(at(4, "0.4,1,4,4,violet")))),
    ),
    M(
        "Latin-1 csv",
        T + "t.csv",
        4,
        ["t.csv", "UTF-8"],
        plant=raw("t.csv", table(rows=rows(at(4, "0.4,1,4,4,gr\u00fcn"))).encode("latin-1")),
    ),
    M(
        "UTF-16 read as Latin-1",
        T + "t.csv --encoding latin1",
        4,
        ["t.csv"],
        plant=raw("t.csv", table().encode("utf-16")),
    ),
    M(
        "decimal commas and decimal points",
        T + "t.csv",
        4,
        ["t.csv"],
        plant=text("t.csv", "a;b;c;d;kind\n" + "".join(f"{i},5;1.5;2;3;red\n" for i in range(20))),
    ),
    M(
        "prices with a thousands separator",
        R + "p.csv",
        0,
        ["'price'", "'1,000.5' is 1000.5"],
        plant=text("p.csv", "a,b,c,d,price\n" + "".join(f'{i},1,2,{i % 4},"1,{i:03d}.5"\n' for i in range(40))),
    ),
    M(
        "percent signs in a regression",
        R + "p.csv",
        0,
        ["'share'", "'10 %' is 10"],
        plant=text("p.csv", "a,b,c,d,share\n" + "".join(f"{i},1,2,{i % 4},{i} %\n" for i in range(40))),
    ),
    M("a text target for a regression", R + "data.csv", 4, ["kind"]),
    M(
        "a column with the name of a weight",
        R + "u.csv --target price --one-hot c --drop d",
        4,
        ["fc.bias"],
        "--drop fc.bias",
        R + "u.csv --target price --one-hot c {fix}",
        text("u.csv", "fc.bias,b,c,d,price\n" + "".join(
            f"{i * 7 % 13},{i % 3},{'xy'[i % 2]},{i * i % 7},{i * 1.5}\n" for i in range(40))),
    ),
    M(
        "binary data in a csv",
        T + "t.csv",
        4,
        ["t.csv"],
        plant=raw("t.csv", table().encode()[:200] + bytes(range(256))),
    ),
    # ---- images and idx
    M("an image cut short", C + "pictures", 4, ["0.png"], plant=cut("pictures/cat/0.png", 60)),
    M("a text file among images", C + "pictures", 4, ["9.png"], plant=text("pictures/dog/9.png", "not an image")),
    M(
        "an empty class folder",
        C + "pictures",
        4,
        ["owl"],
        plant=both(*[removed(f"pictures/owl/{i}.png") for i in range(8)]),
    ),
    M(
        "more image classes than outputs",
        C + "pictures",
        4,
        ["4", "3"],
        plant=lambda d: (
            (d / "pictures" / "zebra").mkdir(),
            (d / "pictures" / "zebra" / "1.png").write_bytes((d / "pictures" / "cat" / "1.png").read_bytes()),
        ),
    ),
    M(
        "idx cut short",
        T + "images-idx3-ubyte",
        4,
        ["images-idx3-ubyte"],
        plant=idx("images-idx3-ubyte", 0x803, [10, 2, 2], bytes(20)),
    ),
    # ---- eval and predict
    M("eval without labels", "onnxtrain eval run --data only_x.npz", 4, ["only_x.npz"]),
    M(
        "eval with other features",
        "onnxtrain eval run --data w.npz",
        4,
        ["'x'"],
        plant=npz("w.npz", x=lambda: x(120, 5), y=y),
    ),
    M(
        "eval of a table without a column",
        "onnxtrain eval csv-run --data t.csv",
        4,
        ["'d'"],
        plant=lambda d: (d / "t.csv").write_text((d / "data.csv").read_text().replace("a,b,c,d,kind", "a,b,c,e,kind")),
    ),
    M(
        "eval with a class that was not there",
        "onnxtrain eval csv-run --data t.csv",
        4,
        ["violet"],
        plant=lambda d: (d / "t.csv").write_text((d / "data.csv").read_text().replace(",red", ",violet", 1)),
    ),
    M("predict without features", "onnxtrain predict run --data y.npz", 4, ["'x'"], plant=npz("y.npz", y=y)),
    M(
        "predict with other features",
        "onnxtrain predict run --data w.npz",
        4,
        ["'x'"],
        plant=npz("w.npz", x=lambda: x(12, 3)),
    ),
    M("predict on nothing", "onnxtrain predict run --data nothing.csv", 4, ["nothing.csv"]),
    M(
        "run with a wrong shape",
        "onnxtrain run mlp.onnx --inputs w.npz",
        4,
        ["'x'", "5", "4"],
        plant=npz("w.npz", x=lambda: x(12, 5)),
    ),
    M(
        "run with a wrong type",
        "onnxtrain run mlp.onnx --inputs w.npz",
        4,
        ["'x'", "double", "float"],
        plant=npz("w.npz", x=lambda: x(12).astype(np.float64)),
    ),
    M(
        "validation data with other features",
        T + "data.npz --valid w.npz",
        4,
        ["w.npz"],
        plant=npz("w.npz", x=lambda: x(20, 5), y=lambda: y(20)),
    ),
    M(
        "validation data with other labels",
        T + "data.npz --valid w.npz",
        4,
        ["label 3"],
        plant=npz("w.npz", x=lambda: x(20), y=lambda: y(20) + 1),
    ),
    M("batch larger than the data", T + "data.npz --batch 100000", 0, ["108"]),
]
