"""Which node of the algorithm is the training-mode form of which node of the main graph.

Found by structure: the same operator over the same (or matched) inputs; BatchNormalization and Dropout may differ in
what makes them train. Names decide only between equals.
"""

import torch

from .to_file import Graph

_FREE = {"BatchNormalization": ("training_mode", "momentum", "is_test"),
         "Dropout": ("ratio", "seed", "is_test")}
_DATA_INPUTS = {"BatchNormalization": 3, "Dropout": 1}
_SMALL = 64


def find_twins(main, nodes, algorithm, source):
    """{value of main: value of the algorithm}, for nodes of the algorithm in order."""
    signature = _Signatures(main, algorithm, source)
    index = {}
    for n in main.nodes:
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
    def __init__(self, main, algorithm, source):
        state = {k for s in source.sections for k in s.update}
        self.constants = {}
        for g in (main, algorithm):
            for name, t in g.constants.items():
                if t is not None and t.numel() <= _SMALL and name not in state and not t.requires_grad:
                    self.constants[name] = (str(t.dtype), tuple(t.shape), tuple(t.reshape(-1).to(torch.float64).tolist())
                                            if not t.dtype.is_complex else name)

    def key(self, n, back):
        inputs = n.inputs[: _DATA_INPUTS.get(n.op, len(n.inputs))]
        named = tuple(self._of(v, back) for v in inputs)
        captured = tuple(self._of(c, back) for a in n.attrs.values() if isinstance(a, Graph) for c in a.captures())
        return n.domain, n.op, named, captured

    def _of(self, v, back):
        v = back.get(v, v)
        return self.constants.get(v, v) if "." not in v else v


def _same_settings(a, b):
    free = _FREE.get(a.op, ())
    for key in {*a.attrs, *b.attrs}:
        if key in free:
            continue
        x, y = a.attrs.get(key), b.attrs.get(key)
        if isinstance(x, Graph) and isinstance(y, Graph):
            if [n.op for n in x.nodes] != [n.op for n in y.nodes]:
                return False
        elif isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
            if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and torch.equal(x, y)):
                return False
        elif x != y:
            return False
    return True
