"""More mistakes: numbers of the file, the environment, formats of arrays, tables and images."""

import os
import shutil

import numpy as np
from onnx import numpy_helper

from mistake import Mistake as M
from workshop import edited, npz, raw, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
N, C = TRAIN.format("v.npz"), TRAIN.format("v.csv")
R = "onnxtrain train reg.onnx --data v.csv --epochs 1 --out o "
IMAGES = "onnxtrain new cnn --data pictures -o n.onnx "


def spoilt(name, value):
    """One number of an initializer."""

    def change(m):
        for i in m.graph.initializer:
            if i.name == name:
                a = numpy_helper.to_array(i).copy()
                a.flat[-1] = value
                i.CopyFrom(numpy_helper.from_array(a, name))

    return change


NUMBERS = [
    M("a NaN in a bias", TRAIN.format("data.npz"), 3, ["OT1291", "'fc1.bias'", "NaN in 1 of its 16"], "--reset",
      TRAIN.format("data.npz") + "{fix}", plant=edited("mlp.onnx", spoilt("fc1.bias", np.nan))),
    M("an infinity in a bias", "onnxtrain prepare mlp.onnx -o p.onnx", 3, ["OT1291", "'fc2.bias'", "infinities"],
      "--reset", "onnxtrain prepare mlp.onnx -o p.onnx {fix}", plant=edited("mlp.onnx", spoilt("fc2.bias", np.inf))),
    M("a NaN in a bias, Python", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1)", "ModelError", ["'fc1.bias'"],
      "reset=True", "ot.load('mlp.onnx').compile({fix}).fit(x, y, epochs=1)",
      plant=edited("mlp.onnx", spoilt("fc1.bias", np.nan)), python=True),
    M("a NaN in a file with its training", "onnxtrain train mlp.train.onnx --data data.npz --epochs 1 --out o", 3,
      ["OT1291", "'fc2.bias'"], plant=edited("mlp.train.onnx", spoilt("fc2.bias", np.nan))),
]


def variable(name, value, line, says, code=2):
    return M(f"{name}={value} of {line.split()[1]}", line, code, [f"ONNXTRAIN_{name}", *says],
             env={f"ONNXTRAIN_{name}": value})


ENVIRONMENT = [
    variable("THREADS", "abc", "onnxtrain info mlp.onnx", ["abc", "0 to"]),
    variable("THREADS", "-2", "onnxtrain eval run --data data.npz", ["-2"]),
    variable("THREADS", "2.5", "onnxtrain predict run --data only_x.npz", ["2.5"]),
    variable("THREADS", "5000", "onnxtrain run mlp.onnx --inputs only_x.npz", ["5000"]),
    variable("MEMORY", "lots", "onnxtrain export run -o e.onnx", ["lots"]),
    variable("TIME", "soon", "onnxtrain diff mlp.onnx mlp.onnx", ["soon"]),
    variable("ISA", "mmx", "onnxtrain report run", ["mmx"]),
    variable("EPOCHS", "many", "onnxtrain eval run --data data.npz", ["many"]),
    variable("THREAD", "2", "onnxtrain check mlp.onnx", ["ONNXTRAIN_THREADS"]),
    variable("VERIFY_PASSES", "maybe", "onnxtrain grad mlp.onnx --inputs only_x.npz --wrt fc1.weight", ["maybe"]),
    variable("MPI_PLUGIN", "/no.so", "onnxtrain info mlp.onnx", ["/no.so"]),
    M("threads in words, Python", "ot.Session('mlp.onnx')", "UsageError", ["ONNXTRAIN_THREADS", "two"], python=True,
      env={"ONNXTRAIN_THREADS": "two"}),
    M("memory in words, Python", "ot.load('mlp.onnx')", "UsageError", ["ONNXTRAIN_MEMORY_LIMIT", "much"], python=True,
      env={"ONNXTRAIN_MEMORY_LIMIT": "much"}),
]

