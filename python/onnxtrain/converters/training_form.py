"""Which node of a training algorithm is the training form of which node of the main graph.

Found by structure: the same operator over the same (or matched) inputs; BatchNormalization and Dropout may differ in
what makes them train. Names decide only between equals.
"""

from ..graph import Graph

_FREE = {"BatchNormalization": ("training_mode", "momentum", "is_test"),
         "Dropout": ("ratio", "seed", "is_test")}
_DATA_INPUTS = {"BatchNormalization": 3, "Dropout": 1}


def find_training_forms(graphs, algorithm, nodes):
    """{value of the main graph: value of the algorithm}, for nodes of the algorithm in order."""
    signature = _Signatures(graphs, algorithm)
    index = {}
    for n in graphs.main.nodes:
        index.setdefault(signature.key(n, {}), []).append(n)
    back, used = {}, set()
    for n in nodes:
        found = [m for m in index.get(signature.key(n, back), []) if id(m) not in used and _same_settings(n, m)]
        if not found:
            continue
        named = [m for m in found if m.outputs[0] and n.outputs[0] == m.outputs[0] + "_train"]
        m = (named or found)[0]
        used.add(id(m))
        for mine, theirs in zip(n.outputs, m.outputs):
            if mine and theirs:
                back[mine] = theirs
    return {v: k for k, v in back.items()}


class _Signatures:
    """What a node computes: its operator, and its inputs by name or, for small constants, by content."""

    def __init__(self, graphs, algorithm):
        state = {k for s in graphs.sections for k in s.update}
        self.contents = {}
        for g in (graphs.main, algorithm):
            for name in g.constants:
                content = g.constants.content(name) if name not in state else None
                if content is not None:
                    self.contents[name] = content

    def key(self, n, back):
        inputs = n.inputs[: _DATA_INPUTS.get(n.op, len(n.inputs))]
        named = tuple(self._of(v, back) for v in inputs)
        captured = tuple(self._of(c, back) for a in n.attrs.values() if isinstance(a, Graph) for c in a.captures())
        return n.domain, n.op, named, captured

    def _of(self, v, back):
        v = back.get(v, v)
        return self.contents.get(v, v) if "." not in v else v


def _same_settings(a, b):
    free = _FREE.get(a.op, ())
    return all(_same(a.attrs.get(key), b.attrs.get(key)) for key in {*a.attrs, *b.attrs} if key not in free)


def _same(x, y):
    if isinstance(x, Graph) and isinstance(y, Graph):
        return [n.op for n in x.nodes] == [n.op for n in y.nodes]
    if hasattr(x, "shape") and hasattr(y, "shape"):  # tensors of any framework
        return x.shape == y.shape and x.dtype == y.dtype and bool((x == y).all())
    return not hasattr(x, "shape") and not hasattr(y, "shape") and x == y
