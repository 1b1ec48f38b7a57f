"""Masks and positions that choose what is computed, sizes that interpolation is asked for, and tensors that forward
writes to."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from unusual import Free, exact, lin, mse, t4, x6


# ---- results whose size depends on values
@exact
def rows_chosen_by_a_mask():
    """The loss of labelled nodes alone."""
    return lin(), x6(), torch.tensor([0, -1, 2, 1, -1, 3, 0, -1]), lambda o, t: F.cross_entropy(o[t >= 0], t[t >= 0])


@exact
def elements_chosen_by_a_mask():
    def loss(o, t):
        return (torch.masked_select(o, t > 0) - t[t > 0]).square().mean() + o[
            torch.nonzero(t[:, 0] < 0).squeeze(1)
        ].mean()

    return lin(), x6(), torch.tensor([[1.0, -1, 2, 0.5], [-1, 2, -3, 1]]).repeat(4, 1), loss


def dispatch(s, x):
    """Each row to the expert of its largest score, by positions and by masks; the fourth expert never has one."""
    chosen, out = s.gate(x).argmax(-1), torch.zeros_like(x)
    for k, expert in enumerate(s.experts):
        rows = torch.where(chosen == k)[0]
        out[rows] += expert(x[rows])
        mask = chosen == (k + 1) % 4
        out[mask] = out[mask] + expert(x[mask]) * 0.5
    return out


@exact
def experts_by_rows():
    m = Free(dispatch, gate=lin(6, 4), experts=nn.ModuleList([lin(6, 6) for _ in range(4)]))
    with torch.no_grad():
        m.gate.bias[3] = -100
    return m, x6(), torch.randn(8, 6), mse


# ---- assignment
@exact
def token_in_place_of_masked_ones():
    def f(s, x, mask):
        y = s.a(x) * 1
        y[mask] = s.token
        y[:, torch.tensor([True, False, True])] += 1
        return y

    return (
        Free(f, a=lin(), token=nn.Parameter(torch.randn(4))),
        (torch.randn(5, 3, 6), torch.rand(5, 3) > 0.5),
        torch.randn(5, 3, 4),
        mse,
    )


@exact
def assignment_behind_slices():
    def f(s, x):
        y, at = s.a(x).unflatten(1, (2, 2)) * 1, torch.tensor([1, 0])
        y[:, at] = s.row
        y[:, at, at] = 0.25
        z = torch.zeros(x.shape[0], 2, 3, 2)
        z[:, at, :, at] = s.wide
        return (y + z.sum(2)).flatten(1)

    return Free(f, a=lin(), row=nn.Parameter(torch.randn(2)), wide=nn.Parameter(torch.randn(2, 1, 3))), x6(), t4(), mse


# ---- sizes
@exact
def sizes_between():
    """Factors that are no ratio of whole sizes: torch's own positions, and corners that stay."""
    ways = [dict(scale_factor=1.7, mode="nearest"), dict(scale_factor=(0.3, 0.7), mode="nearest-exact"),
            dict(size=(9, 20), mode="nearest"), dict(scale_factor=1.7, mode="bilinear", align_corners=True),
            dict(scale_factor=(0.3, 1.7), mode="bicubic", align_corners=True),
            dict(size=(5, 9), mode="bilinear", antialias=True),
            dict(scale_factor=(0.3, 1.7), mode="bicubic", antialias=True)]

    def f(s, x):
        y = s.a(x)
        return torch.stack([F.interpolate(y, **w).square().mean((2, 3)) for w in ways], 1)

    return Free(f, a=nn.Conv2d(2, 3, 1)), torch.randn(4, 2, 11, 6), torch.randn(4, 7, 3), mse


# ---- what forward writes to
@exact
def running_statistics_of_instances():
    return (
        nn.Sequential(
            nn.Conv2d(2, 4, 1),
            nn.InstanceNorm2d(4, momentum=0.3, affine=True, track_running_stats=True),
            nn.Flatten(),
            nn.Linear(36, 4),
        ),
        torch.randn(5, 2, 3, 3),
        t4(5),
        mse,
    )


class Codes(nn.Module):
    """Nearest codes whose averages forward keeps through .data."""

    def __init__(self):
        super().__init__()
        self.a, self.b = lin(), lin(4, 6)
        for name, t in (("codes", torch.randn(5, 4)), ("count", torch.ones(5)), ("total", torch.randn(5, 4))):
            self.register_buffer(name, t)

    def forward(self, x):
        z = self.a(x)
        hit = F.one_hot(torch.cdist(z, self.codes).argmin(1), 5).to(z.dtype)
        near = hit @ self.codes
        if self.training:
            self.count.data.mul_(0.9).add_(hit.sum(0), alpha=0.1)
            self.total.data = self.total.data * 0.9 + 0.1 * hit.T @ z.detach()
            self.codes.data.copy_(self.total / self.count.unsqueeze(1))
        return self.b(z + (near - z).detach()), F.mse_loss(z, near.detach())


@exact
def codes_that_move():
    return Codes(), x6(), torch.randn(8, 6), lambda o, t: mse(o[0], t) + o[1]


class Follower(nn.Module):
    """A frozen copy of the weights that follows them in forward."""

    def __init__(self):
        super().__init__()
        self.query, self.key = lin(), lin().requires_grad_(False)

    @torch.no_grad()
    def follow(self):
        for p, q in zip(self.query.parameters(), self.key.parameters()):
            q.data = q.data * 0.9 + p.data * 0.1

    def forward(self, x, y):
        if self.training:
            self.follow()
        return F.cosine_similarity(self.query(x), self.key(y))


@exact
def frozen_weights_that_follow():
    return Follower(), (x6(), x6()), None, lambda o, _: -o.mean()


# ---- others
@exact
def parts_run_again():
    def f(s, x):
        # no argument of the first wants a gradient
        return checkpoint(s.b, checkpoint(s.a, x, use_reentrant=True) + s.c(x), use_reentrant=True)

    return Free(f, a=lin(), b=nn.Sequential(nn.Tanh(), lin(4, 4)), c=lin()), x6(), t4(), mse


@dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


@exact
def dataclass_as_input():
    return Free(lambda s, pair: s.a(pair.left) + s.b(pair.right), a=lin(), b=lin()), (Pair(x6(), x6()),), t4(), mse
