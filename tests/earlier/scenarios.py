"""The run folders that make.py writes, and what it records about going on with them.

Recorded again since: `model.onnx` of the runs in which several epochs have the best accuracy. It was the first of them,
it is the one with the lowest validation loss (docs/decisions/0081-loss-target-output.md).
"""

MLP = "models/mlp.onnx"
LOAD = "d = np.load('table.npz'); x, y = d['x'], d['y']"
COMPILED = "m = ot.load('models/mlp.onnx').compile(loss='cross_entropy', optimizer=ot.AdamW(lr=0.01))"
BATCHES = ["def batches():", "    for k in range(0, 120, 24):", "        yield x[k:k + 24], y[k:k + 24]"]

# Run folders. `begin` stops early or ends, `whole` is the same training in one go, `resume` must reach its bits.
STEPS = ["train", MLP, "--data", "table.npz", "--epochs", "4", "--batch", "16", "--optimizer", "adam", "--lr", "0.01",
         "--schedule", "exponential", "--schedule-arg", "gamma=0.98", "--seed", "5"]
SIGNAL = ["train", "models/transformer.onnx", "--data", "synthetic:classes=4,rows=8000,x=6x8,seed=2", "--epochs", "3",
          "--batch", "8", "--optimizer", "rmsprop", "--momentum", "0.5", "--lr", "0.002", "--schedule", "cosine",
          "--schedule-arg", "warmup_steps=20", "--accumulate", "2", "--clip", "1", "--label-smoothing", "0.05"]
FINISHED = ["train", MLP, "--data", "table.csv", "--target", "species", "--scale", "10,3", "--valid", "0.2",
            "--batch", "12", "--optimizer", "adamw", "--lr", "0.02", "--weight-decay", "0.05", "--schedule", "step",
            "--schedule-arg", "step_size=9", "--freeze", "fc1.bias", "--keep", "2"]
OWN = ["train", "models/cnn.train.onnx", "--data", "images.npz", "--valid", "images.npz", "--batch", "16"]

RUNS = {
    "cli-steps": {"begin": {"cli": [*STEPS, "--steps", "10"]}, "whole": {"cli": STEPS},
                  "resume": {"cli": ["train", "--resume", "runs/cli-steps", "--steps", "0"]}},
    "cli-signal": {"begin": {"cli": SIGNAL, "signal": True}, "whole": {"cli": SIGNAL}, "sets": ["sse4"],
                   "resume": {"cli": ["train", "--resume", "runs/cli-signal"]}},
    "cli-finished": {"begin": {"cli": [*FINISHED, "--epochs", "3"]}, "whole": {"cli": [*FINISHED, "--epochs", "5"]},
                     "resume": {"cli": ["train", "--resume", "runs/cli-finished", "--epochs", "5"]}},
    "cli-own": {"begin": {"cli": [*OWN, "--epochs", "2"]}, "whole": {"cli": [*OWN, "--epochs", "3"]},
                "resume": {"cli": ["train", "--resume", "runs/cli-own", "--epochs", "3"]}, "convolution": True},
    "python-arrays": {
        "begin": {"python": [LOAD, COMPILED, "m.fit(x, y, valid=0.2, epochs=2, batch_size=16, seed=4, out=OUT)"]},
        "whole": {"python": [LOAD, COMPILED, "m.fit(x, y, valid=0.2, epochs=4, batch_size=16, seed=4, out=OUT)"]},
        "resume": {"python": ["show(ot.resume('runs/python-arrays').fit(epochs=4)['loss'])"]}},
    "python-steps": {
        "begin": {"python": [LOAD, COMPILED, "m.fit({'x': x}, {'label': y}, valid=(x[:30], y[:30]), epochs=3, "
                             "batch_size=16, shuffle=False, steps=11, save_every=3, out=OUT)"]},
        "whole": {"python": [LOAD, COMPILED, "m.fit({'x': x}, {'label': y}, valid=(x[:30], y[:30]), epochs=3, "
                             "batch_size=16, shuffle=False, out=OUT)"]},
        "resume": {"python": ["show(ot.resume('runs/python-steps').fit(epochs=3)['loss'])"]}},
    "python-batches": {
        "begin": {"python": [LOAD, COMPILED, *BATCHES, "m.fit(batches, epochs=2, valid=(x[:30], y[:30]), out=OUT)"]},
        "whole": {"python": [LOAD, COMPILED, *BATCHES, "m.fit(batches, epochs=4, valid=(x[:30], y[:30]), out=OUT)"]},
        "resume": {"python": [LOAD, *BATCHES,
                              "t = ot.resume('runs/python-batches')",
                              "show(t.fit(batches, epochs=2, valid=(x[:30], y[:30]))['loss'])"]}},
    "python-generator": {
        "begin": {"python": [LOAD, COMPILED, *BATCHES, "import itertools",
                             "endless = itertools.chain.from_iterable(batches() for _ in itertools.count())",
                             "m.fit(endless, epochs=2, steps_per_epoch=3, out=OUT)"]},
        "resume": {"python": [LOAD, *BATCHES, "t = ot.resume('runs/python-generator')",
                              "show(t.fit(batches(), steps_per_epoch=2, epochs=2)['loss'])"]}},
}


