"""Memory of a conversion. Arrays that are compared once and in turn: large ones wait in a temporary file, so that
memory holds one of them."""

import ctypes
import os
import tempfile
from collections.abc import Mapping

import numpy as np

LARGE = 1 << 26  # bytes of all of them from which on they go to a file


def trim_memory():
    """glibc keeps what was freed, and large tensors make it keep much: back to the system where that is glibc."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass


class SpilledArrays(Mapping):
    """{name: array}, filled by put()."""

    def __init__(self, bytes_to_come):
        self._kept, self._places = {}, {}
        self._file = tempfile.TemporaryFile(prefix="onnxtrain-") if bytes_to_come > LARGE else None

    def put(self, name, array):
        if self._file is None:
            self._kept[name] = array
            return
        self._file.seek(0, os.SEEK_END)
        self._places[name] = self._file.tell(), array.dtype, array.shape
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(self._file)
        self._file.flush()

    def __getitem__(self, name):
        if self._file is None:
            return self._kept[name]
        offset, dtype, shape = self._places[name]
        self._file.seek(offset)
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return np.fromfile(self._file, np.uint8, count).view(dtype).reshape(shape)

    def __iter__(self):
        return iter(self._places if self._file is not None else self._kept)

    def __len__(self):
        return len(self._places if self._file is not None else self._kept)
