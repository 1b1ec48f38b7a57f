"""Reads torch.npz (written by tools/torch_gradients.py) and compares onnxtrain with it."""

import functools
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import onnxtrain as ot

FILE = Path(__file__).with_name("torch.npz")


@functools.cache
def book():
    """[(case, {name: array})]"""
    data = np.load(FILE)
    index = json.loads(data["index"].tobytes())
    arrays = {}
    for name, (dtype, shape, at) in index["arrays"].items():
        blob = data["floats" if dtype == "float64" else "ints"]
        size = int(np.prod(shape))
        arrays[name] = blob[at:at + size].astype(dtype).reshape(shape)
    out = []
    for number, case in enumerate(index["cases"]):
        mine = {k.split(".", 1)[1]: v for k, v in arrays.items() if k.split(".", 1)[0] == str(number)}
        out.append((case, mine))
    return out


def model_of(case, arrays):
    names = [f"x{k}" if given else "" for k, given in enumerate(case["inputs"])]
    outputs = [f"y{k}" for k in range(case["outputs"])]
    node = helper.make_node(case["op"], names, outputs, **case["attrs"])
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(arrays[n].dtype), arrays[n].shape)
             for n in names if n]
    outs = [helper.make_tensor_value_info(f"y{k}", onnx.TensorProto.DOUBLE, None) for k in case["compared"]]
    graph = helper.make_graph([node], "golden", infos, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case["opset"])], ir_version=10)


def compare(case, arrays, rtol=1e-6):
    """"" or what differs."""
    model = ot.load(model_of(case, arrays).SerializeToString())
    feeds = {n: a for n, a in arrays.items() if n[0] == "x"}
    outputs = ot.Session(model, threads=1).run(feeds)
    wrt = [f"x{k}" for k in case["wrt"]]
    grads = ot.gradients(model, feeds, of=list(outputs), wrt=wrt,
                         cotangent={f"y{k}": arrays[f"c{k}"] for k in case["compared"]}, threads=1)
    pairs = [(n, outputs[n], arrays[n]) for n in outputs] + [(f"gradient of {n}", grads[n], arrays["g" + n[1:]])
                                                             for n in wrt]
    for what, mine, theirs in pairs:
        if mine.shape != theirs.shape:
            return f"{what}: shape {mine.shape}, PyTorch {theirs.shape}"
        apart = np.abs(mine - theirs)
        allowed = rtol * (np.abs(theirs) + (np.abs(theirs).max() if theirs.size else 0)) + 1e-9
        if not (apart <= allowed).all():
            k = np.unravel_index(np.argmax(np.where(np.isfinite(apart), apart - allowed, np.inf)), apart.shape)
            return f"{what} at {list(map(int, k))}: {mine[k]:.9g}, PyTorch {theirs[k]:.9g}"
    return ""