def run_looks(run):
    kinds = ["tensors runs/{}/checkpoints/last.train.onnx", "metrics runs/{}", "columns runs/{}/metrics.csv",
             "files runs/{}", "files runs/{}/checkpoints"]
    # A run over batches forgets at resume which epoch was the best, and its checkpoints do not count epochs: these
    # are faults, so they are not recorded.
    if run not in ("python-batches", "python-generator"):
        kinds += ["tensors runs/{}/checkpoints/best.train.onnx", "bytes runs/{}/model.onnx",
                  "metadata runs/{}/checkpoints/last.train.onnx"]
    if run.startswith("cli"):
        kinds += ["config runs/{}", "rows runs/{}/data.json", "keys runs/{}/env.json", "text runs/{}/command.txt"]
    return [k.format(run) for k in kinds]


def resume_cases():
    for name, run in RUNS.items():
        yield {"name": f"resume {name}", "run": name, "steps": [run["resume"]], "look": run_looks(name),
               "sets": run.get("sets", ["sse4", "avx2", "avx512"]), "convolution": run.get("convolution", False)}


DATA = {"cli-steps": ["--data", "table.npz"], "cli-finished": ["--data", "table.csv"],
        "cli-own": ["--data", "images.npz"], "python-arrays": ["--data", "table.npz"],
        "python-steps": ["--data", "table.npz"], "python-batches": ["--data", "table.npz"],
        "python-generator": ["--data", "table.npz"],
        "cli-signal": ["--data", "synthetic:classes=4,rows=60,x=6x8,seed=2"]}


def command_cases():
    """eval, predict, export, report, diff of every run as it lies there."""
    for name in RUNS:
        run, data = f"runs/{name}", DATA[name]
        look = ["bytes best.onnx", "bytes last.onnx", "text p.csv", "tensors best.onnx"]
        look += [f"output {k}" for k in (0, 1, 5, 6)]
        yield {"name": f"commands on {name}", "look": look, "convolution": name == "cli-own", "steps": [
            {"cli": ["eval", run, *data, "--json"]}, {"cli": ["eval", run, *data, "--which", "last", "--json"]},
            {"cli": ["predict", run, *data, "-o", "p.csv"]},
            {"cli": ["export", run, "-o", "best.onnx", "--verify"]},
            {"cli": ["export", run, "-o", "last.onnx", "--which", "last"]},
            {"cli": ["report", run]}, {"cli": ["diff", run, run]},
            {"cli": ["check", f"{run}/checkpoints/last.train.onnx"]},
            {"cli": ["info", f"{run}/checkpoints/best.train.onnx"]}]}
    yield {"name": "runs", "steps": [{"cli": ["runs", "--json"]}, {"cli": ["runs"]}], "look": ["output 0", "output 1"]}
    yield {"name": "diff", "look": ["output 0", "output 1"], "steps": [
        {"cli": ["diff", "runs/cli-steps", "runs/cli-finished"], "code": 6},
        {"cli": ["diff", "runs/python-arrays/checkpoints/last.train.onnx",
                 "runs/python-arrays/checkpoints/best.train.onnx"], "code": 6}]}


LAST = "runs/cli-finished/checkpoints/last.train.onnx"
NEW = ["tensors new/checkpoints/last.train.onnx", "metrics new", "bytes new/model.onnx"]


