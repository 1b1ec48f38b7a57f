"""Mistakes with tables of text, gaps and dates, and with new models."""

import json

import numpy as np

from mistake import Mistake as M
from workshop import both, text

NEW = "onnxtrain new mlp -o m.onnx --data t.csv --target kind"
RUN = NEW + " && onnxtrain train m.onnx --data t.csv --epochs 1 --out r && "

SEVERAL = (NEW.replace("--target kind", "--target size,kind")
           + " && onnxtrain train m.onnx --data t.csv --epochs 1 --out r && ")


def table(change=None, header="size,city,day,kind", n=40):
    rows = [[f"{i * 0.7 % 5:.1f}", ("Bern", "Rome", "Oslo")[i % 3], f"2020-01-{1 + i % 28:02d}", "ab"[i % 2]]
            for i in range(n)]
    if change:
        change(rows)
    return "\n".join([header, *(",".join(r) for r in rows)]) + "\n"


def at(row, column, value):
    return lambda rows: rows[row].__setitem__(column, value)


def column(k, value):
    return lambda rows: [r.__setitem__(k, value) for r in rows]


GOOD = text("t.csv", table())


TEXT = "onnxtrain new gru -o m.onnx --data t.csv --target kind "
WORDS = both(GOOD, text("tokenizer.json", json.dumps({
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "Bern": 1, "Rome": 2, "Oslo": 3}, "unk_token": "[UNK]"}})))


def arrays(d):
    (d / "arrays").mkdir()
    for name, values in (("x", np.arange(80.0).reshape(40, 2)), ("y", np.arange(40) % 2)):
        np.save(d / "arrays" / f"{name}.npy", values)


def with_new(change):
    return both(GOOD, text("new.csv", table(change)))


