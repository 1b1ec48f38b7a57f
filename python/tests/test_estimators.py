"""OnnxClassifier and OnnxRegressor: the estimator protocol without scikit-learn, and with it where it is installed."""

import copy
import pickle

import numpy as np
import pytest

import onnxtrain as ot
from models import mlp, rows, with_weights


def classifier(path, **arguments):
    return ot.OnnxClassifier(path, **{"optimizer": ot.Adam(lr=0.02), "epochs": 15, **arguments})


def test_classifier(path):
    x, y = rows(300)
    c = classifier(path)
    assert c.fit(x, y) is c
    assert c.score(*rows(200, seed=2)) > 0.85
    p = c.predict_proba(x)
    assert (
        p.shape == (300, 3)
        and p.sum(1) == pytest.approx(1)
        and (c.classes_ == [0, 1, 2]).all()
        and c.n_features_in_ == 4
    )
    assert (c.predict(x) == p.argmax(1)).all() and len(c.history_) == 15


def test_labels_of_any_kind(path):
    x, y = rows(300)
    plain = classifier(path).fit(x, y).predict(x)
    for names in (np.array(["cat", "dog", "eel"]), np.array([10, 20, 30]), np.array([-1.5, 0, 2])):
        c = classifier(path).fit(x, names[y])
        assert (c.classes_ == names).all() and (c.predict(x) == names[plain]).all()
        assert c.score(x, names[y]) == pytest.approx((plain == y).mean())


def test_fewer_classes_than_scores(path):
    """Labels 0 and 2 of three scores: they keep their places, class 1 is never said."""
    x, y = rows(200)
    x, y = x[y != 1], y[y != 1]
    c = classifier(path).fit(x, y)
    assert c.predict_proba(x).shape == (len(x), 2) and set(c.predict(x)) <= {0, 2}
    with pytest.raises(ot.DataError, match="4 classes"):
        classifier(path).fit(x, np.arange(len(x)) % 4)


@pytest.mark.parametrize("end", ["Identity", "Sigmoid"])
def test_one_score_for_two_classes(end):
    m = with_weights(f'''one (float[N, 4] x) => (float[N, 1] y)
        {{ h = Gemm <transB = 1> (x, "w1", "b1") a = Tanh (h) z = Gemm <transB = 1> (a, "w2", "b2") y = {end} (z) }}''',
                     {"w1": (8, 4), "b1": (8,), "w2": (1, 8), "b2": (1,)})
    x, _ = rows(200)
    y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    c = classifier(m).fit(x, y)
    assert c.score(x, y) > 0.9 and list(c.classes_) == ["no", "yes"] and c.predict_proba(x).shape == (200, 2)


@pytest.mark.parametrize("end", ["Softmax", "LogSoftmax"])
def test_probabilities_of_models_with_softmax(end):
    m = with_weights(f'''soft (float[N, 4] x) => (float[N, 3] y)
        {{ z = Gemm <transB = 1> (x, "w", "b") y = {end} <axis = 1> (z) }}''', {"w": (3, 4), "b": (3,)})
    x, y = rows(100)
    c = classifier(m, epochs=2).fit(x, y)
    w, b = (c.model_.parameters[n].astype(np.float64) for n in "wb")
    z = np.exp(x @ w.T + b)
    np.testing.assert_allclose(c.predict_proba(x), z / z.sum(1, keepdims=True), rtol=1e-4)


def test_regressor():
    x, _ = rows(300)
    y = x @ [1.0, -2.0, 0.5, 0.0] + 3
    r = ot.OnnxRegressor(mlp(classes=1, output="y"), optimizer=ot.Adam(lr=0.02), epochs=30).fit(x, y)
    assert r.predict(x).shape == (300,) and r.score(x, y) > 0.95
    assert r.score(x, y) == pytest.approx(1 - ((y - r.predict(x)) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def test_parameters(path):
    c = ot.OnnxClassifier(path, epochs=20, optimizer=ot.AdamW(lr=0.1))
    assert c.get_params(deep=False)["epochs"] == 20 and c.get_params()["optimizer__lr"] == 0.1
    given = c.optimizer
    assert (
        c.set_params(epochs=3, optimizer__lr=0.5) is c and c.epochs == 3 and c.optimizer.lr == 0.5 and given.lr == 0.1
    )
    with pytest.raises(ValueError, match="epoch"):
        c.set_params(epoch=3)
    assert "epochs=3" in repr(c)
    with pytest.raises(ot.UsageError, match="not fitted"):
        ot.OnnxClassifier(path).predict(rows(3)[0])


def test_the_given_model_stays(path):
    x, y = rows(100)
    model = ot.load(path)
    before = model.parameters["fc1.weight"]
    a, b = (classifier(model, epochs=2, seed=4).fit(x, y).predict_proba(x) for _ in range(2))
    np.testing.assert_array_equal(model.parameters["fc1.weight"], before)
    np.testing.assert_array_equal(a, b)


def test_copies(path):
    x, y = rows(100)
    c = classifier(ot.load(path), epochs=2).fit(x, y)
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        np.testing.assert_array_equal(other.predict_proba(x), c.predict_proba(x))


def test_in_scikit_learn(path):
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = rows(240)
    names = np.array(["a", "b", "c"])[y]
    c = classifier(str(path))
    assert (
        is_classifier(c)
        and is_regressor(ot.OnnxRegressor(str(path)))
        and clone(c).get_params(False).keys() == c.get_params(False).keys()
    )
    assert cross_val_score(c, x, names, cv=3).mean() > 0.7
    search = GridSearchCV(c, {"optimizer__lr": [1e-7, 0.02], "batch_size": [16]}, cv=2).fit(x, names)
    assert search.best_params_["optimizer__lr"] == 0.02 and search.predict(x).shape == (240,)
    pipe = make_pipeline(StandardScaler(), classifier(ot.load(path))).fit(100 * x, names)
    assert pipe.score(100 * x, names) > 0.7 and pipe.predict_proba(x).shape == (240, 3)
    r = ot.OnnxRegressor(mlp(classes=1, output="y"), optimizer=ot.Adam(lr=0.02), epochs=30)
    assert cross_val_score(r, x, x.sum(1), cv=3).mean() > 0.8
