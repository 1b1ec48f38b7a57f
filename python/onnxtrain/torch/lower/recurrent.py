"""LSTM, GRU and plain recurrent layers: one ONNX node per layer, weights reordered by nodes so that they keep their names."""

from .base import Unsupported, Value, lower
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


def _layer(c, kind, x, state, weights, biases, bidirectional, attrs):
    """weights: (w_ih, w_hh, b_ih, b_hh) per direction; x is [time, batch, features]."""
    stack = lambda parts: parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=0)  # noqa: E731
    w, r, b = [], [], []
    for d in weights:
        w.append(c.unsqueeze(_gates(c, d[0], kind), [0]))
        r.append(c.unsqueeze(_gates(c, d[1], kind), [0]))
        if biases:
            b.append(c.unsqueeze(c.op("Concat", _gates(c, d[2], kind), _gates(c, d[3], kind), axis=0), [0]))
    inputs = [x, stack(w), stack(r), stack(b) if b else None, None, *state]
    count = 3 if kind == "LSTM" else 2
    names = c.e.node(kind, inputs, outputs=count, direction="bidirectional" if bidirectional else "forward", **attrs)
    y, *last = [Value(n, x.dtype) for n in names]
    if bidirectional:  # [time, directions, batch, hidden] -> [time, batch, directions*hidden]
        y = c.op("Transpose", y, perm=[0, 2, 1, 3])
        y = c.op("Reshape", y, c.e.ints([0, 0, -1]))
    else:
        y = c.squeeze(y, [1])
    return y, last


def _run(c, a, kind, hidden_state, hidden, attrs):
    x = a.input
    directions = 2 if a.bidirectional else 1
    per = (4 if a.has_biases else 2) + (1 if _projected(a, directions) else 0)
    bare = len(x.shape) == 2
    if bare:
        x = c.unsqueeze(x, [0 if a.batch_first else 1])
        hidden_state = [c.unsqueeze(h, [1]) for h in hidden_state]
    if a.batch_first:
        x = c.op("Transpose", x, perm=[1, 0, 2])
    finals = [[] for _ in hidden_state]
    for layer in range(a.num_layers):
        weights = []
        for d in range(directions):
            at = (layer * directions + d) * per
            weights.append(a.params[at:at + per])
        first = layer * directions
        state = [c.slice(h, 0, first, first + directions) for h in hidden_state]
        x, last = _layer(c, kind, x, state, weights, a.has_biases, a.bidirectional, dict(attrs, hidden_size=hidden))
        for keep, v in zip(finals, last):
            keep.append(v)
        if a.dropout and a.train and layer < a.num_layers - 1:
            x = live_dropout(c, x, a.dropout)
    if a.batch_first:
        x = c.op("Transpose", x, perm=[1, 0, 2])
    ends = [f[0] if len(f) == 1 else c.op("Concat", *f, axis=0) for f in finals]
    if bare:
        x = c.squeeze(x, [0 if a.batch_first else 1])
        ends = [c.squeeze(v, [1]) for v in ends]
    return (x, *ends)


def _projected(a, directions):
    return False if a.params is None else len(a.params) == a.num_layers * directions * (5 if a.has_biases else 3)


@lower("aten.lstm")
def lstm(c, a):
    if a.batch_sizes is not None:
        raise Unsupported("packed sequences")
    if _projected(a, 2 if a.bidirectional else 1):
        raise Unsupported("LSTM with proj_size")
    hidden = int(a.hx[0].shape[-1])
    return _run(c, a, "LSTM", list(a.hx), hidden, {})


@lower("aten.gru")
def gru(c, a):
    return _run(c, a, "GRU", [a.hx], int(a.hx.shape[-1]), {"linear_before_reset": 1})


def _plain(activation):
    def f(c, a):
        n = 2 if a.bidirectional else 1
        return _run(c, a, "RNN", [a.hx], int(a.hx.shape[-1]), {"activations": [activation] * n})

    return f


lower("aten.rnn_tanh")(_plain("Tanh"))
lower("aten.rnn_relu")(_plain("Relu"))
