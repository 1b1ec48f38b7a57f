"""LSTM, GRU, RNN: a loop over time."""

import tensorflow as tf

from ....converters.recurrent import RecurrentSettings
from .table import Unsupported, dims, op


def _activation(name, alpha, beta):
    f = {
        "sigmoid": tf.sigmoid, "tanh": tf.tanh, "relu": tf.nn.relu, "softsign": tf.nn.softsign,
        "softplus": tf.nn.softplus,
        "leakyrelu": lambda x: tf.where(x > 0, x, alpha * x),
        "elu": lambda x: tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0))),
        "affine": lambda x: alpha * x + beta,
        "thresholdedrelu": lambda x: tf.where(x > alpha, x, tf.zeros_like(x)),
        "scaledtanh": lambda x: alpha * tf.tanh(beta * x),
        "hardsigmoid": lambda x: tf.clip_by_value(alpha * x + beta, 0, 1),
    }.get(name)
    if f is None:
        raise Unsupported(f"there is no activation '{name}'")
    return f


@op("LSTM", "GRU", "RNN")
def recurrent(n, x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None):
    s = RecurrentSettings(n, _activation)
    if s.batch_first:
        x = tf.transpose(x, [1, 0, 2])
        h, c = (None if v is None else tf.transpose(v, [1, 0, 2]) for v in (h, c))
    batch = dims(x)[1]
    zeros = tf.zeros([batch, s.hidden], x.dtype)
    ys, hs, cs = [], [], []
    for d, part in enumerate(s.parts(w, r, b, peepholes)):
        start = (zeros if h is None else h[d], zeros if c is None else c[d])
        y, hd, cd = _over_time(_Cell(s, part), x, lengths, *start, part.backward)
        ys.append(y)
        hs.append(hd)
        cs.append(cd)
    y, h, c = tf.stack(ys, 1), tf.stack(hs), tf.stack(cs)
    if s.batch_first:
        y, h, c = tf.transpose(y, [2, 0, 1, 3]), tf.transpose(h, [1, 0, 2]), tf.transpose(c, [1, 0, 2])
    return (y, h, c) if s.kind == "LSTM" else (y, h)


def _over_time(cell, x, lengths, h, c, backward):
    """(all outputs [time, batch, hidden], last h, last c)."""
    steps = tf.shape(x)[0]
    inputs = tf.TensorArray(x.dtype, steps).unstack(cell.inputs(x))
    outputs = tf.TensorArray(x.dtype, steps)

    def body(k, h, c, outputs):
        t = steps - 1 - k if backward else k
        h1, c1 = cell(inputs.read(t), h, c)
        if lengths is None:
            return k + 1, h1, c1, outputs.write(t, h1)
        on = (t < tf.cast(lengths, tf.int32))[:, None]  # a sequence that has ended keeps its state and gives zeros
        outputs = outputs.write(t, tf.where(on, h1, tf.zeros_like(h1)))
        return k + 1, tf.where(on, h1, h), tf.where(on, c1, c), outputs

    loose = tf.TensorShape([None, h.shape[1]])
    shapes = (tf.TensorShape([]), loose, loose, tf.TensorShape(None))
    start = (0, h, c, outputs)
    _, last, carried, outputs = tf.while_loop(lambda k, *_: k < steps, body, start, shape_invariants=shapes)
    y = outputs.stack()
    y.set_shape([x.shape[0], x.shape[1], h.shape[1]])
    last.set_shape([x.shape[1], h.shape[1]])
    carried.set_shape([x.shape[1], h.shape[1]])
    return y, last, carried


class _Cell:
    """One step; the product of the inputs with their weight is computed for all of time at once."""

    def __init__(self, s, part):
        self.s, self.f, self.w, self.r = s, part.functions, part.w, part.r
        rows = part.w.shape[0]
        self.wb, self.rb = (None, None) if part.b is None else (part.b[:rows], part.b[rows:])
        self.p = None if part.peepholes is None else tf.split(part.peepholes, 3)

    def inputs(self, x):
        steps, batch, features = dims(x)
        flat = tf.matmul(tf.reshape(x, [-1, features]), self.w, transpose_b=True)
        flat = flat if self.wb is None else flat + self.wb
        return tf.reshape(flat, [steps, batch, self.w.shape[0]])

    def _clip(self, v):
        return v if self.s.clip is None else tf.clip_by_value(v, -self.s.clip, self.s.clip)

    def _recurrent(self, h, part=None):
        r, b = (self.r, self.rb) if part is None else (self.r[part], None if self.rb is None else self.rb[part])
        y = tf.matmul(h, r, transpose_b=True)
        return y if b is None else y + b

    def __call__(self, x, h, c):
        return {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.s.kind](x, h, c)

    def _rnn(self, x, h, c):
        return self.f[0](self._clip(x + self._recurrent(h))), c

    def _lstm(self, x, h, c):
        f, g, hh = self.f
        i, o, forget, cell = tf.split(x + self._recurrent(h), 4, -1)
        if self.p is not None:
            i, forget = i + self.p[0] * c, forget + self.p[2] * c
        i = f(self._clip(i))
        forget = 1 - i if self.s.input_forget else f(self._clip(forget))
        c1 = forget * c + i * g(self._clip(cell))
        o = o if self.p is None else o + self.p[1] * c1
        return f(self._clip(o)) * hh(c1), c1

    def _gru(self, x, h, c):
        f, g = self.f
        size = self.s.hidden
        zr = x[:, :2 * size] + self._recurrent(h, slice(0, 2 * size))
        z, r = tf.split(f(self._clip(zr)), 2, -1)
        if self.s.before_reset:
            inner = x[:, 2 * size:] + r * self._recurrent(h, slice(2 * size, None))
        else:
            inner = x[:, 2 * size:] + self._recurrent(r * h, slice(2 * size, None))
        return (1 - z) * g(self._clip(inner)) + z * h, c
