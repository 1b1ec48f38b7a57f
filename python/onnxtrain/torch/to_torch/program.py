"""Nodes -> a flat program: one list of prepared calls over numbered slots.

Sizes and what follows from them are computed on the CPU wherever the model lies; what of it is read as data is moved
to the model's device. What follows from constants alone is computed once, here.
"""

import torch

from ...errors import ModelError
from ...graph import needed
from .ops.table import Unsupported, View, find

CPU = torch.device("cpu")
DEVICE = 0  # the slot that holds the device
_FOLD_LIMIT = 1 << 22  # elements: a larger result is made at run time


class Program:
    """run(values by name) -> outputs in order.

    nodes: in order; inputs: names given at run time; constants: {name: tensor} fixed for good. `tensors` holds the
    constants that the owner keeps on the right device.
    """

    def __init__(self, nodes, inputs, outputs, constants, problems=None):
        collected = [] if problems is None else problems
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.tensors, self.code, self.size = {}, [], 1
        self._slots, self._fixed, self._host, self._moved = {}, {}, set(), {}
        self._known = dict(constants)
        self._problems = collected
        for name in self.inputs:
            self._slot(name)
        for n in needed(nodes, self.outputs, self.inputs):
            self._add(n)
        self._result = [self._read(o) if o else None for o in self.outputs]
        self._release()
        self.fixed = list(self._fixed.items())
        self.constant_slots = {name: self._slots[name] for name in self.tensors}
        self.folded = [v for k, v in self._known.items() if k not in constants]
        del self._known, self._moved, self._host, self._fixed
        if problems is None:
            refuse(collected)

    # ---- compiling
    def _slot(self, name):
        if name not in self._slots:
            self._slots[name] = self.size
            self.size += 1
        return self._slots[name]

    def _fix(self, value):
        """A slot with a Python value that never changes."""
        self.size += 1
        self._fixed[self.size - 1] = value
        return self.size - 1

    def _read(self, name):
        """The slot of a value that is read as data on the model's device."""
        if name in self._host:
            if name not in self._moved:
                self._moved[name] = self.size
                self.size += 1
                self.code.append((_to_device, (self._slots[name], DEVICE), (self._moved[name],)))
            return self._moved[name]
        if name in self._known and name not in self.tensors:
            if self._known[name] is None:
                raise Unsupported(f"'{name}' has an element type that torch lacks")
            self.tensors[name] = self._known[name]
        if name not in self._slots and name not in self._known:
            raise Unsupported(f"'{name}' is made by nothing")
        return self._slot(name)

    def _read_host(self, name, as_list):
        """The slot of a value that is read on the CPU; as a Python list if wanted."""
        if name in self._known:
            value = self._known[name]
            if value is None:
                raise Unsupported(f"'{name}' has an element type that torch lacks")
            return self._fix(value.tolist() if as_list else value)
        slot = self._slots[name]
        if not as_list:
            return slot
        self.size += 1
        self.code.append((_to_list, (slot,), (self.size - 1,)))
        return self.size - 1

    def _add(self, n):
        try:
            entry = find(n.kind)
            if entry is None:
                where = f" of domain '{n.domain}'" if n.domain else ""
                raise Unsupported(f"there is no torch form of operator {n.op}{where}")
            view = View(n, self._known, self._sub)
            self._emit(n, view, entry, entry.build(view))
        except Unsupported as e:
            self._problems.append((n, str(e)))
            for o in n.outputs:
                if o:
                    self._slot(o)

    def _sub(self, graph):
        return Sub(graph, self._known, self._problems)

    def _emit(self, n, view, entry, run):
        names = [v for v in n.inputs if v]
        captures = view.captures
        placed = entry.device and not getattr(run, "on_host", False)  # makes its result on the device
        free = not captures and not entry.random and not placed
        if free and all(v in self._known for v in names):
            if self._fold(n, entry, run):
                return
        host = free and any(v in self._host for v in names) and all(v in self._host or v in self._known for v in names)
        ins = [DEVICE] if placed else []
        for k, v in enumerate(n.inputs):
            if not v:
                ins.append(self._fix(None))
            elif k in entry.host:
                ins.append(self._read_host(v, True))
            elif host:
                ins.append(self._read_host(v, False))
            else:
                ins.append(self._read(v))
        ins += [self._read(v) for v in captures]
        outs = tuple(self._slot(o) if o else None for o in n.outputs)
        if host or entry.on_host or getattr(run, "on_host", False):
            self._host.update(o for o in n.outputs if o)
        self.code.append((run, tuple(ins), outs))

    def _fold(self, n, entry, run):
        values = [None if not v else self._known[v] for v in n.inputs]
        if any(v is None and name for v, name in zip(values, n.inputs)):
            return False
        args = [v.tolist() if v is not None and k in entry.host else v for k, v in enumerate(values)]
        try:
            with torch.no_grad():
                got = run(*args)
        except Exception as e:  # noqa: BLE001 - whatever torch refuses is this node's fault
            raise Unsupported(f"torch cannot compute it: {e}") from e
        got = got if isinstance(got, tuple) else (got,)
        if any(not isinstance(g, torch.Tensor) or g.numel() > _FOLD_LIMIT for g in got):
            return False
        for o, g in zip(n.outputs, got):
            if o:
                self._known[o] = g
        return True

    def _release(self):
        """Slots are emptied after their last reader, so that memory is torch's to reuse."""
        last, keep = {}, {DEVICE, *(s for s in self._result if s is not None), *self._fixed}
        for at, (_, ins, outs) in enumerate(self.code):
            for s in (*ins, *(o for o in outs if o is not None)):
                last[s] = at
        dead = [[] for _ in self.code]
        for s, at in last.items():
            if s not in keep:
                dead[at].append(s)
        self.code = [(f, ins, outs, tuple(d)) for (f, ins, outs), d in zip(self.code, dead)]

    # ---- running
    def slot(self, name):
        """Where a value belongs, or None when nothing reads it."""
        return self._slots.get(name)

    def reads(self, name):
        slot = self._slots.get(name)
        return slot in self._result or any(slot in ins for _, ins, _, _ in self.code)

    def start(self, device):
        v = [None] * self.size
        v[DEVICE] = device
        for slot, value in self.fixed:
            v[slot] = value
        return v

    def finish(self, v):
        """Runs the program on filled slots."""
        for f, ins, outs, dead in self.code:
            y = f(*[v[i] for i in ins])
            if len(outs) == 1:
                v[outs[0]] = y[0] if type(y) is tuple else y
            else:
                for o, part in zip(outs, y):
                    if o is not None:
                        v[o] = part
            for d in dead:
                v[d] = None
        return [None if s is None else v[s] for s in self._result]

    def __call__(self, values, device=CPU):
        """values: {name: tensor} for every input; constants are taken as they are, on the CPU or moved."""
        v = self.start(device)
        for name, slot in self.constant_slots.items():
            t = self.tensors[name]
            v[slot] = t if t.device == device else t.to(device)
        for name in self.inputs:
            v[self._slots[name]] = values[name]
        return self.finish(v)

    def __deepcopy__(self, memo):
        return self


