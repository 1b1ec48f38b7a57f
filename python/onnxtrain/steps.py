"""A training step as a plain ONNX model for other runtimes."""

import json
import os

import numpy as np

from .errors import UsageError
from .model import as_model


def step_options(form="portable", runtime=None, opset=17, dims=None, indices="int64", recurrent="unroll",
                 random="counter", embed_state=False):
    """The options of `export_step` as the library wants them."""
    options = {"form": form, "opset": int(opset), "indices": indices, "recurrent": recurrent, "random": random,
               "embed_state": bool(embed_state)}
    if runtime:
        options["for"] = runtime
    if dims:
        options["dims"] = {name: [int(n) for n in np.atleast_1d(size)] for name, size in dims.items()}
    return json.dumps(options)


def export_step(model, path, step=None, *, form="portable", runtime=None, opset=17, dims=None, indices="int64",
                recurrent="unroll", random="counter", embed_state=False):
    """Writes a training section as a plain ONNX model, its manifest and its initial state beside it.

    model: a training model, or its path; step: nothing (the only section), its number, or "all"; form: "portable" or
    "compact"; runtime: the one it is meant for (`--for`); opset: 13 to 22; dims: sizes of open dimensions ({"N": 32})
    or shapes of inputs; indices: "int64" or "int32"; recurrent: "unroll" or "scan"; random: "counter" or "input";
    embed_state: the initial state as defaults of inputs. Returns {"files", "warnings", "sections"}.
    """
    m = as_model(model)
    sections = len(m.info["training"])
    if sections == 0:
        raise UsageError("the model has no training section", "OT1261", "ot.prepare(model) makes one")
    if step is None and sections > 1:
        raise UsageError(f"the model has {sections} training sections; export_step needs one", "OT1261",
                         'step=0, or step="all"')
    which = -1 if step == "all" else int(step or 0)
    if which < 0 and step != "all":
        raise UsageError(f"step is {step}; it is the number of a training section, or \"all\"", "OT1261")
    options = step_options(form, runtime, opset, dims, indices, recurrent, random, embed_state)
    return json.loads(m._m.export_step(which, options, os.fspath(path)))


def export_whole(model, path, epochs=1, batch=32, *, rows=0, loop="loop", drop_last=False, valid=False, valid_rows=0,
                 best=False, patience=0, runtime=None, opset=17, dims=None, indices="int64", recurrent="unroll"):
    """Writes the entire training as one plain ONNX model: arrays and row order in, trained state out.

    model: a training model, or its path; epochs, batch: how long, how many rows per step; rows: of the data set, 0
    leaves it open; loop: "loop", "scan" or "unrolled" (the last two need `rows`); drop_last: no smaller batch at the
    end of an epoch; valid: validation arrays as inputs (valid_rows: how many), loss and accuracy after every epoch;
    best: the weights of the best epoch as outputs; patience: stop after so many epochs without a better one. The rest:
    as in `export_step`. Returns {"file", "inputs", "outputs", "warnings", ...}, as the file's metadata say it.
    """
    options = json.loads(step_options("portable", runtime, opset, dims, indices, recurrent))
    options |= {"epochs": int(epochs), "batch": int(batch), "rows": int(rows), "loop": loop,
                "drop_last": bool(drop_last), "valid": bool(valid), "valid_rows": int(valid_rows), "best": bool(best),
                "patience": int(patience)}
    return json.loads(as_model(model)._m.export_whole(json.dumps(options), os.fspath(path)))