RECORDS = np.zeros(120, dtype=[("a", "f4"), ("b", "f4")])
ARRAYS = [
    M("records of several fields", N, 4, ["v.npz:x", "several fields"],
      plant=npz("v.npz", x=lambda: RECORDS, y=lambda: y())),
    M("records in one array", TRAIN.format("v.npy"), 4, ["v.npy", "several fields"],
      plant=lambda d: np.save(d / "v.npy", RECORDS)),
    M("one-hot rows as whole numbers", N, 4, ["[120,3]", "one-hot"], "y.argmax(1)",
      "python -c \"import numpy as n; d = n.load('v.npz'); y = d['y']; n.savez('w.npz', x=d['x'], y={fix})\" && "
      + TRAIN.format("w.npz"), plant=npz("v.npz", x=lambda: x(), y=lambda: np.eye(3, dtype=np.int64)[y()])),
    M("a table turned on its side", N, 4, ["'x' has 4", "'y' has 120"],
      plant=npz("v.npz", x=lambda: x().T, y=lambda: y())),
    M("numbers beyond float32", N, 4, ["row 0", "'x'", "float32"],
      plant=npz("v.npz", x=lambda: x().astype(np.float64) * 1e39, y=lambda: y())),
    M("labels from -1", N, 4, ["label -1", "0..2"], "--label-offset 1", N + "{fix}",
      plant=npz("v.npz", x=lambda: x(), y=lambda: y() - 1)),
    M("labels of 64 bits without sign", N, 4, ["'y'", "int64"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.full(120, 2**63, np.uint64))),
    M("a NaN among the targets of an array", R.replace("v.csv", "v.npz"), 4, ["NaN", "row 5", "'y'"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.where(np.arange(120)[:, None] == 5, np.nan, x()[:, :1]))),
    M("channels that are first already", "onnxtrain train cnn.onnx --data images.npz --layout nhwc --epochs 1 --out o",
      4, ["[60,3,8,8]"], "leave --layout nhwc out", "onnxtrain train cnn.onnx --data images.npz --epochs 1 --out o"),
    M("numbers of a regression for classes", "onnxtrain eval run --data reg.npz", 4, ["row 0", "'y'", "0..2"]),
]


def table(change, source="data.csv", to="v.csv"):
    """v.csv: the lines of a table, changed."""

    def edit(d):
        lines = change((d / source).read_text().splitlines())
        (d / to).write_text("\n".join(lines) + "\n")

    return edit


def first_field(value, at=None):
    """The first field of every line, or of one."""
    return table(lambda t: [t[0], *[f"{value}," + line.split(",", 1)[1] if at in (None, k) else line
                                    for k, line in enumerate(t[1:], 2)]])


def text(change):
    return lambda d: (d / "v.csv").write_bytes(change((d / "data.csv").read_text()).encode())