class Sub:
    """A subgraph of If, Loop, Scan, SequenceMap: its inputs, then what it captures."""

    def __init__(self, graph, known, problems):
        outer = [c for c in graph.captures() if c not in known]
        fixed = {c: known[c] for c in graph.captures() if c in known}
        self.arity = len(graph.inputs)
        self.input_names, self.captures = list(graph.inputs), outer
        self.program = Program(graph.nodes, graph.inputs + outer, graph.outputs, {**fixed, **graph.constants}, problems)

    def __call__(self, inputs, captured):
        p = self.program
        device = next(
            (t.device for t in (*inputs, *captured.values()) if isinstance(t, torch.Tensor) and t.device.type != "cpu"),
            torch.device("cpu"),
        )
        return p({**captured, **dict(zip(self.input_names, inputs))}, device)


def refuse(problems):
    """One error that names every node that cannot be carried over."""
    if not problems:
        return
    lines = list(dict.fromkeys(f"{n.label}, opset {n.version}: {why}" for n, why in problems))
    kinds = sorted({n.op for n, _ in problems})
    raise ModelError(
        f"this model cannot run in PyTorch: {len(lines)} node(s) of {', '.join(kinds)}\n  " + "\n  ".join(lines),
        "OT1711",
        "train it with onnxtrain, or replace these operators",
    )


def _to_device(x, device):
    return x.to(device) if isinstance(x, torch.Tensor) else x


def _to_list(x):
    return None if x is None else x.tolist()
