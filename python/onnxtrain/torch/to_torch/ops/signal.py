"""Fourier transforms and windows."""

import math

import torch

from .table import op, torch_dtype


def _scalar(v):
    return v[0] if isinstance(v, list) else v


@op("DFT", host=(1, 2))
def dft(n):
    inverse, half, fixed = n.get("inverse", 0), n.get("onesided", 0), n.get("axis", 1)

    def run(x, length=None, axis=None):
        a = fixed if n.version < 20 else -2 if axis is None else _scalar(axis)
        a = a + x.dim() if a < 0 else a
        size = None if length is None else _scalar(length)
        if half and inverse:
            z = torch.fft.irfft(torch.view_as_complex(x.contiguous()), n=size, dim=a)
            return z.unsqueeze(-1)
        z = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
        if inverse:
            y = torch.fft.ifft(z, n=size, dim=a)
        elif half:
            y = torch.fft.rfft(z, n=size, dim=a)
        else:
            y = torch.fft.fft(z, n=size, dim=a)
        return torch.view_as_real(y)

    return run


@op("STFT", host=(1, 3))
def stft(n):
    half = n.get("onesided", 1)

    def run(x, step, window=None, length=None):
        step = _scalar(step)
        size = _scalar(length) if length is not None else window.shape[0]
        real = x.dim() == 2 or x.shape[-1] == 1
        z = x if x.dim() == 2 else x.squeeze(-1) if real else torch.view_as_complex(x.contiguous())
        frames = z.unfold(1, size, step)
        frames = frames if window is None else frames * window
        return torch.view_as_real(torch.fft.rfft(frames) if half and real else torch.fft.fft(frames))

    return run


@op("HannWindow", "HammingWindow", "BlackmanWindow", host=(0,), device=True)
def window(n):
    dtype, periodic = torch_dtype(n.get("output_datatype", 1)), n.get("periodic", 1)
    weights = {
        "HannWindow": (0.5, 0.5, 0),
        "HammingWindow": (25 / 46, 21 / 46, 0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[n.op]

    def run(device, size):
        size = _scalar(size)
        at = (
            torch.arange(size, dtype=torch.float64, device=device)
            * 2
            * math.pi
            / max(size if periodic else size - 1, 1)
        )
        return (weights[0] - weights[1] * torch.cos(at) + weights[2] * torch.cos(2 * at)).to(dtype)

    return run
