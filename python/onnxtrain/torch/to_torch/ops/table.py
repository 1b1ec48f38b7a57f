"""The operator table ONNX -> torch: how a node becomes a function of tensors.

A builder takes a `View` of the node and returns the function that runs it. Inputs listed in `host` arrive as
Python lists (shapes, axes, repeats): those that are constants in the file cost nothing at run time. Outputs are one
tensor, or a tuple for operators with several outputs.
"""

from dataclasses import dataclass

import torch

from ....converters.table import Table
from ....graph import Graph
from ...shared.dtypes import FROM_ONNX

_TABLE = Table(__name__)
find = _TABLE.find
TORCH = "torch"  # the domain of functions of torch that stand for nodes of a file


class Unsupported(Exception):
    """This node cannot run in torch; the text says why."""


@dataclass
class Op:
    build: object
    host: tuple = ()
    random: bool = False  # never folded, never moved off the device
    on_host: bool = False  # gives sizes: its results live on the CPU
    device: bool = False  # the function takes the device as its first argument


def op(*names, host=(), random=False, on_host=False, device=False, domain=""):
    def register(build):
        for name in names:
            _TABLE.entries[(domain, name)] = Op(build, tuple(host), random, on_host, device)
        return build

    return register


def simple(table):
    """Operators without attributes: {name: function}."""
    for name, f in table.items():
        _TABLE.entries[("", name)] = Op(lambda n, f=f: f)


def kinds():
    """(domain, operator) of every operator that torch computes."""
    return [kind for kind in _TABLE.kinds() if kind[0] != TORCH]


class View:
    """What a builder sees of a node."""

    def __init__(self, node, constants, subprogram):
        self.node, self.op, self.version, self.attrs = node, node.op, node.version, node.attrs
        self._constants, self._subprogram = constants, subprogram

    def get(self, key, default=None):
        value = self.attrs.get(key)
        return default if value is None else value

    @property
    def outputs(self):
        return len(self.node.outputs)

    def wants(self, k):
        """Is output k used?"""
        return k < len(self.node.outputs) and bool(self.node.outputs[k])

    def has(self, k):
        return k < len(self.node.inputs) and bool(self.node.inputs[k])

    def constant(self, k):
        """Input k when the file fixes it, else None."""
        return self._constants.get(self.node.inputs[k]) if self.has(k) else None

    def subprogram(self, key):
        return self._subprogram(self.attrs[key])

    @property
    def captures(self):
        """Names that subgraphs read from outside: the function gets their values after the node's inputs."""
        found = [c for a in self.attrs.values() if isinstance(a, Graph) for c in a.captures()]
        return list(dict.fromkeys(found))


def wide(x):
    """Element types that torch computes with: unsigned 16, 32 and 64 bit integers are not among them."""
    if x.dtype in (torch.uint16, torch.uint32):
        return x.to(torch.int64)
    if x.dtype == torch.uint64:
        return x.to(torch.int64)
    return x


def through_wide(f):
    """f on integers that torch cannot compute with, through int64 and back."""
    def run(*xs):
        x = next(v for v in xs if v is not None)
        if x.dtype not in (torch.uint16, torch.uint32, torch.uint64):
            return f(*xs)
        back = x.dtype
        y = f(*(wide(v) if v is not None else None for v in xs))
        return y.to(back) if y.dtype == torch.int64 else y

    return run


def normal_axes(axes, rank):
    return [a + rank if a < 0 else a for a in axes]


def torch_dtype(number):
    if number not in FROM_ONNX:
        raise Unsupported(f"torch has no element type {number}")
    return FROM_ONNX[number]
