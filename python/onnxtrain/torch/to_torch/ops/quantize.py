"""Quantisation to and from 8 and 16 bit integers."""

import torch

from .table import Unsupported, op, torch_dtype

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32)


def _along(t, x, axis, block):
    if t.dim() == 0 or t.numel() == 1:
        return t.reshape(())
    if block:
        return t.repeat_interleave(block, axis)[tuple(slice(0, s) for s in x.shape)]
    return t.reshape([-1 if k == axis % x.dim() else 1 for k in range(x.dim())])


@op("DequantizeLinear")
def dequantize(n):
    axis, block, to = n.get("axis", 1), n.get("block_size", 0), n.get("output_dtype", 0)

    def run(x, scale, zero=None):
        dtype = torch_dtype(to) if to else scale.dtype
        y = x.to(torch.float32)
        if zero is not None:
            y = y - _along(zero, x, axis, block).to(torch.float32)
        return (y * _along(scale, x, axis, block).to(torch.float32)).to(dtype)

    return run


@op("QuantizeLinear")
def quantize(n):
    axis, block, to = n.get("axis", 1), n.get("block_size", 0), n.get("output_dtype", 0)
    fixed = torch_dtype(to) if to else None
    if fixed is not None and fixed not in _INTEGERS:
        raise Unsupported(f"quantisation to {fixed}")

    def run(x, scale, zero=None):
        dtype = zero.dtype if zero is not None else fixed or torch.uint8
        y = torch.round(x.to(torch.float32) / _along(scale, x, axis, block).to(torch.float32))
        if not dtype.is_floating_point:
            info = torch.iinfo(dtype)
            if zero is not None:
                y = y + _along(zero, x, axis, block).to(torch.float32)
            y = torch.clamp(y, info.min, info.max)
        return y.to(dtype)

    return run


@op("DynamicQuantizeLinear")
def dynamic_quantize(n):
    def run(x):
        low, high = torch.clamp(x.min(), max=0), torch.clamp(x.max(), min=0)
        scale = (high - low) / 255
        zero = torch.clamp(torch.round(-low / scale), 0, 255)
        return torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8), scale, zero.to(torch.uint8)

    return run
