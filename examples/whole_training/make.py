"""Makes whole.onnx of this folder: a network for MNIST and its entire training in one ordinary ONNX file.

    python make.py            (needs the onnx package)"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent
EPOCHS, BATCH, HIDDEN = 4, 32, 32


def network():
    rng = np.random.default_rng(0)

    def weight(name, *shape):
        bound = (6.0 / shape[0]) ** 0.5
        return numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name)

    def zeros(name, n):
        return numpy_helper.from_array(np.zeros(n, np.float32), name)

    nodes = [helper.make_node("Flatten", ["image"], ["flat"]),
             helper.make_node("Gemm", ["flat", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["a"]),
             helper.make_node("Gemm", ["a", "w2", "b2"], ["logits"])]
    graph = helper.make_graph(nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT,
                                                                              ["N", 1, 28, 28])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
                              [weight("w1", 784, HIDDEN), zeros("b1", HIDDEN), weight("w2", HIDDEN, 10),
                               zeros("b2", 10)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(network(), HERE / "digits.onnx")
    train = ot.prepare(HERE / "digits.onnx", loss="cross_entropy", optimizer=ot.AdamW(lr=2e-3))
    report = ot.export_whole(train, HERE / "whole.onnx", epochs=EPOCHS, batch=BATCH, valid=True, best=True, patience=2)
    for port in report["inputs"] + report["outputs"]:
        print(f"{port['role']:10s} {port['name']:20s} {port['type']}")
