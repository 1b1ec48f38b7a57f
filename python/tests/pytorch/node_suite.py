"""The ONNX backend node tests through the torch operator table: which of them PyTorch computes as the standard says.

    python python/tests/pytorch/node_suite.py                    # counts, and what is refused
    python python/tests/pytorch/node_suite.py --filter test_resize --failures
"""

import argparse
import functools
import re
import warnings
from collections import Counter

import numpy as np
import torch

import onnxtrain as ot
from onnxtrain.errors import ModelError
from onnxtrain.torch.to_torch.program import Program
from onnxtrain.torch.to_torch.source import Source


@functools.cache
def cases():
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {c.name: c for c in load_model_tests(kind="node")}


def as_torch(x):
    if isinstance(x, list):
        return [as_torch(v) for v in x]
    if x is None:
        return None
    a = np.asarray(x)
    if a.dtype.kind in "OUST":
        raise TypeError("text")
    if a.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        bits = torch.from_numpy(a.view(np.int16 if a.dtype.name == "bfloat16" else np.uint8).copy())
        return bits.view(getattr(torch, a.dtype.name))
    return torch.from_numpy(np.array(a))


def same(got, want, case):
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), "length of the sequence"
        for g, w in zip(got, want):
            same(g, w, case)
        return
    want = as_torch(want)
    if want is None:
        assert got is None
        return
    assert got.dtype == want.dtype, f"type {got.dtype} instead of {want.dtype}"
    assert got.shape == want.shape, f"shape {tuple(got.shape)} instead of {tuple(want.shape)}"
    g, w = (t.to(torch.float64) if t.dtype.is_floating_point else t for t in (got, want))
    np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=max(case.rtol, 1e-3), atol=max(case.atol, 1e-7))


def run(case):
    """'passed', 'refused: why' or 'failed: why'."""
    try:
        main = Source(ot.load(case.model.SerializeToString())).graphs.main
        names = main.inputs
        program = Program(main.nodes, names, main.outputs, main.constants)
        for inputs, wants in case.data_sets:
            got = program(dict(zip(names, map(as_torch, inputs))))
            for g, w in zip(got, wants):
                same(g, w, case)
        return "passed"
    except (ModelError, TypeError) as e:
        return f"refused: {str(e).splitlines()[-2] if isinstance(e, ModelError) else e}"
    except Exception as e:  # noqa: BLE001 - the outcome is the result
        return f"failed: {type(e).__name__}: {' '.join(str(e).split())[:160]}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--filter", default="")
    p.add_argument("--failures", action="store_true")
    p.add_argument("--refused", action="store_true")
    a = p.parse_args()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = {n: run(c) for n, c in cases().items() if re.search(a.filter, n)}
    counts = Counter(r.split(":")[0] for r in results.values())
    for n, r in sorted(results.items()):
        if (a.failures and r.startswith("failed")) or (a.refused and r.startswith("refused")):
            print(f"{n:60s} {r}")
    print(
        f"{counts['passed']} of {len(results)} node tests pass, {counts['refused']} refused by name, "
        f"{counts['failed']} differ"
    )
    return counts["failed"]


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
