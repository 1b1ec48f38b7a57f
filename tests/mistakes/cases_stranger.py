"""What a stranger types who has read nothing: by shell and by Python."""



from mistake import Mistake as M
from workshop import both, npz, removed, replaced, text, x, y

T = "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out o "
C = "onnxtrain train mlp.onnx --data v.csv --epochs 1 --out o "


def table(change):
    """v.csv: data.csv with its text changed."""
    return lambda d: (d / "v.csv").write_text(change((d / "data.csv").read_text()))


def lines(change):
    return table(lambda s: "\n".join(change(s.splitlines())) + "\n")


SHELL = [
    M("two files in one --data", "onnxtrain train mlp.onnx --data data.npz,reg.npz", 4, ["data.npz,reg.npz"]),
    M("--data twice", T + "--data reg.npz", 2, ["--data was given 2 times"]),
    M("data without its flag", "onnxtrain train mlp.onnx data.npz --epochs 1 --out o", 2, ["data.npz"],
      "--data data.npz", "onnxtrain train mlp.onnx {fix} --epochs 1 --out o"),
    M("model and data exchanged", "onnxtrain train data.npz --data mlp.onnx", 3, ["data.npz", "NumPy"]),
    M("epochs as 1e3", "onnxtrain train mlp.onnx --data data.npz --epochs 1e3 --out o", 2, ["--epochs", "1e3"],
      "--epochs 1000", "onnxtrain train mlp.onnx --data data.npz {fix} --out o --dry-run"),
    M("one and a half epochs", "onnxtrain train mlp.onnx --data data.npz --epochs 1.5 --out o", 2, ["1.5"],
      "--epochs 1", "onnxtrain train mlp.onnx --data data.npz {fix} --out o"),
    M("learning rate nan", T + "--lr nan", 2, ["nan"]),
    M("learning rate infinite", T + "--lr inf", 2, ["--lr", "inf"]),
    M("learning rate with a letter", T + "--lr 1e-3x", 2, ["--lr", "1e-3x"]),
    M("seed in words", T + "--seed abc", 2, ["--seed", "abc"], "--seed 1", T + "{fix}"),
    M("an unset variable for --out", "onnxtrain train mlp.onnx --data data.npz --epochs 1 --out \"$NOT_SET\"", 2,
      ["--out is empty"]),
    M("an unset variable for the model", "onnxtrain train \"$NOT_SET\" --data data.npz", 2, ["MODEL is empty"]),
    M("an unset variable for --target", "onnxtrain train mlp.onnx --data data.csv --target \"$NOT_SET\"", 2,
      ["--target is empty"]),
    M("a target named twice", "onnxtrain train mlp.onnx --data data.csv --target kind,kind --epochs 1 --out o", 4,
      ["'kind'", "twice"]),
    M("--drop of a feature", "onnxtrain train mlp.onnx --data data.csv --drop a --epochs 1 --out o", 4,
      ["[120,3]", "--drop", "'a'"]),
    M("--drop of nothing", "onnxtrain train mlp.onnx --data data.csv --drop nothere --epochs 1 --out o", 4,
      ["'nothere'", "'data.csv'"]),
    M("most rows for validation", T + "--valid 0.9", 0, ["90 %", "--valid 0.1"], "--valid 0.1", T + "{fix}"),
    M("warm-up of fewer than no steps", T + "--schedule cosine --schedule-arg warmup_steps=-5", 2,
      ["warmup_steps", "-5"]),
    M("optimizer argument without a number", T + "--optimizer-arg beta1", 2, ["beta1"], "beta1=0.9",
      T + "--optimizer-arg {fix}"),
    M("optimizer argument out of range", T + "--optimizer-arg beta1=2", 2, ["beta1", "2"]),
    M("scale of nothing", T + "--scale 0,0", 2, ["0,0"], "--scale standard", T + "{fix}"),
    M("clip below zero", T + "--clip -1", 2, ["-1"]),
    M("an engine that is none", T + "--engine tensorrt", 2, ["tensorrt", "onnxruntime"]),
    M("a device that is none", T + "--engine onnxruntime:gpu7", 2, ["gpu7"]),
    M("a device of this library", T + "--engine native:gpu", 2, ["device 'gpu'"], "--engine native", T + "{fix}"),
    M("frozen and only at once", T + "--freeze fc1.weight --only fc1.weight", 2, ["freeze", "only"],
      "onnxtrain info mlp.onnx", ""),
    M("a pattern with a typing mistake", T + "--freeze 'fc9*'", 2, ["fc9*"], "onnxtrain info mlp.onnx", ""),
    # ---- tables
    M("a validation table with another target", C + "--valid w.csv", 4, ["'w.csv'", "'kind'"],
      plant=both(table(str), text("w.csv", "a,b,c,d,sort\n1,2,3,4,red\n"))),
    M("a validation table with another class", C + "--valid w.csv", 4, ["'w.csv'", "'grn'"],
      plant=both(table(str), text("w.csv", "a,b,c,d,kind\n1,2,3,4,grn\n"))),
    M("a validation array of another width", T + "--valid w.npz", 4, ["w.npz"],
      plant=npz("w.npz", x=lambda: x()[:, :3], y=lambda: y())),
    M("two columns of one name", C, 0, ["two columns are called 'a'"],
      plant=table(lambda s: s.replace("a,b,c,d", "a,a,c,d", 1))),
    M("a class with a capital letter", C, 4, ["'Red'"],
      plant=lines(lambda t: [*t, t[1].rsplit(",", 1)[0] + ",Red"])),
    M("NA in a table", C, 4, ["line 5", "'a'"],
      plant=lines(lambda t: [*t[:4], "NA," + t[4].split(",", 1)[1], *t[5:]])),
    M("a number too large", C, 4, ["1e400", "line 5"],
      plant=lines(lambda t: [*t[:4], "1e400," + t[4].split(",", 1)[1], *t[5:]])),
    M("words for a run of numbers, eval", "onnxtrain eval run --data data.csv", 4, ["'blue'", "class numbers"]),
    M("words for a run of numbers, resume", "onnxtrain train --resume run --data data.csv --epochs 3", 4,
      ["'blue'", "class numbers"]),
    M("numbers for a run of words, eval", "onnxtrain eval csv-run --data data.npz", 0, ["0 is 'blue'"]),
    M("predict on a table with text", "onnxtrain predict reg.onnx --data data.csv", 4, ["'kind'"], "--drop kind",
      "onnxtrain predict reg.onnx --data data.csv {fix}"),
    M("labels missing for eval", "onnxtrain eval mlp.onnx --data only_x.npz", 4, ["only_x.npz", "label"]),
    M("a table as inputs of run", "onnxtrain run mlp.onnx --inputs data.csv", 4, ["data.csv", "text"]),
    M("labels among the inputs of run", "onnxtrain run mlp.onnx --inputs data.npz", 4, ["'y'"]),
    # ---- runs and files
    M("resume of the exported model", "onnxtrain train --resume run/model.onnx --epochs 3", 1, ["run/model.onnx"],
      "onnxtrain train --resume run", "{fix} --epochs 3"),
    M("resume of the configuration", "onnxtrain train --resume run/config.toml --epochs 3", 1, ["run/config.toml"],
      "onnxtrain train --resume run", "{fix} --epochs 3"),
    M("resume of a plain model", "onnxtrain train --resume mlp.onnx --data data.npz", 1, ["mlp.onnx"],
      "onnxtrain train mlp.onnx --data data.npz", "{fix} --epochs 1 --out o"),
    M("predict when the model is gone", "onnxtrain predict run --data only_x.npz", 1, ["run/model.onnx"],
      "onnxtrain export run -o run/model.onnx", "", plant=removed("run/model.onnx")),
    M("report of a model", "onnxtrain report mlp.onnx", 1, ["mlp.onnx"]),
    M("info of a run", "onnxtrain info run", 3, ["'run'"], "run/model.onnx", "onnxtrain info {fix}"),
    M("train of a run", "onnxtrain train run --data data.npz", 3, ["'run'"], "run/model.onnx",
      "onnxtrain train {fix} --data data.npz --epochs 1 --out o"),
    M("export of data", "onnxtrain export data.npz -o m.onnx", 3, ["data.npz"]),
    M("export of a section that is not there", "onnxtrain export mlp.train.onnx -o s.onnx --step 5", 2, ["5"],
      "--step 0", "onnxtrain export mlp.train.onnx -o s.onnx {fix}"),
    M("export of a step without a training", "onnxtrain export mlp.onnx -o s.onnx --step 0", 2, ["mlp.onnx"],
      "onnxtrain prepare mlp.onnx -o model.train.onnx", ""),
    M("export into a folder that is not there", "onnxtrain export run -o no/where/m.onnx", 1, ["no/where"],
      "mkdir -p no/where", "{fix} && onnxtrain export run -o no/where/m.onnx"),
    M("convert of data", "onnxtrain convert data.npz m.onnx", 2, ["data.npz"]),
    M("convert of an empty folder", "mkdir sm; onnxtrain convert sm m.onnx", 2, ["'sm'", "saved_model.pb"]),
    M("moved data of a run", "mkdir else && mv data.npz else/ && cd else && onnxtrain train --resume ../run --epochs 3",
      4, ["data.npz"], "onnxtrain train --resume ../run --data data.npz", "cd else && {fix} --epochs 3"),
    M("a setting of a run in words", "onnxtrain train --resume run --epochs 3", 2, ["config.toml", "batch"],
      plant=replaced("run/config.toml", "batch = 32", 'batch = "many"')),
]

