"""Data unlike that of the training, targets in the wrong order or form, edited runs, writing into copies."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from cases_more import table
from cases_rows import embedding
from mistake import Mistake as M
from workshop import both, dense, edited, model, npz, replaced, save, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
V, N = TRAIN.format("v.csv"), TRAIN.format("v.npz")
R = "onnxtrain train --resume run --epochs 3 "


def rows(change):
    """v.csv: every row's fields, changed."""
    return table(lambda t: [t[0], *[",".join(change(k, line.split(","))) for k, line in enumerate(t[1:])]])


def times(n):
    return rows(lambda k, f: [*[str(float(v) * n) for v in f[:4]], f[4]])


def P(name, typed, code, says, fix=None, then=None, plant=None):
    return M(name, typed, code, says, fix, then, plant, python=True)


BYTES = both(npz("v.npz", x=lambda: (x() * 20 + 100).astype(np.uint8), y=lambda: y()),
             npz("w.npz", x=lambda: (x() * 20 + 100).astype(np.uint8).astype(np.float32), y=lambda: y()))
UNLIKE = [
    M("other units for eval", "onnxtrain eval csv-run --data v.csv", 0, ["OT3129", "'a'", "in the training"],
      plant=times(1000)),
    M("other units for predict", "onnxtrain predict csv-run --data v.csv", 0, ["OT3129", "'a'"], plant=times(1000)),
    M("smaller units for eval", "onnxtrain eval csv-run --data v.csv", 0, ["OT3129"], plant=times(0.001)),
    M("other units for validation", TRAIN.format("data.csv") + "--valid v.csv", 0, ["OT3129", "validation data"],
      plant=times(1000)),
    M("bytes, then numbers", N + "-q && onnxtrain eval o --data w.npz", 0, ["OT3129", "column 0 of 'x'"], plant=BYTES),
    M("numbers, then bytes", TRAIN.format("w.npz") + "-q && onnxtrain predict o --data v.npz", 0, ["OT3129"],
      plant=BYTES),
    M("other units for a resumed run", R + "--data v.npz", 0, ["OT3129"],
      plant=npz("v.npz", x=lambda: x() * 1000, y=lambda: y())),
    M("a quarter of the validation rows is known", TRAIN.format("data.csv") + "--valid v.csv", 0,
      ["OT3112", "20 of 80"],
      plant=table(lambda t: [t[0], *t[1:21], *[line.replace(",", "1,", 1) for line in t[1:61]]])),
    P("bytes, then numbers, Python", "m = ot.load('mlp.onnx').compile(); u = (x * 20 + 100).astype('u1')\n"
      "m.fit(u, y, epochs=1); m.predict(u.astype('f4'))", 0, ["OT3129"]),
    P("other units for evaluate", "m = ot.load('mlp.onnx').compile(); m.fit(x, y, epochs=1); m.evaluate(x * 1000, y)",
      0, ["OT3129"]),
]

RUNS = [
    M("edited learning rate of a run", R, 0, ["run/config.toml", "lr = 0.5", "0.001", "adamw lr 0.5"],
      plant=replaced("run/config.toml", "lr = 0.001", "lr = 0.5")),
    M("edited validation share of a run", R, 0, ["OT3116", "chooses the validation rows anew"],
      plant=replaced("run/config.toml", 'valid = "0.1"', 'valid = "0.4"')),
    M("edited validation file", TRAIN.format("data.csv") + "--valid v.csv -q && sed -i 3d v.csv && "
      "onnxtrain train --resume o --epochs 2", 0, ["OT3116", "validation data is not what it was"], plant=times(1.01)),
    M("options in a section", TRAIN.format("data.npz") + "--config c.toml", 2, ["c.toml", "'train'"],
      "remove the line [train]", "sed -i /train/d c.toml && " + TRAIN.format("data.npz") + "--config c.toml",
      plant=lambda d: (d / "c.toml").write_text("[train]\nlr = 0.1\n")),
    M("predictions over the data of the training", "onnxtrain predict csv-run --data new.csv -o data.csv", 2,
      ["data.csv", "csv-run"], "-o predictions.csv", "onnxtrain predict csv-run --data new.csv {fix}",
      plant=table(lambda t: t, to="new.csv")),
]


