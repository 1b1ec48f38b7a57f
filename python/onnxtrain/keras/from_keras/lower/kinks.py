"""Gradients at kinks, at ties and where a slope is infinite, as TensorFlow's operations have them. Elsewhere the file's
operators are as PyTorch's and JAX's are: two equal elements share the gradient, 0 times infinity is not a number."""

import numpy as np

from ...shared import versions


def as_tensorflow(t, x):
    """Whether TensorFlow differentiates a function of x. In the optimizer's step nobody does."""
    return t.semantics == "tensorflow" and t.stops and x.dtype.startswith("float")


def larger(e, a, b):
    """The first of two equal elements has the gradient."""
    return e.op("Where", e.op("Less", a, b), b, a)


def smaller(e, a, b):
    return e.op("Where", e.op("Greater", a, b), b, a)


def root(t, x, inverse=False):
    """The square root or its inverse. TensorFlow's gradient at 0 is 0 where what comes to it is 0. Where it is not,
    TensorFlow has an infinite one and the file 0."""
    def plain(name):
        name = t.e.op("Sqrt", name)
        return t.e.op("Reciprocal", name) if inverse else name

    if not as_tensorflow(t, x) or _lifted(t, x.onnx):
        return plain(x.onnx)
    zero, one, there = (t.e.const(np.array(v, versions.numpy_dtype(x.dtype)))
                        for v in (0, 1, np.inf if inverse else 0))
    none = t.e.op("Equal", x.onnx, zero)
    return t.e.op("Where", none, there, plain(t.e.op("Where", none, one, x.onnx)))


def _lifted(t, name):
    """Whether a positive constant was added, as normalizations do: it is not 0."""
    maker = t.e.maker.get(t.e.current(name))
    if maker is None or maker.op != "Add":
        return False
    known = [t.e.value_of(v) for v in maker.inputs]
    return any(v is not None and v.size and v.min() > 0 for v in known)


def celu(t, x, alpha):
    """Both halves have their gradient at 0, which is 2 there."""
    e, kind = t.e, versions.numpy_dtype(x.dtype)
    zero, one, alpha = (e.const(np.array(v, kind)) for v in (0, 1, alpha))
    below = e.op("Sub", e.op("Exp", e.op("Div", smaller(e, x.onnx, zero), alpha)), one)
    return e.op("Add", larger(e, x.onnx, zero), e.op("Mul", alpha, below))
