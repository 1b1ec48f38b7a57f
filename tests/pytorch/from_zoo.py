"""Small architectures of every family that people train, each as (module, inputs, targets, loss).

Used by round_trips.py and by the tests in python/tests. Sizes are small so that a whole table takes minutes.
"""

import torch
import torch.nn.functional as F
from torch import nn

from from_zoo_sequences import (  # noqa: F401
    B,
    Encoder,
    bilstm,
    gpt,
    gru,
    labels,
    llama,
    lstm,
    moe,
    rnn,
    seq2seq,
    tcn,
    transformer,
)


def images(c=3, s=16):
    return torch.randn(B, c, s, s)


def conv_bn(i, o, k=3, s=1, g=1):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), nn.ReLU())


def mlp():
    return (
        nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 5)),
        torch.randn(B, 6),
        labels(),
        nn.CrossEntropyLoss(),
    )


def cnn_bn():
    return (
        nn.Sequential(
            conv_bn(3, 8), nn.MaxPool2d(2), conv_bn(8, 16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
        ),
        images(),
        labels(),
        nn.CrossEntropyLoss(label_smoothing=0.1),
    )


class Block(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s != 1 or i != o else None

    def forward(self, x):
        y = self.n2(self.b(F.relu(self.n1(self.a(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


def resnet():
    return (
        nn.Sequential(
            conv_bn(3, 8), Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, 5)
        ),
        images(),
        labels(),
        nn.CrossEntropyLoss(),
    )


def vgg():
    return (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Linear(16 * 16, 32),
            nn.ReLU(True),
            nn.Dropout(0.0),
            nn.Linear(32, 5),
        ),
        images(),
        labels(),
        nn.CrossEntropyLoss(),
    )


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.b(F.silu(self.a(s))))


def mobilenet():
    return (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(),
            SqueezeExcite(8),
            nn.Conv2d(8, 16, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(1),
            nn.Linear(16, 5),
        ),
        images(),
        labels(),
        nn.CrossEntropyLoss(),
    )


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(8 + 4 * k), nn.ReLU(), nn.Conv2d(8 + 4 * k, 4, 3, padding=1)) for k in range(3)
        )
        self.head = nn.Linear(20, 5)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(F.avg_pool2d(x, 16).flatten(1))


def densenet():
    return DenseNet(), images(), labels(), F.cross_entropy


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = conv_bn(3, 8), conv_bn(8, 16)
        self.up, self.u1, self.out = nn.ConvTranspose2d(16, 8, 2, 2), conv_bn(16, 8), nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        return self.out(self.u1(torch.cat([self.up(b), a], 1)))


def unet():
    return (
        UNet(),
        images(),
        torch.randint(0, 3, (B, 16, 16)),
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]), ignore_index=2),
    )


class UNetResize(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(1, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return self.c(
            F.interpolate(F.leaky_relu(self.b(self.a(x)), 0.2), scale_factor=2, mode="bilinear", align_corners=False)
        )


def unet_resize():
    return UNetResize(), images(1), torch.rand(B, 1, 16, 16), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.lv = nn.Linear(12, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.dec = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12), nn.Sigmoid())

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv) if self.training and self.noise else mu
        return {"recon": self.dec(z), "mu": mu, "logvar": lv}

    noise = False


def vae_loss(out, target):
    kl = -0.5 * (1 + out["logvar"] - out["mu"].pow(2) - out["logvar"].exp()).sum()
    return F.binary_cross_entropy(out["recon"], target, reduction="sum") + kl


def vae():
    return VAE(), torch.rand(B, 12), torch.rand(B, 12), vae_loss


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16))
        self.pos = nn.Parameter(torch.randn(1, 17, 16) * 0.02)
        self.attn, self.n1, self.n2 = nn.MultiheadAttention(16, 4, batch_first=True), nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp, self.head = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.pos
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return self.head((x + self.mlp(self.n2(x)))[:, 0])


