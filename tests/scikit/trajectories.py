"""Every solver, loss, penalty and learning rate of scikit-learn's incremental estimators against partial_fit
(docs/sklearn.md):

python tests/scikit/trajectories.py            # all; a line for each that differs, then counts
python tests/scikit/trajectories.py --verbose  # a line for every one
python tests/scikit/trajectories.py --only mlp

A round trip: 2 calls of partial_fit in scikit-learn, 6 steps here, 2 calls there again. Exit 1 when one differs by more
than 1e-5 plus ten times scikit-learn's own response to a change of 1e-13 of its weights.
"""

import argparse
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests/scikit"))
from sk_cases import mlp_cases, rows_of, sgd_cases  # noqa: E402
from sk_trips import fitted, trip  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", choices=("mlp", "sgd"))
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    os.nice(5)
    warnings.simplefilter("ignore")
    cases = {} if a.only == "sgd" else mlp_cases()
    cases |= {} if a.only == "mlp" else sgd_cases()
    rows = []
    for name, (estimator, y, count) in cases.items():
        x = rows_of(estimator)
        e = fitted(estimator, x, y, count)
        for weighted in (False, True):
            for dtype in ("float64",):
                t = trip(e, x.astype(dtype), y, count, weighted=weighted)
                rows.append((name, weighted, t))
                if a.verbose or not t.ok:
                    print(f"{'ok' if t.ok else 'DIFFERS':8} {name}{', sample_weight' if weighted else ''}: "
                          f"{t.difference:.1e} (response {t.response:.1e}), loss {t.loss:.1e}, back {t.back:.1e}",
                          flush=True)
    summary(rows)
    return 0 if all(t.ok for *_, t in rows) else 1


def summary(rows):
    for kind in ("MLP", "SGD", "Perceptron"):
        of = [t for name, _, t in rows if name.startswith(kind)]
        if not of:
            continue
        plain = [t for t in of if t.difference <= 1e-5 and t.back <= 1e-5]
        print(f"{kind}: {sum(t.ok for t in of)} of {len(of)} round trips equal; {len(plain)} to 1e-5 alone; "
              f"largest difference of those {max((max(t.difference, t.back) for t in plain), default=0):.1e}; "
              f"largest difference of a loss {max(t.loss for t in of):.1e}; largest response of scikit-learn itself "
              f"{max(t.response for t in of):.1e}")


if __name__ == "__main__":
    sys.exit(main())
