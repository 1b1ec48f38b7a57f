"""The table of whole-training files in docs/engines.md: one call against the same steps one by one, in each runtime.

    python tests/engines/whole.py [--names x,y] [--runtimes a,b] [--forms a,b]

Every architecture of tests/trajectories: 2 epochs over 2 full batches and a smaller one. `same`: losses and state have
the bits of the step-by-step run in the same runtime; a number: the largest difference, relative to the tensor's largest
element (at least 1); `us`, `engine`: refused by onnxtrain, by the runtime. Forms: loop with open and with fixed rows,
scan, unrolled. Runs in the environment of the runtimes (tools/environment.sh engines). `--runtimes mnn` (pip install
MNN there) compares with the steps of this library."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
EPOCHS = 2
FORMS = {"loop": ("loop", False), "loop, fixed rows": ("loop", True), "scan": ("scan", True),
         "unrolled": ("unrolled", True)}
RUNTIMES = ["native", "onnxruntime", "ort_off", "reference", "openvino"]


def runner(runtime, path):
    """A function from feeds to {output: array}."""
    if runtime == "native":
        import onnxtrain as ot

        return ot.Session(path, threads=1).run
    if runtime in ("onnxruntime", "ort_off"):
        import onnxruntime as o

        options = o.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        if runtime == "ort_off":
            options.graph_optimization_level = o.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = o.InferenceSession(str(path), options)
        names = [v.name for v in session.get_outputs()]
        return lambda feeds: dict(zip(names, session.run(names, feeds)))
    if runtime == "reference":
        from onnx.reference import ReferenceEvaluator

        session = ReferenceEvaluator(str(path))
        return lambda feeds: dict(zip(session.output_names, session.run(None, feeds)))
    import onnx

    if runtime == "mnn":
        return mnn(path, onnx.load(str(path)).graph)
    import openvino

    core = openvino.Core()
    model = core.compile_model(core.read_model(str(path)), "CPU",
                               {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    names = [o.name for o in onnx.load(str(path)).graph.output]  # OpenVINO's own order is the file's
    return lambda feeds: {n: np.array(v) for n, v in zip(names, model(feeds).values())}


def mnn(path, graph):
    """MNN has its own format and 32-bit integers."""
    import MNN.expr as expr
    from MNN import nn

    made = path.with_suffix(".mnn")
    subprocess.run([str(Path(sys.executable).parent / "mnnconvert"), "-f", "ONNX", "--modelFile", str(path),
                    "--MNNModel", str(made), "--bizCode", "step"], check=True, capture_output=True)
    inputs, outputs = [i.name for i in graph.input], [o.name for o in graph.output]
    module = nn.load_module_from_file(str(made), inputs, outputs)

    def run(feeds):
        given = []
        for k in inputs:
            whole = feeds[k].dtype.kind == "i"
            given.append(expr.placeholder(list(feeds[k].shape), expr.NCHW, expr.int if whole else expr.float))
            given[-1].write(feeds[k].reshape(-1).tolist())
        got = (expr.convert(v, expr.NCHW) for v in module.forward(given))
        return {n: np.array(v.read()).reshape(v.shape) for n, v in zip(outputs, got)}
    return run


def rows_of(batch, arrays):
    return {k: v[batch] for k, v in arrays.items()}


class Steps:
    """The same training one step at a time: a file for each size of a batch, or one for all."""

    def __init__(self, train, folder, fixed, symbol, batch, runtime):
        import worker

        self.train, self.folder, self.fixed, self.runtime = train, folder, fixed, runtime
        self.symbol, self.batch = symbol, batch
        self.files, self.state, self.safetensors = {}, None, worker.safetensors

    def sections(self, n):
        import onnxtrain as ot

        key = n if self.fixed or n == self.batch else 0
        if key not in self.files:
            here = self.folder / f"{key}"
            if not here.exists():
                here.mkdir()
                ot.export_step(self.train, here / "step.onnx", step="all", dims={self.symbol: n} if key else None)
            manifest = json.loads((here / "step.manifest.json").read_text())
            self.files[key] = [(s, runner(self.runtime, here / s["model"])) for s in manifest["sections"]]
            if self.state is None:
                self.state = self.safetensors(here / manifest["state"]["file"])
        return self.files[key]

    def step(self, data, n):
        losses = []
        for section, run in self.sections(n):
            given = data | self.state
            got = run({i["name"]: given[i["name"]].astype(i["type"]) for i in section["inputs"]})
            self.state |= {f["input"]: got[f["output"]] for f in section["feedback"]}
            losses.append(np.asarray(got[section["loss"]["output"]]).reshape(()))
        return losses


def compare(train, arrays, constant, symbol, batch, form, fixed, runtime, folder, options=None):
    """(largest relative difference, is every bit the same) of one call against its steps."""
    import onnxtrain as ot

    n = len(next(iter(arrays.values())))
    path = folder / f"whole-{form}-{fixed}.onnx"
    report = ot.export_whole(train, path, EPOCHS, batch, rows=n if fixed else 0, loop=form, **(options or {}))
    rng = np.random.default_rng(3)
    order = np.stack([rng.permutation(n) for _ in range(EPOCHS)])
    feeds = arrays | constant | {"order": order}
    if options and options.get("valid"):
        feeds |= {f"valid_{k}": v for k, v in arrays.items()}
    known = {i["name"]: i for i in report["inputs"]}
    got = runner(runtime, path)({k: v for k, v in feeds.items() if k in known})
    steps = Steps(train, folder, fixed, symbol, batch, "native" if runtime == "mnn" else runtime)
    losses = [[steps.step(rows_of(order[e][k:k + batch], arrays) | constant, len(order[e][k:k + batch]))
               for k in range(0, n, batch)] for e in range(EPOCHS)]
    lists = sorted(o["name"] for o in report["outputs"] if o["role"] == "losses")
    pairs = [(got[name], np.array(losses, np.float32)[..., k]) for k, name in enumerate(lists)]
    pairs += [(got[k], v) for k, v in steps.state.items() if k in got]
    pairs = [(np.reshape(a, b.shape) if np.size(a) == b.size else a, b) for a, b in pairs]
    assert len(pairs) > len(lists)
    far = max(float(np.max(np.abs(np.asarray(a, np.float64) - b), initial=0) / max(1, np.max(np.abs(b), initial=0)))
              for a, b in pairs)
    return far, all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


def case(name):
    """A training model, arrays of 2 batches and a half, inputs without rows, the batch and its symbol."""
    import compare as trajectories
    import onnxtrain as ot
    from trajectory_cases import CASES
    from trajectory_cases import feeds as feeds_of

    train = trajectories.prepared(name, ot.load(trajectories.DATA / f"{name}.dynamo.onnx"))
    parts = [feeds_of(CASES[name], k) for k in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        report = ot.export_whole(train, Path(folder) / "w.onnx", 1, 1)
    rows = {i["name"] for i in report["inputs"] if "[rows" in i["type"]}
    batch = len(parts[0][sorted(rows)[0]])
    n = 2 * batch + max(1, batch // 2)
    arrays = {k: np.concatenate([p[k] for p in parts])[:n] for k in rows}
    constant = {k: v for k, v in parts[0].items() if k not in rows}
    symbol = next(i["shape"][0] for i in train.info["inputs"] if i["name"] in rows)
    return train, arrays, constant, batch, symbol


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--names")
    p.add_argument("--runtimes", default=",".join(RUNTIMES))
    p.add_argument("--forms", default=";".join(FORMS))
    p.add_argument("--inside", action="store_true")
    a = p.parse_args()
    if not a.inside:
        made = subprocess.run([str(ROOT / "tools/environment.sh"), "engines"], capture_output=True, text=True)
        if made.returncode:
            sys.exit(made.stderr)
        python = made.stdout.strip() + "/bin/python"
        os.execv(python,
                 [python, __file__, "--inside", *sys.argv[1:]])
    for extra in ("python", "tests/trajectories", "tests/engines"):
        sys.path.insert(0, str(ROOT / extra))
    import onnxtrain as ot
    from trajectory_cases import CASES

    runtimes = a.runtimes.split(",")
    print("| architecture | form | " + " | ".join(runtimes) + " |\n|---" + "|---" * (1 + len(runtimes)) + "|")
    for name in (a.names.split(",") if a.names else CASES):
        try:
            train, arrays, constant, batch, symbol = case(name)
        except ot.Error as e:
            print(f"| {name} | all | us: {e.code} |", flush=True)
            continue
        for label in a.forms.split(";"):
            form, fixed = FORMS[label]
            cells = []
            for runtime in runtimes:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        far, same = compare(train, arrays, constant, symbol, batch, form, fixed, runtime, Path(folder))
                        cells.append("same" if same else f"{far:.0e}")
                    except ot.Error as e:
                        cells.append(f"us {e.code}")
                    except Exception as e:  # noqa: BLE001
                        cells.append("engine")
                        print(f"{name} {label} {runtime}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
            print(f"| {name} | {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
