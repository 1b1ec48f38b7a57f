"""Models that are right in themselves and unusual, for mistakes that are seldom seen."""

import socket

import numpy as np
from onnx import TensorProto as P
from onnx import helper as h
from onnx import numpy_helper


def info(name, shape, elem=P.FLOAT):
    return h.make_tensor_value_info(name, elem, shape)


def graph(nodes, inputs, outputs, weights, opset=17, imports=()):
    g = h.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset), *imports], ir_version=8)


def weight(*shape):
    return (np.random.default_rng(0).standard_normal(shape) * 0.3).astype(np.float32)


def with_norm():
    """Dense, BatchNormalization, dense."""
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    nodes = [
        h.make_node("Gemm", ["x", "a.weight"], ["h"], "a", transB=1),
        h.make_node("BatchNormalization", ["h", "bn.scale", "bn.bias", "bn.mean", "bn.var"], ["n"], "bn"),
        h.make_node("Gemm", ["n", "b.weight"], ["y"], "b", transB=1),
    ]
    weights = {
        "a.weight": weight(6, 4),
        "bn.scale": ones,
        "bn.bias": zeros,
        "bn.mean": zeros,
        "bn.var": ones,
        "b.weight": weight(3, 6),
    }
    return graph(nodes, [info("x", ["N", 4])], [info("y", ["N", 3])], weights)


def norm_in_branch():
    """BatchNormalization in both branches of an If."""

    def branch(name):
        node = h.make_node(
            "BatchNormalization", ["h", "bn.scale", "bn.bias", "bn.mean", "bn.var"], [name], name + ".bn"
        )
        return h.make_graph([node], name, [], [info(name, None)])

    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    nodes = [
        h.make_node("Gemm", ["x", "a.weight"], ["h"], "a", transB=1),
        h.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        h.make_node("Greater", ["total", "zero"], ["positive"]),
        h.make_node("If", ["positive"], ["y"], "if", then_branch=branch("then"), else_branch=branch("else")),
    ]
    weights = {
        "a.weight": weight(3, 4),
        "bn.scale": ones,
        "bn.bias": zeros,
        "bn.mean": zeros,
        "bn.var": ones,
        "zero": np.zeros((), np.float32),
    }
    return graph(nodes, [info("x", ["N", 4])], [info("y", ["N", 3])], weights)


def recurrent():
    """A recurrent layer over an open number of steps."""
    nodes = [
        h.make_node("RNN", ["x", "w", "r"], ["", "last"], "rnn", hidden_size=5),
        h.make_node("Squeeze", ["last", "zero"], ["flat"]),
        h.make_node("MatMul", ["flat", "head"], ["y"], "head"),
    ]
    weights = {"w": weight(1, 5, 2), "r": weight(1, 5, 5), "head": weight(5, 3), "zero": np.array([0])}
    return graph(nodes, [info("x", ["STEPS", "N", 2])], [info("y", ["N", 3])], weights)


def half():
    """A dense layer in float16."""
    nodes = [h.make_node("Gemm", ["x", "fc.weight"], ["y"], "fc", transB=1)]
    return graph(
        nodes,
        [info("x", ["N", 4], P.FLOAT16)],
        [info("y", ["N", 3], P.FLOAT16)],
        {"fc.weight": weight(3, 4).astype(np.float16)},
    )


def saturated():
    """A Sigmoid whose input is so large that every gradient is exactly 0."""
    nodes = [
        h.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["s"], "fc", transB=1),
        h.make_node("Sigmoid", ["s"], ["p"], "tail"),
    ]
    weights = {"fc.weight": weight(1, 4), "fc.bias": np.full(1, 500, np.float32)}
    return graph(nodes, [info("x", ["N", 4])], [info("p", ["N", 1])], weights)


def fixed_batch(rows):
    """A model that takes this many rows and no other number."""
    nodes = [
        h.make_node("Add", ["x", "offset"], ["moved"], "offset"),
        h.make_node("Gemm", ["moved", "fc.weight"], ["y"], "fc", transB=1),
    ]
    weights = {"offset": weight(rows, 4), "fc.weight": weight(3, 4)}
    return graph(nodes, [info("x", [rows, 4])], [info("y", [rows, 3])], weights)


def unknown_operator():
    nodes = [
        h.make_node("Gemm", ["x", "fc.weight"], ["s"], "fc", transB=1),
        h.make_node("Frobnicate", ["s"], ["y"], "frob", domain="com.example"),
    ]
    return graph(
        nodes,
        [info("x", ["N", 4])],
        [info("y", ["N", 3])],
        {"fc.weight": weight(3, 4)},
        imports=[h.make_opsetid("com.example", 1)],
    )


def round_only():
    """Every weight lies behind Round: nothing can be trained."""
    nodes = [
        h.make_node("Gemm", ["x", "fc.weight"], ["s"], "fc", transB=1),
        h.make_node("Round", ["s"], ["y"], "round"),
    ]
    return graph(nodes, [info("x", ["N", 4])], [info("y", ["N", 3])], {"fc.weight": weight(3, 4)})


def one_number():
    """The first output is one number for all rows."""
    nodes = [
        h.make_node("Gemm", ["x", "fc.weight"], ["s"], "fc", transB=1),
        h.make_node("ReduceMean", ["s"], ["y"], "mean", keepdims=0),
    ]
    return graph(nodes, [info("x", ["N", 4])], [info("y", [])], {"fc.weight": weight(3, 4)})


def slow_loop():
    """A million iterations of a little arithmetic."""
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), h.make_node("Sin", ["s"], ["s2"], "sin")],
        "body",
        [info("i", [], P.INT64), info("c", [], P.BOOL), info("s", ["N", 4])],
        [info("c2", [], P.BOOL), info("s2", ["N", 4])],
    )
    nodes = [h.make_node("Loop", ["m", "", "x"], ["y"], "loop", body=body)]
    return graph(nodes, [info("x", ["N", 4])], [info("y", ["N", 4])], {"m": np.array(9_000_000)})


def big_columns(d):
    x, y = np.load(d / "reg.npz")["x"], np.load(d / "reg.npz")["y"]
    lines = ["a,b,c,d,price"] + [f"{r[0] * 1e5:.3f},{r[1]:.3f},{r[2]:.3f},{r[3]:.3f},{t[0]:.3f}" for r, t in zip(x, y)]
    (d / "big.csv").write_text("\n".join(lines) + "\n")


def taken_port(d):
    """A port that is in use as long as the test process lives."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    s.listen()
    taken_port.sockets.append(s)
    (d / "port").write_text(str(s.getsockname()[1]))


taken_port.sockets = []


def regions():
    """RoiAlign without a sampling ratio behind a convolution."""
    nodes = [
        h.make_node("Conv", ["x", "conv.weight"], ["f"], "conv", kernel_shape=[1, 1]),
        h.make_node("RoiAlign", ["f", "rois", "which"], ["y"], "roi", output_height=2, output_width=2),
    ]
    weights = {"conv.weight": weight(2, 1, 1, 1), "rois": np.array([[0, 0, 6, 6]], np.float32), "which": np.array([0])}
    return graph(nodes, [info("x", [1, 1, 8, 8])], [info("y", [1, 2, 2, 2])], weights)
