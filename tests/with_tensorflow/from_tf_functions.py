"""Functions of TensorFlow through `ot.from_tf`, each checked against TensorFlow (outputs and gradients).

    .venv-tf/bin/python tests/with_tensorflow/from_tf_functions.py [NAME ...]
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "tf"))

import functions  # noqa: E402
import functions_plain  # noqa: E402
import onnxtrain as ot  # noqa: E402
from onnxtrain.graph import read_graphs  # noqa: E402


def main(wanted):
    good = total = left = 0
    for name, build in {**functions.CASES, **functions_plain.CASES}.items():
        if wanted and name not in wanted:
            continue
        total += 1
        start = time.monotonic()
        function, examples, holder = build()
        try:
            more = {"loss": "loss", "optimizer": ot.SGD(lr=0.1)} if name.endswith("training") or "loss" in name else {}
            if name.endswith("training"):
                more["loss"] = "mse"
            model = ot.from_tf(function, inputs=examples, **more)
        except Exception as e:  # noqa: BLE001
            print(f"{name:32s} {type(e).__name__}: {str(e)[:900]}", flush=True)
            continue
        good += 1
        between = functions_plain.transposes_between(read_graphs(model).main)
        left += between
        print(f"{name:32s} ok, {time.monotonic() - start:.1f} s, {len(model.parameters)} initializers, "
              f"{between} transposes between image operators", flush=True)
    print(f"{good} of {total} functions agree with TensorFlow; {left} transposes between image operators")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