TABLES = [
    M("one field more", C, 4, ["line 8", "6 fields", "5"],
      plant=table(lambda t: [*t[:7], t[7] + ",9", *t[8:]])),
    M("one field less", C, 4, ["line 8", "4 fields", "5"],
      plant=table(lambda t: [*t[:7], t[7].rsplit(",", 1)[0], *t[8:]])),
    M("a comma behind every line", C, 0, ["column 6", "no name", "left out"],
      plant=table(lambda t: [line + "," for line in t])),
    M("a comma behind every line but the first", C, 4, ["line 2", "6 fields"],
      plant=table(lambda t: [t[0], *[line + "," for line in t[1:]]])),
    M("a comment above the names", C, 4, ["line 2", "5 fields", "comment"], "grep -v '^#' v.csv > table.csv",
      "{fix} && " + TRAIN.format("table.csv"), plant=table(lambda t: ["# made by hand", *t])),
    M("units below the names", C, 4, ["line 2", "'cm'", "'a'"], plant=table(lambda t: [t[0], "cm,cm,kg,kg,-", *t[1:]])),
    M("lines that end as on old Macintosh computers", C, 0, ["120 rows"],
      plant=text(lambda s: s.replace("\n", "\r"))),
    M("zero bytes in a table", C, 4, ["v.csv"], plant=text(lambda s: s.replace("red", "r\0d"))),
    M("thousands with a comma", C, 4, ["'1,234.5'", "line 2", "'a'"], "1234.5",
      "sed -i 's/\"1,234.5\"/{fix}/' v.csv && " + C, plant=first_field('"1,234.5"')),
    M("per cent among the features", C, 4, ["'5 %'", "line 2", "5 instead of"], plant=first_field("5 %")),
    M("a currency among the features", C, 4, ["'$ 12.50'", "12.50 instead of"], plant=first_field("$ 12.50")),
    M("hexadecimal numbers", C, 4, ["'0x1F'", "line 2", "'a'"], plant=first_field("0x1F")),
    M("an error of a spreadsheet", C, 4, ["'#DIV/0!'", "line 5", "'a'"], plant=first_field("#DIV/0!", 5)),
    M("the word Infinity", C, 4, ["infinity", "line 5", "'a'"], plant=first_field("Infinity", 5)),
    M("a number of each row", C, 4, ["[120,5]", "'id'"], "--drop id", C + "{fix}",
      plant=table(lambda t: ["id," + t[0], *[f"{k},{line}" for k, line in enumerate(t[1:])]])),
    M("a target of which there are two", C, 0, ["two columns are called 'kind'"],
      plant=text(lambda s: s.replace("a,b,c,d,kind", "kind,b,c,d,kind", 1))),
    M("a row without its class", C, 4, ["missing", "line 5", "'kind'"],
      plant=table(lambda t: [*t[:4], t[4].rsplit(",", 1)[0] + ",", *t[5:]])),
    M("dates to be learnt as numbers", R, 4, ["'price'", "'2024-01-01'"],
      plant=table(lambda t: [t[0], *[line.rsplit(",", 1)[0] + f",2024-01-{k % 28 + 1:02}" for k, line in
                                     enumerate(t[1:])]], "reg.csv")),
    M("marks of a merge", C, 4, ["line 8"], plant=table(lambda t: [*t[:7], "<<<<<<< HEAD", *t[7:]])),
    M("the names a second time", C, 4, ["line 53", "'a'"], plant=table(lambda t: [*t[:52], t[0], *t[52:]])),
    M("one line", C, 4, ["one row"], "--valid 0", C + "{fix}", plant=table(lambda t: t[:2])),
    M("a column of the run is missing", "onnxtrain predict csv-run --data v.csv", 4, ["'a'", "'b', 'c', 'd'"],
      plant=table(lambda t: [",".join(line.split(",")[1:4]) for line in t])),
    M("predictions as a model", "onnxtrain predict csv-run --data data.csv -o p.onnx", 2, ["p.onnx"], "-o p.csv",
      "onnxtrain predict csv-run --data data.csv {fix}"),
]


def link(to, at):
    return lambda d: os.symlink(to, d / at)


def image(path, mode, form, pixels=None):
    def make(d):
        from PIL import Image

        a = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8) if pixels is None else pixels
        Image.fromarray(a).convert(mode).save(d / path, form)

    return make


PICTURES = [
    M("a link to an image that is gone", IMAGES, 4, ["pictures/cat/b.png", "link"], "--skip-bad", IMAGES + "{fix}",
      plant=link("nowhere.png", "pictures/cat/b.png")),
    M("an empty image", IMAGES, 4, ["pictures/cat/a.png", "empty"], "--skip-bad", IMAGES + "{fix}",
      plant=raw("pictures/cat/a.png", b"")),
    M("colours of a printer", IMAGES, 4, ["pictures/cat/a.jpg", "4 components"], "--skip-bad", IMAGES + "{fix}",
      plant=image("pictures/cat/a.jpg", "CMYK", "JPEG")),
    M("a GIF among images", IMAGES, 0, ["not used", "pictures/cat/a.gif", "not read"],
      plant=image("pictures/cat/a.gif", "RGB", "GIF")),
    M("an image in two classes", IMAGES, 0, ["two classes", "pictures/cat/0.png", "pictures/dog/c.png"],
      plant=lambda d: shutil.copy(d / "pictures/cat/0.png", d / "pictures/dog/c.png")),
    M("classes that differ in a capital letter", IMAGES, 0, ["OT3125", "'Cat'", "'cat'"],
      plant=lambda d: shutil.copytree(d / "pictures/cat", d / "pictures/Cat")),
    M("one image to train on", "onnxtrain train cnn.onnx --data pictures/cat/0.png --epochs 1 --out o", 4,
      ["pictures/cat/0.png", "folders named after their classes"]),
    M("images for a model of columns", TRAIN.format("pictures"), 4, ["[24,3,8,8]", "[N,4]"]),
]

CASES = NUMBERS + ENVIRONMENT + ARRAYS + TABLES + PICTURES
