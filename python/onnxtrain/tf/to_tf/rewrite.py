"""What exporters write in several nodes for want of an operator, put together again: group normalizations, and parts of
a tensor that are taken out of a sequence. As one operator they leave the channels where they are."""

from dataclasses import replace
from itertools import accumulate

from ...graph import reads

_GROUP_NORM = 18  # the version with one scale per group
_SLICE = 1  # the version with attributes
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def put_together(nodes, graphs, outputs):
    """outputs: names that must stay."""
    return with_group_norms(without_sequences(nodes, graphs, outputs), graphs, outputs)


def without_sequences(nodes, graphs, outputs):
    """SplitToSequence, SequenceAt at a known place -> Slice, where nothing else reads the sequence."""
    readers, maker, made, gone = {}, _makers(nodes), {}, set()
    for n in nodes:
        for v in reads(n):
            readers.setdefault(v, []).append(n)
    for n in nodes:
        if n.kind != ("", "SplitToSequence") or n.outputs[0] in outputs:
            continue
        ends, users = _ends(n, maker, graphs), readers.get(n.outputs[0], [])
        if ends is None or not users:
            continue
        slices = {id(u): _part(u, n, ends, maker, graphs) for u in users}
        if None not in slices.values():
            made |= slices
            gone.add(id(n))
    return [made.get(id(n), n) for n in nodes if id(n) not in gone]


def _ends(n, maker, graphs):
    """Where each part ends, or None where that is not known."""
    if len(n.inputs) < 2 or not n.inputs[1]:
        return None
    sizes, scalar = _numbers(n.inputs[1], maker, graphs), _constant(n.inputs[1], graphs)
    if sizes is None or min(sizes, default=0) < 1:
        return None
    if scalar is None or scalar.ndim:
        return list(accumulate(sizes))
    known = _type(n.inputs[0], graphs)
    shape = None if known is None else known.shape
    length = shape[n.attrs.get("axis", 0)] if shape else None
    return [*range(sizes[0], length, sizes[0]), length] if isinstance(length, int) and length > 0 else None


def _part(reader, n, ends, maker, graphs):
    place = _numbers(reader.inputs[1], maker, graphs) if reader.kind == ("", "SequenceAt") else None
    if place is None or len(place) != 1 or not -len(ends) <= place[0] < len(ends):
        return None
    k = place[0] % len(ends)
    attrs = {"axes": [n.attrs.get("axis", 0)], "starts": [ends[k - 1] if k else 0], "ends": [ends[k]]}
    return replace(reader, op="Slice", version=_SLICE, inputs=[n.inputs[0]], attrs=attrs)


def _makers(nodes):
    return {o: n for n in nodes for o in n.outputs if o}


def _numbers(name, maker, graphs):
    """Whole numbers that follow from constants, as a list, or None."""
    known = _constant(name, graphs)
    if known is not None:
        return [int(v) for v in known.reshape(-1)] if known.dtype.kind in "iu" else None
    n = maker.get(name)
    if n is None or n.domain or n.op not in (*_SAME_NUMBERS, "Concat"):
        return None
    parts = [_numbers(v, maker, graphs) for v in (n.inputs if n.op == "Concat" else n.inputs[:1])]
    return None if None in parts else [v for p in parts for v in p]


def with_group_norms(nodes, graphs, outputs):
    """Reshape to [0, groups, -1], InstanceNormalization, Reshape back -> GroupNormalization: without a change of the
    shape the channels can stay where they are."""
    maker = _makers(nodes)
    readers = {}
    for n in nodes:
        for v in reads(n):
            readers.setdefault(v, []).append(n)
    made, gone = {}, set()
    for n in nodes:
        if n.kind != ("", "InstanceNormalization"):
            continue
        before, after = maker.get(n.inputs[0]), _only(readers, n.outputs[0], outputs)
        if before is None or after is None or before.kind != ("", "Reshape") or after.kind != ("", "Reshape"):
            continue
        groups = _groups(before, maker, graphs)
        if groups is None or _only(readers, before.outputs[0], outputs) is not n or after.inputs[0] != n.outputs[0]:
            continue
        x = before.inputs[0]
        if not _same_shape(x, after, maker, graphs):
            continue
        attrs = {"num_groups": groups, "epsilon": n.attrs.get("epsilon", 1e-5)}
        made[id(after)] = replace(n, op="GroupNormalization", version=_GROUP_NORM, inputs=[x, *n.inputs[1:]],
                                  outputs=list(after.outputs), attrs=attrs)
        gone |= {id(before), id(n)}
    return [made.get(id(n), n) for n in nodes if id(n) not in gone]


def _only(readers, name, outputs):
    found = readers.get(name, [])
    return found[0] if len(found) == 1 and name not in outputs else None


def _constant(name, graphs):
    for g in graphs:
        if name in g.constants:
            return g.constants[name]
    return None


def _type(name, graphs):
    return next((g.types[name] for g in graphs if name in g.types), None)


def _groups(reshape, maker, graphs):
    shape = _numbers(reshape.inputs[1], maker, graphs) if len(reshape.inputs) > 1 else None
    if shape is None or len(shape) != 3 or shape[2] != -1 or shape[1] < 1:
        return None
    known = _type(reshape.inputs[0], graphs)
    batch = shape[0] == 0 or known is not None and known.shape is not None and known.shape[0] == shape[0]
    return int(shape[1]) if batch and not reshape.attrs.get("allowzero") else None


def _same_shape(x, after, maker, graphs):
    """Whether the second Reshape gives the shape of x again."""
    shape = maker.get(after.inputs[1]) if len(after.inputs) > 1 else None
    if shape is not None and shape.kind == ("", "Shape") and shape.inputs[0] == x and not shape.attrs:
        return True
    types = [_type(v, graphs) for v in (x, after.outputs[0])]
    return None not in types and types[0].shape is not None and None not in types[0].shape \
        and types[0].shape == types[1].shape
