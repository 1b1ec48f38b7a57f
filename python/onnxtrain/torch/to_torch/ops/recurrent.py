"""LSTM, GRU, RNN: torch's own layers where the settings are torch's, a loop over time otherwise."""

import torch
from torch import _VF

from ....converters.recurrent import ACTIVATIONS, RecurrentSettings
from .table import Unsupported, op

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ORDER = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}  # torch's gates in ONNX's rows (iofc, zrh)


def _activation(name, alpha, beta):
    f = {
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": torch.relu,
        "softsign": torch.nn.functional.softsign,
        "softplus": torch.nn.functional.softplus,
        "leakyrelu": lambda x: torch.nn.functional.leaky_relu(x, alpha),
        "elu": lambda x: torch.nn.functional.elu(x, alpha),
        "affine": lambda x: alpha * x + beta,
        "thresholdedrelu": lambda x: torch.nn.functional.threshold(x, alpha, 0.0),
        "scaledtanh": lambda x: alpha * torch.tanh(beta * x),
        "hardsigmoid": lambda x: torch.clamp(alpha * x + beta, 0, 1),
    }.get(name)
    if f is None:
        raise Unsupported(f"there is no activation '{name}'")
    return f


def _is_native(s, lengths, peepholes):
    """Whether torch's own layers compute what the node says."""
    want = ACTIVATIONS[s.kind] * s.directions
    if s.kind == "RNN" and set(s.names) == {"relu"}:
        want = s.names
    return (
        s.names == want
        and lengths is None
        and peepholes is None
        and s.clip is None
        and not s.input_forget
        and (s.kind != "GRU" or s.before_reset)
    )


def torch_rows(t, kind, hidden):
    """Gates in ONNX's order -> in torch's."""
    parts = t.split(hidden, 0)
    return torch.cat([parts[k] for k in _ORDER[kind]], 0) if len(parts) > 1 else t


@op("LSTM", "GRU", "RNN")
def recurrent(n):
    s = RecurrentSettings(n, _activation)

    def run(x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None):
        if s.batch_first:
            x = x.transpose(0, 1)
            h, c = (None if v is None else v.transpose(0, 1) for v in (h, c))
        shape = (s.directions, x.shape[1], s.hidden)
        h = x.new_zeros(shape) if h is None else h
        c = x.new_zeros(shape) if c is None and s.kind == "LSTM" else c
        whole = lengths is None or bool((lengths == x.shape[0]).all())
        if _is_native(s, None if whole else lengths, peepholes):
            y, h, c = _native(s, x, w, r, b, h, c)
        else:
            y, h, c = _loop(s, x, w, r, b, None if whole else lengths, h, c, peepholes)
        if s.batch_first:
            y, h = y.permute(2, 0, 1, 3), h.transpose(0, 1)
            c = None if c is None else c.transpose(0, 1)
        return (y, h, c) if s.kind == "LSTM" else (y, h)

    return run


def _native(s, x, w, r, b, h, c):
    """torch's kernels; [time, batch, directions * hidden] -> ONNX's [time, directions, batch, hidden]."""
    reverse = s.direction == "reverse"
    x = x.flip(0) if reverse else x
    weights = []
    for d in range(s.directions):
        weights += [torch_rows(w[d], s.kind, s.hidden), torch_rows(r[d], s.kind, s.hidden)]
        if b is not None:
            half = b[d].shape[0] // 2
            weights += [torch_rows(b[d][:half], s.kind, s.hidden), torch_rows(b[d][half:], s.kind, s.hidden)]
    common = (weights, b is not None, 1, 0.0, torch.is_grad_enabled(), s.directions == 2, False)
    if s.kind == "LSTM":
        y, h, c = _VF.lstm(x, (h, c), *common)
    elif s.kind == "GRU":
        y, h = _VF.gru(x, h, *common)
    else:
        y, h = (_VF.rnn_relu if s.names[0] == "relu" else _VF.rnn_tanh)(x, h, *common)
    y = y.reshape(*y.shape[:2], s.directions, s.hidden).transpose(1, 2)
    return (y.flip(0) if reverse else y), h, c


def _loop(s, x, w, r, b, lengths, h, c, peepholes):
    ys, hs, cs = [], [], []
    for d, part in enumerate(s.parts(w, r, b, peepholes)):
        cell = _Cell(s, part)
        hd, cd, steps = h[d], None if c is None else c[d], []
        order = range(x.shape[0] - 1, -1, -1) if part.backward else range(x.shape[0])
        for t in order:
            h1, c1 = cell(x[t], hd, cd)
            if lengths is not None:  # a sequence that has ended keeps its state and gives zeros
                on = (t < lengths).unsqueeze(1).to(x.device)
                steps.append(torch.where(on, h1, torch.zeros_like(h1)))
                hd, cd = torch.where(on, h1, hd), None if cd is None else torch.where(on, c1, cd)
            else:
                hd, cd = h1, c1
                steps.append(h1)
        ys.append(torch.stack(steps[::-1] if part.backward else steps))
        hs.append(hd)
        cs.append(cd)
    return torch.stack(ys, 1), torch.stack(hs), None if c is None else torch.stack(cs)


class _Cell:
    def __init__(self, s, part):
        self.s, self.f, self.w, self.r, self.p = s, part.functions, part.w, part.r, part.peepholes
        half = _GATES[s.kind] * s.hidden
        self.bw, self.br = (None, None) if part.b is None else (part.b[:half], part.b[half:])

    def __call__(self, x, h, c):
        return getattr(self, self.s.kind)(x, h, c)

    def _limit(self, x):
        return x if self.s.clip is None else torch.clamp(x, -self.s.clip, self.s.clip)

    def _linear(self, x, h):
        return torch.nn.functional.linear(x, self.w, self.bw) + torch.nn.functional.linear(h, self.r, self.br)

    def RNN(self, x, h, c):
        return self.f[0](self._limit(self._linear(x, h))), c

    def LSTM(self, x, h, c):
        i, o, f, g = self._linear(x, h).chunk(4, 1)
        pi, po, pf = (0, 0, 0) if self.p is None else (q * c for q in self.p.chunk(3))
        i = self.f[0](self._limit(i + pi))
        f = 1 - i if self.s.input_forget else self.f[0](self._limit(f + pf))
        c1 = f * c + i * self.f[1](self._limit(g))
        if self.p is not None:
            po = self.p.chunk(3)[1] * c1
        return self.f[0](self._limit(o + po)) * self.f[2](c1), c1

    def GRU(self, x, h, c):
        linear, k = torch.nn.functional.linear, 2 * self.s.hidden
        gx = linear(x, self.w, self.bw)
        gh = linear(h, self.r[:k], None if self.br is None else self.br[:k])
        z, r = self.f[0](self._limit(gx[:, :k] + gh)).chunk(2, 1)
        bias = None if self.br is None else self.br[k:]
        if self.s.before_reset:
            inner = r * linear(h, self.r[k:], bias)
        else:
            inner = linear(r * h, self.r[k:], bias)
        return (1 - z) * self.f[1](self._limit(gx[:, k:] + inner)) + z * h, c
