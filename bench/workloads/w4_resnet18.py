"""W4: ResNet-18 on 32x32 images (a 3x3 stem, no pooling)."""

from workloads.base import Workload, momentum
from workloads.blocks import conv_norm


def network(layers, x, dropout):
    x = layers.relu(conv_norm(layers, x, "conv1", 3, 64, 3, 1, 1))
    before = 64
    for stage, (width, first_stride) in enumerate([(64, 1), (128, 2), (256, 2), (512, 2)], 1):
        for block in range(2):
            stride = first_stride if block == 0 else 1
            name = f"layer{stage}.{block}."
            y = layers.relu(conv_norm(layers, x, name + "conv1", before, width, 3, stride, 1))
            y = conv_norm(layers, y, name + "conv2", width, width, 3, 1, 1)
            if stride != 1 or before != width:
                x = conv_norm(layers, x, name + "down", before, width, 1, stride, 0)
            x = layers.relu(layers.add(x, y))
            before = width
    return layers.linear(layers.global_average(x), "fc", 512, 10)


WORKLOAD = Workload("W4", "resnet18", "32x32, batch 32, momentum", network, (32, 3, 32, 32), 10,
                    momentum(weight_decay=5e-4))
