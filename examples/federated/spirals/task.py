"""The training file and the rows of each client."""

import numpy as np


def file(context):
    """The training file, on every machine under the path that the run configuration says."""
    return context.run_config["file"]


def spirals(n, seed):
    """Four classes that lie in each other as the arms of a spiral."""
    rng = np.random.default_rng(seed)
    label, radius = rng.integers(0, 4, n), rng.uniform(0.1, 1, n)
    angle = 2.5 * radius + label * np.pi / 2 + rng.normal(0, 0.1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32) * 2, label


def share(k, clients):
    """Clients that are not alike: each has rows of two of the four classes, and another number of them."""
    x, y = spirals(500 * clients, seed=0)
    mine = np.concatenate([np.flatnonzero(y == k % 4)[k // 4::2], np.flatnonzero(y == (k + 1) % 4)[1 + k // 4::2]])
    mine = np.sort(mine)[: int((0.3 + 0.7 * (k + 1) / clients) * len(mine))]
    return x[mine], y[mine]


def rows(context):
    """A real client would read its own files here."""
    return share(context.node_config["partition-id"], context.run_config["clients"])
