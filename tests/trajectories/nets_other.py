"""Small networks of other kinds: sets, graphs, tables, experts, shared weights."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Siamese(nn.Module):
    """One tower, twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv1d(2, 6, 3), nn.Linear(36, 8)

    def tower(self, x):
        return self.fc(torch.flatten(torch.relu(self.conv(x)), 1))

    def forward(self, a, b):
        return F.cosine_similarity(self.tower(a), self.tower(b), dim=1)


class Contrastive(nn.Module):
    """Same pairs to 1, others below the margin."""

    def forward(self, similarity, same):
        far = torch.clamp(similarity - 0.2, min=0.0)
        return torch.mean(same * (1 - similarity) ** 2 + (1 - same) * far**2)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 6) for n in (20, 11, 7))
        self.bottom, self.top1, self.top2 = nn.Linear(4, 6), nn.Linear(12, 12), nn.Linear(12, 1)
        self.register_buffer("rows", torch.tensor([1, 2, 2, 3, 3, 3]), persistent=False)
        self.register_buffer("cols", torch.tensor([0, 0, 1, 0, 1, 2]), persistent=False)

    def forward(self, dense, ids):
        d = torch.relu(self.bottom(dense))
        e = torch.stack([d] + [t(ids[:, k]) for k, t in enumerate(self.tables)], 1)
        pairs = torch.bmm(e, e.transpose(1, 2))[:, self.rows, self.cols]
        return self.top2(torch.relu(self.top1(torch.cat([d, pairs], 1))))


class Moe(nn.Module):
    """Two of four experts per token, weights renormalised."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.w1 = nn.Parameter(torch.randn(4, 8, 12) * 0.3)
        self.w2 = nn.Parameter(torch.randn(4, 12, 8) * 0.3)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        top, at = torch.topk(self.gate(x), 2, -1)
        weights = torch.zeros_like(self.gate(x)).scatter(-1, at, top.softmax(-1))
        h = F.silu(torch.einsum("bd,edh->beh", x, self.w1))
        y = torch.einsum("beh,ehd->bed", h, self.w2)
        return self.out(x + (weights[..., None] * y).sum(1))


class Gcn(nn.Module):
    """Messages along edges, added up at their targets; one graph of 9 nodes per step."""

    def __init__(self):
        super().__init__()
        self.l1, self.s1 = nn.Linear(5, 12, bias=False), nn.Linear(5, 12)
        self.l2, self.s2 = nn.Linear(12, 3, bias=False), nn.Linear(12, 3)

    @staticmethod
    def spread(x, edges):
        source, target = edges[0], edges[1]
        counted = torch.cat([x, torch.ones_like(x[:, :1])], 1)
        both = torch.zeros_like(counted).index_add(0, target, counted[source])
        return both[:, :-1] / torch.clamp(both[:, -1:], min=1.0)

    def forward(self, x, edges):
        h = torch.relu(self.spread(self.l1(x), edges) + self.s1(x))
        return self.spread(self.l2(h), edges) + self.s2(h)


class Mdn(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.pi, self.mu, self.sigma = nn.Linear(3, 16), nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, x):
        h = torch.tanh(self.fc1(x))
        return F.log_softmax(self.pi(h), -1), self.mu(h), F.softplus(self.sigma(h)) + 1e-3


class MdnLoss(nn.Module):
    def forward(self, logpi, mu, sigma, target):
        z = (target - mu) / sigma
        each = logpi - torch.log(sigma) - 0.5 * z * z - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(each, 1).mean()


class DeepSets(nn.Module):
    """A sum over the members that the mask keeps."""

    def __init__(self):
        super().__init__()
        self.phi1, self.phi2, self.rho = nn.Linear(4, 12), nn.Linear(12, 10), nn.Linear(10, 2)

    def forward(self, x, mask):
        h = self.phi2(F.mish(self.phi1(x)))
        h = torch.where(mask[..., None], h, torch.zeros_like(h)).sum(1)
        return self.rho(F.hardsigmoid(h) * h)


class Highway(nn.Module):
    """Gates, norms over vectors and functions that the others do not use."""

    def __init__(self):
        super().__init__()
        self.inp, self.bn, self.carry, self.gate = (
            nn.Linear(6, 10),
            nn.BatchNorm1d(10),
            nn.Linear(10, 10),
            nn.Linear(10, 10),
        )
        self.glu, self.scale, self.out = nn.Linear(10, 12), nn.Parameter(torch.ones(6)), nn.Linear(6, 1)

    def forward(self, x):
        h = F.celu(self.bn(self.inp(x)), 1.3)
        g = torch.sigmoid(self.gate(h))
        h = g * F.softsign(self.carry(h)) + (1 - g) * h
        h = F.glu(self.glu(h), -1) * torch.erf(self.scale) + torch.atan(x) * 0.1
        return torch.sigmoid(self.out(F.normalize(h, dim=1)))