def other_cases():
    """Checkpoints by their path, settings from files, runs that meet in a folder, other roads to the same files."""
    new = [*NEW, "config new"]
    made = [
        ("checkpoint to resume", [{"cli": ["train", "--resume", LAST, "--epochs", "5", "--out", "new"]}], new),
        ("checkpoint of an epoch", [{"cli": ["train", "--resume", LAST.replace("last", "epoch-0002"), "--epochs", "5",
                                             "--out", "new"]}], new),
        ("checkpoint as MODEL", [{"cli": ["train", LAST, "--data", "table.csv", "--target", "species", "--scale",
                                          "10,3", "--valid", "0.2", "--batch", "12", "--epochs", "5", "--out", "new"]}],
         new),
        ("checkpoint inside an epoch as MODEL", [{"cli": ["train", "runs/cli-steps/checkpoints/last.train.onnx",
                                                          "--data", "table.npz", "--batch", "16", "--epochs", "3",
                                                          "--out", "new"]}], new),
        ("checkpoint of Python as MODEL", [{"cli": ["train", "runs/python-arrays/checkpoints/last.train.onnx", "--data",
                                                    "table.npz", "--epochs", "3", "--out", "new"]}], new),
        ("another length and rate", [{"cli": ["train", "--resume", "runs/cli-signal", "--lr", "0.004", "--steps",
                                              "1900", "--out", "new"]}], NEW),
        ("run of Python on the command line", [{"cli": ["train", "--resume", "runs/python-arrays", "--data",
                                                        "table.npz", "--batch", "16", "--valid", "0.2", "--epochs", "4",
                                                        "--out", "new"]}], new),
        ("run of the command line in Python", [{"python": [LOAD, "t = ot.resume('runs/cli-steps')",
                                                "h = t.fit(x, y, valid=0.1, epochs=4, batch_size=16, out='new')",
                                                "show([h['loss'], h['valid_accuracy'], h.best_epoch])"]}],
         [*NEW, "output 0"]),
        ("checkpoint in a loop of one's own", [{"python": [
            LOAD, f"t = ot.Trainer(ot.load('{LAST}'), seed=1, threads=1)",
            "losses = [t.step({'x': x[k:k + 8], 'label': y[k:k + 8]}).loss for k in range(0, 40, 8)]",
            "t.lr = 0.5 * t.lr", "losses.append(t.step({'x': x, 'label': y}).loss)",
            "t.save('saved.train.onnx'); t.export('saved.onnx')", "show([losses, t.lr, t.step_count])",
            "show(ot.load('saved.train.onnx').fit(x, y, epochs=1)['loss'])"]}],
         ["output 0", "tensors saved.train.onnx", "bytes saved.onnx", "metadata saved.train.onnx"]),
        ("evaluate and predict in Python", [{"python": [
            LOAD, "t = ot.resume('runs/python-arrays')", "show([t.evaluate(x, y), t.predict(x[:5]).tolist()])",
            "m = ot.load('runs/cli-finished/model.onnx')", "show([m.predict(x[:5]).tolist(), m.evaluate(x, y)])"]}],
         ["output 0"]),
        ("a pickled model", [{"python": ["import pickle", "m = pickle.load(open('model.pickle', 'rb'))", LOAD,
                                         "show(m.predict(x[:5]).tolist())", "show(m.fit(x, y, epochs=2)['loss'])"]}],
         ["output 0"]),
        ("a run set aside", [{"cli": ["train", MLP, "--data", "table.npz", "--epochs", "1", "--out",
                                      "runs/cli-finished"], "says": ["earlier-001"]},
                             {"cli": ["eval", "runs/cli-finished/earlier-001", "--data", "table.csv", "--json"]}],
         ["files runs/cli-finished", "files runs/cli-finished/earlier-001", "output 1", "metrics runs/cli-finished"]),
        ("a run set aside from Python", [{"python": [LOAD, COMPILED, "m.fit(x, y, epochs=1, out='runs/python-arrays')",
                                          "t = ot.resume('runs/python-arrays/earlier-001')",
                                          "show(t.fit(epochs=3)['loss'])"]}],
         ["files runs/python-arrays", "files runs/python-arrays/earlier-001", "output 0",
          "metrics runs/python-arrays"]),
        ("config of a run", [{"cli": ["train", "--config", "runs/cli-finished/config.toml", "--out", "new"]}], new),
        ("config of a run and flags", [{"cli": ["train", "--config", "runs/cli-signal/config.toml", "--out", "new",
                                                "--steps", "60", "--seed", "3"]}], new),
        ("config with every option", [{"cli": ["train", MLP, "--config", "configs/every.toml", "--out", "new"]}], new),
        ("config with a few options", [{"cli": ["train", MLP, "--config", "configs/few.toml", "--epochs", "2", "--out",
                                                "new"],
                                        "environment": {"ONNXTRAIN_LR": "0.05", "ONNXTRAIN_SEED": "2"}}], new),
        ("config with an unknown key", [{"cli": ["train", MLP, "--config", "configs/unknown.toml"], "code": 2,
                                         "says": ["OT0007", "did you mean 'epochs'?"]}], []),
    ]
    for name, steps, look in made:
        yield {"name": name, "steps": steps, "look": look,
               "sets": ["sse4"] if "length" in name else ["sse4", "avx2", "avx512"]}


def cases():
    found = [*resume_cases(), *command_cases(), *other_cases()]
    assert len({c["name"] for c in found}) == len(found)
    return found


CONFIGS = {
    "every.toml": """# every option of `train` that settles what is learnt, by its long name
data = "table.npz"
map = ["x=x", "label=y"]
scale = "auto"
layout = "nchw"
label-offset = 0
valid = "0.25"
no-shuffle = false
epochs = 3
batch = 20
steps = 12
time = 0
patience = 5
loss = "cross_entropy"
optimizer = "sgd"
lr = 0.05
schedule = "polynomial"
label = "label"
loss-input = "logits"
weight-decay = 0.01
momentum = 0.9
schedule-arg = ["power=2", "warmup_steps=2"]
clip = 1.5
clip-value = 0.5
label-smoothing = 0.1
ignore-index = 2
freeze = ["fc1.bias"]
only = ["fc1.*", "fc2.*"]
accumulate = 2
reset = true
as-is = false
threads = 1
dry-run = false
memory = "100M"
save-every = 4
keep = 1
seed = 7
deterministic = true
allow-non-finite = false
progress = "lines"
quiet = false
overfit = 0
find-lr = false
""",
    "few.toml": """# underscores do as well
data = "table.csv"
target = "species"
scale = "10,3"
weight_decay = 0.1
label_smoothing = 0.05
save_every = 3
batch = 30
lr = 0.5
""",
    "unknown.toml": 'data = "table.npz"\nepoch = 3\n',
}
