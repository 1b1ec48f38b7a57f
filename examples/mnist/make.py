"""Makes the trainable MNIST files of this folder: mlp.train.onnx and cnn.train.onnx.

The inference graphs are written with onnx.helper (any exporter would do); onnxtrain's own front end
adds loss, gradients, optimizer and state. Run it from anywhere:  python make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(0)


def uniform(name, shape, fan):
    bound = (6.0 / fan) ** 0.5 if len(shape) > 1 else 0.0  # He: keeps the size of activations through Relu
    return numpy_helper.from_array(RNG.uniform(-bound, bound, shape).astype(np.float32), name)


def model(name, nodes, weights):
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="onnxtrain examples")
    m.ir_version = 8
    onnx.checker.check_model(m, full_check=True)
    return m


def mlp():
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["h1"], "fc1", transB=1),
        helper.make_node("Relu", ["h1"], ["a1"], "relu1"),
        helper.make_node("Gemm", ["a1", "fc2.weight", "fc2.bias"], ["logits"], "fc2", transB=1),
    ]
    return model("mnist_mlp", nodes, [
        uniform("fc1.weight", (256, 784), 784), uniform("fc1.bias", (256,), 784),
        uniform("fc2.weight", (10, 256), 256), uniform("fc2.bias", (10,), 256)])


def cnn():
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1", kernel_shape=[3, 3],
                         pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", kernel_shape=[3, 3],
                         pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool2", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["h1"], "fc1", transB=1),
        helper.make_node("Relu", ["h1"], ["a1"], "relu3"),
        helper.make_node("Gemm", ["a1", "fc2.weight", "fc2.bias"], ["logits"], "fc2", transB=1),
    ]
    return model("mnist_cnn", nodes, [
        uniform("conv1.weight", (32, 1, 3, 3), 9), uniform("conv1.bias", (32,), 9),
        uniform("conv2.weight", (64, 32, 3, 3), 288), uniform("conv2.bias", (64,), 288),
        uniform("fc1.weight", (64, 3136), 3136), uniform("fc1.bias", (64,), 3136),
        uniform("fc2.weight", (10, 64), 64), uniform("fc2.bias", (10,), 64)])


for name, proto in (("mlp", mlp()), ("cnn", cnn())):
    train = ot.prepare(ot.load(proto.SerializeToString()), loss="cross_entropy", optimizer=ot.AdamW(lr=2e-3),
                       schedule=ot.Schedule("exponential", {"gamma": 0.9996}))
    train.save(HERE / f"{name}.train.onnx")
    print(f"{name}.train.onnx:", train.summary().splitlines()[0])
