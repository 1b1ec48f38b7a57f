"""Estimators and pipelines through export, training, export (docs/sklearn.md); exit 1 when one differs.

python tests/scikit/pipelines.py
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests/scikit"))
from sk_pipelines import pipelines  # noqa: E402
from sk_through import through  # noqa: E402


def main():
    os.nice(5)
    good = 0
    every = pipelines()
    for name, case in every.items():
        found = through(*case)
        moved = found.pop("moved")
        ok = all(v <= (2e-6 if "float32" in name else 1e-12) for v in found.values()) and moved > 1e-4
        good += ok
        print(f"{'ok' if ok else 'DIFFERS':8} {name}: trained by {moved:.1e}; " +
              ", ".join(f"{k} {v:.1e}" for k, v in found.items()), flush=True)
    print(f"{good} of {len(every)} estimators and pipelines equal")
    return 0 if good == len(every) else 1


if __name__ == "__main__":
    sys.exit(main())