def twice(m):
    m.graph.node.append(h.make_node("Softmax", ["probs"], ["again"], axis=1))
    m.graph.output[0].name = "again"


def pair():
    """Two outputs, price and size."""
    m = dense(4, 1, name="price")
    m.graph.node.append(h.make_node("Gemm", ["x", "size.weight", "size.bias"], ["size"], "size_fc", transB=1))
    m.graph.output.append(h.make_tensor_value_info("size", T.FLOAT, ["N", 1]))
    m.graph.initializer.extend([numpy_helper.from_array(np.ones((1, 4), np.float32), "size.weight"),
                                numpy_helper.from_array(np.zeros(1, np.float32), "size.bias")])
    return m


def prices(d):
    save(pair(), d / "pair.onnx")
    table(lambda t: ["a,b,c,d,price,size", *[f"{line.rsplit(',', 1)[0]},{k % 7},{k % 5 + 0.5}"
                                             for k, line in enumerate(t[1:])]])(d)


LOSSES = "--loss price=mse --loss size=mse"
PAIR = "onnxtrain train pair.onnx --data v.csv --epochs 1 --out o "
TARGETS = [
    M("two softmaxes", "onnxtrain train twice.onnx --data data.npz --epochs 1 --out o", 3, ["OT1290", "'probs'"],
      "--loss cross_entropy --loss-input s", "onnxtrain train twice.onnx --data data.npz --epochs 1 --out o {fix}",
      plant=edited("soft.onnx", twice, to="twice.onnx")),
    M("scores cut off at 0", "onnxtrain train relu.onnx --data data.npz --epochs 1 --out o", 0, ["OT3110", "Relu"],
      "--loss-input s", "onnxtrain train relu.onnx --data data.npz --epochs 1 --out o {fix}",
      plant=model("relu.onnx", lambda: dense(4, 3, "Relu", "scores"))),
    M("probabilities that do not sum to 1", "onnxtrain train soft.onnx --data v.npz --loss kl --epochs 1 --out o", 4,
      ["OT2163", "sums to 3", "row 0"], plant=npz("v.npz", x=lambda: x(), y=lambda: np.ones((120, 3), np.float32))),
    M("classes 1 and 2 for yes and no", "onnxtrain train binary.onnx --data v.npz --epochs 1 --out o", 4,
      ["OT2163", "from 1 to 2", "0 and 1 instead of 1 and 2"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: (y() > 0) + 1)),
    M("classes 1 and 2 as numbers", "onnxtrain train reg.onnx --data v.npz --epochs 1 --out o", 0,
      ["two values, 1 and 2", "bce_logits"], plant=npz("v.npz", x=lambda: x(), y=lambda: (y() > 0) + 1)),
    M("a class that is ignored", TRAIN.format("data.npz") + "--ignore-index 0", 0, ["have class 0", "ignored"]),
    M("an input of another width as the target",
      "onnxtrain train reg.onnx --data data.npz --label x --loss mse --epochs 1 --out o", 3, ["OT1244", "'x'", "'y'"]),
    M("one column for two losses", PAIR + "--target price " + LOSSES, 4, ["OT2106", "2 losses", "'price'"],
      "--target price,size", PAIR + "{fix} " + LOSSES, plant=prices),
    M("columns of two outputs without a word", PAIR + LOSSES, 0, ["rows"], plant=prices),
    M("an index below 0", "onnxtrain train emb.onnx --data v.npz --epochs 1 --out o", 0, ["below 0", "'ids'"],
      plant=both(model("emb.onnx", embedding),
                 npz("v.npz", ids=lambda: np.arange(80).reshape(20, 4) % 10 - 1, y=lambda: np.arange(20) % 3))),
    P("labels of 2 for yes and no, one step", "t = ot.Trainer(ot.prepare('binary.onnx'))\n"
      "t.step({'x': x, 'label': (y[:, None] * 2).astype('f4')})", "DataError", ["OT2163", "from 0 to 4"]),
    P("a target without its dimension", "t = ot.Trainer(ot.prepare('reg.onnx')); t.step({'x': x, 'label': x[:, 0]})",
      "DataError", ["'label'"], "x[..., None]",
      "t = ot.Trainer(ot.prepare('reg.onnx')); t.step({'x': x, 'label': x[:, 0][..., None]})"),
    P("targets of two losses as a list", "ot.load('pair.onnx').compile(loss=[ot.losses.MSE(output='price'), "
      "ot.losses.MSE(output='size')]).fit(x, [x[:, 0], x[:, 1]], epochs=1); print('note')", 0, ["note"], plant=prices),
    P("targets of two losses by output", "ot.load('pair.onnx').compile(loss=[ot.losses.MSE(output='price'), "
      "ot.losses.MSE(output='size')]).fit(x, {'size': x[:, 0], 'price': x[:, 1]}, epochs=1); print('note')", 0,
      ["note"], plant=prices),
]

