"""Element types, and where gradients stop."""

import numpy as np

from ...shared import versions
from ..values import Traced
from .table import operation


@operation("SaturateCast")
def saturate_cast(t, op, x):
    """Values outside of the new type's range become its ends."""
    x, dtype = t.value(x), versions.numpy_dtype(op.dtype)
    if dtype.kind not in "iu" or x.dtype == "bool":
        return t.cast(x, op.dtype)
    here, there = versions.numpy_dtype(x.dtype), np.iinfo(dtype)
    low, high = float(there.min), float(there.max)
    if here.kind == "f":
        if here.itemsize == 4 and dtype.itemsize >= 4:  # the largest float32 below 2^31 or 2^63
            high = float(np.nextafter(np.float32(2.0 ** (8 * dtype.itemsize - (dtype.kind == "i"))), np.float32(0)))
    else:
        low, high = max(there.min, np.iinfo(here).min), min(there.max, np.iinfo(here).max)
    ends = [t.e.const(np.array(v, here)) for v in (low, high)]
    return t.cast(x.like(t.e.op("Min", t.e.op("Max", x.onnx, ends[0]), ends[1])), op.dtype)


@operation("Cast")
def cast(t, op, x):
    if isinstance(x, Traced) and x.slices is not None and x.dtype == versions.standardize_dtype(op.dtype):
        return x
    made = t.cast(t.value(x), op.dtype)
    if isinstance(x, Traced) and x.onnx in t.logits and made.onnx == x.onnx:
        return x
    return made


@operation("ConvertToTensor")
def convert_to_tensor(t, op, x):
    if isinstance(x, Traced) and (op.dtype is None or x.dtype == versions.standardize_dtype(op.dtype)):
        return x
    return t.value(x, op.dtype) if op.dtype is not None else t.value(x)


def keeping_type(init):
    """Of symbolic tensors for which no type is asked; Keras 3.10 makes float32 of integers and float64."""
    def made(op, dtype=None, *args, **more):
        init(op, dtype, *args, **more)
        op.dtype = None if dtype is None else op.dtype

    return made


@operation("StopGradient")
def stop_gradient(t, op, x):
    x = t.value(x)
    return x.like(t.e.op("Detach", x.onnx, domain="ai.onnxtrain"))
