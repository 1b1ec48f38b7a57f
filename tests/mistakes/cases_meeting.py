"""Settings that meet: lengths, rates, metrics and files of runs; arguments of Python calls."""

import shutil

from mistake import Mistake as M
from workshop import both, cut, raw, text

T = "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out o "
R = "onnxtrain train reg.onnx --data reg.npz --epochs 1 --out o "
RESUME = "onnxtrain train --resume run --epochs 3 "
LAST = "run/checkpoints/last.train.onnx"

SETTINGS = [
    M("a rate too small to move anything", T + "--lr 1e-30", 0, ["OT3127", "1e-30"], "--lr 1e-3", T + "{fix}"),
    M("gradients clipped to nothing", T + "--optimizer sgd --clip 1e-30", 0, ["OT3127", "--clip"]),
    M("a schedule that ends at once", T + "--schedule onecycle --schedule-arg total_steps=1", 0,
      ["OT3128", "onecycle", "1 updates", "4"]),
    M("a warm-up longer than the training", T + "--schedule cosine --schedule-arg warmup_steps=1000", 2,
      ["1000", "4 steps"], "--schedule-arg warmup_steps=0", T + "--schedule cosine {fix}"),
    M("a rate that bursts the loss", T + "--lr 1e6", 0, ["OT3118", "a smaller --lr"]),
    M("updates that never come", T + "--accumulate 1000", 0, ["OT3104", "1000"]),
    M("updates after no steps", T + "--accumulate 0", 2, ["--accumulate", "0"], "--accumulate 1", T + "{fix}"),
    M("more rows than there are", T + "--overfit 5000", 0, ["all 120 rows", "--overfit 5000"]),
    M("a class to be left out that is none", T + "--ignore-index 77", 0, ["no row has label 77"]),
    M("smoothed numbers", R + "--label-smoothing 0.1", 2, ["label smoothing", "mse"]),
    M("two weights for three classes", T + "--class-weights 1,2", 2, ["2 class weights", "3 classes"],
      "--class-weights 1,1,1", T + "{fix}"),
    M("a weight below zero", T + "--class-weights 1,-2,1", 2, ["-2"], "--class-weights balanced", T + "{fix}"),
    M("weights by names of classes", T.replace("npz", "csv") + "--class-weights red=2", 2, ["red=2"],
      "--class-weights balanced", T.replace("npz", "csv") + "{fix}"),
    M("a metric of numbers for classes", T + "--metric r2", 2, ["'r2'", "'accuracy'"], "--metric accuracy",
      T + "{fix}"),
    M("a metric of classes for numbers", R + "--metric accuracy", 2, ["'accuracy'"], "--metric mae", R + "{fix}"),
    M("all rows for validation", T + "--valid 1", 2, ["--valid 1"], "--valid 0.1", T + "{fix}"),
    M("fewer than no rows for validation", T + "--valid=-0.1", 2, ["-0.1"], "--valid 0.1", T + "{fix}"),
    M("a model for validation", T + "--valid mlp.onnx", 4, ["mlp.onnx", "an ONNX model"]),
    M("images for validation of columns", T + "--valid pictures", 4, ["'pictures'"]),
    M("an array as the target", T + "--target x", 2, ["data.npz", "--target"]),
    M("the target left out", "onnxtrain train mlp.onnx --data data.csv --target kind --drop kind --epochs 1 --out o", 2,
      ["'kind'", "--target", "--drop"]),
    M("columns of bytes to be standardised",
      "onnxtrain train cnn.onnx --data images.npz --scale standard --epochs 1 --out o", 2, ["--scale standard"],
      "--scale auto", "onnxtrain train cnn.onnx --data images.npz {fix} --epochs 1 --out o"),
    M("a loss on a weight", T + "--loss-input fc1.weight", 2, ["'fc1.weight'", "logits"]),
    M("a learning rate in words for prepare", "onnxtrain prepare mlp.onnx -o p.onnx --lr fast", 2, ["--lr", "fast"],
      "--lr 1e-3", "onnxtrain prepare mlp.onnx -o p.onnx {fix}"),
    M("cross entropy in one word", "onnxtrain prepare mlp.onnx -o p.onnx --loss crossentropy", 2, ["crossentropy"],
      "cross_entropy", "onnxtrain prepare mlp.onnx -o p.onnx --loss {fix}"),
    M("an optimizer with capital letters", T + "--optimizer AdamW", 2, ["'AdamW'"], "adamw",
      T + "--optimizer {fix}"),
    M("epochs without end", T.replace("--epochs 1", "--epochs 9000000000000000000"), 2, ["9000000000000000000"],
      "--patience 5", T + "{fix}"),
    M("memory of nothing", T + "--memory 0", 2, ["--memory 0"], "--memory 500M", T + "{fix}"),
    M("memory in words", T + "--memory '2 GB'", 2, ["2 GB"], "--memory 500M", T + "{fix}"),
    M("two models", "onnxtrain train mlp.onnx cnn.onnx --data data.npz", 2, ["cnn.onnx", "too many"]),
    M("a port that is none", "onnxtrain board --port 99999", 2, ["99999"]),
]

