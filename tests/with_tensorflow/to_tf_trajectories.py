"""Training files of the trajectory zoo in TensorFlow: ten steps by `ot.to_tf` against ten steps of onnxtrain, then the
SavedModel in a process that has no onnxtrain.

    .venv-tf/bin/python tests/with_tensorflow/to_tf_trajectories.py [NAME[.EXPORTER] ...]      default: every file

Differences are relative to the largest element of each tensor. Both sides compute in float32; where the difference is
above 1e-5, the yardstick is what onnxtrain's own numbers change when every weight changes in its last bit.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "trajectories"))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import compare  # noqa: E402
import onnxtrain as ot  # noqa: E402
from onnxtrain.tf.shared.names import distinct, identifier  # noqa: E402
from trajectory_cases import CASES, STEPS, feeds  # noqa: E402

TOLERANCE = 1e-5
IMAGE_OPS = {"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D",
             "ResizeBilinear", "DepthToSpace", "SpaceToDepth", "Conv2DBackpropInput"}


def relative(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-8)) if a.size else 0.0


def onnxtrain_run(model, case, change=()):
    """(losses, state) after STEPS steps; with the weights `change` changed in their last bits."""
    t = ot.Trainer(model, threads=1)
    rng = np.random.default_rng(0)
    for n in change:
        v = t.state[n]
        t.state[n] = np.nextafter(v, v + rng.choice([-1, 1], v.shape).astype(v.dtype))
    losses = [t.step(feeds(case, k), which=i).loss for k in range(STEPS) for i in range(len(case.sections))]
    return losses, {n: t.state[n] for n in t.state}


def tensorflow_run(made, case, sections):
    losses = []
    for k in range(STEPS):
        for i in range(sections):
            step = made.train_step if sections == 1 else getattr(made, f"train_step_{i}")
            given = feeds(case, k)
            names = section_inputs(step, given)
            losses.append(float(step(**names)["loss"]))
    return losses


def section_inputs(step, given):
    names = distinct(list(given), identifier)
    takes = [s.name for s in tf.nest.flatten(step.get_concrete_function().structured_input_signature)]
    return {names[n]: tf.constant(v) for n, v in given.items() if names[n] in takes}


def transposes(function):
    """Transposes of data that stand between two image operators in the graph of a function."""
    graph = function.get_concrete_function().graph
    ops = graph.get_operations()
    before, after = {}, {}
    for o in ops:
        before[o.name] = any(i.op.type in IMAGE_OPS or before.get(i.op.name) for i in o.inputs)
    for o in reversed(ops):
        for i in o.inputs:
            after[i.op.name] = after.get(i.op.name, False) or o.type in IMAGE_OPS or after.get(o.name, False)
    return [o.name for o in ops if o.type == "Transpose" and before[o.name] and after.get(o.name)]


def run(name, how, folder=None):
    """Differences of one file: {what: number}."""
    case = CASES[name]
    model = compare.prepared(name, ot.load(compare.DATA / f"{name}.{how}.onnx"))
    made = ot.to_tf(model)
    sections = len(case.sections)
    result = {"transposes": len(transposes(type(made).__call__))}
    if folder is not None:
        made.save(folder)
        given = {f"{k}/{n}": v for k in range(STEPS) for n, v in feeds(case, k).items()}
        np.savez(Path(folder) / "feeds.npz", **given)
    want, state = onnxtrain_run(model, case)
    got = tensorflow_run(made, case, sections)
    result["losses"], result["loss"] = got, max(abs(a - b) / max(abs(b), 1e-8) for a, b in zip(got, want))
    differ = {n: relative(made.variable(n).numpy(), v) for n, v in state.items() if n in made.stored}
    worst = max(differ, key=differ.get)
    result |= {"state": differ[worst], "worst": worst, "loss noise": 0.0, "state noise": 0.0, "all noise": 0.0}
    if max(result["loss"], result["state"]) > TOLERANCE:
        again, noisy = onnxtrain_run(model, case, made.parameters)
        result["loss noise"] = max(abs(a - b) / max(abs(b), 1e-8) for a, b in zip(again, want))
        result["state noise"] = relative(noisy[worst], state[worst])
        result["all noise"] = max(relative(noisy[n], state[n]) for n in differ)
    return result


def good(r, factor=8):
    return (r["loss"] <= max(TOLERANCE, factor * r["loss noise"])
            and r["state"] <= max(TOLERANCE, factor * max(r["state noise"], r["all noise"])) and not r["transposes"])


def reload(folders):
    """Losses of saved folders, computed in a process without onnxtrain: {folder: losses}."""
    packages = Path(tf.__file__).parents[1]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    out = subprocess.run([sys.executable, "-S", HERE / "train_saved.py", packages, *map(str, folders)],
                         capture_output=True, text=True, env=environment, cwd="/", check=False)
    assert out.returncode == 0, out.stderr[-2000:]
    return json.loads(out.stdout.splitlines()[-1])


def main(wanted):
    total = fine = 0
    first = {}
    with tempfile.TemporaryDirectory() as root:
        for name, how in compare.exports():
            if wanted and name not in wanted and f"{name}.{how}" not in wanted:
                continue
            total += 1
            folder = Path(root) / f"{name}.{how}"
            try:
                r = run(name, how, folder)
            except Exception as e:  # noqa: BLE001
                print(f"{name:13s} {how:13s} {type(e).__name__}: {str(e)[:600]}", flush=True)
                continue
            fine += good(r)
            first[str(folder)] = r["losses"]
            print(f"{name:13s} {how:13s} {'ok ' if good(r) else 'BAD'} loss {r['loss']:.1e}"
                  f" (noise {r['loss noise']:.1e})  state {r['state']:.1e} at {r['worst']}"
                  f" (noise {r['state noise']:.1e}, {r['all noise']:.1e})"
                  f"  transposes {r['transposes']}", flush=True)
        print(f"{fine} of {total} files: ten steps in TensorFlow are onnxtrain's")
        later = reload(first)
        same = sum(np.allclose(later[k], v, rtol=1e-6, atol=1e-7) for k, v in first.items())
        print(f"{same} of {len(first)} SavedModels give the same losses in a process without onnxtrain")
    return 0 if fine == total and same == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
