"""The ONNX backend suite through onnxtrain.backend, in process, plain and with shapes hidden.

    .venv/bin/python tests/conformance/suite.py                    # counts, and every failure
    .venv/bin/python tests/conformance/suite.py --variant symbolic --filter test_loop
"""

import argparse
import functools
import os
import re
import sys
import tempfile
import time
import traceback
import unittest
import warnings
from pathlib import Path

VARIANTS = ("plain", "symbolic", "unknown_rank")
LIST = Path(__file__).with_name("expected_failures.txt")

# the suite writes inputs of its larger models beneath this folder
os.environ.setdefault("ONNX_HOME", os.path.join(tempfile.gettempdir(), f"onnxtrain-suite-{os.getuid()}-{os.getpid()}"))


def expected_failures():
    """{test name: reason}."""
    out = {}
    for line in LIST.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, _, reason = line.partition(":")
        if not reason.strip():
            raise ValueError(f"{LIST.name}: {name} has no reason")
        out[name.strip()] = reason.strip()
    return out


def _hide(type_proto, variant, names):
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type" and type_proto.tensor_type.HasField("shape"):
        if variant == "unknown_rank":
            type_proto.tensor_type.ClearField("shape")
        else:
            for dim in type_proto.tensor_type.shape.dim:
                dim.dim_param = f"dim_{next(names)}"
    elif kind == "sequence_type":
        _hide(type_proto.sequence_type.elem_type, variant, names)
    elif kind == "optional_type":
        _hide(type_proto.optional_type.elem_type, variant, names)


def hide_shapes(model, variant):
    """A copy of the model whose inputs and outputs do not say their dimensions (or rank)."""
    if variant == "plain":
        return model
    copy = type(model)()
    copy.CopyFrom(model)
    names = iter(range(1 << 30))
    fixed = {i.name for i in copy.graph.initializer}
    for info in list(copy.graph.input) + list(copy.graph.output):
        if info.name not in fixed:
            _hide(info.type, variant, names)
    del copy.graph.value_info[:]
    return copy


@functools.cache
def cases(variant):
    """{name: function that raises when the case fails}."""
    import onnx.backend.test

    from onnxtrain.backend import OnnxtrainBackend, OnnxtrainRep

    class Hidden(OnnxtrainBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            # not super().prepare: onnx.checker refuses inputs of unknown rank
            return OnnxtrainRep(hide_shapes(model, variant))

    backend = OnnxtrainBackend if variant == "plain" else Hidden
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, while the suite makes its expected values
        suite = onnx.backend.test.BackendTest(backend, __name__)
    for cls in suite.test_cases.values():
        for method in unittest.TestLoader().getTestCaseNames(cls):
            if method.endswith("_cpu"):
                found[method[: -len("_cpu")]] = getattr(cls(method), method)
    return dict(sorted(found.items()))


def run_case(variant, name):
    """None if the case passes, else why not. A skipped case is a failure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases(variant)[name]()
        return None
    except unittest.SkipTest as e:
        return f"skipped: {e}"
    except Exception as e:  # noqa: BLE001 - whatever goes wrong is the result
        return f"{type(e).__name__}: {e}" or traceback.format_exc()


def run(variant, shard=0, shards=1, pattern=""):
    """{name: None or why it failed} for every `shards`-th case."""
    names = [n for n in list(cases(variant))[shard::shards] if re.search(pattern, n)]
    return {n: run_case(variant, n) for n in names}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--variant", choices=VARIANTS, action="append")
    p.add_argument("--filter", default="", help="regular expression on names")
    p.add_argument("--names", action="store_true", help="only names of failures")
    a = p.parse_args()
    listed = expected_failures()
    for variant in a.variant or VARIANTS:
        start = time.time()
        results = run(variant, pattern=a.filter)
        failed = {n: w for n, w in results.items() if w}
        for n, why in failed.items():
            mark = "listed " if n in listed else "FAILED "
            print(n if a.names else f"{mark}{n}: {' '.join(why.split())[:300]}")
        print(f"{variant}: {len(results) - len(failed)} of {len(results)} pass, {time.time() - start:.1f} s",
              file=sys.stderr)


if __name__ == "__main__":
    main()
