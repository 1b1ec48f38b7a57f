"""A pipeline of scikit-learn trains on here, row by row as it would there, and goes back: needs scikit-learn, pandas.

python examples/sklearn_both_ways/run.py
"""

import copy
import os
import tempfile

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import onnxtrain as ot


def customers(rows, seed):
    """Random customers: who keeps the contract, and who leaves."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(45, 12, rows), "bill": rng.gamma(4, 15, rows),
                          "city": rng.choice(["Bonn", "Trier", "Ulm"], rows)})
    score = (table["age"] - 45) / 12 - (table["bill"] - 60) / 30 + (table["city"] == "Ulm") + rng.normal(0, 0.5, rows)
    return table, np.where(score > 0, "stays", "leaves")


def feeds(table, labels):
    return {"age": table[["age"]].to_numpy(), "bill": table[["bill"]].to_numpy(),
            "city": table[["city"]].to_numpy(object), "y": labels}


def main():
    first, first_labels = customers(2000, seed=1)
    columns = make_column_transformer((StandardScaler(), ["age", "bill"]), (OneHotEncoder(), ["city"]))
    pipeline = make_pipeline(columns, SGDClassifier(loss="log_loss", alpha=1e-3, shuffle=False, random_state=0))
    pipeline.fit(first, first_labels)

    alone = copy.deepcopy(pipeline)  # goes on in scikit-learn
    trainer = ot.Trainer(ot.from_sklearn(pipeline))  # goes on here
    for day in range(2, 6):
        table, labels = customers(200, seed=day)
        loss = trainer.step(feeds(table, labels)).loss
        alone[-1].partial_fit(alone[:-1].transform(table), labels)
        difference = np.abs(trainer.state["coef_"] - alone[-1].coef_).max()
        print(f"day {day}   200 customers   loss {loss:.4f}   largest difference of a weight {difference:.1e}")

    back = ot.to_sklearn(trainer)
    test, test_labels = customers(1000, seed=99)
    same = (back.predict(test) == alone.predict(test)).mean()
    print(f"back in scikit-learn: {type(back[-1]).__name__}, accuracy {back.score(test, test_labels):.3f}, "
          f"same predictions {same:.0%}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "customers.onnx")
        trainer.export(path)
        given = feeds(test, test_labels)
        given.pop("y")
        same_file = (ot.Session(path).run(given)["label"] == back.predict(test)).mean()
        print(f"exported file: {os.path.getsize(path)} bytes, same predictions {same_file:.0%}")
    return float(same)


if __name__ == "__main__":
    main()
