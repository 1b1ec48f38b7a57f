"""PyTorch's layouts -> those of JAX and TensorFlow."""

import numpy as np


def image_batch(x):
    """NCHW -> NHWC; anything else as it is."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == 4 else x


def parameters(workload):
    """Linear weights as [inputs, outputs] (behind an image: in the order of NHWC), convolutions as HWIO."""
    values = workload.parameters()
    return {p.name: np.ascontiguousarray(_turned(values[p.name], p)) for p in workload.shapes.parameters}


def _turned(value, p):
    if p.kind == "conv":
        return value.transpose(2, 3, 1, 0)
    if p.image:
        value = value.reshape(value.shape[0], *p.image).transpose(0, 2, 3, 1).reshape(value.shape)
    return value.T if p.kind in ("linear", "lstm") else value
