"""Packed sequences while tracing: the rows of all time steps, padding included, with the lengths beside them.

torch packs the rows that are not padding: how many depends on values. Here `PackedSequence.data` is [time * batch, ...]
and the recurrent layer, which the file runs with its lengths, passes over the padding; so does padding again. What else
reads the rows would see the padding and is refused, unless it works on every row for itself."""

import contextlib

import torch
from torch import nn

from .obstacles import place

_LAYERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "Tanh", "rnn_relu": "Relu"}
_BY_ROW = {"linear", "embedding", "dropout", "layer_norm", "relu", "tanh", "sigmoid", "gelu", "silu", "elu",
           "leaky_relu", "add", "mul", "sub", "div", "clone", "detach", "to", "_to_copy", "contiguous", "alias",
           "relu_", "dropout_"}
_library = torch.library.Library("onnxtrain", "DEF")
_library.define("packed_rows(Tensor rows) -> Tensor")
_library.define(
    "packed_layer(Tensor input, Tensor lengths, Tensor[] hx, Tensor[] params, str kind, bool has_biases, "
    "int num_layers, "
    "float dropout, bool train, bool bidirectional, SymInt steps) -> Tensor[]"
)
_library.define(
    "padded_rows(Tensor rows, Tensor lengths, SymInt steps, SymInt? total, bool batch_first, float padding_value) "
    "-> Tensor"
)


@torch.library.register_fake("onnxtrain::packed_rows", lib=_library)
def _rows(rows):
    return torch.empty_like(rows)


@torch.library.register_fake("onnxtrain::packed_layer", lib=_library)
def _layer(input, lengths, hx, params, kind, has_biases, num_layers, dropout, train, bidirectional, steps):
    width = hx[0].shape[-1] * (2 if bidirectional else 1)
    return [input.new_empty([input.shape[0], width]), *[torch.empty_like(h) for h in hx]]


@torch.library.register_fake("onnxtrain::padded_rows", lib=_library)
def _padded(rows, lengths, steps, total, batch_first, padding_value):
    sizes = [steps if total is None else total, lengths.shape[0]]
    return rows.new_empty([*(sizes[::-1] if batch_first else sizes), *rows.shape[1:]])


class Sizes:
    """In the place of `batch_sizes`."""

    device = torch.device("cpu")

    def __init__(self, lengths, steps, batch):
        self.lengths, self.steps, self.batch = lengths, steps, batch

    def __getitem__(self, k):
        if k == 0:
            return self.batch
        raise IndexError("the sizes of packed batches depend on values")

    def size(self, _=0):
        return 0  # less than any total_length; stands for the longest

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise TypeError("the sizes of packed batches depend on values")


def form(func, args, kwargs):
    """What stands for one of torch's functions on packed sequences, or None for every other function."""
    name = getattr(func, "__name__", "")
    if name == "_pack_padded_sequence":
        return lambda: _pack(*args, **kwargs)
    if name == "_pad_packed_sequence" and isinstance(args[1], Sizes):
        return lambda: _pad(*args, **kwargs)
    if name in _LAYERS and len(args) > 1 and isinstance(args[1], Sizes):
        return lambda: _run(_LAYERS[name], *args)
    return None


def _pack(input, lengths, batch_first):
    x = input.transpose(0, 1) if batch_first else input
    rows = torch.ops.onnxtrain.packed_rows(x.reshape([-1, *x.shape[2:]]))
    return rows, Sizes(lengths, x.shape[0], x.shape[1])


def _pad(rows, sizes, batch_first, padding_value, total):
    total = None if isinstance(total, int) and not isinstance(total, torch.SymInt) and total == 0 else total
    return torch.ops.onnxtrain.padded_rows(
        rows, sizes.lengths, sizes.steps, total, batch_first, float(padding_value)
    ), sizes.lengths


def _run(kind, rows, sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    hx = list(hx) if isinstance(hx, (tuple, list)) else [hx]
    return tuple(
        torch.ops.onnxtrain.packed_layer(
            rows,
            sizes.lengths,
            hx,
            list(params),
            kind,
            bool(has_biases),
            num_layers,
            float(dropout),
            bool(train),
            bool(bidirectional),
            sizes.steps,
        )
    )


@contextlib.contextmanager
def unchecked_sizes():
    """Recurrent layers compare the hidden state with a number of the first batch, which would fix the batch size."""
    before = [
        (cls, cls.__dict__["check_forward_args"])
        for cls in (nn.RNNBase, nn.LSTM)
        if "check_forward_args" in cls.__dict__
    ]
    for cls, check in before:
        cls.check_forward_args = lambda self, input, hidden, sizes, f=check: (
            None if isinstance(sizes, Sizes) else f(self, input, hidden, sizes)
        )
    try:
        yield
    finally:
        for cls, check in before:
            cls.check_forward_args = check


def check(graph, obstacles):
    """Refuses readers of packed rows that would see the padding."""
    tainted = set()
    for n in graph.nodes:
        key = getattr(getattr(n.target, "_schema", None), "name", "")
        if key == "onnxtrain::packed_rows" or (key == "onnxtrain::packed_layer"):
            tainted.add(n)
            continue
        given = [a for a in n.all_input_nodes if a in tainted]
        if not given or key == "onnxtrain::padded_rows":
            continue
        if n.op == "call_function" and key == "" and getattr(n.target, "__name__", "") == "getitem":
            if n.args[1] == 0:  # the layer's rows; its last states have no padding
                tainted.add(n)
        elif n.op == "call_function" and key.removeprefix("aten::") in _BY_ROW:
            tainted.add(n)
        else:
            obstacles.add(
                "the rows of a packed sequence are read by something else than a recurrent layer: how many there are "
                "depends on values",
                place(n) or place(given[0]),
                "pad them again (pad_packed_sequence) and leave the padding out by a mask",
            )
