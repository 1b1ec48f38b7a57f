"""Memory of a conversion. Tensors that are compared once and in turn: large ones wait in a temporary file, so that memory holds one of them."""

import ctypes
import os
import tempfile
from collections.abc import Mapping

import numpy as np
import torch

LARGE = 1 << 26  # bytes of all of them from which on they go to a file


def give_back():
    """glibc keeps what was freed, and PyTorch's large tensors make it keep much: back to the system where that is glibc."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass


def bits(tensor):
    """The bytes of a tensor in their order, as a tensor."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return (flat if flat.stride(0) == 1 else flat.clone().as_strided((flat.numel(),), (1,))).view(torch.uint8)  # one element may have any stride


class Shelf(Mapping):
    """{name: tensor}, filled by put()."""

    def __init__(self, bytes_to_come):
        self._kept, self._places = {}, {}
        self._file = tempfile.TemporaryFile(prefix="onnxtrain-") if bytes_to_come > LARGE else None

    def put(self, name, tensor):
        if self._file is None:
            self._kept[name] = tensor
            return
        self._file.seek(0, os.SEEK_END)
        self._places[name] = self._file.tell(), tensor.dtype, tensor.shape
        bits(tensor).numpy().tofile(self._file)
        self._file.flush()

    def __getitem__(self, name):
        if self._file is None:
            return self._kept[name]
        offset, dtype, shape = self._places[name]
        self._file.seek(offset)
        bits = np.fromfile(self._file, np.uint8, shape.numel() * dtype.itemsize)
        return torch.from_numpy(bits).view(dtype).reshape(shape) if bits.size else torch.empty(shape, dtype=dtype)

    def __iter__(self):
        return iter(self._places if self._file is not None else self._kept)

    def __len__(self):
        return len(self._places if self._file is not None else self._kept)
