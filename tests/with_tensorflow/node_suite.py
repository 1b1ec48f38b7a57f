"""The ONNX backend node tests in TensorFlow, and Resize in every combination against onnxtrain.

    .venv-tf/bin/python tests/with_tensorflow/node_suite.py                 # counts, and what differs
    .venv-tf/bin/python tests/with_tensorflow/node_suite.py test_resize     # cases with this in their names
"""

import itertools
import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import onnxtrain as ot  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
MODES = ("nearest", "linear", "cubic")
TRANSFORMS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
              "tf_half_pixel_for_nn")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def cases(part):
    """{name: (model, data sets, rtol, atol)}, written by the environment that has onnx."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cases.pickle"
        subprocess.run([TOP / ".venv/bin/python", Path(__file__).parent / "dump_cases.py", out, part], check=True)
        return pickle.loads(out.read_bytes())


def as_tensor(x):
    if isinstance(x, list):
        return tf.ragged.constant([np.asarray(v).tolist() for v in x])
    a = np.asarray(x)
    return tf.constant([v.encode() if isinstance(v, str) else v for v in a.reshape(-1)], shape=a.shape) \
        if a.dtype.kind in "OUST" else tf.constant(a)


def same(got, want, rtol, atol):
    if isinstance(want, list):
        assert got.to_list() == [np.asarray(v).tolist() for v in want], "sequence"
        return
    want, got = np.asarray(want), got.numpy()
    if want.dtype.kind in "OUST":
        assert [v.decode() for v in got.reshape(-1)] == [str(v) for v in want.reshape(-1)]
        return
    assert got.dtype == want.dtype, f"type {got.dtype} instead of {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
    np.testing.assert_allclose(got.astype(np.float64) if want.dtype.kind == "f" else got, want,
                               rtol=max(rtol, 1e-3), atol=max(atol, 1e-7))


def run(model, data_sets, rtol, atol):
    """'right', 'refused: why' or 'differs: why'."""
    try:
        made = ot.to_tf(ot.load(model))
    except ot.Error as e:
        return "refused: " + str(e).splitlines()[min(1, len(str(e).splitlines()) - 1)].strip()[:150]
    try:
        for inputs, wants in data_sets:
            got = type(made).__call__(*(as_tensor(x) for x in inputs))
            got = list(got.values()) if isinstance(got, dict) else [got]
            names = made.output_names
            for g, w in zip(got, wants[:len(names)]):
                same(g, w, rtol, atol)
        return "right"
    except Exception as e:  # noqa: BLE001
        return f"differs: {type(e).__name__}: {' '.join(str(e).split())[:200]}"


def resize_combinations():
    """(title, model) of settings that the suite does not have: up and down, by scales and sizes, with every flag."""
    for mode, how, up in itertools.product(MODES, TRANSFORMS, ((7, 9), (3, 2), (5, 6), (10, 12), (1, 3))):
        for rounding in ROUNDINGS if mode == "nearest" else ROUNDINGS[:1]:
            for anti, exclude in ((0, 0), (1, 0), (0, 1)) if mode != "nearest" else ((0, 0),):
                for by_scales in (False, True):
                    scales = f"{up[0] / 5}, {up[1] / 6}"
                    size = f"s = Constant <value_floats = [1.0, 1.0, {scales}]> ()" if by_scales else \
                        f"s = Constant <value_ints = [2, 3, {up[0]}, {up[1]}]> ()"
                    inputs = "x, , s" if by_scales else "x, , , s"
                    attrs = (f'mode = "{mode}", coordinate_transformation_mode = "{how}", nearest_mode = "{rounding}", '
                             f"antialias = {anti}, exclude_outside = {exclude}")
                    text = ('<ir_version: 10, opset_import: ["" : 19]> g (float[n, 3, 5, 6] x) => '
                            f"(float[a, b, c, d] y) {{ {size} y = Resize <{attrs}> ({inputs}) }}")
                    yield f"{mode} {how} {rounding} {up} antialias {anti} exclude {exclude} scales {by_scales}", text


def combinations(limit=None):
    """(count right, refused, differ) of Resize against onnxtrain, value by value."""
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype(np.float32)
    counts, bad = Counter(), []
    every = list(resize_combinations())
    for title, text in every if limit is None else every[::max(len(every) // limit, 1)]:
        try:
            model = ot.parse(text)
            want = ot.Session(model).run({"x": x})["y"]
        except ot.Error:
            counts["onnxtrain refuses"] += 1
            continue
        try:
            got = ot.to_tf(model)(x).numpy()
        except ot.Error:
            counts["refused"] += 1
            continue
        good = got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=1e-5)
        counts["right" if good else "differs"] += 1
        if not good:
            bad.append(title)
    return counts, bad


def main(part=""):
    counts = Counter()
    for name, case in sorted(cases(part).items()):
        said = run(*case)
        counts[said.split(":")[0]] += 1
        if said.startswith("differs") or part and said != "right":
            print(f"{name}: {said}", flush=True)
    print("node tests:", dict(counts))
    found, bad = combinations()
    print("Resize, combinations:", dict(found), *bad[:20], sep="\n  ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
