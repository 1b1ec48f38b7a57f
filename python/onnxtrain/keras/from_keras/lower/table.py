"""The table of operations: name of the class in keras.ops -> function (tracer, operation, arguments) -> Traced."""

import numpy as np

OPERATIONS = {}


def operation(*names):
    def add(f):
        for n in names:
            OPERATIONS[n] = f
        return f

    return add


def axes_of(axis, rank):
    """Axes as a sorted list of numbers from 0; None: all."""
    if axis is None:
        return list(range(rank))
    axes = [axis] if isinstance(axis, int) else list(axis)
    return sorted(a % rank if rank else 0 for a in axes)



def exact(x, *numbers):
    """Whether attributes, which are float32, hold these numbers as exactly as the element type of x asks."""
    return x.dtype != "float64" or all(float(np.float32(v)) == float(v) for v in numbers)
