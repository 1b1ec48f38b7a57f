"""Rows, columns and classes that are not what they seem: copies of the target, gaps marked by numbers, formats."""

import zipfile

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from mistake import Mistake as M
from workshop import both, edited, images, model, npz, raw, text, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
V = TRAIN.format("v.csv")
N = TRAIN.format("v.npz")
NEW = "onnxtrain new mlp --data v.csv -o n.onnx "


def table(change, source="data.csv", to="v.csv"):
    """v.csv: the lines of a table, each a list of fields, changed."""

    def edit(d):
        rows = [line.split(",") for line in (d / source).read_text().splitlines()]
        (d / to).write_text("\n".join(",".join(r) for r in change(rows)) + "\n")

    return edit


def column(k, values, name=None):
    """Column k by a function of the row's fields."""
    return lambda rows: [
        [*r[:k], (name or r[k]) if i == 0 else str(values(i, r)), *r[k + 1 :]] for i, r in enumerate(rows)
    ]


def field(line, k, value):
    return lambda rows: [[*r[:k], value, *r[k + 1 :]] if i == line - 1 else r for i, r in enumerate(rows)]


def archive(name, *members):
    def make(d):
        with zipfile.ZipFile(d / name, "w") as z:
            for m in members:
                z.writestr(m, "x")

    return make


def moved(a, b):
    def edit(d):
        (d / b).parent.mkdir(parents=True, exist_ok=True)
        (d / a).rename(d / b)

    return edit


def spoilt(m):
    w = m.graph.initializer[0]
    a = numpy_helper.to_array(w).copy()
    a.flat[0] = np.nan
    w.CopyFrom(numpy_helper.from_array(a, w.name))


def embedding():
    r = np.random.default_rng(0)
    g = h.make_graph(
        [h.make_node("Gather", ["emb", "ids"], ["e"], "emb"),
         h.make_node("ReduceMean", ["e"], ["m"], axes=[1], keepdims=0),
         h.make_node("Gemm", ["m", "w", "b"], ["y"], "fc")], "g",
        [h.make_tensor_value_info("ids", T.INT64, ["N", 4])], [h.make_tensor_value_info("y", T.FLOAT, ["N", 3])],
        [numpy_helper.from_array(r.standard_normal(s).astype(np.float32), n)
         for n, s in (("emb", (10, 5)), ("w", (5, 3)), ("b", (3,)))])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def halves():
    """p and 1 - p: two probabilities of one score."""
    r = np.random.default_rng(0)
    g = h.make_graph(
        [h.make_node("Gemm", ["x", "w", "b"], ["s"], "fc"), h.make_node("Sigmoid", ["s"], ["p"]),
         h.make_node("Sub", ["one", "p"], ["q"]), h.make_node("Concat", ["q", "p"], ["both"], axis=1)], "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["N", 4])], [h.make_tensor_value_info("both", T.FLOAT, ["N", 2])],
        [numpy_helper.from_array(r.standard_normal((4, 1)).astype(np.float32), "w"),
         numpy_helper.from_array(np.zeros(1, np.float32), "b"),
         numpy_helper.from_array(np.ones(1, np.float32), "one")])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


