"""Writes tests/gradients/torch.npz: outputs and gradients of single operators as PyTorch computes them, in
float64, kinks and ties included. Needs torch; the test that reads the file does not.

    python tools/torch_gradients.py
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
TARGET = Path(__file__).resolve().parents[1] / "tests/gradients/torch.npz"


class Book:
    """Cases, written down as arrays and an index."""

    def __init__(self):
        self.rng = np.random.default_rng(20)
        self.index, self.arrays = [], {}

    def normal(self, *shape):
        return self.rng.standard_normal(shape)

    def positive(self, *shape):
        return self.rng.uniform(0.2, 2, shape)

    def whole(self, *shape, low=-2, high=3):
        """Small whole numbers as floats: full of ties."""
        return self.rng.integers(low, high, shape).astype(np.float64)

    def add(self, op, inputs, f, attrs=None, opset=22, outputs=1, wrt=None, name=""):
        """f: torch tensors -> one tensor or a tuple (None: an output that is not compared)."""
        inputs = [None if x is None else np.asarray(x) for x in inputs]
        if wrt is None:
            wrt = [k for k, x in enumerate(inputs) if x is not None and x.dtype == np.float64]
        tensors = [None if x is None else torch.tensor(x) for x in inputs]
        for k in wrt:
            tensors[k].requires_grad_(True)
        ys = f(*tensors)
        ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
        cotangents = [None if y is None or not y.is_floating_point() else torch.tensor(self.normal(*y.shape))
                      for y in ys]
        total = sum((y * c).sum() for y, c in zip(ys, cotangents) if c is not None)
        grads = torch.autograd.grad(total, [tensors[k] for k in wrt], allow_unused=True)
        number = len(self.index)
        entry = {"name": name or op, "op": op, "opset": opset, "attrs": attrs or {}, "outputs": max(outputs, len(ys)),
                 "inputs": [x is not None for x in inputs], "wrt": wrt, "compared": []}
        for k, x in enumerate(inputs):
            if x is not None:
                self.arrays[f"{number}.x{k}"] = x
        for k, (y, c) in enumerate(zip(ys, cotangents)):
            if c is not None:
                entry["compared"].append(k)
                self.arrays[f"{number}.y{k}"] = y.detach().numpy()
                self.arrays[f"{number}.c{k}"] = c.numpy()
        for k, g in zip(wrt, grads):
            self.arrays[f"{number}.g{k}"] = np.zeros_like(inputs[k]) if g is None else g.numpy()
        self.index.append(entry)

    def save(self):
        places, parts = {}, {np.float64: [], np.int64: []}
        sizes = dict.fromkeys(parts, 0)
        for name, a in self.arrays.items():
            kind = np.float64 if a.dtype == np.float64 else np.int64
            places[name] = [a.dtype.name, list(a.shape), sizes[kind]]
            sizes[kind] += a.size
            parts[kind].append(a.astype(kind).ravel())
        text = json.dumps({"cases": self.index, "arrays": places})
        np.savez_compressed(TARGET, floats=np.concatenate(parts[np.float64]), ints=np.concatenate(parts[np.int64]),
                            index=np.frombuffer(text.encode(), np.uint8))
        print(f"{len(self.index)} cases of {len({e['op'] for e in self.index})} operators, {TARGET.stat().st_size} "
              f"bytes")


def main():
    import torch_gradients_elementwise
    import torch_gradients_layers
    import torch_gradients_shapes

    book = Book()
    for module in (torch_gradients_elementwise, torch_gradients_shapes, torch_gradients_layers):
        module.add_cases(book)
    book.save()


if __name__ == "__main__":
    main()
