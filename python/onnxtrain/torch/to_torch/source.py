"""A model as to_torch reads it: once, through the library, with torch tensors as constants."""

import functools

from ...graph import read_graphs
from ..shared.dtypes import to_tensor
from .ops import table
from .update import RULES


class Source:
    """The graphs of an ot.Model. Operators that torch computes and optimizers that torch has stand as they are; all
    others are their bodies."""

    def __init__(self, model):
        self.model = model
        self.graphs = read_graphs(model, [*table.kinds(), *RULES], to_tensor)

    @functools.cached_property
    def expanded(self):
        """The same with the bodies of all optimizers, for rules that torch has no class for."""
        return read_graphs(self.model, table.kinds(), to_tensor)