CODES = {"red": 2, "green": 7, "blue": 4}
TABLES = [
    M("a code of the target among the features", V, 0, ["OT3121", "'d'", "'kind'"], "onnxtrain new mlp --data v.csv",
      None, plant=table(column(3, lambda i, r: CODES[r[4]]))),
    M("the target twice", "onnxtrain train reg.onnx --data v.csv --epochs 1 --out o", 0, ["OT3121", "'d'", "'price'"],
      plant=table(column(3, lambda i, r: r[4]), "reg.csv")),
    M("a column twice", V, 0, ["OT3122", "'a'", "'d'"], plant=table(column(3, lambda i, r: r[0]))),
    M("features that are all alike", V, 0, ["OT3123"],
      plant=table(lambda rows: [rows[0], *[["1", "2", "3", "4", r[4]] for r in rows[1:]]])),
    M("a target of one number", "onnxtrain train reg.onnx --data v.csv --epochs 1 --out o", 0, ["OT3120", "'price'"],
      plant=table(column(4, lambda i, r: 7), "reg.csv")),
    M("a gap marked by a number", V, 0, ["OT3124", "'b'", "-99999"], plant=table(field(9, 1, "-99999"))),
    M("rows that are there twice", V, 0, ["OT3112"], plant=table(lambda rows: [*rows, *rows[1:]])),
    M("two spellings of a class", NEW, 0, ["OT3125", "'Red'", "'red'"],
      plant=table(lambda rows: [*rows, [*rows[1][:4], "Red"]])),
    M("every row its own class", "onnxtrain new mlp --data v.csv --target price --task classes -o n.onnx", 0,
      ["OT3126", "'price'"], "--task numbers", "onnxtrain new mlp --data v.csv --target price {fix} -o n.onnx",
      plant=table(column(4, lambda i, r: i), "reg.csv")),
    M("a table without names", V, 0, ["no names"], plant=table(lambda rows: rows[1:])),
    M("blanks between the columns", V, 4, ["one column"], "--separator ' '", V + "{fix}",
      plant=lambda d: (d / "v.csv").write_text((d / "data.csv").read_text().replace(",", " "))),
    M("an infinity in a table", V, 4, ["v.csv", "line 5", "'a'"], plant=table(field(5, 0, "inf"))),
    M("an infinite target", "onnxtrain train reg.onnx --data v.csv --epochs 1 --out o", 4, ["line 5", "'price'"],
      plant=table(field(5, 4, "-inf"), "reg.csv")),
    M("an infinite target of a new model", NEW + "--target price", 4, ["line 5", "'price'"],
      plant=table(field(5, 4, "inf"), "reg.csv")),
    M("an amount with its currency", "onnxtrain train reg.onnx --data v.csv --epochs 1 --out o", 0,
      ["'price'", "EUR' is", "units and groups of digits taken off"],
      plant=table(column(4, lambda i, r: f"{r[4]} EUR"), "reg.csv")),
    M("classes 10, 20, 30", V, 4, ["label", "10..30", "numpy.unique"],
      plant=table(column(4, lambda i, r: {"red": 10, "green": 20, "blue": 30}[r[4]]))),
    M("one class of the model is missing", V, 0, ["'logits' has 3 classes", "2"],
      plant=table(column(4, lambda i, r: 0 if r[4] == "red" else 1))),
    M("classes of a model that knows no names", "onnxtrain eval mlp.onnx --data data.csv", 0, ["by name", "'blue'"]),
    M("one-hot and embedded", NEW + "--one-hot a --embed a", 2, ["'a'", "--one-hot", "--embed"], plant=table(list)),
    M("hidden layers of a linear model", "onnxtrain new linear --data data.csv --hidden 3 -o n.onnx", 2, ["linear"]),
    M("two widths of a transformer", "onnxtrain new transformer --data data.npz --hidden 8,4 -o n.onnx", 2,
      ["transformer"], "--hidden 8,8", "onnxtrain new transformer --data data.npz {fix} -o n.onnx"),
    M("a label offset of a new model", "onnxtrain new mlp --data data.csv --label-offset -1 -o n.onnx", 2,
      ["--label-offset"]),
]

