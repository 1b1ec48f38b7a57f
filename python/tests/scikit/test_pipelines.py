"""Pipelines through the file: bits of the preprocessing, partial_fit, ONNX Runtime; all: make figures-sklearn."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import onnxtrain as ot
from sk_cases import NUMBERS, TEXTS, TWO, X
from sk_pipelines import TABLE, pipelines, table_pipeline
from sk_through import through

SOME = ["StandardScaler + MLPClassifier", "PCA(whiten) + MLPRegressor, 2 outputs", "SimpleImputer + SGDClassifier",
        "ColumnTransformer + SGDClassifier (sparse)", "ColumnTransformer by type + SGDClassifier (l1)",
        "FeatureUnion + Perceptron", "IncrementalPCA + LogisticRegression", "StandardScaler + LinearSVR",
        "MLPClassifier(lbfgs)", "ColumnTransformer + Ridge", "float32 SGDRegressor",
        "PowerTransformer + MLPClassifier", "QuantileTransformer + SGDClassifier", "TargetEncoder + LogisticRegression",
        "SelectFromModel + weighted FeatureUnion + SGDRegressor", "StandardScaler + PoissonRegressor",
        "TweedieRegressor"]
ALL = pipelines()


@pytest.mark.parametrize("name", SOME)
def test_through_the_file(name):
    found = through(*ALL[name])
    assert found.pop("moved") > 1e-4  # it was trained
    small = 2e-6 if "float32" in name else 1e-12
    assert all(v <= small for v in found.values()), found


def test_inputs_are_the_columns():
    model = ot.from_sklearn(table_pipeline(SGDClassifier()).fit(TABLE, TEXTS))
    types = {i["name"]: i["type"] for i in model.info["inputs"]}
    assert types == {"age": "double[n,1]", "income": "double[n,1]", "city": "string[n,1]", "size": "string[n,1]",
                     "doors": "double[n,1]"}


def test_columns_may_have_the_names_of_state_variables():
    table = TABLE.rename(columns={"age": "t_", "income": "y", "city": "loss", "size": "coef_", "doors": "label"})
    pipeline = table_pipeline(SGDClassifier())
    pipeline.steps[0][1].transformers = [
        (n, t, [dict(zip(TABLE, table))[c] for c in columns]) for n, t, columns in pipeline.steps[0][1].transformers]
    model = ot.from_sklearn(pipeline.fit(table, TEXTS))
    assert len(model.inputs) == 5 and ot.check(model) == []


def test_category_that_is_not_known_is_an_error_where_scikit_learn_has_one():
    model = ot.from_sklearn(make_pipeline(OneHotEncoder(), SGDClassifier()).fit(TABLE[["city"]], TEXTS))
    with pytest.raises(ot.DataError, match="out of range"):
        model.predict({"city": np.array([["Rome"]], object)})


def test_label_that_is_not_known():
    trainer = ot.Trainer(ot.from_sklearn(SGDClassifier().fit(X, TEXTS)))
    with pytest.raises(ot.DataError, match="y_must_hold_known_classes"):
        trainer.step({"X": X[:2], "y": np.array(["cat", "cow"])})


def test_no_state_is_said():
    e = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, TWO)
    with pytest.warns(UserWarning, match=r"LogisticRegression.*keeps no state.*Adam\(lr=0.001\)"):
        ot.from_sklearn(e)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer = ot.Trainer(ot.from_sklearn(e, optimizer=ot.SGD(lr=0.5)))
    first = trainer.step({"X": X, "y": TWO}).loss
    assert trainer.steps({"X": X, "y": TWO}, 20).loss < first
    back = ot.to_sklearn(trainer)
    assert type(back[-1]) is LogisticRegression and back[-1].C == 1.0 and back.score(X, TWO) > 0.9


def test_logistic_regression_reaches_its_own_minimum():
    """The loss is the estimator's: without a penalty the two agree."""
    e = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, TEXTS)
    trainer = ot.Trainer(ot.from_sklearn(e, optimizer=ot.SGD(lr=0.1)))
    trainer.steps({"X": X, "y": TEXTS}, 5)
    assert np.abs(trainer.state["coef_"] - e.coef_).max() < 1e-3 * np.abs(e.coef_).max()


def test_saved_and_read_again(tmp_path):
    e = SGDClassifier(alpha=0.01, shuffle=False).fit(X, TEXTS)
    trainer = ot.Trainer(ot.from_sklearn(e))
    trainer.step({"X": X[:50], "y": TEXTS[:50]})
    trainer.save(tmp_path / "sgd.train.onnx")
    back = ot.to_sklearn(tmp_path / "sgd.train.onnx")
    assert np.allclose(back.coef_, e.partial_fit(X[:50], TEXTS[:50]).coef_, atol=1e-10)
    assert back.get_params() == e.get_params()


def test_the_estimator_itself_stays():
    e = SGDClassifier(alpha=0.01).fit(X, TEXTS)
    before = {k: np.copy(v) for k, v in vars(e).items() if isinstance(v, np.ndarray)}
    ot.from_sklearn(e)
    assert all((vars(e)[k] == v).all() for k, v in before.items()) and e.shuffle


def test_rows_for_the_self_check():
    e = make_pipeline(StandardScaler(), SGDClassifier()).fit(X, TWO)
    assert ot.from_sklearn(e, X=X[:5]).inputs == ["X"]
    assert ot.from_sklearn(LogisticRegression().fit(X, NUMBERS > 0), optimizer="sgd").outputs[0] == "label"
