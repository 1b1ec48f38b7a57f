"""Estimators of the trajectories: every solver, loss, penalty and learning rate (docs/sklearn.md)."""

import numpy as np
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
_Z = X @ RNG.normal(size=(6, 4)) + 0.3 * RNG.normal(size=(400, 4))
TEXTS = np.array(["eel", "cat", "dog"])[_Z[:, :3].argmax(1)]
TWO = np.where(_Z[:, 0] > 0, 7, 3)
NUMBERS = _Z[:, 0]
PAIRS = _Z[:, :2]
COUNTS = RNG.poisson(np.exp(0.5 * _Z[:, 0])).astype(float)
LABELS = (_Z[:, :3] > 0).astype(int)

LOSSES = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", "squared_error", "huber",
          "epsilon_insensitive", "squared_epsilon_insensitive")
PENALTIES = ("l2", "l1", "elasticnet", None)
RATES = ("optimal", "constant", "invscaling", "adaptive")


def mlp(targets, **settings):
    regressor = targets is NUMBERS or targets is PAIRS or targets is COUNTS
    kind = MLPRegressor if regressor else MLPClassifier
    return kind(**{"hidden_layer_sizes": (8, 5), "random_state": 0, "alpha": 0.01, "tol": 0.01, "n_iter_no_change": 2,
                   **settings})


def mlp_cases():
    """{name: (estimator, targets, rows of a step)}"""
    found = {}
    kinds = {"3 classes": TEXTS, "2 classes": TWO, "multilabel": LABELS, "1 output": NUMBERS, "2 outputs": PAIRS}
    solvers = [("adam", {}), ("adam betas", {"beta_1": 0.7, "beta_2": 0.99, "epsilon": 1e-4})]
    for rate in ("constant", "invscaling", "adaptive"):
        for momentum in ({"momentum": 0.0}, {"nesterovs_momentum": False}, {}):
            name = "nesterov" if not momentum else "momentum" if "momentum" not in momentum else "plain"
            solvers.append((f"sgd {rate} {name}", {"solver": "sgd", "learning_rate": rate, "learning_rate_init": 0.01,
                                                   **momentum}))
    for kind, y in kinds.items():
        for name, settings in solvers:
            found[f"MLP {kind}, {name}"] = mlp(y, **settings), y, 24
    for act in ("identity", "logistic", "tanh", "relu"):
        found[f"MLP 3 classes, {act}"] = mlp(TEXTS, activation=act), TEXTS, 24
        found[f"MLP 2 outputs, {act}"] = mlp(PAIRS, activation=act), PAIRS, 24
    for solver in ("adam", "sgd"):
        found[f"MLP poisson, {solver}"] = mlp(COUNTS, solver=solver, loss="poisson"), COUNTS, 24
        found[f"MLP batches of 7, {solver}"] = mlp(TEXTS, solver=solver, batch_size=7), TEXTS, 24
        found[f"MLP 250 rows in batches of 200, {solver}"] = mlp(TWO, solver=solver), TWO, 250
    found["MLP no hidden layer"] = mlp(TEXTS, hidden_layer_sizes=()), TEXTS, 24
    return found


def rows_of(estimator):
    """The rows that a case is trained on. learning_rate="optimal" starts at alpha ** -0.25, which is 3.2 for 0.01: on X
    losses without a bound diverge and multiply the last bit. On smaller numbers and with alpha = 1 they converge."""
    return 0.2 * X if getattr(estimator, "learning_rate", "") == "optimal" else X


def sgd_cases():
    found = {}
    for loss in LOSSES:
        for penalty in PENALTIES:
            for rate in RATES:
                alpha = 1.0 if rate == "optimal" and loss.startswith("squared") else 0.01  # see rows_of
                settings = {"loss": loss, "penalty": penalty, "learning_rate": rate, "alpha": alpha, "eta0": 0.05}
                name = f"{loss}, {penalty}, {rate}"
                found[f"SGD 2 classes, {name}"] = SGDClassifier(**settings), TWO, 24
                found[f"SGD 3 classes, {name}"] = SGDClassifier(**settings), TEXTS, 24
                if loss in LOSSES[5:]:
                    found[f"SGD regressor, {name}"] = SGDRegressor(**settings), NUMBERS, 24
    for average in (True, 30, 1000):
        for penalty in ("l2", None):
            settings = {"average": average, "penalty": penalty, "alpha": 0.01}
            found[f"SGD 2 classes, average {average}, {penalty}"] = SGDClassifier(**settings), TWO, 24
            found[f"SGD 3 classes, average {average}, {penalty}"] = SGDClassifier(**settings), TEXTS, 24
            found[f"SGD regressor, average {average}, {penalty}"] = SGDRegressor(**settings), NUMBERS, 24
    weights = {"eel": 3.0, "cat": 0.5}
    found["SGD 3 classes, class_weight"] = SGDClassifier(alpha=0.01, class_weight=weights), TEXTS, 24
    found["SGD 2 classes, class_weight"] = SGDClassifier(alpha=0.01, class_weight={3: 2.0}), TWO, 24
    found["SGD no intercept"] = SGDRegressor(fit_intercept=False), NUMBERS, 24
    found["SGD default alpha"] = SGDClassifier(loss="log_loss"), TEXTS, 24
    for penalty in PENALTIES:
        found[f"Perceptron, {penalty}"] = Perceptron(penalty=penalty, alpha=0.01), TEXTS, 24
    return found


def all_cases():
    return mlp_cases() | sgd_cases()
