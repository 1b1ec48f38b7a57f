"""W5: MobileNetV2 on 96x96 images."""

from workloads.base import Workload, momentum
from workloads.blocks import conv_norm

STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def network(layers, x, dropout):
    x = layers.relu6(conv_norm(layers, x, "stem", 3, 32, 3, 2, 1))
    before, index = 32, 0
    for expansion, width, blocks, first_stride in STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            name, hidden, y = f"block{index}.", before * expansion, x
            if expansion != 1:
                y = layers.relu6(conv_norm(layers, y, name + "expand", before, hidden, 1, 1, 0))
            y = layers.relu6(conv_norm(layers, y, name + "dw", hidden, hidden, 3, stride, 1, groups=hidden))
            y = conv_norm(layers, y, name + "project", hidden, width, 1, 1, 0)
            x = layers.add(x, y) if stride == 1 and before == width else y
            before, index = width, index + 1
    x = layers.relu6(conv_norm(layers, x, "head", 320, 1280, 1, 1, 0))
    return layers.linear(layers.global_average(x), "fc", 1280, 1000)


WORKLOAD = Workload("W5", "mobilenetv2", "96x96, batch 16, momentum", network, (16, 3, 96, 96), 1000,
                    momentum(check_lr=1e-3), tolerance=1e-2)
