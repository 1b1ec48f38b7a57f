"""Ways of image models: channels that are shuffled, windows that are shifted, auxiliary heads, pyramids, images that
are warped."""

import math
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

from unusual import Free, exact, refused

B = 4
cross_entropy = nn.CrossEntropyLoss()


def images(c=3, s=16):
    return torch.randn(B, c, s, s)


def labels(n=5):
    return torch.randint(0, n, (B,))


class ShuffleUnit(nn.Module):
    """The mean behind its second BatchNorm is 0 but for rounding."""

    def __init__(self, i, o):
        super().__init__()
        bn = nn.BatchNorm2d
        self.left = nn.Sequential(
            nn.Conv2d(i, i, 3, 2, 1, groups=i, bias=False),
            bn(i),
            nn.Conv2d(i, o // 2, 1, bias=False),
            bn(o // 2),
            nn.ReLU(True),
        )
        self.right = nn.Sequential(
            nn.Conv2d(i, o // 2, 1, bias=False), bn(o // 2), nn.ReLU(True), nn.AvgPool2d(3, 2, 1, ceil_mode=False)
        )

    def forward(self, x):
        x = torch.cat((self.left(x), self.right(x)), 1)
        n, c, h, w = x.size()
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


@exact
def channel_shuffle():
    return (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), ShuffleUnit(8, 12), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5)
        ),
        images(),
        labels(),
        cross_entropy,
    )


