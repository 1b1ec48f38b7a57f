"""Batches that an iterator gives, as the library draws them: a stream is one more kind of dataset."""

import warnings

import numpy as np

from .data import batch_feeds, is_batches, is_one_pass
from .errors import DataError, UsageError
from .values import to_native


class Batches:
    """Batches epoch by epoch: a loader is gone through again each time, a callable called, a generator continued."""

    def __init__(self, source, epochs, steps_per_epoch, inputs, targets):
        self._source, self._inputs, self._targets = source, inputs, targets
        self.per_epoch = steps_per_epoch or 0
        self._kinds = {}  # input -> type of the batches so far
        if is_one_pass(source) and not steps_per_epoch:
            if epochs not in (None, 1):
                raise UsageError("a generator can be gone through only once", "OT1157",
                                 "steps_per_epoch=N cuts it into epochs; "
                                 "or pass the function that makes it, or a list-like loader")
            epochs = 1
        self.epochs = 10 if epochs is None else epochs

    def begin(self, epoch):
        """Called by the library when an epoch begins."""
        source = self._source
        self._batches = iter(source() if callable(source) and not hasattr(source, "__iter__") else source)

    def _notice_bytes(self, feeds):
        """Bytes are divided by 255, other numbers are taken as they are: a stream that has both is said, once."""
        for name in self._inputs:
            kind = str(getattr(feeds.get(name), "dtype", ""))
            if kind and (self._kinds.setdefault(name, kind) == "uint8") != (kind == "uint8"):
                warnings.warn(f"batches of '{name}' hold bytes ({kind} after {self._kinds[name]}) and other numbers: "
                              "bytes are divided by 255, the others are not; help: give all batches in one type",
                              UserWarning, stacklevel=4)
                self._kinds[name] = kind

    def next(self):
        """Called by the library: (names, values) of the next batch, or None at the end."""
        try:
            item = next(self._batches)
        except StopIteration:
            return None
        feeds = batch_feeds(item, self._inputs, self._targets)
        self._notice_bytes(feeds)
        return list(feeds), [to_native(v, k) for k, v in feeds.items()]


def whole(x, y, inputs, targets):
    """(x, y) as arrays, where x is an iterable of batches of both that comes to an end; anything else as it is."""
    if y is not None or not is_batches(x):
        return x, y
    parts = {}
    for item in x() if callable(x) and not hasattr(x, "__iter__") else x:
        for name, values in batch_feeds(item, inputs, targets).items():
            parts.setdefault(name, []).append(values)
    if not parts:
        raise DataError(f"an iterator ({type(x).__name__}) gave no batch", "OT2101", "give at least one row")
    named = {name: np.concatenate(values) for name, values in parts.items()}
    y = {name: named.pop(name) for name in targets if name in named}
    return named, y or None
