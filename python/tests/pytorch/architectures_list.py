"""The list of small models that the PyTorch road is tried on, filled by the modules beside it."""

import torch

ZOO = {}


def model(loss="cross_entropy", classes=4):
    def register(f):
        ZOO[f.__name__] = (f, loss, classes)
        return f

    return register


def image(n=4, c=3, s=16):
    return torch.randn(n, c, s, s)


def tokens(n=4, length=8, vocab=20):
    return torch.randint(0, vocab, (n, length))


def target_for(name, output):
    """A target that fits the loss."""
    loss, classes = ZOO[name][1:]
    g = torch.Generator().manual_seed(7)
    if loss == "output":
        return None
    if loss == "mse":
        return torch.randn(output.shape, generator=g)
    shape = [d for d in output.shape]
    if classes == 20:
        return torch.randint(0, classes, shape[:-1], generator=g)
    return torch.randint(0, classes, [shape[0], *shape[2:]], generator=g)
