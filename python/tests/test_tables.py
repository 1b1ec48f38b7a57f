"""Tables with names of columns: pandas' DataFrame and whatever else has `.columns` and becomes an array."""

import json

import numpy as np
import pytest

import onnxtrain as ot
from onnxtrain import _native
from onnxtrain.data import raw_column

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, 150)
X = RNG.normal(size=(150, 3)) + np.stack([Y, -Y, 0 * Y], 1) * 3
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3] x) => (float[N,3] y)
    <float[3,3] w = {0.1,0.2,0.3,0.3,0.1,0.2,0.2,0.3,0.1}, float[3] b = {0.0,0.0,0.0}>
    { z = MatMul(x, w)  y = Add(z, b) }"""


class Table:
    """The least that a table is."""

    def __init__(self, columns):
        self._data = dict(columns)
        self.columns = list(self._data)

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(list(self._data.values())).astype(dtype or float)

    def __len__(self):
        return len(next(iter(self._data.values())))


def pandas_table(columns):
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(columns)


KINDS = pytest.mark.parametrize("table", [Table, pandas_table])
COLUMNS = {"p": X[:, 0], "q": X[:, 1], "r": X[:, 2]}
OTHER_ORDER = {"r": X[:, 2], "extra": X[:, 0] * 0, "p": X[:, 0], "q": X[:, 1]}


def fitted(table, **more):
    m = ot.parse(MODEL).compile(loss="cross_entropy", optimizer=ot.Adam(lr=0.05))
    m.fit(table(COLUMNS), Y, epochs=30, valid=0.4, **more)
    return m


@KINDS
def test_columns_are_taken_by_name(table, tmp_path):
    m = fitted(table, out=tmp_path / "run")
    want, scores = m.predict(X), m.evaluate(X, Y)
    assert scores["accuracy"] > 0.9 and m.features == ["p", "q", "r"]
    for x in (table(COLUMNS), table(OTHER_ORDER), OTHER_ORDER):
        assert np.array_equal(m.predict(x), want)
        assert m.evaluate(x, Y) == scores
    for again in (ot.load(tmp_path / "run/model.onnx"), ot.resume(tmp_path / "run")):
        assert again.features == ["p", "q", "r"]
        assert np.array_equal(again.predict(table(OTHER_ORDER)), again.predict(X))
    resumed = ot.resume(tmp_path / "run")
    assert len(resumed.fit(table(OTHER_ORDER), Y, epochs=31)) == 1  # the same rows: nothing to warn about


@KINDS
def test_missing_columns_are_named(table):
    m = fitted(table)
    bad = table({"p": X[:, 0], "r": X[:, 2], "s": X[:, 1]})
    for call in (lambda: m.predict(bad), lambda: m.evaluate(bad, Y), lambda: m.fit(bad, Y, epochs=1)):
        with pytest.raises(ot.DataError) as e:
            call()
        assert e.value.code == "OT2160" and "no column 'q'" in str(e.value) and "'p', 'r', 's'" in str(e.value)


def test_estimators_take_tables_by_name():
    c = ot.OnnxClassifier(ot.parse(MODEL), epochs=10, optimizer=ot.Adam(lr=0.05)).fit(Table(COLUMNS), Y)
    assert list(c.feature_names_in_) == ["p", "q", "r"] and c.score(X, Y) > 0.9
    assert np.array_equal(c.predict(Table(OTHER_ORDER)), c.predict(X))


def test_changed_data_is_said_on_resume(tmp_path):
    fitted(Table, out=tmp_path / "run")
    with pytest.warns(UserWarning, match="OT3116"):
        ot.resume(tmp_path / "run").fit(X[:100], Y[:100], epochs=31)


def test_the_constant_guess_of_a_regression():
    m = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {0.1,0.2,0.3}> { y = MatMul(x, w) }""")
    history = m.compile(loss="mse", optimizer=ot.SGD(lr=0.01)).fit(X, X[:, 0] * 2 + 5, valid=0.4, epochs=1)
    assert set(history.constant_guess) == {"mae", "rmse"} and history.constant_guess["rmse"] > 1


def test_datasets_with_images():
    datasets, image = pytest.importorskip("datasets"), pytest.importorskip("PIL.Image")
    r = np.random.default_rng(0)
    label = r.integers(0, 2, 40)
    shots = [image.fromarray((r.integers(0, 90, (12, 12, 3)) + 120 * k).astype(np.uint8)) for k in label]
    data = datasets.Dataset.from_dict({"image": shots, "label": label})
    data = data.cast_column("image", datasets.Image())
    model = ot.new("cnn", data, target="label", verbose=False)
    model.fit(data, "label", epochs=8, verbose=0)
    assert model.evaluate(data, "label")["accuracy"] > 0.9
    alone = data.remove_columns("label")
    np.testing.assert_array_equal(model.predict(data, labels=True), model.predict(alone, labels=True))
    with pytest.raises(ot.DataError, match="DatasetDict with the splits"):
        ot.new("cnn", data.train_test_split(0.5), target="label")


def test_a_table_without_rows():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0] * 9, "c": list("xyz") * 9, "y": [0, 1, 1] * 9})
    model = ot.new("mlp", table, target="y", verbose=False)
    model.fit(table, "y", epochs=1, verbose=0)
    with pytest.raises(ot.DataError, match="no rows"):
        model.predict(table.iloc[:0])


def test_words_for_nothing_are_those_of_files():
    words = json.loads(_native.missing_words())
    assert {"", "NA", "?", "-", "None"} <= set(words)
    for word in words:
        here = raw_column(np.array([word, 1.5], dtype=object), "a", None)
        there = np.array(_native.column_numbers("a", "number", [word, "1.5"]))
        assert np.isnan(here[0, 0]) and here[1, 0] == 1.5, word
        assert np.isnan(there[0]) and there[1] == 1.5, word
