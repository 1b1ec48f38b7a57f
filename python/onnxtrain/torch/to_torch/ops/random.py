"""Random numbers: torch's generator, torch's distributions."""

import torch

from .table import op, torch_dtype


def _generator(n, device):
    seed = n.get("seed")
    if seed is None:
        return None
    return torch.Generator(device=device).manual_seed(int(seed))


@op("RandomNormal", "RandomUniform", random=True, device=True)
def fill(n):
    shape, dtype = n.get("shape"), torch_dtype(n.get("dtype", 1))
    return lambda device: _draw(n, shape, dtype, device)


@op("RandomNormalLike", "RandomUniformLike", random=True)
def fill_like(n):
    to = n.get("dtype")
    return lambda x: _draw(n, x.shape, x.dtype if to is None else torch_dtype(to), x.device)


def _draw(n, shape, dtype, device):
    g = _generator(n, device)
    if n.op.startswith("RandomNormal"):
        y = torch.randn(shape, dtype=dtype, device=device, generator=g)
        return y * n.get("scale", 1.0) + n.get("mean", 0.0)
    low, high = n.get("low", 0.0), n.get("high", 1.0)
    return torch.rand(shape, dtype=dtype, device=device, generator=g) * (high - low) + low


@op("Bernoulli", random=True)
def bernoulli(n):
    to = n.get("dtype")
    return lambda p: torch.bernoulli(p, generator=_generator(n, p.device)).to(
        p.dtype if to is None else torch_dtype(to)
    )


@op("Multinomial", random=True)
def multinomial(n):
    count, dtype = n.get("sample_size", 1), torch_dtype(n.get("dtype", 6))
    return lambda x: torch.multinomial(torch.softmax(x, -1), count, True, generator=_generator(n, x.device)).to(dtype)
