"""Drives a training step that `onnxtrain export --step` wrote, with onnxruntime and numpy alone.

    onnxtrain prepare model.onnx -o model.train.onnx
    onnxtrain export model.train.onnx --step -o step.onnx
    python drive.py step.manifest.json data.npz 100        # data.npz: arrays named after the step's inputs

Written to be copied: everything a program needs to know about the step is in its manifest."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


def safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return {name: np.frombuffer(data[8 + size:][slice(*t["data_offsets"])], TYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8:8 + size]).items()}


class Steps:
    def __init__(self, manifest):
        self.manifest = json.loads(Path(manifest).read_text())
        folder = Path(manifest).parent
        self.state = safetensors(folder / self.manifest["state"]["file"])
        self.sections = [(s, onnxruntime.InferenceSession(folder / s["model"])) for s in self.manifest["sections"]]

    def step(self, data):
        """One step of every section, in order; the loss of the last."""
        for section, session in self.sections:
            feeds = {i["name"]: (data | self.state)[i["name"]].astype(i["type"]) for i in section["inputs"]}
            names = [o["name"] for o in section["outputs"]]
            results = dict(zip(names, session.run(names, feeds)))
            self.state |= {f["input"]: results[f["output"]] for f in section["feedback"]}
        return float(results[section["loss"]["output"]])


if __name__ == "__main__":
    steps, arrays = Steps(sys.argv[1]), dict(np.load(sys.argv[2]))
    for k in range(int(sys.argv[3])):
        print(k, steps.step(arrays))
    np.savez("state.npz", **steps.state)
