"""Recurrent layers: ONNX's LSTM, GRU and RNN where the layer is one of them, otherwise a Scan over the cell's own code.
Masks of any form, own cells and dropout inside a cell take the second way."""

import numpy as np

from ...shared import versions
from ..values import Traced
from .elementwise import broadcast

_PLAIN = {"LSTM": ("tanh", "sigmoid"), "GRU": ("tanh", "sigmoid"), "SimpleRNN": ("tanh", None)}


def is_plain(layer, training):
    """Whether ONNX's operator computes it."""
    kind = next((c.__name__ for c in type(layer).__mro__ if c.__name__ in _PLAIN), None)
    if kind is None:
        return False
    cell = layer.cell
    if training and (cell.dropout or cell.recurrent_dropout):
        return False
    activation, recurrent = _PLAIN[kind]
    names = (getattr(cell.activation, "__name__", ""), getattr(getattr(cell, "recurrent_activation", None), "__name__",
                                                                None))
    return names == (activation, recurrent)


def fused(t, layer, x, initial_state):
    kind = next(c.__name__ for c in type(layer).__mro__ if c.__name__ in _PLAIN)
    e, cell, u = t.e, layer.cell, layer.cell.units
    if layer.go_backwards:
        import keras

        x = keras.ops.flip(x, axis=1)
    x = t.physical(x, (1, 0, 2))
    states = [t.logical(t.value(s)) for s in versions.flatten(initial_state)] if initial_state is not None else []
    firsts = [e.op("Unsqueeze", s.onnx, e.ints([0])) for s in states]
    kernel, recurrent = (t.logical(t.value(w)) for w in (cell.kernel, cell.recurrent_kernel))
    w, r = (_gates(t, v.onnx, kind, u, 1) for v in (kernel, recurrent))
    bias = _bias(t, cell, kind, u)
    op, outputs = {"LSTM": ("LSTM", 3), "GRU": ("GRU", 2), "SimpleRNN": ("RNN", 2)}[kind]
    attrs = {"linear_before_reset": int(cell.reset_after)} if kind == "GRU" else {}
    inputs = [x.onnx, w, r, bias, None, *firsts]
    y, *finals = e.node(op, inputs, outputs, hidden_size=u, **attrs)
    batch, time = x.shape[0], x.shape[1]
    sequence = Traced(e.op("Squeeze", y, e.ints([1])), (batch, time, u), x.dtype, (1, 0, 2))
    finals = [Traced(e.op("Squeeze", f, e.ints([0])), (batch, u), x.dtype) for f in finals]
    out = sequence if layer.return_sequences else finals[0]
    return (out, *finals) if layer.return_state else out


def _gates(t, name, kind, u, axis):
    """[in, gates * u] as Keras has it -> [1, gates * u, in] in ONNX's order of gates."""
    turned = t.e.op("Transpose", name, perm=[1, 0])
    if kind == "LSTM":
        i, f, c, o = t.e.node("Split", [turned, t.e.ints([u] * 4)], 4, axis=0)
        turned = t.e.op("Concat", i, o, f, c, axis=0)
    return t.e.op("Unsqueeze", turned, t.e.ints([0]))


def _bias(t, cell, kind, u):
    if not cell.use_bias:
        return None
    e, b = t.e, t.value(cell.bias)
    zeros = e.const(np.zeros([b.shape[-1]], versions.numpy_dtype(b.dtype)))
    if kind == "GRU" and cell.reset_after:
        return e.op("Reshape", b.onnx, e.ints([1, 6 * u]))
    name = b.onnx
    if kind == "LSTM":
        i, f, c, o = e.node("Split", [name, e.ints([u] * 4)], 4, axis=0)
        name = e.op("Concat", i, o, f, c, axis=0)
    return e.op("Unsqueeze", e.op("Concat", name, zeros, axis=0), e.ints([0]))


