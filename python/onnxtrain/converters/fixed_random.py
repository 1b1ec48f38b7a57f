"""A file without randomness, for the self-check: dropout keeps everything, random numbers are a fixed one."""

import copy

import numpy as np

from .onnx_file import Graph, Node

MIDDLE = 0.5  # of a uniform number in [0, 1), and in deviations for a normal one


def without_randomness(nodes, place=MIDDLE):
    """New nodes in the place of these; bodies too. Whether there were random ones. place: of a uniform number in its
    range."""
    made, found = [], False
    for n in nodes:
        new = _fixed(n, place)
        found |= new is not None
        if new is None:
            new = [copy.copy(n)]
            for key, a in n.attrs.items():
                if isinstance(a, Graph):
                    body = copy.copy(a)
                    body.nodes, inner = without_randomness(a.nodes, place)
                    new[0].attrs = {**new[0].attrs, key: body}
                    found |= inner
        made += new
    return made, found


def _constant(value, name):
    return Node("Constant", [], [name], "", name, {"value": np.array(value, np.float32)})


def _fixed(n, place):
    out = n.outputs[0]
    if n.op == "Dropout" and len(n.inputs) > 2:
        off = copy.copy(n)
        off.inputs = [n.inputs[0], out + "/off", *n.inputs[2:]]
        return [_constant(0, out + "/off"), off]
    if n.op == "RandomUniformLike":
        low, high = n.attrs.get("low", 0.0), n.attrs.get("high", 1.0)
        value = low + (high - low) * place
    elif n.op == "RandomNormalLike":
        value = n.attrs.get("mean", 0.0) + MIDDLE * n.attrs.get("scale", 1.0)
    elif n.op == "Bernoulli":
        value = 1.0
    else:
        return None
    c, like, zero = out + "/c", out + "/like", out + "/zero"
    x = n.inputs[0]
    return [_constant(value, c), Node("CastLike", [c, x], [like]), Node("Sub", [x, x], [zero]),
            Node("Add", [zero, like], [out])]
