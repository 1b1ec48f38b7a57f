"""Mistakes in models: files of other kinds, damaged files, graphs and training sections that are wrong."""

import json
import pickle
import struct
import zipfile

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from flow import FLOW, ITER, KEEP, YES, B, F, N, body, control, loop
from mistake import Mistake as M
from workshop import both, cut, dense, edited, flipped, gzipped, model, raw, text

TRAIN = "ai.onnx.preview.training"


def zipped(name, *members):
    def plant(d):
        with zipfile.ZipFile(d / name, "w") as z:
            for m in members:
                z.writestr(m, b"content")

    return plant


def safetensors(d):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (d / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")


def torch_file(d):
    import torch

    torch.save({"w": torch.zeros(2)}, d / "m.pt")


def foreign(name, what, plant, advice, command="info"):
    return M(
        f"{what} as a model ({name})",
        f"onnxtrain {command} {name}",
        3,
        [name, what],
        advice,
        None if advice is None else "true",
        plant,
    )


def nodes_of(m):
    return {n.name: n for n in m.graph.node}


def rename_input(m):
    m.graph.node[0].input[0] = "pixels"


def wrong_op(m):
    m.graph.node[1].op_type = "Rleu"


def wrong_shape(m):
    w = next(t for t in m.graph.initializer if t.name == "fc1.weight")
    w.CopyFrom(numpy_helper.from_array(np.zeros((16, 5), np.float32), "fc1.weight"))


def short_tensor(m):
    t = m.graph.initializer[0]
    t.raw_data = t.raw_data[:-4]


def newer_opset(m):
    m.opset_import[0].version = 999


def cycle(m):
    m.graph.node[0].input[0] = "logits"


def twice(m):
    m.graph.node[1].output[0] = "h"


def update(m):
    return m.training_info[0]


def unknown_key(m):
    update(m).update_binding[0].key = "fc9.weight"


def unknown_value(m):
    update(m).update_binding[0].value = "nobody"


def double_key(m):
    b = update(m).update_binding
    b.add(key=b[0].key, value=b[0].value)


def gradient_node(m):
    return next(n for n in update(m).algorithm.node if n.op_type == "Gradient")


def gradient_of_nothing(m):
    a = next(a for a in gradient_node(m).attribute if a.name == "xs")
    a.strings[0] = b"nobody"


def small_training(change):
    """x [N,4] -> y, one training section by hand with the standard's Momentum; change(parts) spoils it."""

    def build():
        m = dense(4, 1)
        m.opset_import.append(h.make_opsetid(TRAIN, 1))
        loose = numpy_helper.from_array(np.zeros(3, np.float32), "loose")
        parts = {
            "loss": h.make_node("ReduceMean", ["y"], ["loss"], "loss", keepdims=0),
            "xs": ["fc.weight"],
            "zs": ["x"],
            "y": "loss",
            "state": [1, 4],
            "rate": [],
            "extra_inputs": [],
            "extra_nodes": [],
            "feeds": ["fc.weight", "x"],
        }
        change(parts)
        grad = h.make_node(
            "Gradient", parts["feeds"], ["g"], "grad", domain=TRAIN, xs=parts["xs"], zs=parts["zs"], y=parts["y"]
        )
        step = h.make_node(
            "Momentum",
            ["R", "T", "fc.weight", "g", "v"],
            ["w1", "v1"],
            "step",
            domain=TRAIN,
            alpha=0.9,
            beta=1.0,
            mode="standard",
            norm_coefficient=0.0,
        )
        one = h.make_tensor("one", T.INT64, [], [1])
        more = h.make_node("Add", ["T", "one"], ["T1"], "count")
        f = T.FLOAT
        g = h.make_graph(
            [parts["loss"], *parts["extra_nodes"], grad, step, more],
            "algorithm",
            parts["extra_inputs"],
            [
                h.make_tensor_value_info("loss", f, []),
                h.make_tensor_value_info("w1", f, None),
                h.make_tensor_value_info("v1", f, None),
                h.make_tensor_value_info("T1", T.INT64, []),
            ],
            [
                h.make_tensor("R", f, parts["rate"], [0.1] * int(np.prod(parts["rate"]))),
                h.make_tensor("T", T.INT64, [], [0]),
                one,
                h.make_tensor("v", f, parts["state"], [0.0] * int(np.prod(parts["state"]))),
                loose,
            ],
        )
        t = m.training_info.add()
        t.algorithm.CopyFrom(g)
        for k, v in (("fc.weight", "w1"), ("v", "v1"), ("T", "T1")):
            t.update_binding.add(key=k, value=v)
        return m

    return model("hand.onnx", build)


def set_(**values):
    return small_training(lambda parts: parts.update(values))


CASES = [
    foreign("m.pt", "PyTorch", torch_file, "torch.onnx.export("),
    foreign("m.pth", "PyTorch", raw("m.pth", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."), "torch.onnx.export("),
    foreign(
        "p.pt2",
        "PyTorch program",
        zipped("p.pt2", "p/archive_format", "p/models/model.json"),
        "onnxtrain convert p.pt2 model.onnx",
    ),
    foreign(
        "m.keras",
        "Keras",
        zipped("m.keras", "metadata.json", "config.json", "model.weights.h5"),
        "onnxtrain convert m.keras model.onnx",
    ),
    foreign(
        "m.h5",
        "HDF5",
        raw("m.h5", b"\x89HDF\r\n\x1a\n" + bytes(100)),
        "onnxtrain convert m.h5 model.onnx",
        "check",
    ),
    foreign(
        "m.tflite",
        "TensorFlow Lite",
        raw("m.tflite", b"\x1c\0\0\0TFL3" + bytes(60)),
        "python -m tf2onnx.convert --tflite m.tflite",
    ),
    foreign(
        "saved_model.pb",
        "SavedModel",
        raw("saved_model.pb", b"\x08\x01\x12\xf0\x01\x0a\x05serve" + b"\x12\x10tensorflow" + bytes(300)),
        "python -m tf2onnx.convert --saved-model",
    ),
    foreign("m.safetensors", "safetensors", safetensors, "torch.onnx.export"),
    foreign("m.gguf", "GGUF", raw("m.gguf", b"GGUF\3\0\0\0" + bytes(64)), "optimum-cli"),
    foreign("m.ort", "ONNX Runtime", raw("m.ort", b"\x20\0\0\0ORTM" + bytes(64)), ".onnx"),
    foreign("m.xml", "OpenVINO", text("m.xml", '<?xml version="1.0"?>\n<net name="m" version="11">'), "converted from"),
    foreign("m.pkl", "pickle", lambda d: (d / "m.pkl").write_bytes(pickle.dumps({"a": 1}, protocol=4)), "skl2onnx"),
    foreign("data.npz", "NumPy", None, "--data data.npz"),
    foreign("x.npy", "NumPy", None, "--data x.npy"),
    foreign("m.zip", "zip", zipped("m.zip", "readme.txt"), "unzip m.zip"),
    foreign("m.onnx.gz", "gzip", gzipped("mlp.onnx", "m.onnx.gz"), "gzip -dc m.onnx.gz >model.onnx"),
    foreign("page.onnx", "HTML", text("page.onnx", "<!DOCTYPE html>\n<html><head>Not found</head></html>"), "download"),
    foreign(
        "lfs.onnx",
        "Git LFS",
        text("lfs.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 100\n"),
        "git lfs pull",
    ),
    foreign("m.json", "JSON", text("m.json", '{"layers": []}'), ".onnx"),
    foreign("data.csv", "text", None, ".onnx"),
    foreign("empty.onnx", "empty", raw("empty.onnx", b""), "again"),
    M(
        "gzip fixed as printed",
        "onnxtrain info m.onnx.gz",
        3,
        ["gzip"],
        "gzip -dc m.onnx.gz >model.onnx",
        "{fix} && onnxtrain info model.onnx",
        gzipped("mlp.onnx", "m.onnx.gz"),
    ),
    M("model is not there", "onnxtrain info mlpp.onnx", 3, ["mlpp.onnx"], "mlp.onnx", "onnxtrain info {fix}"),
    M("model is a folder", "onnxtrain info pictures", 3, ["pictures"]),
    M(
        "SavedModel folder",
        "onnxtrain info saved",
        3,
        ["saved"],
        "onnxtrain convert saved model.onnx",
        "true",
        lambda d: ((d / "saved").mkdir(), (d / "saved" / "saved_model.pb").write_bytes(b"\x08\x01")),
    ),
    M("model cut short", "onnxtrain info mlp.onnx", 3, ["mlp.onnx"], plant=cut("mlp.onnx", 300)),
    M("tensor cut short", "onnxtrain check mlp.onnx", 3, ["fc1.weight"], plant=edited("mlp.onnx", short_tensor)),
    M(
        "unknown operator",
        "onnxtrain train mlp.onnx --data data.npz",
        3,
        ["Rleu", "'act'"],
        plant=edited("mlp.onnx", wrong_op),
    ),
    M(
        "reads what nobody makes",
        "onnxtrain info mlp.onnx",
        3,
        ["'pixels'", "'fc1'"],
        plant=edited("mlp.onnx", rename_input),
    ),
    M("weights of another shape", "onnxtrain check mlp.onnx", 3, ["fc1"], plant=edited("mlp.onnx", wrong_shape)),
    M("opset of the future", "onnxtrain info mlp.onnx", 3, ["999"], plant=edited("mlp.onnx", newer_opset)),
    M("cycle", "onnxtrain info mlp.onnx", 3, ["cycle"], plant=edited("mlp.onnx", cycle)),
    M("a name defined twice", "onnxtrain check mlp.onnx", 3, ["'h'", "twice"], plant=edited("mlp.onnx", twice)),
    *[M(name, "onnxtrain check flow.onnx", 3, says, plant=plant) for name, plant, says in FLOW],
    # ---- training sections
    M(
        "update of an unknown variable",
        "onnxtrain check mlp.train.onnx",
        3,
        ["fc9.weight"],
        plant=edited("mlp.train.onnx", unknown_key),
    ),
    M(
        "update by an unknown value",
        "onnxtrain check mlp.train.onnx",
        3,
        ["nobody"],
        plant=edited("mlp.train.onnx", unknown_value),
    ),
    M("updated twice", "onnxtrain check mlp.train.onnx", 3, ["twice"], plant=edited("mlp.train.onnx", double_key)),
    M(
        "Gradient of an unknown x",
        "onnxtrain check mlp.train.onnx",
        3,
        ["nobody"],
        plant=edited("mlp.train.onnx", gradient_of_nothing),
    ),
    M(
        "Gradient that cannot reach y",
        "onnxtrain check hand.onnx",
        3,
        ["'grad'", "'loose'", "'loss'"],
        plant=set_(xs=["loose"], zs=["x"], feeds=["loose", "x"]),
    ),
    M(
        "optimizer state of another shape",
        "onnxtrain check hand.onnx",
        3,
        ["'step'", "'v'", "'fc.weight'"],
        plant=set_(state=[4, 4]),
    ),
    M("learning rate of three numbers", "onnxtrain check hand.onnx", 3, ["'step'", "'R'"], plant=set_(rate=[3])),
    M(
        "a target that is not declared",
        "onnxtrain check hand.onnx",
        3,
        ["'target'"],
        plant=set_(
            loss=N("Sub", ["y", "target"], ["d"], "loss"),
            extra_nodes=[N("ReduceMean", ["d"], ["loss"], "mean", keepdims=0)],
        ),
    ),
    M(
        "Gradient with another count of inputs",
        "onnxtrain check hand.onnx",
        3,
        ["'grad'", "3"],
        plant=set_(feeds=["fc.weight", "x", "x"]),
    ),
    M("prepare of a training file", "onnxtrain prepare mlp.train.onnx -o again.onnx", 0, ["OT3115", "replaced"]),
    M(
        "recipe for a file with its own training",
        "onnxtrain train mlp.train.onnx --data data.npz --loss mse",
        2,
        ["--loss"],
    ),
    M(
        "loss that does not fit the output",
        "onnxtrain prepare reg.onnx -o t.onnx --loss cross_entropy",
        3,
        ["'y'"],
        "--loss mse",
        "onnxtrain prepare reg.onnx -o t.onnx {fix}",
    ),
    M(
        "grad without inputs",
        "onnxtrain grad mlp.onnx --wrt fc1.weight",
        4,
        ["'x'"],
        "--inputs",
        "onnxtrain grad mlp.onnx --wrt fc1.weight {fix} only_x.npz",
    ),
    M(
        "run without inputs",
        "onnxtrain run mlp.onnx",
        4,
        ["'x'"],
        "--inputs",
        "onnxtrain run mlp.onnx {fix} only_x.npz",
    ),
    M("run with another name", "onnxtrain run mlp.onnx --inputs data.npz", 4, ["'y'"]),
    M("diff with a file that is not there", "onnxtrain diff mlp.onnx other.onnx", 3, ["other.onnx"]),
    M("diff of a model and a data file", "onnxtrain diff mlp.onnx data.npz", 3, ["data.npz", "NumPy"]),
    M("convert of nothing", "onnxtrain convert nothing.onnx m.pt", 3, ["nothing.onnx"]),
    M("convert to an unknown format", "onnxtrain convert mlp.train.onnx m.xyz", 2, ["m.xyz"]),
    M(
        "bench of an unknown peer",
        "onnxtrain bench mlp.onnx --against jax",
        2,
        ["jax"],
        "torch",
        "onnxtrain bench mlp.onnx --seconds 0.05",
    ),
    # ---- budgets
    M(
        "loop without end",
        "onnxtrain run flow.onnx --inputs three.npz",
        3,
        ["'again'", "never ends"],
        plant=both(
            control(
                N(
                    "Loop",
                    ["", "yes", "x"],
                    ["y"],
                    "again",
                    body=body(
                        [*ITER, ("s", F, None)], [KEEP, N("Identity", ["s"], ["s2"])], [("c2", B, []), ("s2", F, None)]
                    ),
                ),
                [YES],
            ),
            lambda d: np.savez(d / "three.npz", x=np.ones(3, np.float32)),
        ),
    ),
    M(
        "loop that doubles",
        "onnxtrain run flow.onnx --inputs three.npz --memory 64M",
        3,
        ["'again'", "iteration"],
        "--memory",
        plant=both(
            loop(
                [("s", F, None)],
                [KEEP, N("Concat", ["s", "s"], ["s2"], axis=0)],
                [("c2", B, []), ("s2", F, None)],
                trips=23,
            ),
            lambda d: np.savez(d / "three.npz", x=np.ones(3, np.float32)),
        ),
        then="onnxtrain run flow.onnx --inputs three.npz --memory 400M",
    ),
    M(
        "more iterations than allowed",
        "onnxtrain run flow.onnx --inputs three.npz --max-loop-trips 10",
        3,
        ["'again'", "20"],
        "--max-loop-trips 20",
        "onnxtrain run flow.onnx --inputs three.npz {fix}",
        plant=both(
            loop([("s", F, [3])], [KEEP, N("Relu", ["s"], ["s2"])], [("c2", B, []), ("s2", F, [3])], trips=20),
            lambda d: np.savez(d / "three.npz", x=np.ones(3, np.float32)),
        ),
    ),
    M(
        "checkpoint with a flipped byte",
        "onnxtrain eval run/checkpoints/last.train.onnx --data data.npz",
        1,
        ["last.train.onnx"],
        plant=flipped("run/checkpoints/last.train.onnx", -200),
    ),
]
