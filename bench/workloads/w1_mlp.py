"""W1: a multilayer perceptron of 784-512-256-10."""

from workloads.base import Workload, adam


def network(layers, x, dropout, width=1):
    """Hidden layers `width` times as wide."""
    first, second = 512 * width, 256 * width
    x = layers.relu(layers.linear(x, "fc1", 784, first))
    x = layers.relu(layers.linear(x, "fc2", first, second))
    return layers.linear(x, "fc3", second, 10)


WORKLOAD = Workload("W1", "mlp", "batch 64, Adam", network, (64, 784), 10, adam())
