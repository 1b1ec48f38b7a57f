"""Values of a graph while Keras runs it. Images are kept channels last, as Keras' convolutions want them, and turned
only where an operator asks for the file's own order of axes."""

from keras import ops

from ...errors import ModelError


def to_last(x):
    return ops.transpose(x, (0, *range(2, len(x.shape)), 1))


def to_first(x):
    rank = len(x.shape)
    return ops.transpose(x, (0, rank - 1, *range(1, rank - 1)))


class Values:
    def __init__(self, stored):
        self.first, self.last, self.stored = {}, {}, stored

    def __getitem__(self, name):
        """In the file's order of axes."""
        if name not in self.first:
            if name in self.last:
                self.first[name] = to_first(self.last[name])
            elif name in self.stored:
                self.first[name] = self.stored[name]()
            else:
                raise ModelError(f"'{name}' is not computed before it is read", "OT1711")
        return self.first[name]

    def image(self, name):
        """Channels last."""
        if name not in self.last:
            self.last[name] = to_last(self[name])
        return self.last[name]

    def is_image(self, name):
        return name in self.last and name not in self.first

    def set(self, name, value):
        self.first[name] = value

    def set_image(self, name, value):
        self.last[name] = value
