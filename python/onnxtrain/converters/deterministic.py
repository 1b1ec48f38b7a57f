"""The file as the self-check runs it: without randomness, gradients as outputs, parameters as inputs."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .protos import remove_dead

MIDDLE = 0.5  # what stands for a random number: uniform in [0, 1), and in deviations for a normal one


def deterministic(proto, gradients, bindings, parameters):
    """A copy of the file without randomness, with gradients as outputs of the step and only these `bindings`: the
    optimizer is checked for itself, and its state need not be in memory meanwhile. `parameters` are inputs, to be fed
    from the framework's memory: as constants they would be there again, packed for matrix multiplications and folded
    into one another."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    without_randomness(made)
    for t in made.training_info:
        dropped = {b.value for b in t.update_binding if b.key not in bindings}
        kept = [b for b in t.update_binding if b.key in bindings]
        infos = {v.name: v for v in t.algorithm.value_info}
        outputs = [o for o in t.algorithm.output if o.name not in dropped] + [infos[g] for g in gradients]
        reads = {o.name for o in outputs}
        nodes = remove_dead(t.algorithm.node, reads)
        tensors = [i for i in t.algorithm.initializer if i.name in reads or i.name in bindings]
        _replace(t.update_binding, kept)
        _replace(t.algorithm.output, outputs)
        _replace(t.algorithm.node, nodes)
        _replace(t.algorithm.initializer, tensors)
    fed = [i for i in made.graph.initializer if i.name in parameters]
    made.graph.input.extend(helper.make_tensor_value_info(i.name, i.data_type, i.dims) for i in fed)
    _replace(made.graph.initializer, [i for i in made.graph.initializer if i.name not in parameters])
    return made


def without_randomness(proto):
    """Dropout keeps everything, random numbers are the middle of their range, in place. Whether there were any."""
    found = False
    for graph in [proto.graph, *[t.algorithm for t in proto.training_info]]:
        nodes = [_fixed(n) for n in graph.node]
        found |= any(len(n) > 1 for n in nodes)
        del graph.node[:]
        graph.node.extend(m for n in nodes for m in n)
    return found


def _replace(field, items):
    items = [type(i).FromString(i.SerializeToString()) for i in items]
    del field[:]
    field.extend(items)


def _constant(value, name):
    array = numpy_helper.from_array(np.array(value, np.float32))
    return helper.make_node("Constant", [], [name], name=name, value=array)


def _fixed(n):
    """Nodes in the place of n."""
    op, out = n.op_type, n.output[0]
    if op == "Dropout" and len(n.input) > 2:
        off = onnx.NodeProto()
        off.CopyFrom(n)
        off.input[1] = out + "/off"
        return [_constant(0, out + "/off"), off]
    attrs = {a.name: a.f for a in n.attribute if a.type == onnx.AttributeProto.FLOAT}
    if op == "RandomUniformLike":
        value = (attrs.get("low", 0.0) + attrs.get("high", 1.0)) * MIDDLE
    elif op == "RandomNormalLike":
        value = attrs.get("mean", 0.0) + MIDDLE * attrs.get("scale", 1.0)
    elif op == "Bernoulli":
        value = 1.0
    else:
        return [n]
    c, like, zero = out + "/c", out + "/like", out + "/zero"
    return [_constant(value, c), helper.make_node("CastLike", [c, n.input[0]], [like]),
            helper.make_node("Sub", [n.input[0], n.input[0]], [zero]), helper.make_node("Add", [zero, like], [out])]
