"""What exporters write in several nodes for want of an operator, put together again: a group normalization."""

from dataclasses import replace

from ...graph import reads

_GROUP_NORM = 18  # the version with one scale per group


def with_group_norms(nodes, graphs, outputs):
    """Reshape to [0, groups, -1], InstanceNormalization, Reshape back -> GroupNormalization: without a change of the
    shape the channels can stay where they are. outputs: names that must stay."""
    maker = {o: n for n in nodes for o in n.outputs if o}
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
        groups = _groups(before, graphs)
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


def _groups(reshape, graphs):
    shape = _constant(reshape.inputs[1], graphs) if len(reshape.inputs) > 1 else None
    shape = None if shape is None else shape.tolist()
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
