"""Modules that are refused: every obstacle at once, with its line. Beside unusual.py."""

import numpy as np
import torch
from torch import nn

from unusual import Free, lin, mse, packed, refused, t4, x6


# ---- refused, all obstacles at once
class Ste(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def helper(y):
    return torch.special.i0(y).sum()


@refused("4 obstacles", "autograd.Function Ste", "y = Ste.apply(s.a(x))", "branches on the value of a tensor",
         "if y.sum() > 0:", "linalg_qr", "bessel_i0", "return torch.special.i0(y).sum()")
def many_at_once():
    def f(s, x):
        y = Ste.apply(s.a(x))
        z = torch.linalg.qr(y)[0].sum() + helper(y)
        if y.sum() > 0:
            return y + z
        return y

    return Free(f, a=lin()), x6(), t4(), mse


@refused("2 obstacles", "branches on the value", "while y.norm() > 9:", "(item)", "while y.mean().item() < 9:")
def loops_over_values():
    def f(s, x):
        y = s.a(x)
        while y.norm() > 9:
            y = y / 2
        while y.mean().item() < 9:
            y = y * 2
        return y

    return Free(f, a=lin()), x6(), t4(), mse


@refused("2 obstacles", "(float)", "float(x.max())", "(numpy)", "np.sin(x.numpy())")
def leaves_torch():
    def f(s, x):
        scale = float(x.max())
        wave = torch.from_numpy(np.sin(x.numpy()))
        return s.a(wave) * scale

    return Free(f, a=lin()), x6(), t4(), mse


@refused("changes the parameter 'a.weight' in place", "s.a.weight.clamp_")
def clamps_its_weights():
    def f(s, x):
        with torch.no_grad():
            s.a.weight.clamp_(-0.1, 0.1)
        return s.a(x)

    return Free(f, a=lin()), x6(), t4(), mse


@refused("changes the input 'x' in place", "x.mul_(2)")
def doubles_its_input():
    def f(s, x):
        x.mul_(2)
        return s.a(x)

    return Free(f, a=lin()), x6(), t4(), mse


@refused("the rows of a packed sequence are read", "return s.b(s.r(", "pad_packed_sequence")
def rows_of_a_packed_sequence():
    def f(s, x, lengths):
        return s.b(s.r(packed(x, lengths))[0].data).mean()

    return (
        Free(f, r=nn.GRU(6, 4, batch_first=True), b=lin(4, 3)),
        (torch.randn(3, 5, 6), torch.tensor([5, 3, 2])),
        None,
        lambda y, _: y,
    )


@refused("BatchNorm 'm.1' with momentum=None", "hooks on gradients", "m.0.weight", "half precision", "h.weight",
         "linalg_qr", "return s.m(x) + torch.linalg.qr")
def seen_before_and_while_running():
    m = nn.Sequential(lin(), nn.BatchNorm1d(4, momentum=None))
    m[0].weight.register_hook(lambda g: g * 0.5)

    def f(s, x):
        return s.m(x) + torch.linalg.qr(s.h(x.half()).float())[0]

    return Free(f, m=m, h=lin().half()), x6(), t4(), mse


@refused("max_norm", "scale_grad_by_freq", "module '0' (Embedding)")
def embedding_that_acts():
    return (
        nn.Sequential(nn.Embedding(9, 4, max_norm=1.0, scale_grad_by_freq=True), nn.Flatten(), lin(24, 4)),
        torch.randint(0, 9, (8, 6)),
        t4(),
        mse,
    )


@refused("2 obstacles", "aten.asinh of complex numbers", "returns complex numbers", "torch.view_as_real")
def complex_result():
    return (
        Free(lambda s, x: torch.asinh(torch.polar(s.a(x).abs(), s.a(x))), a=lin()),
        x6(),
        t4(),
        lambda o, t: mse(o.abs(), t),
    )


@refused("higher_order.cond")
def conditional():
    return (
        Free(lambda s, x: torch.cond(x.sum() > 0, lambda x: s.a(x), lambda x: s.a(x) * 2, (x,)), a=lin()),
        x6(),
        t4(),
        mse,
    )


@refused("TorchScript")
def scripted():
    return torch.jit.script(nn.Sequential(lin())), x6(), t4(), mse
