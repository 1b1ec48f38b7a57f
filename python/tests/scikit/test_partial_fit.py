"""partial_fit of scikit-learn and steps here, to the last bits; all combinations: make figures-sklearn."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier

import onnxtrain as ot
from sk_cases import LABELS, TEXTS, TWO, X, mlp, mlp_cases, rows_of, sgd_cases
from sk_trips import fitted, trip

MLPS = ["MLP 3 classes, adam", "MLP 2 classes, adam betas", "MLP multilabel, sgd constant nesterov",
        "MLP 1 output, sgd invscaling momentum", "MLP 2 outputs, sgd adaptive plain", "MLP poisson, adam",
        "MLP batches of 7, sgd", "MLP 250 rows in batches of 200, adam", "MLP 2 outputs, logistic",
        "MLP no hidden layer"]
SGDS = ["SGD 3 classes, hinge, l2, optimal", "SGD 2 classes, log_loss, elasticnet, invscaling",
        "SGD 3 classes, modified_huber, l1, constant", "SGD 2 classes, squared_hinge, None, adaptive",
        "SGD regressor, squared_error, l2, invscaling", "SGD regressor, huber, l1, constant",
        "SGD regressor, epsilon_insensitive, elasticnet, optimal",
        "SGD regressor, squared_epsilon_insensitive, None, invscaling", "SGD 2 classes, average True, l2",
        "SGD 3 classes, average 30, None", "SGD regressor, average 30, l2", "SGD 3 classes, class_weight",
        "Perceptron, l1"]
CASES = mlp_cases() | sgd_cases()


@pytest.mark.parametrize("name", MLPS + SGDS)
def test_round_trip(name):
    e, y, rows = CASES[name]
    weighted = len(name) % 2 == 0
    x = rows_of(e)
    t = trip(fitted(e, x, y, rows), x, y, rows, steps=3, weighted=weighted)
    assert t.ok, t


@pytest.mark.parametrize("e", [mlp(TEXTS), SGDClassifier(alpha=0.1), SGDRegressor(eta0=1e-3)],
                         ids=["mlp", "sgd classifier", "sgd regressor"])
def test_float32_stays(e):
    x = X.astype(np.float32)
    y = TEXTS if not isinstance(e, SGDRegressor) else X[:, 0].astype(np.float32)
    e = fitted(e, x, y, 24)
    model = ot.from_sklearn(e)
    assert {i["dtype"] for i in model.info["inputs"]} == {"float"}
    weights = [v for n, v in model.parameters.items() if n.startswith("coef")]
    assert weights and all(w.dtype == np.float32 for w in weights)
    t = trip(e, x, y, steps=3)
    assert t.difference < 2e-6


def test_mini_batches_of_scikit_learn_inside_one_step():
    e = fitted(MLPClassifier((4,), random_state=0, batch_size=5), X, TWO, 24)
    trainer = ot.Trainer(ot.from_sklearn(e))
    before = int(trainer.state["t"])
    trainer.step({"X": X[:23], "y": TWO[:23]})
    assert int(trainer.state["t"]) == before + 5  # four batches of 5, one of 3
    assert int(trainer.state["t_"]) == e.t_ + 23


def test_multilabel_predictions():
    e = fitted(mlp(LABELS), X, LABELS, 24)
    assert (ot.from_sklearn(e).predict(X) == e.predict(X)).all()


def steps(trainer, e, count):
    """Steps here and calls of partial_fit there on the same rows."""
    for k in range(count):
        rows = slice(5 * k, 5 * k + 24)
        trainer.step({"X": X[rows], "y": TEXTS[rows]})
        e.partial_fit(X[rows], TEXTS[rows])


def test_loss_curve_is_that_of_the_class(tmp_path):
    e = fitted(mlp(TEXTS), X, TEXTS, 24)
    trainer = ot.Trainer(ot.from_sklearn(e))
    steps(trainer, e, 3)
    trainer.save(tmp_path / "half.train.onnx")
    trainer = ot.Trainer(ot.load(tmp_path / "half.train.onnx"))
    steps(trainer, e, 2)
    back = ot.to_sklearn(trainer)
    back.partial_fit(X[:24], TEXTS[:24])
    steps(trainer, e, 1)
    for made in (ot.to_sklearn(trainer), back):
        assert len(made.loss_curve_) == len(e.loss_curve_) == 8
        np.testing.assert_allclose(made.loss_curve_, e.loss_curve_, rtol=1e-12)
        np.testing.assert_allclose([made.loss_, made.best_loss_], [e.loss_, e.best_loss_], rtol=1e-12)
        assert (made.t_, made.n_iter_, made._no_improvement_count) == (e.t_, e.n_iter_, e._no_improvement_count)


def test_losses_that_the_file_no_longer_has_are_said():
    e = fitted(mlp(TEXTS), X, TEXTS, 24)
    trainer = ot.Trainer(ot.from_sklearn(e, loss_curve=4))
    steps(trainer, e, 6)
    with pytest.warns(UserWarning, match="last 4 steps: 2 of loss_curve_ are nan"):
        curve = ot.to_sklearn(trainer).loss_curve_
    assert np.isnan(curve).tolist() == [False, False, True, True, False, False, False, False]
    np.testing.assert_allclose(curve[-4:], e.loss_curve_[-4:], rtol=1e-12)
    with pytest.raises(ot.UsageError, match="loss_curve is -1"):
        ot.from_sklearn(e, loss_curve=-1)