def scan(t, step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
         input_length=None, time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    """The backend's rnn(): the cell's code once, as the body of a Scan. Time is axis 1, or 0 when time_major."""
    import keras

    if constants is not None or versions.flatten(inputs)[0] is not inputs:
        return t.refuse("a recurrent layer over several sequences, or with constants")
    axis = 0 if time_major else 1
    x = t.logical(t.value(inputs))
    mask = None if mask is None else t.logical(t.cast(t.value(mask), "bool"))
    if go_backwards:
        x = t.logical(keras.ops.flip(x, axis=axis))
        mask = None if mask is None else t.logical(keras.ops.flip(mask, axis=axis))
    states = [t.logical(t.value(s)) for s in versions.flatten(initial_states)]
    body = _Body(t, x, mask, states, axis)
    with body:
        output, new = step_function(body.x, versions.pack(initial_states, body.states))
        output, new = t.logical(t.value(output)), [t.logical(t.value(s)) for s in versions.flatten(new)]
        previous, body_output = None, output
        if mask is not None:
            previous = body.previous(output)
            keep = _spread(t, body.mask, output)
            other = t.zeros_like(output) if zero_output_for_mask else previous
            body_output = _choose(t, keep, output, other)
            new = [_choose(t, _spread(t, body.mask, s), n, s) for n, s in zip(new, body.states)]
        carried = ([body_output] if previous is not None else []) + new
        body.finish(carried, body_output)
    first = []
    if mask is not None:  # the output before the first step is 0
        first = [t.zeros([t.dim(x, 1 - axis) if x.shape[1 - axis] is None else x.shape[1 - axis],
                          *body_output.shape[1:]], body_output.dtype)]
    finals, sequence = body.emit(first + states, x, mask, body_output)
    finals = finals[len(first):]
    place = keras.ops.take(sequence, -1, axis=axis)
    last = place
    outputs = sequence if return_all_outputs else keras.ops.expand_dims(last, axis)
    return last, outputs, versions.pack(initial_states, finals)


def _spread(t, mask, like):
    """A mask of rows over the axes of a state."""
    name = t.e.op("Unsqueeze", mask.onnx, t.e.ints(range(mask.rank, like.rank))) if mask.rank < like.rank else mask.onnx
    return Traced(name, [*mask.shape, *[1] * (like.rank - mask.rank)], "bool")


def _choose(t, mask, yes, no):
    return broadcast(t, [mask, yes, no], lambda *v: t.e.op("Where", *v), yes.dtype, yes.shape)


class _Body:
    """Nodes that are written within go into the body of the Scan."""

    def __init__(self, t, x, mask, states, axis):
        self.t, self.axis = t, axis
        e = t.e
        without = [d for k, d in enumerate(x.shape) if k != axis]
        self.x = Traced(e.claim(e.hint + "_step"), without, x.dtype)
        self.mask = None if mask is None else Traced(e.claim(e.hint + "_mask"), [d for k, d in enumerate(mask.shape)
                                                                                if k != axis], "bool")
        self.states = [Traced(e.claim(f"{e.hint}_state_{k}"), s.shape, s.dtype) for k, s in enumerate(states)]
        self.before = None

    def __enter__(self):
        e = self.t.e
        self.outer, self.known = e.part, dict(e.known)
        e.part = self.nodes = []
        return self

    def __exit__(self, *_):
        self.t.e.part, self.t.e.known = self.outer, self.known

    def previous(self, output):
        self.before = Traced(self.t.e.claim(self.t.e.hint + "_before"), output.shape, output.dtype)
        return self.before

    def finish(self, carried, output):
        e, used = self.t.e, set()
        self.outputs = []
        for v in [*carried, output]:
            name = e.node("Identity", [v.onnx], named=[e.hint + "_out"])[0]
            used.add(name)
            self.outputs.append(v.like(name))

    def emit(self, first, x, mask, output):
        from ....converters.onnx_file import Graph, Info

        e = self.t.e
        carried = ([self.before] if self.before is not None else []) + self.states
        scanned = [self.x] + ([self.mask] if self.mask is not None else [])
        infos = [Info(v.onnx, v.dtype, list(v.shape)) for v in [*carried, *scanned]]
        outs = [Info(v.onnx, v.dtype, list(v.shape)) for v in self.outputs]
        body = Graph(e.hint + "_body", self.nodes, infos, outs)
        inputs = [v.onnx for v in first] + [x.onnx] + ([mask.onnx] if mask is not None else [])
        names = e.node("Scan", inputs, len(self.outputs), body=body, num_scan_inputs=len(scanned),
                       scan_input_axes=[self.axis] * len(scanned), scan_output_axes=[self.axis])
        finals = [Traced(n, v.shape, v.dtype) for n, v in zip(names, carried)]
        time, shape = x.shape[self.axis], list(output.shape)
        shape.insert(self.axis, time)
        return finals, Traced(names[-1], shape, output.dtype)