PYTHON = [
    M("features and labels exchanged", "ot.load('mlp.onnx').compile().fit(y, x, epochs=1)", "DataError", ["'x'"],
      python=True),
    M("both in one tuple", "ot.load('mlp.onnx').compile().fit((x, y), epochs=1)", "DataError", ["'x'"], python=True),
    M("mse for classes", "ot.load('mlp.onnx').compile(loss='mse').fit(x, y, epochs=1)", "DataError", ["[N,3]"],
      "loss='cross_entropy'", "ot.load('mlp.onnx').compile({fix}).fit(x, y, epochs=1)", python=True),
    M("epochs as text", "ot.load('mlp.onnx').compile().fit(x, y, epochs='3')", "UsageError", ["epochs"], python=True),
    M("validation rows without labels", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, valid=x)", "UsageError",
      ["[120, 4]"], python=True),
    M("validation with fewer labels", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, valid=(x, y[:5]))",
      "DataError", ["120", "5"], python=True),
    M("labels as words", "ot.load('mlp.onnx').compile().fit(x, ['a', 'b'] * 60, epochs=1)", "DataError", ["text"],
      python=True),
    M("labels of no class", "ot.load('mlp.onnx').compile().fit(x, y + 0.5, epochs=1)", "DataError", ["row 0"],
      python=True),
    M("one row without its dimension", "ot.Session('mlp.onnx').run({'x': x[0]})", "DataError", ["rank 1"], "x[None]",
      "ot.Session('mlp.onnx').run({'x': x[0][None]})", python=True),
    M("a path for arrays", "ot.load('mlp.onnx').predict('data.npz')", "UsageError", ["data.npz"], python=True),
    M("a model saved as arrays", "ot.load('mlp.onnx').save('mlp.npz')", "UsageError", ["mlp.npz"], "'mlp.onnx'",
      "ot.load('mlp.onnx').save({fix})", python=True),
    M("an export as text", "ot.load('mlp.onnx').export('out.txt')", "UsageError", ["out.txt"], "'out.onnx'",
      "ot.load('mlp.onnx').export({fix})", python=True),
    M("an export into nowhere", "ot.load('mlp.onnx').export('no/where.onnx')", "Error", ["no/where.onnx"],
      "mkdir -p no", "import os; os.system('{fix}'); ot.load('mlp.onnx').export('no/where.onnx')", python=True),
    M("a checkpoint as a PyTorch file", "ot.Trainer('mlp.train.onnx').save('t.pt')", "UsageError", ["t.pt"],
      "'t.onnx'", "ot.Trainer('mlp.train.onnx').save({fix})", python=True),
    M("a feed that nobody reads", "ot.Trainer('mlp.train.onnx').step({'x': x, 'label': y, 'extra': y})", 0,
      ["OT2112", "'extra'"], python=True),
    M("labels of 32 bits", "ot.Trainer('mlp.train.onnx').step({'x': x, 'label': y.astype(np.int32)})", "DataError",
      ["int32", "'label'"], "x.astype(numpy.int64)",
      "import numpy; x2 = y.astype(np.int32); y2 = x2.astype(numpy.int64); "
      "ot.Trainer('mlp.train.onnx').step({'x': x, 'label': y2})", python=True),
    M("nothing but NaN", "ot.Trainer('mlp.train.onnx').step({'x': x * np.nan, 'label': y})", "DivergedError", ["loss"],
      python=True),
    M("an engine that is none, Python", "ot.Trainer('mlp.train.onnx', engine='tpu')", "UsageError", ["tpu"],
      python=True),
    M("a learning rate below zero", "t = ot.Trainer('mlp.train.onnx'); t.lr = -1", "UsageError", ["-1"], "t.lr = 1e-3",
      "t = ot.Trainer('mlp.train.onnx'); {fix}", python=True),
    M("resume of a model", "ot.resume('mlp.onnx')", "CheckpointError", ["mlp.onnx"], python=True),
    M("a run without its data", "ot.resume('run').fit(epochs=3)", "UsageError", ["run"], python=True),
    M("an output that is a number", "ot.gradients('mlp.onnx', {'x': x}, wrt='fc1.weight', of=3)", "UsageError", ["of"],
      "of='logits'", "ot.gradients('mlp.onnx', {'x': x}, wrt='fc1.weight', {fix})", python=True),
    M("a loss on nothing", "ot.prepare('mlp.onnx', loss=ot.losses.CrossEntropy(output='nothing'))", "UsageError",
      ["nothing"], "logits", "ot.prepare('mlp.onnx', loss=ot.losses.CrossEntropy(output='{fix}'))", python=True),
    M("a regressor for classes", "ot.OnnxClassifier('reg.onnx').fit(x, y)", "DataError", ["3 classes"], python=True),
    M("a classifier before its fit", "ot.OnnxClassifier('mlp.onnx').predict(x)", "UsageError", ["not fitted"],
      python=True),
    M("a target of one column for three outputs",
      "m = ot.parse('<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,M] x) => (float[N,M] y) "
      "<float[1] w = {0.5}> { y = Mul(x, w) }')\n"
      "ot.Trainer(ot.prepare(m, loss='mse')).step({'x': x, 'label': x[:, :1]})", "DataError", ["[120,1]", "[120,4]"],
      python=True),
    M("a target of one row",
      "m = ot.parse('<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,M] x) => (float[N,M] y) "
      "<float[1] w = {0.5}> { y = Mul(x, w) }')\n"
      "ot.Trainer(ot.prepare(m, loss='l1')).step({'x': x, 'label': x[:1]})", "DataError", ["[1,4]", "[120,4]"],
      python=True),
]

CASES = SHELL + PYTHON

