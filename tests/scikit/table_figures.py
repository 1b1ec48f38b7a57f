"""Tables with text and gaps: `onnxtrain new` and `train` beside a scikit-learn pipeline with an MLP of the same size.

    python tests/scikit/table_figures.py [--seeds 5] [--epochs 40]

Scores on rows that neither saw: accuracy, or R2, in points of 100; the mean over seeds. `make figures-tables`."""

import argparse
import csv
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from tables import houses, rows_of, titanic, wine, write_table  # noqa: E402

PROGRAM = Path(__file__).parents[2] / "build/release/onnxtrain"
HIDDEN, BATCH, RATE = (32, 16), 32, 1e-3


def command(folder, *args):
    r = subprocess.run([PROGRAM, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    return r.stdout


def ours(train, test, target, classes, seed, epochs):
    """Predictions for the test rows by five commands of a user."""
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "train.csv", train)
        write_table(Path(folder) / "test.csv", {k: v for k, v in test.items() if k != target})
        command(folder, "new", "mlp", "--data", "train.csv", "--target", target, "--hidden", ",".join(map(str, HIDDEN)),
                "--seed", seed, "-o", "m.onnx")
        command(folder, "train", "m.onnx", "--data", "train.csv", "--valid", "0", "--epochs", epochs, "--seed", seed,
                "--batch", BATCH, "--lr", RATE, "--optimizer", "adam", "--threads", 1, "--out", "run")
        rows = list(csv.reader(io.StringIO(command(folder, "predict", "run", "--data", "test.csv", "--threads", 1))))
    return [r[0] if classes else float(r[0]) for r in rows[1:]]


def theirs(train, test, target, classes, seed, epochs):
    import pandas
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    def frame(table):
        f = pandas.DataFrame({k: v for k, v in table.items() if k not in (target, "PassengerId", "Name", "Heating")})
        if "Sold" in f:
            f["Sold"] = (pandas.to_datetime(f["Sold"]) - pandas.Timestamp("1970-01-01")).dt.days
        return f

    x, unseen = frame(train), frame(test)
    texts = [c for c in x if x[c].dtype.kind not in "iuf"]
    numbers = [c for c in x if c not in texts]
    prepared = ColumnTransformer([
        ("n", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        ("t", make_pipeline(SimpleImputer(strategy="constant", fill_value=""), OneHotEncoder(handle_unknown="ignore")),
         texts)])
    options = dict(hidden_layer_sizes=HIDDEN, batch_size=BATCH, learning_rate_init=RATE, max_iter=epochs, alpha=0,
                   n_iter_no_change=epochs, random_state=seed)
    if classes:
        model = make_pipeline(prepared, MLPClassifier(**options))
        return model.fit(x, [str(v) for v in train[target]]).predict(unseen).tolist()
    model = TransformedTargetRegressor(make_pipeline(prepared, MLPRegressor(**options)), transformer=StandardScaler())
    return model.fit(x, np.array(train[target], float)).predict(unseen).tolist()


def score(predicted, test, target, classes):
    if classes:
        return 100 * np.mean([str(a) == str(b) for a, b in zip(predicted, test[target])])
    y, p = np.array(test[target], float), np.array(predicted)
    return 100 * (1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def main():
    import warnings

    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    worst = 0
    print(f"{'table':14s} {'rows':>6s} {'score':10s} {'onnxtrain':>10s} {'scikit-learn':>13s} {'difference':>11s}")
    for name, make, target, classes in (("passengers", titanic, "Survived", True), ("wine", wine, "kind", True),
                                        ("house prices", houses, "Price", False)):
        results = []
        for seed in range(args.seeds):
            table = make(seed=seed) if name != "wine" else make()
            n = len(table[target])
            order = np.random.default_rng(seed).permutation(n)
            train, test = rows_of(table, order[: n * 7 // 10]), rows_of(table, order[n * 7 // 10:])
            results.append([score(f(train, test, target, classes, seed, args.epochs), test, target, classes)
                            for f in (ours, theirs)])
        a, b = np.mean(results, axis=0)
        worst = max(worst, b - a)
        print(f"{name:14s} {n:6d} {'accuracy' if classes else 'R2':10s} {a:10.2f} {b:13.2f} {a - b:+11.2f}", flush=True)
    print(f"at most {worst:.2f} points behind; {args.seeds} seeds, {args.epochs} epochs, hidden layers {HIDDEN}")


if __name__ == "__main__":
    main()
