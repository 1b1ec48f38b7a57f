"""Small models of other kinds: perceptrons, recommenders, mixtures, autoencoders."""

import torch
from torch import nn

from architectures_list import image, model


@model()
def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 4)), (torch.randn(8, 6),)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower, self.head = (
            nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 8)),
            nn.Linear(8, 4),
        )

    def forward(self, left, right):
        return self.head(torch.abs(self.tower(left) - self.tower(right)))


@model()
def siamese():
    return Siamese(), (torch.randn(8, 6), torch.randn(8, 6))


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(10, 8) for _ in range(3)])
        self.bottom, self.top = (
            nn.Sequential(nn.Linear(5, 8), nn.ReLU()),
            nn.Sequential(nn.Linear(8 + 16, 8), nn.ReLU(), nn.Linear(8, 4)),
        )

    def forward(self, dense, sparse):
        d = self.bottom(dense)
        t = torch.stack([d] + [e(sparse[:, k]) for k, e in enumerate(self.tables)], 1)
        z = torch.bmm(t, t.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([d, z], 1))


@model()
def dlrm():
    return DLRM(), (torch.randn(8, 5), torch.randint(0, 10, (8, 3)))


class Mixer(nn.Module):
    def __init__(self, t=16, c=12):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.token = nn.Sequential(nn.Linear(t, 24), nn.GELU(), nn.Linear(24, t))
        self.channel = nn.Sequential(nn.Linear(c, 24), nn.GELU(), nn.Linear(24, c))

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.n2(x))


class MixerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.blocks, self.head = nn.Conv2d(3, 12, 4, 4), nn.Sequential(Mixer(), Mixer()), nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.blocks(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


@model()
def mixer():
    return MixerNet(), (image(),)


class MoE(nn.Module):
    def __init__(self, d=8, experts=3):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, d)) for _ in range(experts)]
        )
        self.head = nn.Linear(d, 4)

    def forward(self, x):
        w, at = torch.topk(torch.softmax(self.gate(x), -1), 2, -1)
        every = torch.stack([e(x) for e in self.experts], 1)
        picked = torch.gather(every, 1, at.unsqueeze(-1).expand(-1, -1, every.shape[-1]))
        return self.head((picked * (w / w.sum(-1, keepdim=True)).unsqueeze(-1)).sum(1))


@model()
def moe():
    return MoE(), (torch.randn(8, 8),)


@model("mse", None)
def autoencoder():
    return nn.Sequential(nn.Linear(6, 3), nn.Sigmoid(), nn.Linear(3, 6)), (torch.randn(8, 6),)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mu, self.logvar = (
            nn.Sequential(nn.Linear(6, 12), nn.Softplus()),
            nn.Linear(12, 3),
            nn.Linear(12, 3),
        )
        self.decode = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 6))

    def forward(self, x):
        h = self.encode(x)
        mu, logvar = self.mu(h), self.logvar(h)
        y = self.decode(mu)
        return ((y - x) ** 2).mean() - 0.5 * (1 + logvar - mu ** 2 - logvar.exp()).mean()


@model("output", None)
def vae():
    return VAE(), (torch.randn(8, 6),)


@model("cross_entropy")
def softmax_head():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)), (
        torch.randn(8, 6),
    )
