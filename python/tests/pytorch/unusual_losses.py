"""Losses that people write as functions: contrastive, of boxes and masks, of teachers; and nested inputs and
targets."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from unusual import exact, lin, t4, x6

B = 8
mse = nn.MSELoss()


class Both(nn.Module):
    """One network on two views."""

    def __init__(self):
        super().__init__()
        self.net, self.scale = (
            nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)),
            nn.Parameter(torch.tensor(math.log(1 / 0.07))),
        )

    def forward(self, a, b):
        return self.net(a), self.net(b), self.scale.exp().clamp(max=100)


def both():
    return Both(), (x6(B), x6(B)), None


@exact
def image_and_text():
    def loss(o, _):
        scores = o[2] * F.normalize(o[0], dim=-1) @ F.normalize(o[1], dim=-1).T
        t = torch.arange(scores.shape[0], device=scores.device)
        return (F.cross_entropy(scores, t) + F.cross_entropy(scores.T, t)) / 2

    return *both(), loss


@exact
def two_views():
    def loss(o, _):
        z = F.normalize(torch.cat(o[:2], 0), dim=1)
        n = z.size(0)
        s = (z @ z.T / 0.5).masked_fill(torch.eye(n, dtype=torch.bool), float("-inf"))
        return F.cross_entropy(s, torch.cat([torch.arange(n // 2) + n // 2, torch.arange(n // 2)]))

    return *both(), loss


@exact
def decorrelation():
    def loss(o, _):
        a, b = ((z - z.mean(0)) / z.std(0) for z in o[:2])
        c = a.T @ b / a.shape[0]
        off = c.flatten()[:-1].view(c.shape[0] - 1, c.shape[0] + 1)[:, 1:].flatten()
        return torch.diagonal(c).add(-1).pow(2).sum() + 0.005 * off.pow(2).sum()

    return *both(), loss


@exact
def hardest_pairs():
    def loss(o, y):
        d, same = torch.cdist(o, o), y[:, None] == y[None]
        hard = F.relu((d * same).max(1).values - (d + 1e6 * same).min(1).values + 0.3).mean()
        cosine = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b))
        return hard + cosine(o[:2], o[2:4], o[4:6])

    return nn.Sequential(lin(), nn.Tanh(), lin(4, 3)), x6(8), torch.tensor([0, 0, 1, 1, 2, 2, 0, 1]), loss


hardest_pairs.static = True


@exact
def masks_and_boxes():
    def loss(o, t):
        p = torch.sigmoid(o)
        each = F.binary_cross_entropy_with_logits(o, t["mask"], reduction="none")
        focal = (each * (1 - (p * t["mask"] + (1 - p) * (1 - t["mask"]))) ** 2).mean()
        dice = 1 - (2 * (p * t["mask"]).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + t["mask"].sum((1, 2, 3)) + 1)
        a, b = F.pad(o.mean((1, 2)), (0, 0)), t["box"]
        a = torch.cat([torch.min(a[:, :2], a[:, 2:4]), torch.max(a[:, :2], a[:, 2:4])], -1)
        size = (torch.min(a[:, 2:], b[:, 2:]) - torch.max(a[:, :2], b[:, :2])).clamp(min=0)
        shared, area = size[:, 0] * size[:, 1], lambda z: (z[:, 2] - z[:, 0]) * (z[:, 3] - z[:, 1])
        union = area(a) + area(b) - shared
        hull = (torch.max(a[:, 2:], b[:, 2:]) - torch.min(a[:, :2], b[:, :2])).prod(1)
        return focal + dice.mean() + (1 - shared / (union + 1e-7) + (hull - union) / (hull + 1e-7)).mean()

    box = torch.rand(4, 4)
    box[:, 2:] += 1
    return (
        nn.Conv2d(3, 1, 3, padding=1),
        torch.randn(4, 3, 4, 4),
        {"mask": (torch.rand(4, 1, 4, 4) > 0.5).float(), "box": box},
        loss,
    )


class Pupil(nn.Module):
    """A teacher that stays in eval(), and an average that follows a weight."""

    def __init__(self):
        super().__init__()
        self.pupil, self.teacher = lin(), nn.Sequential(lin(6, 8), nn.BatchNorm1d(8), lin(8, 4)).requires_grad_(False)
        self.register_buffer("slow", torch.randn(4, 6))

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            t = self.teacher(x)
            if self.training:
                self.slow.mul_(0.99).add_(self.pupil.weight, alpha=0.01)
        return self.pupil(x), t, F.linear(x, self.slow).detach()


@exact
def teacher_and_average():
    def loss(o, t):
        soft = F.kl_div(F.log_softmax(o[0] / 3, 1), F.softmax(o[1] / 3, 1), reduction="batchmean") * 9
        return (
            F.cross_entropy(o[0], t, label_smoothing=0.1)
            + soft
            + (2 - 2 * F.cosine_similarity(o[0], o[2], dim=-1)).mean()
        )

    return Pupil(), x6(), torch.randint(0, 4, (8,)), loss


class Angles(nn.Module):
    """The labels are an input too."""

    def __init__(self):
        super().__init__()
        self.a, self.weight = lin(), nn.Parameter(torch.randn(5, 4))

    def forward(self, x, label):
        c = F.linear(F.normalize(self.a(x)), F.normalize(self.weight))
        moved = c * math.cos(0.5) - torch.sqrt((1 - c**2).clamp(0, 1)) * math.sin(0.5)
        moved = torch.where(c > math.cos(math.pi - 0.5), moved, c - math.sin(math.pi - 0.5) * 0.5)
        own = torch.zeros(c.size()).scatter_(1, label.view(-1, 1).long(), 1)
        return (own * moved + (1 - own) * c) * 30


@exact
def angular_margin():
    y = torch.randint(0, 5, (8,))
    return Angles(), {"x": x6(), "label": y}, y, nn.CrossEntropyLoss()


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = lin(), lin(3, 4)

    def forward(self, batch, scale=2.0, *, mask=None):
        y = self.a(batch["dense"]["x"]) + self.b(batch["more"][0])
        return {"kind": y * scale, "sizes": [y.sum(-1), y.mean(-1)]}


@exact
def nested_inputs_and_targets():
    def loss(o, t):
        return F.cross_entropy(o["kind"], t["kind"]) + mse(o["sizes"][0], t["size"][0]) + o["sizes"][1].abs().mean()

    return (
        Nested(),
        ({"dense": {"x": x6()}, "more": [torch.randn(8, 3)]},),
        {"kind": torch.randint(0, 4, (8,)), "size": [torch.randn(8)]},
        loss,
    )


@exact
def soft_labels_in_float64():
    return (
        nn.Sequential(lin(), nn.LayerNorm(4), nn.GELU()).double(),
        x6().double(),
        t4().double().softmax(-1),
        lambda o, t: F.cross_entropy(o, t) + F.kl_div(F.log_softmax(o, -1), t, reduction="batchmean"),
    )


@exact
def paths_without_alignment():
    class Speech(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.GRU(6, 5)

        def forward(self, x):
            return F.log_softmax(self.a(x.transpose(0, 1))[0], -1)

    def loss(o, t):
        given = o, t["labels"], t["steps"], t["count"]
        return nn.CTCLoss(zero_infinity=True)(*given) + F.ctc_loss(
            o, t["labels"] - 1, t["steps"].clamp(min=6), t["count"].clamp(max=2), blank=4, reduction="sum"
        )

    labels = torch.randint(1, 5, (4, 3))
    labels[0, 1] = labels[0, 0]
    return (
        Speech(),
        torch.randn(4, 7, 6),
        {"labels": labels, "steps": torch.tensor([7, 6, 2, 7]), "count": torch.tensor([3, 2, 3, 0])},
        loss,
    )


@exact
def diagonals_and_covariances():
    def loss(o, t):
        z = F.normalize(o)
        near = (z @ z.T / 0.5).fill_diagonal_(-9e15)
        spread = torch.cov(o.T).fill_diagonal_(0).square().sum() + torch.corrcoef(o.T).square().mean() + o[:, 0].cov()
        return F.cross_entropy(near, torch.arange(o.shape[0]).roll(1)) + spread - torch.logdet(o.T @ o + torch.eye(4))

    return nn.Linear(6, 4), torch.randn(8, 6), None, loss


@exact
def weights_of_classes_per_column():
    weight, positive = torch.tensor([1.0, 0.5, 2.0, 1.5]), torch.tensor([3.0, 1.0, 0.5, 2.0])
    return lin(), x6(), torch.rand(B, 4), nn.BCEWithLogitsLoss(weight=weight, pos_weight=positive)