FILES = [
    M("a new beginning of a resumed run", RESUME + "--reset", 2, ["--reset"]),
    M("another seed of a resumed run", RESUME + "--seed 9", 2, ["--seed"]),
    M("another loss of a resumed run", RESUME + "--loss mse", 2, ["--loss"]),
    M("frozen in the middle", RESUME + "--freeze fc1.weight", 2, ["--freeze"]),
    M("a feature as the target of a resumed run", "onnxtrain train --resume csv-run --epochs 3 --target a", 2,
      ["'a'", "--target"]),
    M("fewer rows for a resumed run", RESUME + "--data v.npz", 0, ["OT3116", "120 rows", "60 rows"],
      plant=lambda d: __import__("numpy").savez(d / "v.npz", **{k: v[:60] for k, v in
                                                                 __import__("numpy").load(d / "data.npz").items()})),
    M("a checkpoint cut short", RESUME, 1, [LAST, "damaged"], f"cp {LAST}.previous {LAST}", "{fix} && " + RESUME,
      plant=cut(LAST, 900)),
    M("a model in place of the checkpoint", RESUME, 1, [LAST, "no checkpoint"], f"cp {LAST}.previous {LAST}",
      "{fix} && " + RESUME, plant=lambda d: shutil.copy(d / "mlp.onnx", d / LAST)),
    M("a checkpoint of another run",
      "onnxtrain train reg.onnx --data reg.npz --epochs 1 --out other -q && "
      f"cp other/checkpoints/last.train.onnx {LAST}; " + RESUME, 1, ["OT4204", "reg.onnx", "mlp.onnx"],
      f"cp {LAST} other.train.onnx && onnxtrain train --resume other.train.onnx --out runs/other", "{fix} --epochs 2"),
    M("model and data exchanged for eval", "onnxtrain eval data.npz --data run", 3, ["data.npz", "NumPy"]),
    M("a pipe as data", "mkfifo f; (cat data.csv > f &); onnxtrain train mlp.onnx --data f --epochs 1", 4,
      ["'f'", "regular file"]),
    M("a model through a pipe", "cat mlp.onnx | onnxtrain info /dev/stdin", 3, ["/dev/stdin"]),
    M("a run folder behind a link to nothing", "ln -s /nowhere/x o; " + T, 1, ["'o'"]),
    M("a run folder inside a file", T.replace("--out o", "--out data.csv/o"), 1, ["data.csv/o"]),
    M("runs of a file", "onnxtrain runs mlp.onnx", 1, ["mlp.onnx"]),
    M("check of a run", "onnxtrain check run", 3, ["'run'"], "run/model.onnx", "onnxtrain check {fix}"),
    M("a word in a model file", "onnxtrain train e.onnx --data data.npz", 3, ["e.onnx", "text"],
      plant=text("e.onnx", "hello\n")),
    M("a model of no bytes", "onnxtrain info e.onnx", 3, ["e.onnx", "empty"], plant=raw("e.onnx", b"")),
    M("a conversion onto itself", "onnxtrain convert mlp.onnx mlp.onnx", 2, ["mlp.onnx"], "mlp-new.onnx", "true"),
    M("an export onto the run", "onnxtrain export run -o run", 1, ["'run'", "folder"]),
    M("numbers of 64 bits for run", "onnxtrain run mlp.onnx --inputs v.npz", 4, ["double", "'x'"],
      plant=both(lambda d: __import__("numpy").savez(d / "v.npz", x=__import__("numpy").zeros((3, 4))))),
]


def P(name, typed, code, says, fix=None, then=None):
    return M(name, typed, code, says, fix, then, python=True)


