"""Diagonals, determinants, rows by segment, shifts, and what is among the largest."""

import numpy as np

from .table import Unsupported, op


def _main_diagonal(n, k):
    if n.known(k, "diagonal").any():
        raise Unsupported("it is about another diagonal than the main one")


def _on_diagonal(n, rows, columns):
    """bool [rows, columns]; the sizes are names of int64 scalars."""
    zero, one = (n.e.const(np.array(v, np.int64)) for v in (0, 1))
    down = n.e.op("Unsqueeze", n.e.op("Range", zero, rows, one), n.e.ints([1]))
    return n.e.op("Equal", down, n.e.op("Range", zero, columns, one))


def _size(n, name, axis):
    end = axis + 1 or None
    return n.e.op("Squeeze", n.e.op("Shape", name, start=axis, end=end), n.e.ints([0]))


@op("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(n):
    padding = n.number(0)
    if n.op.type != "MatrixDiag":
        _main_diagonal(n, 1)
        if any(int(n.known(k, "size").reshape(())) != -1 for k in (2, 3)):
            raise Unsupported("its number of rows or columns is given")
        padding = n.plain(4)
    x = n.plain(0)
    count = _size(n, x, -1)
    return n.e.op("Where", _on_diagonal(n, count, count), n.e.op("Unsqueeze", x, n.e.ints([-1])), padding)


@op("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(n):
    """As many of the first columns as there are rows, what is off the diagonal set to 0, summed."""
    if n.op.type != "MatrixDiagPart":
        _main_diagonal(n, 1)
    x = n.plain(0)
    rows, columns = _size(n, x, -2), _size(n, x, -1)
    kept = n.e.op("Where", _on_diagonal(n, rows, columns), x, n.number(0))
    count = n.e.op("Unsqueeze", n.e.op("Min", rows, columns), n.e.ints([0]))
    sums = n.e.op("ReduceSum", kept, n.e.ints([-1]), keepdims=0)
    return n.e.op("Slice", sums, n.e.ints([0]), count, n.e.ints([-1]))


@op("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(n):
    if n.op.type != "MatrixSetDiag":
        _main_diagonal(n, 2)
    sizes = n[0].shape.as_list()[-2:]
    if None in sizes or sizes[0] != sizes[1]:
        raise Unsupported("its matrices are not square, or of open size")
    x = n.plain(0)
    rows, columns = _size(n, x, -2), _size(n, x, -1)
    return n.e.op("Where", _on_diagonal(n, rows, columns), n.e.op("Unsqueeze", n.plain(1), n.e.ints([-1])), x)


@op("MatrixDeterminant")
def determinant(n):
    return n.e.op("Det", n.plain(0))


_START = {"Max": lambda t: np.finfo(t).min if t.kind == "f" else np.iinfo(t).min,
          "Min": lambda t: np.finfo(t).max if t.kind == "f" else np.iinfo(t).max, "Prod": lambda t: 1,
          "Sum": lambda t: 0}
_REDUCTION = {"Max": "max", "Min": "min", "Prod": "mul", "Sum": "add"}


def by_segment(n, kind, at, count):
    """Rows reduced by the number of their segment. at: int64 [n]; count: int64 [1]. A row with a negative number
    belongs to no segment; ONNX counts such an index from the end."""
    if n[1].rank != 1:
        raise Unsupported("its segment numbers have several axes")
    if n[0].rank is None:
        raise Unsupported("the number of axes of its values is not known")
    data, dtype = n.plain(0), np.dtype(n.dtype.as_numpy_dtype)
    start = np.array([_START[kind](dtype)], dtype)
    shape = n.e.node("Concat", [count, n.e.op("Shape", data, start=1)], axis=0)[0]
    begin = n.e.op("ConstantOfShape", shape, value=start)
    none = n.e.op("Less", at, n.e.const(np.array(0, np.int64)))
    if n[0].rank > 1:
        none = n.e.op("Unsqueeze", none, n.e.ints(range(1, n[0].rank)))
    data = n.e.op("Where", none, n.e.const(start.reshape(())), data)
    place = n.e.op("Max", n.e.op("Unsqueeze", at, n.e.ints([-1])), n.e.const(np.array(0, np.int64)))
    return n.e.op("ScatterND", begin, place, data, reduction=_REDUCTION[kind])


@op("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def unsorted_segments(n):
    count = n.e.op("Reshape", n.w.int64(n[2]), n.e.ints([1]))
    return by_segment(n, n.op.type.removeprefix("UnsortedSegment"), n.w.int64(n[1]), count)


@op("SegmentSum", "SegmentSumV2")
def sorted_segments(n):
    """The numbers ascend: the last one says how many segments there are."""
    at = n.w.int64(n[1])
    last = n.e.op("Gather", at, n.e.ints([-1]), axis=0)
    return by_segment(n, "Sum", at, n.e.op("Add", last, n.e.const(np.array(1, np.int64))))


@op("LeftShift", "RightShift")
def shift(n):
    """Times a power of two, or divided by it and rounded down: ONNX shifts numbers without sign only."""
    power = n.e.op("Pow", n.number(2), n.plain(1))
    if n.op.type == "LeftShift":
        return n.e.op("Mul", n.plain(0), power)
    return n.e.op("Div", n.e.op("Sub", n.plain(0), n.e.op("Mod", n.plain(0), power)), power)


@op("InTopK", "InTopKV2")
def in_top_k(n):
    """Fewer than k scores are above that of the target, which is finite."""
    scores, at = n.plain(0), n.e.op("Unsqueeze", n.w.int64(n[1]), n.e.ints([-1]))
    own = n.e.op("GatherElements", scores, at, axis=1)
    above = n.e.op("ReduceSum", n.e.cast(n.e.op("Greater", scores, own), "int64"), n.e.ints([1]), keepdims=0)
    k = n.w.int64(n[2]) if n.op.type == "InTopKV2" else n.e.const(np.array(int(n.attr("k")), np.int64))
    flat = n.e.op("Squeeze", own, n.e.ints([1]))
    bad = n.e.op("Or", n.e.op("IsNaN", flat), n.e.op("IsInf", flat))
    return n.e.op("And", n.e.op("Less", above, k), n.e.op("Not", bad))
