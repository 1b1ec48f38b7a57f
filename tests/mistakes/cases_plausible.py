"""What is wrong and looks right: rows, classes, targets, schedules, objects of Python older than they seem."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from cases_more import table
from mistake import Mistake as M
from workshop import both, edited, model, npz, x, y

TRAIN = "onnxtrain train mlp.onnx --data {} --epochs 1 --out o "
N, D, V = TRAIN.format("v.npz"), TRAIN.format("data.npz"), TRAIN.format("v.csv")
R = "onnxtrain train reg.onnx --data v.npz --epochs 1 --out o "


def P(name, typed, code, says, fix=None, then=None, plant=None):
    return M(name, typed, code, says, fix, then, plant, python=True)


def scales_bytes(m):
    """The model divides its images by 255 itself."""
    image = m.graph.input[0].name
    for n in m.graph.node:
        for k, v in enumerate(n.input):
            if v == image:
                n.input[k] = "scaled"
    m.graph.initializer.append(numpy_helper.from_array(np.float32(255), "bytes"))
    m.graph.node.insert(0, h.make_node("Div", [image, "bytes"], ["scaled"], "to_unit"))


BYTES = both(edited("cnn.onnx", scales_bytes, to="bytes.onnx"),
             lambda d: np.savez(d / "u.npz", x=np.random.default_rng(0).integers(0, 255, (60, 3, 8, 8)).astype("u1"),
                                y=np.arange(60) % 3))
U = "onnxtrain train bytes.onnx --data u.npz --epochs 1 --out o "
BY_CLASS = npz("v.npz", x=lambda: x()[np.argsort(y(), kind="stable")], y=lambda: np.sort(y()))
DATA = [
    M("bytes that are scaled twice", U, 0, ["OT3114", "'to_unit'", "divided by 255"], "--scale none", U + "{fix}",
      plant=BYTES),
    M("columns of next to nothing", N, 0, ["OT3114", "next to nothing"], "--scale standard", N + "{fix}",
      plant=npz("v.npz", x=lambda: x() * 1e-20, y=lambda: y())),
    M("rows sorted by class", N + "--no-shuffle --batch 16", 0, ["OT3120", "sorted by class", "batches"],
      "--no-shuffle", N + "--batch 16", plant=BY_CLASS),
    M("rows sorted by the target", R + "--no-shuffle --batch 16", 0, ["OT3120", "sorted by the target"],
      plant=npz("v.npz", x=lambda: x()[np.argsort(x()[:, 0])], y=lambda: np.sort(x()[:, 0])[:, None] * 2)),
    M("a class that is validated and never trained", N + "--valid w.npz", 0, ["OT3120", "class 2", "no training row"],
      plant=both(npz("v.npz", x=lambda: x()[y() != 2], y=lambda: y()[y() != 2]),
                 npz("w.npz", x=lambda: x() + 1e-3, y=lambda: y()))),
    M("a class that is never validated", N + "--valid w.npz", 0, ["no validation row has class 2"],
      plant=both(npz("w.npz", x=lambda: x()[y() != 2] + 1e-3, y=lambda: y()[y() != 2]),
                 npz("v.npz", x=lambda: x(), y=lambda: y()))),
    M("rows twice with other classes", N, 0, ["same features", "can be told rightly"],
      plant=npz("v.npz", x=lambda: np.concatenate([x(), x()]), y=lambda: np.concatenate([y(), (y() + 1) % 3]))),
    M("numbers of users among the features", V, 0, ["OT3122", "'user_id'", "an id by its name"], "--drop user_id",
      plant=table(lambda t: ["a,b,c,user_id,kind", *[",".join([*line.split(",")[:3], str(k * 7919 % 100003),
                                                               line.split(",")[4]]) for k, line in enumerate(t[1:])]])),
    M("all marks are 0", N + "--loss bce_logits", 0, ["OT3120", "0 in every row"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.zeros((120, 3), np.float32))),
    M("the target of eval in other units",
      "onnxtrain train reg.onnx --data reg.npz --epochs 1 --out o -q; onnxtrain eval o --data v.npz", 0,
      ["OT3129", "the target"], plant=lambda d: np.savez(d / "v.npz", x=x(), y=np.load(d / "reg.npz")["y"] * 1000)),
    M("windows of one series", "onnxtrain train reg.onnx --data v.npz --epochs 1 --out o ", 0,
      ["OT3135", "windows of one series", "1 point after"], "--valid",
      "onnxtrain train reg.onnx --data v.npz --epochs 1 --out o {fix} w.npz",
      plant=both(lambda d: windows(d / "v.npz", 0), lambda d: windows(d / "w.npz", 200))),
    M("labels of other rows", "onnxtrain train mlp.onnx --data v.npz --epochs 20 --out o", 0,
      ["OT3118", "can be chance", "nothing was learnt"],
      plant=npz("v.npz", x=lambda: x(), y=lambda: np.random.default_rng(1).permutation(y()))),
    M("a target beyond the output", "onnxtrain train binary.onnx --data v.npz --loss mse --epochs 1 --out o", 4,
      ["OT2166", "'p'", "between 0 and 1"], "--loss mse --loss-input s",
      "onnxtrain train binary.onnx --data v.npz --epochs 1 --out o {fix}",
      plant=lambda d: np.savez(d / "v.npz", x=x(), y=np.load(d / "reg.npz")["y"])),
    M("eval on the data of the training", "onnxtrain eval run --data data.npz", 0, ["trained on", "nothing about"]),
    M("two arrays for two inputs by their order", "onnxtrain predict two.onnx --data v.npz", 0,
      ["'arr_0' feeds 'a'", "--map"],
      plant=both(model("two.onnx", lambda: two()), lambda d: np.savez(d / "v.npz", x(), x() + 1))),
]


def two():
    g = h.make_graph([h.make_node("Sub", ["a", "b"], ["y"])], "g",
                     [h.make_tensor_value_info(k, T.FLOAT, ["N", 4]) for k in "ab"],
                     [h.make_tensor_value_info("y", T.FLOAT, ["N", 4])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def windows(path, begin):
    """Four values of a random walk, and the next one."""
    walk = np.cumsum(np.random.default_rng(begin).standard_normal(134)).astype(np.float32)
    rows = np.lib.stride_tricks.sliding_window_view(walk, 4)[:-1]
    np.savez(path, x=rows, y=walk[4:, None])


SETTINGS = [
    M("a schedule that raises the learning rate", D + "--schedule linear --schedule-arg end_factor=100", 0,
      ["OT3128", "raises", "from 0.001"]),
    M("gamma above 1", D + "--schedule step --schedule-arg step_size=1 --schedule-arg gamma=10", 0,
      ["OT3128", "raises"]),
    M("a smallest learning rate above the largest", D + "--schedule cosine --schedule-arg min_lr=0.1", 0,
      ["OT3128", "raises", "from 0.001"]),
    M("a warm-up that begins above", D + "--schedule cosine --schedule-arg warmup_steps=2 --schedule-arg "
      "warmup_start=50", 0, ["OT3128", "warmup_start 50"], "--schedule-arg warmup_start=0",
      D + "--schedule cosine --schedule-arg warmup_steps=2 {fix}"),
    M("patience beyond the training", D + "--patience 50", 0, ["--patience 50", "never stops"]),
    M("scores that overflow in the validation", D + "--optimizer "
      "rmsprop --optimizer-arg alpha=1", 0, ["OT3133", "the validation loss is"]),
]

FIT = "m = ot.load('mlp.onnx').compile(optimizer=o); m.fit(x, y, epochs=1); "
PYTHON = [
    P("rows sorted by class, Python", "k = np.argsort(y); ot.load('mlp.onnx').compile().fit(x[k], y[k], epochs=1, "
      "batch_size=16, shuffle=False)", 0, ["OT3120", "sorted by class"]),
    P("an optimizer that is changed after fit", "o = ot.AdamW(lr=1e-3); " + FIT + "o.lr = 10; m.fit(x, y, epochs=1)", 0,
      ["changed after training began"], "model.trainer().lr = 1e-4",
      "o = ot.AdamW(lr=1e-3); " + FIT + "model = m; {fix}; m.fit(x, y, epochs=1)"),
    P("an export of the model that was not trained",
      "p = ot.prepare('mlp.onnx'); t = ot.Trainer(p); t.step({'x': x, 'label': y}); p.export('new.onnx')", 0,
      ["before the training"], "trainer.export('new.onnx')",
      "p = ot.prepare('mlp.onnx'); trainer = ot.Trainer(p); trainer.step({'x': x, 'label': y}); {fix}"),
    P("a plateau that raises the learning rate", "ot.callbacks.ReduceLROnPlateau(factor=10)", "UsageError",
      ["factor is 10"], "factor=0.1", "ot.callbacks.ReduceLROnPlateau({fix})"),
    P("patience below zero, Python", "ot.callbacks.EarlyStopping(patience=-3)", "UsageError", ["patience is -3"],
      "patience=3", "ot.callbacks.EarlyStopping({fix})"),
    P("waiting for a worse accuracy", "ot.callbacks.EarlyStopping(monitor='valid_accuracy', mode='min')", 0,
      ["smaller 'valid_accuracy'"], 'mode="auto"', "ot.callbacks.EarlyStopping(monitor='valid_accuracy', {fix})"),
]

PYTHON += [
    P("arrays that change during fit", "x = x.copy()\nm = ot.load('mlp.onnx').compile()\n"
      "m.fit(x, y, epochs=3, on_epoch=lambda e: x.__imul__(2) is None)", 0, ["OT3116", "while it was trained on"],
      "fit(x.copy(), y.copy())", "m = ot.load('mlp.onnx').compile(); z = x\n"
      "m.{fix}; m.fit(x.copy(), y, epochs=3, on_epoch=lambda e: z.__imul__(2) is None)"),
    P("a learning rate of nothing in one's own loop", "ot.prepare('mlp.onnx', optimizer=ot.SGD(lr=1e-12))", 0,
      ["OT3130", "1e-12", "nothing is learnt"]),
    P("labels of other rows, Python", "r = np.random.default_rng(1)\n"
      "ot.load('mlp.onnx').compile().fit(x, r.permutation(y), epochs=20, valid=0.1)", 0, ["OT3118"]),
    P("a target beyond the output, Python", "ot.load('binary.onnx').compile(loss='mse').fit(x, x[:, :1] * 9, epochs=1)",
      "DataError", ["OT2166"], "loss=ot.losses.MSE(output='s')",
      "ot.load('binary.onnx').compile({fix}).fit(x, x[:, :1] * 9, epochs=1)"),
]
PYTHON += [
    P("class weights as Keras has them", "ot.load('mlp.onnx').compile().fit(x, y, class_weight={0: 1, 1: 2, 2: 1})",
      "UsageError", ["'class_weight'"], "compile(loss=ot.losses.CrossEntropy(weight=[1.0, 2.0, 1.0]))",
      "ot.load('mlp.onnx').{fix}.fit(x, y, epochs=1)"),
    P("a callback in the singular",
      "ot.load('mlp.onnx').compile().fit(x, y, callback=[ot.callbacks.EarlyStopping('loss')])", "UsageError",
      ["'callback'"], "callbacks=",
      "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, {fix}[ot.callbacks.EarlyStopping('loss')])"),
    P("a learning rate below zero in one's own loop", "t = ot.Trainer(ot.prepare('mlp.onnx')); t.lr = -0.1",
      "UsageError", ["from 0 on", "-0.1"], "t.lr = 1e-3", "t = ot.Trainer(ot.prepare('mlp.onnx')); {fix}"),
]
PYTHON.append(
    P("bytes after numbers in a stream",
      "ot.load('mlp.onnx').compile().fit([(x, y), ((x * 10).astype('u1'), y)], epochs=1)", 0,
      ["uint8 after float32", "divided by 255"]))

CASES = DATA + SETTINGS + PYTHON
