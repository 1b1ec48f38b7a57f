"""BatchNormalization in training form whose statistics are bound by PyTorch's rule becomes torch's own batch_norm.

The rule is not looked for by its form: what the file assigns is computed on probe values and compared with what
torch would assign.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F

from ...errors import Error
from ...graph import needed, reads
from .ops.table import TORCH, op
from .program import Program


@op("BatchNorm", domain=TORCH, random=True)
def native(n):
    eps, momentum = n.get("epsilon", 1e-5), 1 - n.get("momentum", 0.9)
    momentum = float(f"{momentum:.7g}")  # 1 - 0.9 of float32 is torch's 0.1
    return lambda x, scale, bias, mean, var: F.batch_norm(x, mean, var, scale, bias, True, momentum, eps)


def use_native(parts, buffers, constants):
    """TrainingParts with torch's function in the place of such nodes, without the assignments that it makes itself.

    buffers: {name: tensor} of the module; constants: {name: tensor} of the file.
    """
    readers = {}
    for n in parts.nodes:
        for v in reads(n):
            readers.setdefault(v, []).append(n)
    for k, n in enumerate(parts.nodes):
        if n.kind != ("", "BatchNormalization") or len(n.inputs) < 5 or len(n.outputs) < 3:
            continue
        mean, var = n.inputs[3], n.inputs[4]
        if mean not in buffers or var not in buffers or not {mean, var} <= set(parts.forward_update):
            continue
        if not _torchs_rule(parts, n, buffers, constants) or _read_elsewhere(parts, n, readers):
            continue
        ours = replace(n, op="BatchNorm", domain=TORCH, inputs=n.inputs[:5], outputs=n.outputs[:1],
                       attrs={a: n.attrs[a] for a in ("epsilon", "momentum") if a in n.attrs})
        parts = replace(parts, nodes=[*parts.nodes[:k], ours, *parts.nodes[k + 1:]],
                        forward_update={v: new for v, new in parts.forward_update.items() if v not in (mean, var)})
    return parts


def _torchs_rule(parts, n, buffers, constants):
    x, scale, mean, var = n.inputs[0], n.inputs[1], n.inputs[3], n.inputs[4]
    old_mean = buffers[mean]
    given = [v for v in (n.outputs[1], n.outputs[2], x, scale, mean, var) if v]
    m = float(n.attrs.get("momentum", 0.9))
    others = [k for k in parts.nodes if k is not n]
    try:
        probe = Program(others, given, [parts.forward_update[mean], parts.forward_update[var]],
                        {k: v for k, v in constants.items() if k not in given})
    except Error:
        return False
    for count in (5, 2):
        size, g = old_mean.numel(), torch.Generator().manual_seed(count)
        om, ov, bm, bv = (torch.rand(size, generator=g, dtype=torch.float64).to(old_mean.dtype) + 0.5 for _ in range(4))
        values = dict(zip((n.outputs[1], n.outputs[2]), (m * om + (1 - m) * bm, m * ov + (1 - m) * bv)))
        values.update({x: torch.zeros(count, size), scale: torch.ones(size), mean: om, var: ov})
        try:
            got = probe(values)
        except Exception:  # noqa: BLE001 - the rule reads what the probe does not give: not torch's
            return False
        want = m * om + (1 - m) * bm, m * ov + (1 - m) * bv * count / (count - 1)
        if not all(torch.allclose(a.reshape(-1), b, rtol=1e-5, atol=1e-6) for a, b in zip(got, want)):
            return False
    return True


def _read_elsewhere(parts, n, readers):
    """Is a statistic read by anything that the outputs, the loss or other assignments need?"""
    others = [v for k, v in parts.forward_update.items() if k not in n.inputs[3:5]]
    live = {id(m) for m in needed(parts.nodes, [w for w in (*parts.outputs, *parts.loss.reads, *others) if w])}
    return any(id(m) in live - {id(n)} for v in n.inputs[3:5] for m in readers.get(v, []))
