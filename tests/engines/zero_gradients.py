"""Why some tensors of docs/engines.md's table are `right*`: their true gradient is zero.

    python tests/engines/zero_gradients.py [NAME ...]

Runs a portable step in ONNX Runtime beside the native trainer for 10 steps and looks at the elements that end more than
1e-4 apart. Their gradient in float64 (PyTorch's, at the start) is compared with the largest of the whole model:
softmax does not change when a number is added to all scores of a row, so the key's bias has no gradient, nor has a
bias before a normalisation. In float32 what is left is rounding, and Adam divides it by its own size."""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import figures  # noqa: E402
import worker  # noqa: E402

compare = figures.compare


def measure(name):
    """[(tensor, elements beyond 1e-4, of how many, their largest float64 gradient / the model's largest)], rest"""
    with tempfile.TemporaryDirectory() as folder:
        (_, state, start), _ = figures.write(name, "dynamo", True, Path(folder), "portable")
        worker.main("onnxruntime", Path(folder), Path(folder) / "o.npz")
        got = dict(np.load(Path(folder) / "o.npz"))
    ref = compare.Reference(name)
    rows, rest, largest = [], 0.0, np.max(np.abs(ref.grads))
    flat = np.zeros(ref.start.size)  # gradients in the order of the state
    at, where = 0, {n: ref.slices[n] for n in ref.names}
    for n in ref.grad_names:
        size = where[n].stop - where[n].start
        flat[where[n]] = ref.grads[at:at + size]
        at += size
    for n, places in compare.places(ref, start).items():
        apart = np.abs(got[f"state/{n}"].astype(np.float64) - state[n]).reshape(-1)
        far = apart > figures.LIMIT * max(1.0, np.max(np.abs(state[n])))
        if far.any():
            rows.append((n, int(far.sum()), far.size, float(np.max(np.abs(flat[places][far])) / largest)))
        rest = max(rest, float(np.max(apart[~far], initial=0)))
    return rows, rest


def main(names):
    print("| architecture | tensor | elements beyond 1e-4 | their largest gradient, of the model's largest | "
          "others apart |\n|---|---|---|---|---|")
    for name in names or ["vit", "mixer", "gpt", "translator"]:
        rows, rest = measure(name)
        for tensor, n, size, ratio in rows:
            print(f"| {name} | {tensor} | {n} of {size} | {ratio:.0e} | {rest:.0e} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