FILES = [
    M("a table packed by xz", TRAIN.format("v.csv.xz"), 4, ["v.csv.xz"], "xz -dk v.csv.xz",
      "{fix} && " + TRAIN.format("v.csv"),
      plant=lambda d: (d / "v.csv.xz").write_bytes(__import__("lzma").compress((d / "data.csv").read_bytes()))),
    M("a report as a document", "onnxtrain report run -o r.pdf", 2, ["r.pdf"], "-o r.html",
      "onnxtrain report run {fix}"),
    M("a trace as a table", TRAIN.format("data.npz") + "--profile t.csv", 2, ["t.csv"], "--profile t.json",
      TRAIN.format("data.npz") + "{fix}"),
    M("a model to standard output", "onnxtrain export run -o -", 2, ["standard output"], "-o result.onnx",
      "onnxtrain export run {fix}"),
    M("a class with a blank of a web page", V, 0, ["3 classes"],
      plant=rows(lambda k, f: [*f[:4], f[4] + ("\u00a0" if k % 2 else "")])),
    M("digits of another script", V, 4, ["line 2", "'a'"], plant=rows(lambda k, f: ["\uff15.1", *f[1:]])),
    M("gaps marked by -999", V, 0, ["OT3124", "-999", "'b'"],
      plant=rows(lambda k, f: [f[0], "-999" if k in (7, 30) else f[1], *f[2:]])),
    M("a column that never changes", V, 0, ["the same in every training row", "'c'"],
      plant=rows(lambda k, f: [*f[:2], "7", *f[3:]])),
    M("the number of the row as a feature", V, 0, ["'d' counts the rows"], "--drop d", None,
      plant=rows(lambda k, f: [*f[:3], str(k + 1), f[4]])),
    M("test data for train", TRAIN.format("data.csv") + "--test v.csv", 2, ["--test"], "--valid",
      TRAIN.format("data.csv") + "{fix} 0.2"),
    M("a rate twice", TRAIN.format("data.npz") + "--lr 0.1 --optimizer-arg lr=0.5", 2, ["lr=0.5"]),
]

COPIES = [
    P("writing into a copy of the state", "t = ot.Trainer('mlp.train.onnx'); t.state['fc1.bias'][:] = 1", 0,
      ["a copy that nobody keeps", "state['fc1.bias'] = w"]),
    P("writing into a copy of a parameter", "ot.load('mlp.onnx').parameters['fc1.bias'][0] = 1", 0, ["a copy"]),
    P("labels in another order of the index",
      "import pandas as pd; ot.load('mlp.onnx').compile().fit(pd.DataFrame(x), pd.Series(y).sample(frac=1, "
      "random_state=0), epochs=1)", 0, ["another order", "y.loc[x.index]"]),
    P("a class for a callback", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, callbacks=["
      "ot.callbacks.EarlyStopping])", "UsageError", ["EarlyStopping"], "callbacks=[ot.callbacks.EarlyStopping(",
      "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, {fix}'loss')])"),
    P("an array for a model of named columns",
      "m = ot.new('mlp', 'data.csv', target='kind', verbose=False); m.predict(x)",
      "DataError", ["'a'", "by their names"], "pandas.DataFrame(x, columns=['a', 'b', 'c', 'd'])",
      "import pandas; m = ot.new('mlp', 'data.csv', target='kind', verbose=False); m.predict({fix})"),
    P("too few class weights, Python", "ot.prepare('mlp.onnx', loss=ot.losses.CrossEntropy(weight=[1, 2]))",
      "UsageError", ["2 class weights"], "loss=ot.losses.CrossEntropy(weight=[1,1,1])",
      "ot.prepare('mlp.onnx', {fix})"),
]

CASES = UNLIKE + RUNS + TARGETS + FILES + COPIES
