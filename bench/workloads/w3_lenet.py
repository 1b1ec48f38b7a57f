"""W3: two 5x5 convolutions with pooling, two linear layers, on 28x28 images."""

from workloads.base import Workload, momentum


def network(layers, x, dropout):
    x = layers.max_pool(layers.relu(layers.conv(x, "conv1", 1, 32, 5, 1, 2, bias=True)), 2, 2, 0)
    x = layers.max_pool(layers.relu(layers.conv(x, "conv2", 32, 64, 5, 1, 2, bias=True)), 2, 2, 0)
    x = layers.relu(layers.linear(layers.flatten(x), "fc1", 3136, 512, image=(64, 7, 7)))
    return layers.linear(x, "fc2", 512, 10)


WORKLOAD = Workload("W3", "lenet", "batch 64, momentum", network, (64, 1, 28, 28), 10, momentum())
