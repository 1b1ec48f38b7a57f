"""Estimators that hold types (of imputed texts, of columns that a selector takes), and estimators of estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import MultiTaskLasso, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import onnxtrain as ot

RNG = np.random.default_rng(5)
N = 60
TABLE = pd.DataFrame({"age": RNG.normal(40, 10, N), "city": RNG.choice(["oslo", "rome", ""], N).astype(object)})
Y = RNG.choice(["a", "b", "c"], N)


def same_after_steps(pipeline):
    """Two steps here are two calls of partial_fit, and the way back gives the same class with the same weights."""
    trainer = ot.Trainer(ot.from_sklearn(pipeline))
    last = pipeline[-1].set_params(shuffle=False)
    for k in range(2):
        rows = TABLE[k * 20:k * 20 + 20]
        trainer.step({**{c: rows[c].to_numpy()[:, None] for c in TABLE}, "y": Y[rows.index]})
        last.partial_fit(pipeline[:-1].transform(rows), Y[rows.index])
    back = ot.to_sklearn(trainer)
    np.testing.assert_allclose(back[-1].coef_, last.coef_, rtol=1e-9, atol=1e-12)
    assert back.predict(TABLE).tolist() == pipeline.predict(TABLE).tolist()
    return back


def test_imputed_texts():
    texts = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=""), OneHotEncoder())
    transform = make_column_transformer((texts, ["city"]), (StandardScaler(), ["age"]))
    back = same_after_steps(make_pipeline(transform, SGDClassifier(loss="log_loss", random_state=0)).fit(TABLE, Y))
    assert back[0].named_transformers_["pipeline"][0]._fit_dtype == np.dtype(object)


def test_columns_by_type():
    transform = make_column_transformer((StandardScaler(), make_column_selector(dtype_include=float)),
                                        (OneHotEncoder(), make_column_selector(dtype_include=object)))
    back = same_after_steps(make_pipeline(transform, SGDClassifier(loss="log_loss", random_state=0)).fit(TABLE, Y))
    assert [c.dtype_include for _, _, c in back[0].transformers] == [float, object]


@pytest.mark.parametrize("estimator, words", [
    (MultiTaskLasso(), "MultiTaskLasso cannot be converted: its training has no form here"),
    (MultiOutputRegressor(SGDRegressor()), "one estimator per output"),
    (TransformedTargetRegressor(SGDRegressor()), "changes the target"),
], ids=lambda v: type(v).__name__)
def test_refused(estimator, words):
    X = RNG.normal(size=(N, 3))
    y = X[:, 0] if isinstance(estimator, TransformedTargetRegressor) else X[:, :2]
    with pytest.raises(ot.UsageError, match=words) as error:
        ot.from_sklearn(estimator.fit(X, y))
    assert error.value.code == "OT1760"