def vit():
    return ViT(), images(), labels(), nn.CrossEntropyLoss()


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.dw, self.ln = (
            nn.Conv2d(3, 8, 4, 4),
            nn.Conv2d(8, 8, 7, padding=3, groups=8),
            nn.LayerNorm(8, eps=1e-6),
        )
        self.a, self.b, self.gamma, self.head = (
            nn.Linear(8, 32),
            nn.Linear(32, 8),
            nn.Parameter(torch.ones(8) * 0.1),
            nn.Linear(8, 5),
        )

    def forward(self, x):
        x = self.stem(x)
        y = self.ln(self.dw(x).permute(0, 2, 3, 1))
        y = (self.gamma * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)
        return self.head((x + y).mean([-2, -1]))


def convnext():
    return ConvNeXt(), images(), labels(), nn.CrossEntropyLoss()


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(6, 8), nn.Linear(5, 8), nn.Parameter(torch.tensor(1.0))

    def forward(self, image, text):
        a, b = F.normalize(self.a(image), dim=-1), F.normalize(self.b(text), dim=-1)
        return self.scale.exp() * a @ b.t()


def two_towers_loss(logits, _):
    t = torch.arange(logits.size(0))
    return (F.cross_entropy(logits, t) + F.cross_entropy(logits.t(), t)) / 2


def two_towers():
    return TwoTowers(), {"image": torch.randn(B, 6), "text": torch.randn(B, 5)}, None, two_towers_loss


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.code, self.dec = nn.Linear(12, 4), nn.Embedding(6, 4), nn.Linear(4, 12)

    def forward(self, x):
        z = self.enc(x)
        index = torch.cdist(z, self.code.weight).argmin(-1)
        q = self.code(index)
        commit = F.mse_loss(z, q.detach()) * 0.25 + F.mse_loss(q, z.detach())
        return self.dec(z + (q - z).detach()), commit


def vqvae():
    return VQVAE(), torch.randn(B, 12), torch.randn(B, 12), lambda out, t: F.mse_loss(out[0], t) + out[1]


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        sn = nn.utils.parametrizations.spectral_norm
        self.a, self.b = sn(nn.Conv2d(3, 8, 4, 2, 1)), sn(nn.Linear(8 * 64, 1))

    def forward(self, x):
        return self.b(F.leaky_relu(self.a(x), 0.2).flatten(1)).squeeze(1)


def discriminator():
    return Discriminator(), images(), torch.tensor([0.0, 1.0, 1.0, 0.0]), nn.BCEWithLogitsLoss()


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.ch = (
            nn.Sequential(nn.Linear(6, 12), nn.Mish(), nn.Linear(12, 6)),
            nn.Sequential(nn.Linear(8, 16), nn.SELU(), nn.Linear(16, 8)),
        )
        self.n1, self.n2, self.head = nn.LayerNorm([6, 8]), nn.LayerNorm(8, bias=False), nn.Linear(8, 3)

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.ch(self.n2(x))).amax(1))


def mixer():
    return Mixer(), torch.randn(B, 6, 8), torch.randn(B, 3), nn.HuberLoss(delta=0.7)


class InstanceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.act = (
            nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"),
            nn.InstanceNorm2d(8, affine=True),
            nn.PReLU(8),
        )
        self.b = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        return torch.tanh(self.b(self.act(self.n(self.a(x)))))


def style():
    return InstanceNet(), images(3, 8), torch.randn(B, 3, 16, 16), nn.L1Loss()


def double_mlp():
    return (
        nn.Sequential(nn.Linear(6, 12), nn.Softplus(), nn.Linear(12, 1)).double(),
        torch.randn(B, 6).double(),
        torch.randn(B, 1).double(),
        nn.MSELoss(),
    )


def frozen_backbone():
    m = nn.Sequential(conv_bn(3, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    for p in m[0].parameters():
        p.requires_grad_(False)
    return m, images(), labels(), nn.CrossEntropyLoss()


ARCHITECTURES = {f.__name__: f for f in (
    mlp, cnn_bn, resnet, vgg, mobilenet, densenet, unet, unet_resize, vae, transformer, gpt, vit, lstm, bilstm, gru,
    rnn, llama, moe, convnext, two_towers, vqvae, tcn, discriminator, mixer, style, seq2seq, double_mlp,
    frozen_backbone)}
