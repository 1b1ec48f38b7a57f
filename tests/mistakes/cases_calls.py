"""Calls of the Python package with arguments that are not meant so."""

from mistake import Mistake as M


def P(name, typed, code, says, fix=None, then=None):
    return M(name, typed, code, says, fix, then, python=True)


FIT = "ot.load('mlp.onnx').compile().fit({}, epochs=1)"
STEP = "t = ot.Trainer('mlp.train.onnx'); "
CASES = [
    P("compile with a learning rate", "ot.load('mlp.onnx').compile(lr=0.1)", "UsageError", ["'lr'"],
      "optimizer=ot.AdamW(lr=1e-3)", "ot.load('mlp.onnx').compile({fix}).fit(x, y, epochs=1)"),
    P("compile with a word of Keras", "ot.load('mlp.onnx').compile(verbose=1)", "UsageError", ["'verbose'"]),
    P("an optimizer for the loss", "ot.load('mlp.onnx').compile(ot.AdamW(lr=1e-3))", "UsageError", ["AdamW", "loss"],
      "optimizer=ot.AdamW(lr=1e-3)", "ot.load('mlp.onnx').compile({fix})"),
    P("an optimizer without brackets", "ot.load('mlp.onnx').compile(optimizer=ot.SGD)", "UsageError", ["SGD"],
      "optimizer=ot.SGD(lr=1e-3)", "ot.load('mlp.onnx').compile({fix})"),
    P("a number as an optimizer", "ot.load('mlp.onnx').compile(optimizer=3)", "UsageError", ["optimizer", "int"]),
    P("a function as a loss", "ot.load('mlp.onnx').compile(loss=lambda a, b: a)", "UsageError", ["loss", "function"]),
    P("a rate that is no number", "ot.prepare('mlp.onnx', optimizer=ot.AdamW(lr=float('nan')))", "UsageError", ["lr"]),
    P("a rate in quotes", "ot.prepare('mlp.onnx', optimizer=ot.AdamW(lr='0.1'))", "UsageError", ["lr"]),
    P("momentum above one", "ot.prepare('mlp.onnx', optimizer=ot.SGD(lr=0.1, momentum=2))", "UsageError", ["momentum"]),
    P("a number of another schedule, Python",
      "ot.prepare('mlp.onnx', schedule={'kind': 'exponential', 'step_size': 3})", "UsageError",
      ["exponential", "step_size"]),
    P("one row for fit", FIT.format("x[0], y[0]"), "DataError", ["single value"]),
    P("masked values", FIT.format("np.ma.masked_greater(x, 1), y"), "DataError", ["'x'", "masked"], "x.filled(0)",
      "m = np.ma.masked_greater(x, 1); ot.load('mlp.onnx').compile().fit(m.filled(0), y, epochs=1)"),
    P("a table with its text",
      "import pandas; d = pandas.read_csv('data.csv'); ot.load('mlp.onnx').compile().fit(d, y, epochs=1)", "DataError",
      ["'kind'", "text"], "table.drop(columns=['kind'])",
      "import pandas; table = pandas.read_csv('data.csv'); ot.load('mlp.onnx').compile().fit({fix}, y, epochs=1)"),
    P("a table with its target",
      "import pandas; d = pandas.read_csv('reg.csv'); ot.load('reg.onnx').compile().fit(d, d['price'], epochs=1)",
      "DataError", ["[120,5]", "[N,4]"], "table.drop(columns=['price'])",
      "import pandas; table = pandas.read_csv('reg.csv'); "
      "ot.load('reg.onnx').compile().fit({fix}, table['price'], epochs=1)"),
    P("a batch of no rows", "ot.load('mlp.onnx').predict(x, batch_size=0)", "UsageError", ["batch_size", "0"],
      "batch_size=256", "ot.load('mlp.onnx').predict(x, {fix})"),
    P("a seed below zero", "ot.Trainer('mlp.train.onnx', seed=-1)", "UsageError", ["seed", "-1"], "seed=0",
      "ot.Trainer('mlp.train.onnx', {fix})"),
    P("threads in quotes", "ot.Trainer('mlp.train.onnx', threads='2')", "UsageError", ["threads", "'2'"], "threads=0",
      "ot.Trainer('mlp.train.onnx', {fix})"),
    P("a step by position", STEP + "t.step(x)", "UsageError", ["ndarray"], "step({'x': x, 'label': y})",
      STEP + "t.{fix}"),
    P("a section by name", STEP + "t.step({'x': x, 'label': y}, which='a')", "UsageError", ["'a'"], "which=0",
      STEP + "t.step({'x': x, 'label': y}, {fix})"),
    P("a number to call back", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, on_epoch=3)", "UsageError",
      ["on_epoch", "3"], "on_epoch=print", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, {fix})"),
    P("a time in quotes", "ot.load('mlp.onnx').compile().fit(x, y, epochs=1, time='5')", "UsageError",
      ["time", "a number"]),
    P("a copy of the target among the features",
      "ot.load('mlp.onnx').compile().fit(np.column_stack([x[:, :3], y]).astype(np.float32), y, epochs=1)", 0,
      ["OT3121", "column 3 of 'x'"]),
    P("a class that no row has", "ot.load('mlp.onnx').compile().fit(x, y % 2, epochs=1)", 0, ["no row has class 2"]),
    P("hidden layers of nothing", "ot.new('mlp', 'data.csv', hidden=[0])", "UsageError", ["0 units"],
      "hidden=[128, 64]", "ot.new('mlp', 'data.csv', {fix})"),
]