CASES = [
    M("kind of network misspelt", NEW.replace("mlp", "mpl"), 2, ["mpl"], "mlp", NEW.replace("mlp", "{fix}"), GOOD),
    M("train without a model", "onnxtrain train --data t.csv --target kind", 2, ["MODEL"],
      "onnxtrain new mlp --data t.csv --target kind -o model.onnx", "", GOOD),
    M("new target that is not there", NEW.replace("kind", "knd"), 4, ["knd"], "--target kind",
      "onnxtrain new mlp -o m.onnx --data t.csv {fix}", GOOD),
    M("a cnn for a table", NEW.replace("mlp", "cnn"), 4, ["cnn", "table"],
      "onnxtrain new mlp --data t.csv --target kind -o model.onnx", "", GOOD),
    M("a word among numbers", NEW, 4, ["'size'", "line 5", "'big'"], "--one-hot size", NEW + " {fix}",
      text("t.csv", table(at(3, 0, "big")))),
    M("a date that is none", NEW, 4, ["'day'", "line 5", "2020-02-31"], "--one-hot day", NEW + " {fix}",
      text("t.csv", table(at(3, 2, "2020-02-31")))),
    M("a table of one constant and one empty column", "onnxtrain new mlp -o m.onnx --data c.csv --target kind", 4,
      ["'size", "always", "'city", "empty"],
      plant=text("c.csv", table(lambda rows: (column(0, "1")(rows), column(1, "")(rows), column(2, "x")(rows))))),
    M("a guessed target with a gap", "onnxtrain new mlp -o m.onnx --data t.csv", 4, ["'port'", "line 8", "no target"],
      "--target kind", NEW.split(" --target")[0] + " {fix}",
      text("t.csv", table(lambda rows: (column(3, "a")(rows), [r.append("SCQ"[k % 3]) for k, r in enumerate(rows)],
                                        [at(k, 3, "b")(rows) for k in range(0, 40, 3)], at(6, 4, "")(rows)),
                          header="size,city,day,kind,port"))),
    M("features without their labels", "onnxtrain new mlp -o m.onnx --data arrays/x.npy", 4, ["arrays/x.npy"],
      "--data arrays", "onnxtrain new mlp -o m.onnx {fix}", arrays),
    M("running text as a category", "onnxtrain new gru -o m.onnx --data t.csv --target kind", 4, ["'review'"],
      "--text review --tokenizer tokenizer.json", "onnxtrain new gru -o m.onnx --data t.csv --target kind {fix}",
      both(WORDS, text("t.csv", "review,kind\n" + "".join(
          f"Bern and Rome and Oslo {k},{'ab'[k % 2]}\n" for k in range(40))))),
    M("one class only", NEW, 4, ["1 class"], plant=text("t.csv", table(column(3, "a")))),
    M("image folder with one class", "rm -r pictures/dog pictures/owl; onnxtrain new cnn --data pictures -o m.onnx", 4,
      ["1 class", "another class"]),
    M("images without a folder per class", "onnxtrain new cnn --data pictures/cat -o m.onnx", 4,
      ["pictures/cat", "folder per class"]),
    M("unknown way to fill gaps", NEW + " --impute avg", 2, ["avg"], "--impute median", NEW + " {fix}", GOOD),
    M("unknown scale of a new model", NEW + " --scale norm", 2, ["norm"], "--scale standard", NEW + " {fix}", GOOD),
    M("one-hot of a column that is not there", NEW + " --one-hot cty", 4, ["cty"], "--one-hot city", NEW + " {fix}",
      GOOD),
    M("unknown encoding", NEW + " --encoding klingon", 2, ["klingon"], "--encoding utf-8", NEW + " {fix}", GOOD),
    M("a separator of two characters", NEW + " --separator ';;'", 2, [";;"], plant=GOOD),
    M("text as numbers", NEW + " --task numbers", 4, ["kind", "text"], "--task classes", NEW + " {fix}", GOOD),
    M("a category that the training did not have", RUN + "onnxtrain predict r --data new.csv", 0,
      ["'city'", "'Paris'", "1 row"], plant=with_new(at(2, 1, "Paris"))),
    M("a date that is none at prediction", RUN + "onnxtrain predict r --data new.csv", 4, ["'day'", "line 4", "'soon'"],
      plant=with_new(at(2, 2, "soon"))),
    M("a word for a number at prediction", RUN + "onnxtrain predict r --data new.csv", 4,
      ["'size'", "line 4", "'big'"], plant=with_new(at(2, 0, "big"))),
    M("a class that the training did not have", RUN + "onnxtrain eval r --data new.csv", 4, ["'c'", "line 4"],
      plant=with_new(at(2, 3, "c"))),
    M("other columns than at training", RUN + "onnxtrain predict r --data new.csv", 4, ["'city'", "new.csv"],
      plant=both(GOOD, text("new.csv", table(header="size,town,day,kind")))),
    M("an infinity in a column", NEW, 4, ["'size'", "infinity"], plant=text("t.csv", table(at(3, 0, "inf")))),
    M("a class of several targets that the training did not have", SEVERAL + "onnxtrain eval r --data new.csv", 4,
      ["'c'", "line 4"], plant=with_new(at(2, 3, "c"))),
    M("a word for a number of several targets", SEVERAL.split("&&")[0], 4, ["'size'", "line 5", "'big'"],
      plant=text("t.csv", table(at(3, 0, "big")))),
    M("text without a tokenizer", TEXT + "--text city", 2, ["city", "tokenizer"], "--tokenizer tokenizer.json",
      TEXT + "--text city {fix}", WORDS),
    M("text for a network that takes none", NEW + " --text city --tokenizer tokenizer.json", 2, ["mlp", "text"],
      "onnxtrain new transformer --data t.csv --target kind --text city --tokenizer tokenizer.json", "", WORDS),
    M("a text column that is not there", TEXT + "--text citi --tokenizer tokenizer.json", 4, ["citi"], "--text city",
      TEXT + "{fix} --tokenizer tokenizer.json", WORDS),
    M("scaling twice", RUN + "onnxtrain predict r --data t.csv --scale 1,2", 2, ["--scale 1,2"], plant=GOOD),
    M("preprocessing of another width",
      "onnxtrain train mlp.onnx --data t.csv --target kind --preprocess auto --out o", 4,
      ["5 numbers per row", "city 3 (one-hot)", "float[N,4]"], plant=GOOD),
    M("text for an lstm without a tokenizer", "onnxtrain new lstm --data t.csv --target kind --text city -o m.onnx", 2,
      ["--text city", "--tokenizer tokenizer.json"], plant=GOOD),
    M("text for a cnn", "onnxtrain new cnn --data t.csv --target kind --text city --tokenizer t.json -o m.onnx", 2,
      ["'cnn'", "onnxtrain new transformer --data t.csv --target kind --text city --tokenizer t.json"], plant=GOOD),
    M("text for a model of numbers", "onnxtrain train mlp.onnx --data t.csv --text city --tokenizer t.json --out o", 3,
      ["token ids", "'x' float[N,4]"], plant=both(GOOD, text("t.json", "{}"))),
    M("a tokenizer that is none", "onnxtrain new lstm --data t.csv --target kind --text city --tokenizer t.json", 4,
      ["t.json", "no tokenizer"], plant=both(GOOD, text("t.json", "{}"))),
    M("gaps without preprocessing", "onnxtrain train reg.onnx --data g.csv --target d --out o", 4, ["line 3", "'b'"],
      plant=text("g.csv", "a,b,c,e,d\n1,2,3,4,5\n1,,3,4,5\n" + "2,1,3,5,6\n" * 30)),
]
