"""Small image models: convolutions, attention over patches, volumes."""

import torch
import torch.nn.functional as F
from torch import nn

from architectures_list import image, model
from architectures_sequences import Block


@model()
def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 8, 5),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 16),
        nn.Tanh(),
        nn.Linear(16, 4),
    ), (image(4, 1, 16),)


class Residual(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.downsample = (
            nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride != 1 or i != o else None
        )

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.pool = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Residual(8, 8), Residual(8, 8))
        self.layer2 = nn.Sequential(Residual(8, 16, 2))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 4)

    def forward(self, x):
        x = self.layer2(self.layer1(self.pool(F.relu(self.bn1(self.conv1(x))))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@model()
def resnet():
    return ResNet(), (image(),)


class Inverted(nn.Module):
    def __init__(self, c, e, act, squeeze=False):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(c, e, 1, bias=False), nn.BatchNorm2d(e), act())
        self.depth = nn.Sequential(nn.Conv2d(e, e, 3, 1, 1, groups=e, bias=False), nn.BatchNorm2d(e), act())
        self.squeeze = (
            nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(e, 4, 1), nn.SiLU(), nn.Conv2d(4, e, 1), nn.Sigmoid())
            if squeeze
            else None
        )
        self.project = nn.Sequential(nn.Conv2d(e, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y if self.squeeze is None else y * self.squeeze(y))


@model()
def mobilenet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        Inverted(8, 16, nn.ReLU6),
        Inverted(8, 16, nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.0),
        nn.Linear(8, 4),
    ), (image(),)


@model()
def efficientnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        Inverted(8, 24, nn.SiLU, True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ), (image(),)


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
        self.up, self.down, self.scale = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), nn.Parameter(0.1 * torch.ones(c))

    def forward(self, x):
        y = self.down(F.gelu(self.up(self.norm(self.dw(x).permute(0, 2, 3, 1)))))
        return x + (self.scale * y).permute(0, 3, 1, 2)


@model()
def convnext():
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 4),
        ConvNextBlock(8),
        ConvNextBlock(8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.LayerNorm(8),
        nn.Linear(8, 4),
    ), (image(),)


class ViT(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, d, 4, 4), nn.Parameter(torch.randn(1, 1, d) * 0.02)
        self.pos, self.blocks = nn.Parameter(torch.randn(1, 17, d) * 0.02), nn.Sequential(Block(d, 4), Block(d, 4))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 4)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


@model()
def vit():
    return ViT(), (image(),)


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.mid = double_conv(3, 8), double_conv(8, 16), double_conv(16, 16)
        self.up1, self.up2 = (
            nn.ConvTranspose2d(16, 16, 2, 2),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
        )
        self.u1, self.u2, self.out = double_conv(32, 8), double_conv(16, 8), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        y = self.u1(torch.cat([self.up1(self.mid(F.max_pool2d(b, 2))), b], 1))
        return self.out(self.u2(torch.cat([self.up2(y), a], 1)))


@model()
def unet():
    return UNet(), (image(),)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Sequential(nn.BatchNorm2d(4 + 4 * k), nn.ReLU(), nn.Conv2d(4 + 4 * k, 4, 3, padding=1))
                for k in range(3)
            ]
        )
        self.stem, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(16, 4)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(F.avg_pool2d(x, 16).flatten(1))


@model()
def densenet():
    return DenseNet(), (image(),)


@model("mse", None)
def superresolution():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.PReLU(), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2)
    ), (image(s=8),)


@model()
def group_norm():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.GroupNorm(4, 8),
        nn.ELU(),
        nn.Conv2d(8, 8, 3),
        nn.InstanceNorm2d(8, affine=True),
        nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ), (image(),)


@model()
def volume():
    return nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(4 * 27, 4)
    ), (torch.randn(4, 1, 6, 6, 6),)
