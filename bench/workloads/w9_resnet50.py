"""W9: ResNet-50 on 224x224 images."""

from workloads.base import Workload, momentum
from workloads.blocks import conv_norm


def network(layers, x, dropout):
    x = layers.max_pool(layers.relu(conv_norm(layers, x, "conv1", 3, 64, 7, 2, 3)), 3, 2, 1)
    before = 64
    for stage, (width, blocks, first_stride) in enumerate([(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)], 1):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            name = f"layer{stage}.{block}."
            y = layers.relu(conv_norm(layers, x, name + "conv1", before, width, 1, 1, 0))
            y = layers.relu(conv_norm(layers, y, name + "conv2", width, width, 3, stride, 1))
            y = conv_norm(layers, y, name + "conv3", width, 4 * width, 1, 1, 0)
            if block == 0:
                x = conv_norm(layers, x, name + "down", before, 4 * width, 1, stride, 0)
            x = layers.relu(layers.add(x, y))
            before = 4 * width
    return layers.linear(layers.global_average(x), "fc", 2048, 1000)


WORKLOAD = Workload("W9", "resnet50", "224x224, batch 4, momentum", network, (4, 3, 224, 224), 1000,
                    momentum(check_lr=1e-4), tolerance=2e-2)
