"""Tables as people have them, made by a seed: text, missing values, dates, a column of row numbers."""

import csv

import numpy as np


def write_table(path, columns, separator=",", encoding="utf-8"):
    """{name: values} as csv; None is an empty field."""
    with open(path, "w", newline="", encoding=encoding) as f:
        out = csv.writer(f, delimiter=separator)
        out.writerow(columns)
        out.writerows([["" if v is None else v for v in row] for row in zip(*columns.values())])


def rows_of(columns, rows):
    return {name: [values[r] for r in rows] for name, values in columns.items()}


def _with_gaps(rng, values, share):
    return [None if gap else v for v, gap in zip(values, rng.random(len(values)) < share)]


def titanic(rows=891, seed=0):
    """Survival of passengers: class, sex, age with gaps, fare, port, cabin mostly missing; names say nothing."""
    rng = np.random.default_rng(seed)
    pclass = rng.choice([1, 2, 3], rows, p=[0.24, 0.21, 0.55])
    sex = rng.choice(["male", "female"], rows, p=[0.65, 0.35])
    age = np.clip(rng.normal(38 - 4 * pclass, 13), 0.5, 80).round(1)
    family = rng.poisson(0.5, rows)
    fare = np.exp(rng.normal(5.2 - 0.9 * pclass, 0.5)).round(2)
    port = rng.choice(["S", "C", "Q"], rows, p=[0.72, 0.19, 0.09])
    score = 2.7 * (sex == "female") - 1.1 * (pclass - 2) - 0.03 * (age - 30) + 0.3 * (port == "C") - 0.3 * family - 0.9
    survived = (rng.random(rows) < 1 / (1 + np.exp(-2 * score))).astype(int)
    first = ["Anna", "Bo", "Carl", "Dora", "Egon", "Fay"]
    return {"PassengerId": list(range(1, rows + 1)), "Pclass": pclass.tolist(),
            "Name": [f"{first[i % 6]}, no. {i}" for i in range(rows)], "Sex": sex.tolist(),
            "Age": _with_gaps(rng, age.tolist(), 0.2), "Family": family.tolist(), "Fare": fare.tolist(),
            "Embarked": _with_gaps(rng, port.tolist(), 0.01),
            "Survived": survived.tolist()}


def houses(rows=1200, seed=0):
    """Prices: area, rooms, quality as text, a district of 25 names, the date of the sale, gaps."""
    rng = np.random.default_rng(seed)
    area = np.exp(rng.normal(4.7, 0.35, rows)).round(1)
    rooms = np.clip((area / 28 + rng.normal(0, 0.8, rows)).round(), 1, 9).astype(int)
    quality = rng.choice(["poor", "fair", "good", "excellent"], rows, p=[0.1, 0.4, 0.4, 0.1])
    level = np.select([quality == q for q in ("poor", "fair", "good", "excellent")], [0.75, 0.95, 1.1, 1.35])
    worth = np.linspace(0.7, 1.4, 25)
    district = rng.integers(0, 25, rows)
    day = rng.integers(0, 2000, rows)
    year = rng.integers(1900, 2020, rows)
    price = area * 2400 * level * worth[district] * (1 + day / 9000) * (0.9 + (year - 1900) / 900)
    price = (price * np.exp(rng.normal(0, 0.06, rows))).round(-2)
    dates = (np.datetime64("2015-01-01") + day).astype(str)
    return {"Area": _with_gaps(rng, area.tolist(), 0.02), "Rooms": rooms.tolist(), "Quality": quality.tolist(),
            "District": [f"district {d}" for d in district], "Sold": dates.tolist(),
            "Built": _with_gaps(rng, year.tolist(), 0.1), "Heating": ["central"] * rows,
            "Price": price.astype(int).tolist()}


def wine(seed=0):
    """The measured wines of scikit-learn, with names of the classes as text and one field in twenty missing."""
    from sklearn.datasets import load_wine

    data = load_wine()
    rng = np.random.default_rng(seed)
    table = {name: _with_gaps(rng, data.data[:, k].tolist(), 0.05) for k, name in enumerate(data.feature_names)}
    return {**table, "kind": [str(data.target_names[t]) for t in data.target]}
