"""LSTM, GRU and plain recurrent layers: one ONNX node per layer, weights reordered by nodes so that they keep their
names; an LSTM with a projection, which ONNX's does not have, as a Scan."""

import torch
from onnx import helper

from .base import TO_ONNX, Unsupported, Value, lower
from .create import live_dropout

# position of ONNX's gates among PyTorch's
_ORDER = {"LSTM": (4, [0, 3, 1, 2]), "GRU": (3, [1, 0, 2]), "RNN": (1, [0])}


def _gates(c, w, kind):
    """[gates*H, ...] in ONNX's order."""
    n, order = _ORDER[kind]
    if n == 1:
        return w
    parts = c.node_n("Split", [w], n, axis=0, num_outputs=n)
    return c.op("Concat", *[parts[k] for k in order], axis=0)


class Layer:
    """What all layers of one call share: the kind of node, its attributes, and the lengths of sequences if they
    differ."""

    def __init__(self, c, kind, biases, bidirectional, lengths=None, steps=None, **attrs):
        self.c, self.kind, self.biases, self.bidirectional, self.attrs = c, kind, biases, bidirectional, attrs
        self.lengths, self.steps = lengths, steps

    def __call__(self, x, state, weights):
        """weights: (w_ih, w_hh, b_ih, b_hh, w_hr) per direction; x is [time, batch, features] -> [time, batch,
        directions*hidden], [last states]."""
        projected = len(weights[0]) % 2 == 1
        return self._scans(x, state, weights) if projected else self._node(x, state, weights)

    def _stack(self, parts, axis=0):
        return parts[0] if len(parts) == 1 else self.c.op("Concat", *parts, axis=axis)

    def _node(self, x, state, weights):
        c, kind = self.c, self.kind
        w, r, b = [], [], []
        for d in weights:
            w.append(c.unsqueeze(_gates(c, d[0], kind), [0]))
            r.append(c.unsqueeze(_gates(c, d[1], kind), [0]))
            if self.biases:
                b.append(c.unsqueeze(c.op("Concat", _gates(c, d[2], kind), _gates(c, d[3], kind), axis=0), [0]))
        lengths = c.tensor(self.lengths, torch.int32) if self.lengths is not None else None
        inputs = [x, self._stack(w), self._stack(r), self._stack(b) if b else None, lengths, *state]
        names = c.e.node(
            kind,
            inputs,
            outputs=3 if kind == "LSTM" else 2,
            direction="bidirectional" if self.bidirectional else "forward",
            hidden_size=int(weights[0][1].shape[-1]),
            **self.attrs,
        )
        y, *last = [Value(n, x.dtype) for n in names]
        if self.bidirectional:  # [time, directions, batch, hidden] -> [time, batch, directions*hidden]
            y = c.op("Transpose", y, perm=[0, 2, 1, 3])
            y = c.op("Reshape", y, c.e.ints([0, 0, -1]))
        else:
            y = c.squeeze(y, [1])
        return y, last

    def _scans(self, x, state, weights):
        """A Scan per direction; its last states as [directions, batch, size]."""
        c, results, ends = self.c, [], []
        for d, (w, r, *rest) in enumerate(weights):
            own = [c.squeeze(c.slice(s, 0, d, d + 1), [0]) for s in state]
            scanned = c.op("MatMul", x, c.transpose(w, [1, 0]))
            for b in rest[:-1]:
                scanned = c.op("Add", scanned, b)
            h, cell, y = self._scan(
                scanned, own, c.transpose(r, [1, 0]), c.transpose(rest[-1], [1, 0]), int(rest[-1].shape[1]), d
            )
            results.append(y)
            ends.append([c.unsqueeze(v, [0]) for v in (h, cell)])
        return self._stack(results, 2), [self._stack(list(e)) for e in zip(*ends)]

    def _scan(self, scanned, state, r, hr, hidden, backward):
        e, dtype = self.c.e, scanned.dtype
        nodes = []

        def op(kind, *inputs, outputs=1, **attrs):
            made = [e.claim(f"{e.hint}_body") for _ in range(outputs)]
            nodes.append(helper.make_node(kind, list(inputs), made, name=made[0] + "_node", **attrs))
            return made[0] if outputs == 1 else made

        h, cell, row, live = (e.claim(f"{e.hint}_{n}") for n in ("h", "c", "row", "live"))
        i, f, g, o = op("Split", op("Add", row, op("MatMul", h, r.name)), outputs=4, axis=1, num_outputs=4)
        i, f, g, o = op("Sigmoid", i), op("Sigmoid", f), op("Tanh", g), op("Sigmoid", o)
        new_cell = op("Add", op("Mul", f, cell), op("Mul", i, g))
        y = new = op("MatMul", op("Mul", o, op("Tanh", new_cell)), hr.name)
        given = [(h, dtype, int(hr.shape[1])), (cell, dtype, hidden), (row, dtype, 4 * hidden)]
        sequences = [scanned]
        if self.lengths is not None:  # past its end a sequence keeps its state and gives nothing
            given.append((live, torch.bool, 1))
            sequences.append(alive(self.c, self.lengths, self.steps, 1))
            y = op("Where", live, new, op("Sub", new, new))
            new, new_cell = op("Where", live, new, h), op("Where", live, new_cell, cell)
        else:
            y = op("Identity", new)
        infos = [helper.make_tensor_value_info(n, TO_ONNX[t], [None, size]) for n, t, size in given]
        outs = [
            helper.make_tensor_value_info(n, TO_ONNX[dtype], [None, size])
            for n, size in ((new, given[0][2]), (new_cell, hidden), (y, given[0][2]))
        ]
        body = helper.make_graph(nodes, e.hint + "_body", infos, outs)
        names = e.node("Scan", [*state, *sequences], outputs=3, body=body, num_scan_inputs=len(sequences),
                       scan_input_directions=[backward] * len(sequences), scan_output_directions=[backward])
        return [Value(n, dtype) for n in names]


