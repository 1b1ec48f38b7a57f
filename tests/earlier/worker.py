"""Runs recorded cases in a process of its own, so that ONNXTRAIN_ISA holds for all of it.

    worker.py steps < cases.json                 prepares and steps recipes; prints what each gave
    worker.py torch < names.json                 steps files of from_torch without PyTorch
    worker.py code TEXT                          runs Python code of a case
"""

import ctypes
import hashlib
import json
import pathlib
import sys
import tempfile

import numpy as np

import onnxtrain as ot
import replay

STEPS = 5


class Native:
    """The few calls of the C API that make a training file from a recipe."""

    def __init__(self):
        self.lib = ctypes.CDLL(str(replay.ROOT / "build" / "release" / "libonnxtrain.so"))
        self.lib.ot_text_data.restype = ctypes.c_void_p
        self.lib.ot_text_size.restype = ctypes.c_size_t

    def call(self, name, *arguments):
        out = ctypes.c_void_p()
        status = getattr(self.lib, name)(*arguments, ctypes.byref(out))
        if status != 0:
            raise RuntimeError(f"{name} gives {status}")
        return out

    def prepare(self, model, recipe):
        plain = self.call("ot_model_load", model.encode())
        made = self.call("ot_prepare", plain, json.dumps(recipe).encode())
        text = self.call("ot_model_bytes", made, 0)
        data = ctypes.string_at(self.lib.ot_text_data(text), self.lib.ot_text_size(text))
        self.lib.ot_text_free(text)
        for m in (plain, made):
            self.lib.ot_model_free(m)
        return data


def prepared(case):
    """The bytes of the training file that a case makes."""
    if "python" in case:
        return eval(case["python"], {"ot": ot}).proto()
    if "recipe" in case:
        return Native().prepare(case["model"], case["recipe"])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "out.train.onnx"
        done = replay.cli(["prepare", case["model"], "-o", path, *case["flags"]], ".")
        if done.returncode:
            raise RuntimeError(done.stderr)
        return path.read_bytes()


def trained(data, feeds):
    """Losses of five steps, and the state after them."""
    t = ot.Trainer(data, seed=3, threads=1)
    feeds = {k: v for k, v in feeds.items() if k in (*t.inputs, *t.targets)}
    losses = [t.step(feeds).loss for _ in range(STEPS)]
    state = {name: replay.tensor(t.state[name]) for name in sorted(t.state)}
    text = "".join(f"{name} {v['sha256']}\n" for name, v in state.items())
    return {"losses": losses, "state": {"sha256": hashlib.sha256(text.encode()).hexdigest(),
                                        "mean": sum(v["mean"] for v in state.values())}}


def steps(cases):
    arrays = np.load("feeds.npz")
    found = {}
    for case in cases:
        try:
            data = prepared(case)
            feeds = {name: arrays[key] for name, key in case["feeds"].items()}
            found[case["name"]] = {"file": replay.file_digest(data), **trained(data, feeds)}
        except Exception as e:
            found[case["name"]] = {"file": f"{type(e).__name__}: {e}"}
    return found


def torch_files(names):
    """Files of from_torch: checked and stepped."""
    found = {}
    for name in names:
        arrays = np.load(f"torch/{name}.npz")
        path = f"torch/{name}.train.onnx"
        found[name] = {"violations": ot.check(path), **trained(path, dict(arrays))}
    return found


def code(text):
    exec(compile(text, "case", "exec"), {"ot": ot, "np": np, "json": json, "show": lambda v: print(json.dumps(v))})


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "code":
        code(sys.argv[2])
    else:
        print(json.dumps({"steps": steps, "torch": torch_files}[what](json.load(sys.stdin))))
