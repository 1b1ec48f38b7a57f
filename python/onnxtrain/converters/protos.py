"""Small operations on nodes of a file under construction (onnx.NodeProto): what they read, names, dead nodes."""

import onnx


def reads(node):
    """What a node reads, its bodies' captures included."""
    found = [i for i in node.input if i]
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            own = {v.name for v in a.g.input} | {o for n in a.g.node for o in n.output}
            found += [v for n in a.g.node for v in reads(n) if v not in own]
    return found


def remove_dead(nodes, wanted):
    """The nodes on which the names in `wanted` depend, in order; `wanted` grows by what they read."""
    keep = []
    for n in reversed(nodes):
        if any(o in wanted for o in n.output):
            keep.append(n)
            wanted.update(reads(n))
    return keep[::-1]


def rename(node, old, new):
    """In a node and in the bodies that it carries; in what a Gradient names too."""
    for values in (node.input, node.output):
        for i, v in enumerate(values):
            if v == old:
                values[i] = new
    for a in node.attribute:
        for n in a.g.node if a.type == onnx.AttributeProto.GRAPH else ():
            rename(n, old, new)
    if node.op_type == "Gradient":
        _rename_texts(node, old.encode(), new.encode())


def _rename_texts(node, old, new):
    for a in node.attribute:
        if a.s == old:
            a.s = new
        for i, v in enumerate(a.strings):
            if v == old:
                a.strings[i] = new