def alive(c, lengths, steps, more):
    """[steps, batch, 1, ...]: whether a row is not padding."""
    at = (
        c.e.const(torch.arange(steps))
        if isinstance(steps, int)
        else c.op("Range", c.tensor(0, torch.int64), steps, c.tensor(1, torch.int64))
    )
    rows = c.unsqueeze(at, [1])
    mask = c.op("Less", rows, c.unsqueeze(c.tensor(lengths, torch.int64), [0]))
    return c.unsqueeze(mask, [2 + k for k in range(more)]) if more else mask


def _layers(c, a, layer, x, hidden_state):
    """All layers over [time, batch, features]."""
    directions = 2 if a.bidirectional else 1
    per = len(a.params) // (a.num_layers * directions)
    finals = [[] for _ in hidden_state]
    for k in range(a.num_layers):
        first = k * directions
        weights = [a.params[(first + d) * per:(first + d + 1) * per] for d in range(directions)]
        state = [c.slice(h, 0, first, first + directions) for h in hidden_state]
        x, last = layer(x, state, weights)
        for keep, v in zip(finals, last):
            keep.append(v)
        if a.dropout and a.train and k < a.num_layers - 1:
            x = live_dropout(c, x, a.dropout)
    return x, [f[0] if len(f) == 1 else c.op("Concat", *f, axis=0) for f in finals]


def _run(c, a, layer, hidden_state):
    x = a.input
    bare = len(x.shape) == 2
    if bare:
        x = c.unsqueeze(x, [0 if a.batch_first else 1])
        hidden_state = [c.unsqueeze(h, [1]) for h in hidden_state]
    if a.batch_first:
        x = c.op("Transpose", x, perm=[1, 0, 2])
    x, ends = _layers(c, a, layer, x, hidden_state)
    if a.batch_first:
        x = c.op("Transpose", x, perm=[1, 0, 2])
    if bare:
        x = c.squeeze(x, [0 if a.batch_first else 1])
        ends = [c.squeeze(v, [1]) for v in ends]
    return (x, *ends)


def _kind(name, bidirectional):
    """(ONNX's operator, its attributes)."""
    if name == "LSTM":
        return "LSTM", {}
    if name == "GRU":
        return "GRU", {"linear_before_reset": 1}
    return "RNN", {"activations": [name] * (2 if bidirectional else 1)}


def _padded(name):
    def f(c, a):
        if a.batch_sizes is not None or a.data is not None:
            raise Unsupported("packed sequences")
        kind, attrs = _kind(name, a.bidirectional)
        return _run(
            c, a, Layer(c, kind, a.has_biases, a.bidirectional, **attrs), list(a.hx) if name == "LSTM" else [a.hx]
        )

    return f


for _aten, _name in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn_tanh", "Tanh"), ("rnn_relu", "Relu")):
    lower(f"aten.{_aten}")(_padded(_name))


# ---- packed sequences: rows of all steps, [time * batch, ...] (../packed.py)
@lower("onnxtrain.packed_rows")
def packed_rows(c, a):
    return a.rows


def _by_step(c, rows, steps):
    return c.reshape(rows, [steps, -1, *[int(s) for s in rows.shape[1:]]])


@lower("onnxtrain.packed_layer")
def packed_layer(c, a):
    kind, attrs = _kind(a.kind, a.bidirectional)
    layer = Layer(c, kind, a.has_biases, a.bidirectional, a.lengths, a.steps, **attrs)
    x, ends = _layers(c, a, layer, _by_step(c, a.input, a.steps), list(a.hx))
    return (c.reshape(x, [-1, int(c.vals[0].shape[1])]), *ends)


@lower("onnxtrain.padded_rows")
def padded_rows(c, a):
    rest = len(a.rows.shape) - 1
    y = _by_step(c, a.rows, a.steps)
    fill = c.tensor(a.padding_value, a.rows.dtype)
    y = c.where(alive(c, a.lengths, a.steps, rest), y, fill)
    if a.total is None:  # as long as the longest
        y = c.slice(y, 0, 0, c.reduce("Max", c.tensor(a.lengths, torch.int64)))
    elif not _same(a.total, a.steps):
        more = c.op("Sub", c.tensor(a.total, torch.int64), c.tensor(a.steps, torch.int64))
        y = c.op("Pad", y, c.ints([0] * (rest + 2) + [more] + [0] * (rest + 1)), fill)
    return c.op("Transpose", y, perm=[1, 0, *range(2, rest + 2)]) if a.batch_first else y


def _same(a, b):
    return a == b if isinstance(a, int) and isinstance(b, int) else getattr(a, "name", 0) == getattr(b, "name", 1)
