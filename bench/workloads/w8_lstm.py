"""W8: one LSTM of 256 over 64 steps, a classifier on its last hidden state."""

from workloads.base import Workload, adam


def network(layers, x, dropout):
    return layers.linear(layers.lstm_last(x, "lstm", 64, 256), "fc", 256, 10)


WORKLOAD = Workload("W8", "lstm", "32x64x64, Adam", network, (32, 64, 64), 10, adam())