class ShiftedWindows(nn.Module):
    """Windows of an image that is rolled, a table of relative places, and a mask made by writing into slices."""

    def __init__(self, d=8, heads=2, size=2):
        super().__init__()
        self.size, self.heads = size, heads
        self.patch, self.qkv, self.proj, self.merge = (
            nn.Conv2d(3, d, 4, 4),
            nn.Linear(d, 3 * d),
            nn.Linear(d, d),
            nn.Linear(4 * d, 5, bias=False),
        )
        self.table = nn.Parameter(torch.randn((2 * size - 1) ** 2, heads) * 0.2)
        at = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + size - 1
        self.register_buffer("index", apart[..., 0] * (2 * size - 1) + apart[..., 1])

    def mask(self, x, side):
        m, k, s = x.new_zeros((side, side)), 0, self.size
        for h in (slice(0, -s), slice(-s, -1), slice(-1, None)):
            for w in (slice(0, -s), slice(-s, -1), slice(-1, None)):
                m[h, w] = k
                k += 1
        m = m.view(side // s, s, side // s, s).permute(0, 2, 1, 3).reshape(-1, s * s)
        m = m.unsqueeze(1) - m.unsqueeze(2)
        return m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0)

    def forward(self, image):
        x = self.patch(image).permute(0, 2, 3, 1)
        b, side, _, d = x.shape
        s, n = self.size, (side // self.size) ** 2
        y = torch.roll(x, (-1, -1), (1, 2)).view(b, side // s, s, side // s, s, d).permute(0, 1, 3, 2, 4,
                                                                                           5).reshape(b * n, s * s, d)
        q, k, v = self.qkv(y).reshape(y.size(0), y.size(1), 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = q * (d // self.heads) ** -0.5 @ k.transpose(-2, -1)
        a = a + self.table[self.index.view(-1)].view(s * s, s * s, -1).permute(2, 0, 1).unsqueeze(0)
        a = a.view(y.size(0) // n, n, self.heads, s * s, s * s) + self.mask(x, side).unsqueeze(1).unsqueeze(0)
        y = self.proj((a.view(-1, self.heads, s * s, s * s).softmax(-1) @ v).transpose(1, 2).reshape(y.shape))
        y = y.view(b, side // s, side // s, s, s, d).permute(0, 1, 3, 2, 4, 5).reshape(b, side, side, d)
        x = x + torch.roll(y, (1, 1), (1, 2))
        x = torch.cat([x[:, i::2, j::2] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))], -1)
        return self.merge(x).mean((1, 2))


@exact
def shifted_windows():
    return ShiftedWindows(), images(), labels(), cross_entropy


Heads = namedtuple("Heads", ["logits", "aux"])


class Auxiliary(nn.Module):
    """Another result in training than in use."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.aux, self.head = (
            nn.Conv2d(3, 4, 3, 2),
            nn.Conv2d(4, 8, 3, 2),
            nn.Linear(4 * 4, 5),
            nn.Linear(8, 5),
        )

    def forward(self, x):
        x = torch.cat([torch.unsqueeze(x[:, k], 1) * (0.2 + k) - 0.1 for k in range(3)], 1)
        x = F.relu(self.a(x), inplace=True)
        y = self.head(self.b(x).mean((2, 3)))
        if not self.training:
            return y
        return Heads(y, self.aux(torch.flatten(F.adaptive_avg_pool2d(x, (2, 2)), 1)))


@exact
def auxiliary_heads():
    return Auxiliary(), images(), labels(), lambda o, t: cross_entropy(o.logits, t) + 0.3 * cross_entropy(o.aux, t)


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(i, 4, 3, 2, 1) for i in (3, 4, 4))
        self.inner, self.box = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3)), nn.Conv2d(4, 2 * 5, 1)

    def forward(self, x):
        features = []
        for c in self.down:
            x = F.relu(c(x))
            features.append(x)
        last = self.inner[-1](features[-1])
        out = [last]
        for k in (1, 0):
            last = self.inner[k](features[k]) + F.interpolate(last, size=features[k].shape[-2:], mode="nearest")
            out.insert(0, last)
        flat = [
            y.view(y.shape[0], -1, 5, *y.shape[2:]).permute(0, 3, 4, 1, 2).reshape(y.shape[0], -1, 5)
            for y in map(self.box, out)
        ]
        every = torch.cat(flat, 1)
        return {"score": every[..., 0], "box": every[..., 1:]}


def detection_loss(out, t):
    used = (t["score"] >= 0).float()
    score = (
        F.binary_cross_entropy_with_logits(out["score"], t["score"].clamp(min=0), weight=used, reduction="sum")
        / used.sum()
    )
    hit = (t["score"] == 1).float().unsqueeze(-1)
    return score + (F.smooth_l1_loss(out["box"], t["box"], beta=1 / 9, reduction="none") * hit).sum() / hit.sum()


@exact
def detection_heads():
    n = (64 + 16 + 4) * 2
    return (
        Pyramid(),
        images(),
        {"score": torch.randint(-1, 2, (B, n)).float(), "box": torch.randn(B, n, 4)},
        detection_loss,
    )


class Warped(nn.Module):
    def __init__(self):
        super().__init__()
        self.place, self.head = nn.Sequential(nn.Flatten(), nn.Linear(64, 6)), nn.Linear(64, 5)
        self.place[1].bias.data += torch.tensor([1.0, 0, 0.05, 0, 1, -0.02])

    def forward(self, x):
        grid = F.affine_grid(self.place(x).view(-1, 2, 3), x.size(), align_corners=False)
        return self.head(F.grid_sample(x, grid, align_corners=False).flatten(1))


@exact
def spatial_transformer():
    # in float64: its gradients jump from pixel to pixel, and in float32 PyTorch is 1e-5 from itself after five steps
    return Warped().double(), images(1, 8).double(), labels(), cross_entropy


class Diffusion(nn.Module):
    """Steps in time as waves, which scale and shift a normalised image."""

    def __init__(self, c=8):
        super().__init__()
        self.c, self.time, self.label = c, nn.Linear(c, 2 * c), nn.Embedding(3, 2 * c)
        self.a, self.norm, self.b, self.qkv = (
            nn.Conv2d(1, c, 3, padding=1),
            nn.GroupNorm(4, c),
            nn.Conv2d(c, 1, 3, padding=1),
            nn.Conv1d(c, 3 * c, 1),
        )
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 50), 0))

    def forward(self, x, t, noise, y=None):
        rate = torch.exp(-math.log(10000) * torch.arange(self.c // 2, dtype=torch.float32) / (self.c // 2 - 1))
        angle = t[:, None].float() * rate[None]
        e = self.time(torch.cat([angle.sin(), angle.cos()], -1)) + (0 if y is None else self.label(y))
        kept = self.kept.gather(-1, t)[:, None, None, None]
        h = self.a(kept.sqrt() * x + (1 - kept).sqrt() * noise)
        scale, shift = F.silu(e)[:, :, None, None].chunk(2, 1)
        h = self.norm(h) * (1 + scale) + shift
        b, c, *side = h.shape
        q, k, v = self.qkv(h.reshape(b, c, -1)).split(c, 1)
        weight = torch.einsum("bct,bcs->bts", q * c**-0.25, k * c**-0.25).softmax(-1)
        h = h + torch.einsum("bts,bcs->bct", weight, v).reshape(b, c, *side)
        return F.mse_loss(self.b(F.silu(h)), noise)


@exact
def diffusion():
    inputs = {
        "x": torch.randn(B, 1, 8, 8),
        "t": torch.randint(0, 50, (B,)),
        "noise": torch.randn(B, 1, 8, 8),
        "y": torch.randint(0, 3, (B,)),
    }
    return Diffusion(), inputs, None, lambda loss, _: loss


class Rays(nn.Module):
    """Samples along rays, waves of their places, and what is left of the light behind each."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(15, 16), nn.Linear(31, 4)

    def forward(self, origin, direction):
        z = torch.linspace(2.0, 6.0, 5)
        p = origin[:, None, :] + direction[:, None, :] * z[None, :, None]
        x = torch.cat([p] + [f(2.0**k * p) for k in range(2) for f in (torch.sin, torch.cos)], -1)
        y = self.b(torch.cat([x, F.relu(self.a(x))], -1))
        gap = torch.cat([z[1:] - z[:-1], torch.tensor([1e10])], -1) * direction.norm(dim=-1, keepdim=True)
        alpha = 1 - torch.exp(-F.softplus(y[..., 3]) * gap)
        left = torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return (alpha * left)[..., None].mul(torch.sigmoid(y[..., :3])).sum(-2), (alpha * left * z).sum(-1)


@exact
def radiance_field():
    return (
        Rays(),
        (torch.randn(B, 3), torch.randn(B, 3)),
        torch.rand(B, 3),
        lambda o, t: F.mse_loss(o[0], t) + 0.1 * o[1].mean(),
    )


@refused("as many groups as the open batch has elements", "dynamic_batch=False", "groups=x.shape[0]")
def kernels_of_each_image():
    def f(s, x):
        w = s.a(x.mean((2, 3))).view(-1, 3, 3, 3)
        return F.conv2d(x.flatten(0, 1).unsqueeze(0), w, padding=1, groups=x.shape[0]).unflatten(1, (-1, 2)).squeeze(0)

    return Free(f, a=nn.Linear(3, 54)), torch.randn(4, 3, 5, 5), torch.randn(4, 2, 5, 5), nn.MSELoss()
