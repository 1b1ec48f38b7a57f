"""The workloads of bench/workloads with an open number of rows, as training files."""

import dataclasses
import functools

import numpy as np


def workload_of(name, rows):
    """A workload with another number of rows; the numbers of a row are those of the same seed."""
    from workloads import WORKLOADS

    w = WORKLOADS[name]
    return dataclasses.replace(w, input_shape=(rows, *w.input_shape[1:]))


def opened(model, rows):
    """The model with the rows of input, output and reshapes left open. Every reshape of a workload keeps its rows in
    front, where 0 means: as in the input."""
    from onnx import numpy_helper

    constants = {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"}
    for node in model.graph.node:
        if node.op_type == "Reshape":
            shape = numpy_helper.to_array(constants[node.input[1]]).copy()
            assert shape[0] == rows, node.name
            shape[0] = 0
            constants[node.input[1]].CopyFrom(numpy_helper.from_array(shape))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del model.graph.value_info[:]
    return model


@functools.lru_cache
def training(name):
    """A workload as an ot.Model with its training, for any number of rows."""
    import onnxtrain as ot
    from peers.onnxtrain_python import optimizer_of
    from workloads.onnx_layers import onnx_model

    workload = workload_of(name, 3)  # a number that occurs nowhere else
    return ot.prepare(ot.load(opened(onnx_model(workload), 3).SerializeToString()), loss="cross_entropy", label="label",
                      optimizer=optimizer_of(workload))


def gradient_bytes(name):
    """(bytes of all gradients, the same with every tensor rounded up to 64)"""
    sizes = [4 * int(np.prod(p.shape)) for p in workload_of(name, 3).shapes.parameters]
    return sum(sizes), sum(-(-s // 64) * 64 for s in sizes)
