"""Small networks over images and vectors for the trajectories (torch only makes and dumps them)."""

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(12, 24), nn.Linear(24, 16), nn.Linear(16, 5)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(F.relu(self.fc1(x)))))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 8, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(32, 24), nn.Linear(24, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 6, 3, 1, 1, bias=False), nn.BatchNorm2d(6)
        self.layer1, self.layer2 = ResBlock(6, 6, 1), ResBlock(6, 10, 2)
        self.fc = nn.Linear(10, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.stem(x))), 3, 2, 1)
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Inverted(nn.Module):
    """Depthwise-separable block of MobileNet, with squeeze-and-excitation for EfficientNet."""

    def __init__(self, cin, cout, grow, stride, act, se):
        super().__init__()
        mid = cin * grow
        self.expand, self.bn1 = nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.depth = nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.project, self.bn3 = nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.act = act
        self.squeeze, self.excite = (nn.Conv2d(mid, 4, 1), nn.Conv2d(4, mid, 1)) if se else (None, None)
        self.skip = stride == 1 and cin == cout

    def forward(self, x):
        y = self.act(self.bn1(self.expand(x)))
        y = self.act(self.bn2(self.depth(y)))
        if self.squeeze is not None:
            s = y.mean((2, 3), keepdim=True)
            y = y * torch.sigmoid(self.excite(self.act(self.squeeze(s))))
        y = self.bn3(self.project(y))
        return x + y if self.skip else y


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6)
        self.b1 = Inverted(6, 6, 2, 1, nn.ReLU6(), False)
        self.b2 = Inverted(6, 8, 3, 2, nn.Hardswish(), False)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = self.b2(self.b1(F.relu6(self.bn(self.stem(x)))))
        return self.fc(x.mean((2, 3)))


class EfficientNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6, momentum=0.01, eps=1e-3)
        self.b1 = Inverted(6, 6, 2, 1, nn.SiLU(), True)
        self.b2 = Inverted(6, 8, 3, 2, nn.SiLU(), True)
        self.drop, self.fc = nn.Dropout(0.0), nn.Linear(8, 4)

    def forward(self, x):
        x = self.b2(self.b1(F.silu(self.bn(self.stem(x)))))
        return self.fc(self.drop(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)))


class ConvNeXtBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 5, padding=2, groups=c)
        self.norm, self.pw1, self.pw2 = nn.LayerNorm(c, eps=1e-6), nn.Linear(c, 3 * c), nn.Linear(3 * c, c)
        self.gamma = nn.Parameter(0.1 * torch.ones(c))

    def forward(self, x):
        y = self.dw(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pw2(F.gelu(self.pw1(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.b1 = nn.Conv2d(3, 8, 2, 2), ConvNeXtBlock(8)
        self.down, self.b2 = nn.Conv2d(8, 12, 2, 2), ConvNeXtBlock(12)
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 4)

    def forward(self, x):
        x = self.b2(self.down(self.b1(self.stem(x))))
        return self.head(self.norm(x.mean([-2, -1])))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.mid, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.dec2, self.dec1 = nn.Conv2d(16, 6, 3, padding=1), nn.Conv2d(12, 6, 3, padding=1)
        self.out = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = F.leaky_relu(self.enc1(x), 0.1)
        b = F.leaky_relu(self.enc2(F.max_pool2d(a, 2)), 0.1)
        m = F.relu(self.norm(self.mid(F.avg_pool2d(b, 2))))
        u = F.relu(self.dec2(torch.cat([self.up(m), b], 1)))
        u = F.interpolate(u, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(F.relu(self.dec1(torch.cat([u, a], 1))))


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.act = nn.Conv2d(1, 8, 5, padding=2, padding_mode="reflect"), nn.PReLU(8)
        self.conv2, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.InstanceNorm2d(8, affine=True)
        self.conv3 = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        y = self.act(self.conv1(x))
        y = F.elu(self.norm(self.conv2(y)))
        return F.pixel_shuffle(self.conv3(y), 2) + F.interpolate(x, scale_factor=2, mode="nearest")


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 6, 3, padding=1)
        self.bns = nn.ModuleList(nn.BatchNorm2d(6 + 4 * k) for k in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(6 + 4 * k, 4, 3, padding=1) for k in range(3))
        self.squeeze, self.fc = nn.Conv2d(18, 8, 1), nn.Linear(8, 3)

    def forward(self, x):
        x = self.stem(x)
        for bn, conv in zip(self.bns, self.convs):
            x = torch.cat([x, conv(F.relu(bn(x)))], 1)
        x = F.avg_pool2d(F.softplus(self.squeeze(x)), 2, ceil_mode=False)
        return self.fc(x.amax((2, 3)))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = nn.Linear(20, 14), nn.Linear(14, 4)
        self.dec1, self.dec2 = nn.Linear(4, 14), nn.Linear(14, 20)

    def forward(self, x):
        z = F.selu(self.enc2(F.selu(self.enc1(x))))
        return self.dec2(F.selu(self.dec1(z)))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.mu, self.logvar = nn.Conv2d(1, 4, 3, 2, 1), nn.Linear(64, 3), nn.Linear(64, 3)
        self.fc, self.up = nn.Linear(3, 64), nn.ConvTranspose2d(4, 1, 4, 2, 1)

    def forward(self, x, noise):
        h = torch.flatten(F.relu(self.conv(x)), 1)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        return self.up(F.relu(self.fc(z)).view(-1, 4, 4, 4)), mu, logvar


class VaeKl(nn.Module):
    """The second term of the VAE's loss, over its outputs."""

    def forward(self, mu, logvar):
        return -0.5 * torch.mean(torch.sum(1 + logvar - mu * mu - torch.exp(logvar), 1))


class Gan(nn.Module):
    """Both players in one graph: scores of real and of made samples."""

    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh())
        self.dis = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, real, z):
        return self.dis(real), self.dis(self.gen(z))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.n1, self.n2 = nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12), nn.LayerNorm(12)
        self.t1, self.t2 = nn.Linear(4, 10), nn.Linear(10, 4)
        self.c1, self.c2 = nn.Linear(12, 24), nn.Linear(24, 12)
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.t2(F.gelu(self.t1(self.n1(x).transpose(1, 2)), approximate="tanh")).transpose(1, 2)
        x = x + self.c2(F.gelu(self.c1(self.n2(x)), approximate="tanh"))
        return self.head(self.norm(x).mean(1))