FIT = "ot.load('mlp.onnx').compile().fit({}, epochs=1)"
STEP = "t = ot.Trainer('mlp.train.onnx'); "
CALLS = [
    P("a tensor with a gradient", "import torch; " + FIT.format("torch.tensor(x, requires_grad=True), y"), "DataError",
      ["'x'", "tensor"], "x.detach().cpu().numpy()",
      "import torch; x = torch.tensor(x, requires_grad=True); " + FIT.format("{fix}, y")),
    P("a sparse matrix", "import scipy.sparse as s; " + FIT.format("s.csr_matrix(x), y"), "DataError", ["sparse"],
      "x.toarray()", "import scipy.sparse as s; x = s.csr_matrix(x); " + FIT.format("{fix}, y")),
    P("rows one by one with labels beside", FIT.format("(r for r in x), y"), "UsageError", ["iterator", "generator"],
      "fit(x, y)", FIT.format("x, y")),
    P("records for fit", FIT.format("np.zeros(120, dtype=[('a', 'f4'), ('b', 'f4')]), y"), "DataError", ["'a'"],
      "numpy.column_stack([x[n] for n in ['a', 'b']])",
      "import numpy; x = np.zeros(120, dtype=[('a', 'f4'), ('b', 'f4')]); {fix}"),
    P("dates for fit", FIT.format("np.zeros((120, 4), 'datetime64[s]'), y"), "DataError", ["datetime64"],
      "x.astype('int64')", "x = np.zeros((120, 4), 'datetime64[s]'); " + FIT.format("{fix}, y")),
    P("complex numbers for fit", FIT.format("x.astype(complex), y"), "DataError", ["complex128", "'x'"]),
    P("labels from 1 for fit", FIT.format("x, y + 1"), "DataError", ["label 3", "0..2"], "y - 1",
      "y = y + 1; " + FIT.format("x, {fix}")),
    P("one-hot labels for fit", FIT.format("x, np.eye(3)[y]"), "DataError", ["[120,3]"], "y.argmax(1)",
      "y = np.eye(3)[y]; " + FIT.format("x, {fix}")),
    P("labels in a dictionary of another name", FIT.format("x, {'labels': y}"), "DataError", ["'labels'"],
      "{'label': y}", FIT.format("x, {{fix}}".replace("{{fix}}", "{fix}"))),
    P("numbers as text", "ot.load('reg.onnx').compile().fit(x, [str(v) for v in x[:, 0]], epochs=1)", "DataError",
      ["'y'", "as text"], "numpy.asarray(x, dtype=float)",
      "import numpy; y = [str(v) for v in x[:, 0]]; "
      "ot.load('reg.onnx').compile().fit(x, numpy.asarray(y, dtype=float), epochs=1)"),
    P("three classes for yes and no", "ot.load('binary.onnx').compile().fit(x, y, epochs=1)", "DataError",
      ["from 0 to 2"], "loss=ot.losses.MSE(output='s')",
      "ot.load('binary.onnx').compile({fix}).fit(x, y.astype(np.float32), epochs=1)"),
    P("targets -1 and 1 for yes and no", "ot.load('binary.onnx').compile().fit(x, np.where(y > 0, 1, -1), epochs=1)",
      "DataError", ["from -1 to 1"], "loss=ot.losses.Hinge(output='s')",
      "ot.load('binary.onnx').compile({fix}).fit(x, np.where(y > 0, 1, -1), epochs=1)"),
    P("epochs of 1.5", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1.5)", "UsageError", ["epochs", "1.5"]),
    P("epochs of True", "ot.load('mlp.onnx').compile().fit(x, y, epochs=True)", "UsageError", ["epochs", "true"]),
    P("a batch of 16.0", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, batch_size=16.0)", "UsageError", ["16.0"]),
    P("the training data for validation", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, valid=(x, y))", 0,
      ["OT3112"]),
    P("three things for validation", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, valid=(x, y, y))", "UsageError",
      ["3 items"], "valid=0.1", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, {fix})"),
    P("a word of Keras for fit", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, validation_split=0.2)",
      "UsageError", ["validation_split"], "valid=", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, {fix}0.2)"),
    P("an optimizer of PyTorch",
      "import torch; p = [torch.zeros(1, requires_grad=True)]\n"
      "ot.load('mlp.onnx').compile(optimizer=torch.optim.SGD(p, lr=0.1))", "UsageError", ["SGD"],
      "optimizer=ot.SGD(lr=1e-3)", "ot.load('mlp.onnx').compile({fix})"),
    P("two learning rates", "ot.prepare('mlp.onnx', optimizer=ot.SGD(lr=[0.1, 0.2]))", "UsageError", ["'lr'"]),
    P("a file that is open", "ot.load(open('mlp.onnx'))", "UsageError", ["TextIOWrapper"]),
    P("an array for a session", "ot.Session('mlp.onnx').run(x)", "UsageError", ["ndarray"], "run({'x': x})",
      "ot.Session('mlp.onnx').{fix}"),
    P("an output that is none", "ot.Session('mlp.onnx').run({'x': x}, outputs=['nothing'])", "UsageError",
      ["'nothing'", "'logits'"]),
    P("text for a model of numbers", "ot.load('mlp.onnx').predict(['a'])", "DataError", ["string", "takes numbers"]),
    P("labels in a column for a step", STEP + "t.step({'x': x, 'label': y[:, None]})", "DataError", ["'label'"],
      "x[..., 0]", STEP + "t.step({'x': x, 'label': y[:, None][..., 0]})"),
    P("NaN written into the state",
      STEP + "t.state['fc1.weight'] = np.full((16, 4), np.nan, np.float32); t.step({'x': x, 'label': y})",
      "DivergedError", ["'fc1.weight'", "already"]),
    P("a state of another shape", STEP + "t.state['fc1.weight'] = np.zeros(3)", "UsageError", ["[16,4]", "[3]"]),
    P("a seed of 1.5", "ot.Trainer('mlp.train.onnx', seed=1.5)", "UsageError", ["seed", "1.5"], "seed=0",
      "ot.Trainer('mlp.train.onnx', {fix})"),
    P("a model of ONNX is taken", "import onnx; ot.load(onnx.load('mlp.onnx')); print('note')", 0, ["note"]),
]

CASES = SETTINGS + FILES + CALLS
