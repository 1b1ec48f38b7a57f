"""W2: 131 parameters, so that a step costs what the engine itself costs."""

from workloads.base import Workload, sgd


def network(layers, x, dropout):
    return layers.linear(layers.relu(layers.linear(x, "fc1", 4, 16)), "fc2", 16, 3)


WORKLOAD = Workload("W2", "tiny", "batch 16, SGD", network, (16, 4), 3, sgd())
