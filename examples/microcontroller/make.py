"""Writes the C of a training: python make.py mlp|cnn FOLDER

    model.train.onnx   the training, as `onnxtrain prepare` makes it
    step.onnx          one step in plain operators, with its manifest and initial state
    step.c             the step as plain C, by emx-onnx-cgen (pip install emx-onnx-cgen)
    training.h         rows of data, the state twice (one copy is read, the other written), train_step()
    losses.txt         the losses of onnxtrain's own trainer on the same batches"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import memory
import numpy as np

import onnxtrain as ot
from networks import BATCH, NETWORKS, ROWS, STEPS

C_TYPES = {"float32": "float", "int64": "int64_t", "int32": "int32_t", "bool": "bool"}


def numbers(array):
    if array.dtype == np.float32:
        return ", ".join(float(v).hex() + "f" for v in array.reshape(-1))
    return ", ".join(str(int(v)) for v in array.reshape(-1))


def size(shape):
    return int(np.prod(shape)) if shape else 1


def c_name(name):
    return re.sub(r"\W", "_", name)


def header(manifest, state, data, signature):
    """training.h. Arrays are flat in it; the step's own types are those of its signature."""
    section = manifest["sections"][0]
    inputs, outputs = section["inputs"], section["outputs"]
    fed = {f["output"]: f["input"] for f in section["feedback"]}
    lines = ["/* Written by make.py. */", "#pragma once", "#include <stdbool.h>", "#include <stdint.h>", "",
             f"enum {{ STEPS = {STEPS}, BATCH = {BATCH}, ROWS = {ROWS} }};", signature + ";", ""]
    given, results = [], []
    for i in inputs:
        name, kind = c_name(i["name"]), C_TYPES[i["type"]]
        if i["name"] in data:
            rows = data[i["name"]]
            lines.append(f"static const {kind} {name}_rows[] = {{{numbers(rows)}}};")
            given.append(f"(const void*)({name}_rows + row * {size(rows.shape[1:])})")
            continue
        values = np.asarray(state[i["name"]], i["type"])
        if i["name"] in fed.values():
            lines.append(f"static {kind} {name}_state[2][{size(i['shape'])}] = {{{{{numbers(values)}}}}};")
            given.append(f"(const void*){name}_state[now]")
        else:
            lines.append(f"static const {kind} {name}_state[] = {{{numbers(values)}}};")
            given.append(f"(const void*){name}_state")
    for o in outputs:
        to = fed.get(o["name"])
        if to is None and o["role"] != "loss":
            lines.append(f"static {C_TYPES[o['type']]} {c_name(o['name'])}_out[{size(o['shape'])}];")
        results.append("(void*)loss" if o["role"] == "loss" else
                       f"(void*){c_name(to)}_state[1 - now]" if to else f"(void*){c_name(o['name'])}_out")
    lines += ["", "static void train_step(int row, int now, float* loss) {",
              "  step(" + ",\n       ".join(given + results) + ");", "}", ""]
    return "\n".join(lines)


def generator():
    beside = Path(sys.executable).parent / "emx-onnx-cgen"
    found = os.environ.get("EMX_ONNX_CGEN") or (str(beside) if beside.exists() else shutil.which("emx-onnx-cgen"))
    return found or sys.exit("emx-onnx-cgen is not installed:  pip install emx-onnx-cgen==1.4.0")


def main(name, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file, optimizer, (x, label) = NETWORKS[name]()
    train = ot.prepare(file, loss="cross_entropy", optimizer=optimizer)
    train.save(folder / "model.train.onnx")
    ot.export_step(train, folder / "step.onnx", dims={"N": BATCH})
    subprocess.run([generator(), "compile", str(folder / "step.onnx"), str(folder / "step.c"), "--model-name", "step",
                    "--large-temp-threshold", "0"], check=True, capture_output=True)
    source, block, apart = memory.shared((folder / "step.c").read_text())
    (folder / "step.c").write_text(source)
    manifest = json.loads((folder / "step.manifest.json").read_text())
    trainer = ot.Trainer(train)
    state = {i["name"]: np.array(trainer.state[i["name"]]) if i["name"] in trainer.state else trainer.lr
             for i in manifest["sections"][0]["inputs"] if i["role"] in ("state", "learning_rate")}
    signature = re.search(r"^void step\(.*?\)(?= \{)", source, re.M)[0]
    (folder / "training.h").write_text(header(manifest, state, {"x": x, "label": label}, signature))
    losses = []
    for k in range(STEPS):
        at = slice(k * BATCH % ROWS, k * BATCH % ROWS + BATCH)
        losses.append(trainer.step({"x": x[at], "label": label[at]}).loss)
    (folder / "losses.txt").write_text("\n".join(f"{v:.9g}" for v in losses) + "\n")
    print(f"{name}: {folder}/step.c, temporaries {block} bytes ({apart} apart); {STEPS} steps in onnxtrain: "
          f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