FORMATS = [
    M("JSON lines", TRAIN.format("v.jsonl"), 4, ["v.jsonl", "JSON", "lines=True"], plant=text("v.jsonl", '{"a": 1}\n')),
    M("a workbook", TRAIN.format("v.xlsx"), 4, ["v.xlsx", "spreadsheet", "csv"],
      plant=archive("v.xlsx", "[Content_Types].xml", "xl/workbook.xml")),
    M("a zip archive of tables", TRAIN.format("v.zip"), 4, ["v.zip", "zip"], "unzip v.zip", "{fix}",
      plant=archive("v.zip", "data-2.csv")),
    M("a database", TRAIN.format("v.db"), 4, ["v.db", "SQLite"], plant=raw("v.db", b"SQLite format 3\0" + bytes(84))),
    M("an Arrow table", TRAIN.format("v.arrow"), 4, ["v.arrow", "Arrow"],
      plant=raw("v.arrow", b"ARROW1\0\0" + bytes(64))),
    M("text labels in an npz", N, 4, ["v.npz", "numpy.unique"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.array(["a", "b", "c"])[y()])),
    M("rows without a label", N, 4, ["label -1", "row 5"], "--ignore-index -1", N + "{fix}",
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.where(np.arange(120) == 5, -1, y()))),
    M("an offset that is not needed", TRAIN.format("data.npz") + "--label-offset 1", 4, ["0..2",
      "leave --label-offset"]),
    M("predictions of labels from 1", N + "--label-offset -1 -q && onnxtrain predict o --data v.npz | head -1", 0,
      ["prediction,1,2,3"], plant=npz("v.npz", x=lambda: x(), y=lambda: y() + 1)),
    M("squares that are too large", "onnxtrain train reg.onnx --data v.npz --epochs 1 --out o", 4, ["1e+30", "square"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: (x()[:, :1] > 0) * 1e30)),
    M("features of nothing but zeros", N, 0, ["OT3123"], plant=npz("v.npz", x=lambda: x() * 0, y=lambda: y())),
    M("images from 0 to 255 as floats", "onnxtrain train cnn.onnx --data v.npz --epochs 1 --out o", 0,
      ["OT3114", "255"],
      "--scale 0,255", "onnxtrain train cnn.onnx --data v.npz --epochs 1 --out o {fix}",
      plant=npz("v.npz", x=lambda: (images(60)[0] * 0 + 255).astype(np.float32), y=lambda: images(60)[1])),
    M("an image beside the classes", "onnxtrain new cnn --data pictures -o n.onnx", 0, ["not used", "pictures/0.png"],
      plant=moved("pictures/cat/0.png", "pictures/0.png")),
    M("a folder of validation images",
      "onnxtrain new cnn --data p -o n.onnx && onnxtrain train n.onnx --data p --epochs 1 --out o", 0, ["'p/val'"],
      "--valid p/val", "onnxtrain train n.onnx --data p --epochs 1 --out o {fix}",
      plant=lambda d: [__import__("shutil").copytree(d / "pictures", d / "p" / n) for n in ("train", "val")]),
    M("an index beyond the embedding", "onnxtrain train emb.onnx --data v.npz --epochs 1 --out o", 4,
      ["index 10", "row 3", "'ids'", "0..9"],
      plant=both(model("emb.onnx", embedding),
                 npz("v.npz", ids=lambda: np.arange(80).reshape(20, 4) % 10 + (np.arange(20) == 3)[:, None] * 8,
                     y=lambda: np.arange(20) % 3))),
    M("numbers for an input of indices", "onnxtrain train emb.onnx --data data.npz --epochs 1 --out o", 4,
      ["int64", "whole numbers"], plant=model("emb.onnx", embedding)),
    M("a weight that is no number", TRAIN.format("data.npz"), 3, ["fc1.weight", "NaN"],
      plant=edited("mlp.onnx", spoilt)),
    M("two probabilities of one score", "onnxtrain train both.onnx --data v.npz --epochs 1 --out o", 3, ["'both'"],
      "--loss bce_logits --loss-input s", "onnxtrain train both.onnx --data v.npz --epochs 1 --out o {fix}",
      plant=both(model("both.onnx", halves), npz("v.npz", x=lambda: x(), y=lambda: (y() > 0).astype(np.int64)))),
]

CASES = TABLES + FORMATS
