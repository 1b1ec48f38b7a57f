"""The rows on their way through the preprocessing: blocks of columns, numbers or texts.

A file takes one matrix `X`, or one [n, 1] input per column when the estimator was fitted on named columns. Whether an
input holds numbers or texts is decided by what reads it first.
"""

from dataclasses import dataclass

from .nodes import TEXT
from .obstacles import first


@dataclass
class Sample:
    """What a column's values look like, as far as its readers say: for the rows of the self-check."""

    values: list | None = None  # categories
    center: float = 0.0
    scale: float = 1.0


@dataclass
class Block:
    """Some columns: a value of the graph [n, width]. kind: "number", "text", or None while nobody has read it."""

    value: str
    width: int
    kind: str | None = "number"
    samples: list = None  # of each column
    origin: "Block | None" = None  # of which it is a part: what it is read as, that is too

    def __post_init__(self):
        self.samples = self.samples or [Sample() for _ in range(self.width)]

    def read_as(self, kind):
        """The kind that it has, which is `kind` when nobody has read it before."""
        if self.origin is not None:
            self.kind = self.origin.read_as(kind)
        self.kind = self.kind or kind
        return self.kind


class Table:
    def __init__(self, nodes, blocks, sparse=False):
        self.nodes, self.blocks = nodes, blocks
        self.sparse = sparse  # scikit-learn has it as a sparse matrix here

    @property
    def width(self):
        return sum(b.width for b in self.blocks)

    def select(self, indices):
        """Some columns, in this order."""
        owners = [(b, k) for b in self.blocks for k in range(b.width)]
        chosen, made = [owners[i] for i in indices], []
        while chosen:
            block, run = chosen[0][0], []
            while chosen and chosen[0][0] is block:
                run.append(chosen.pop(0)[1])
            if run == list(range(block.width)):
                made.append(block)
            else:
                made.append(Block(self.nodes.columns(block.value, run), len(run), block.kind,
                                  [block.samples[k] for k in run], block))
        return Table(self.nodes, made, self.sparse)

    def matrix(self, kind, who):
        """All columns as one value [n, width] of numbers or of texts."""
        for b in self.blocks:
            if b.read_as(kind) != kind:
                who.refuse(f"it reads column '{b.value}', which holds {b.kind}s, as {kind}s")
        values = [b.value for b in self.blocks]
        if not values:
            who.refuse("it is given no columns")
        return values[0] if len(values) == 1 else self.nodes.Concat(*values, axis=1)

    def numbers(self, who):
        return self.matrix("number", who)

    @property
    def samples(self):
        return [s for b in self.blocks for s in b.samples]

    def made(self, value, width, sparse=None, kind="number", same_values=False):
        """What a transformer made of this table; same_values: its columns hold what they held."""
        samples = self.samples if same_values and width == self.width else None
        return Table(self.nodes, [Block(value, width, kind, samples)], self.sparse if sparse is None else sparse)


def joined(nodes, tables):
    return Table(nodes, [b for t in tables for b in t.blocks], any(t.sparse for t in tables))


class Inputs:
    """The inputs of the file."""

    def __init__(self, nodes, estimator, features):
        self.names = [str(n) for n in getattr(first(estimator), "feature_names_in_", ())]
        claim = nodes.names.claim
        self.blocks = ([Block(claim(n, free=True), 1, None) for n in self.names] if self.names
                       else [Block(claim("X"), features, None)])

    def infos(self, dtype, nodes):
        """(name, element type, shape) of the inputs that something reads."""
        used = {i for n in nodes for i in n.reads()}
        return [(b.value, TEXT if b.kind == "text" else dtype, ["n", b.width])
                for b in self.blocks if b.value in used]
