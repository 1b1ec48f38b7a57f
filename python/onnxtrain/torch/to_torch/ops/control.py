"""If, Loop, Scan, and values that are sequences (lists) or optional (None)."""

import torch

from .table import Unsupported, op, simple


def _captured(n, values):
    return dict(zip(n.captures, values))


def _pick(sub, captured):
    return {c: captured[c] for c in sub.captures}


@op("If", random=True)
def branch(n):
    yes, no, count = n.subprogram("then_branch"), n.subprogram("else_branch"), len(n.node.inputs)

    def run(*args):
        captured = _captured(n, args[count:])
        sub = yes if bool(args[0]) else no
        return tuple(sub([], _pick(sub, captured)))

    return run


@op("Loop", random=True)
def loop(n):
    body, count = n.subprogram("body"), len(n.node.inputs)
    kept = count - 2

    def run(*args):
        limit, go, state = args[0], args[1], list(args[2:count])
        captured = _pick(body, _captured(n, args[count:]))
        scans, step = [[] for _ in range(len(n.node.outputs) - kept)], 0
        while (limit is None or step < int(limit)) and (go is None or bool(go)):
            go, *rest = body([torch.tensor(step), torch.tensor(True) if go is None else go, *state], captured)
            state = rest[:kept]
            for collected, value in zip(scans, rest[kept:]):
                collected.append(value)
            step += 1
        return (*state, *(torch.stack(s) if s else torch.zeros(0) for s in scans))

    return run


@op("Scan", random=True)
def scan(n):
    body, count, scanned = n.subprogram("body"), len(n.node.inputs), n.get("num_scan_inputs")
    if n.version < 9:
        raise Unsupported("Scan of opset 8 has a batch axis")
    kept = count - scanned
    results = len(n.node.outputs) - kept
    in_axes, out_axes = n.get("scan_input_axes") or [0] * scanned, n.get("scan_output_axes") or [0] * results
    in_back, out_back = (
        n.get("scan_input_directions") or [0] * scanned,
        n.get("scan_output_directions") or [0] * results,
    )

    def run(*args):
        state, xs = list(args[:kept]), args[kept:count]
        captured = _pick(body, _captured(n, args[count:]))
        scans, length = [[] for _ in range(results)], xs[0].shape[in_axes[0]]
        for t in range(length):
            parts = [x.select(a, length - 1 - t if back else t) for x, a, back in zip(xs, in_axes, in_back)]
            got = body([*state, *parts], captured)
            state = got[:kept]
            for collected, value in zip(scans, got[kept:]):
                collected.append(value)
        joined = [torch.stack(s[::-1] if back else s, a) for s, a, back in zip(scans, out_axes, out_back)]
        return (*state, *joined)

    return run


@op("SequenceMap", random=True)
def sequence_map(n):
    body, count = n.subprogram("body"), len(n.node.inputs)

    def run(*args):
        captured = _pick(body, _captured(n, args[count:]))
        out = [[] for _ in n.node.outputs]
        for k, x in enumerate(args[0]):
            rest = [a[k] if isinstance(a, list) else a for a in args[1:count]]
            for collected, value in zip(out, body([x, *rest], captured)):
                collected.append(value)
        return tuple(out)

    return run


def _insert(items, x, at=None):
    k = len(items) if at is None else int(at)
    k = k + len(items) if k < 0 else k
    return [*items[:k], x, *items[k:]]


def _erase(items, at=None):
    k = len(items) - 1 if at is None else int(at) % len(items)
    return [*items[:k], *items[k + 1:]]


simple({
    "SequenceConstruct": lambda *xs: list(xs), "SequenceAt": lambda items, at: items[int(at)],
    "SequenceLength": lambda items: torch.tensor(len(items), dtype=torch.int64), "SequenceInsert": _insert,
    "SequenceErase": _erase, "Optional": lambda x=None: x, "OptionalGetElement": lambda x: x,
    "OptionalHasElement": lambda x=None: torch.tensor(x is not None),
})


@op("SequenceEmpty", random=True)
def sequence_empty(n):
    return list


@op("ConcatFromSequence")
def concat_from_sequence(n):
    axis, new = n.get("axis"), n.get("new_axis", 0)
    return lambda items: torch.stack(items, axis) if new else torch.cat(items, axis)


@op("SplitToSequence", host=(1,))
def split_to_sequence(n):
    axis, keep = n.get("axis", 0), n.get("keepdims", 1)

    def run(x, sizes=None):
        if sizes is None:
            parts = list(torch.split(x, 1, axis))
            return parts if keep else [p.squeeze(axis) for p in parts]
        return list(torch.split(x, sizes, axis))

    return run
