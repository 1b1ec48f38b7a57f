"""Estimators and pipelines that go through the file: preprocessing of every kind, estimators of every kind."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC, LinearSVR

from sk_cases import COUNTS, NUMBERS, PAIRS, TEXTS, TWO, X

RNG = np.random.default_rng(4)
OFFSET = X * [1, 10, 0.1, 3, 1, 2] + [0, 100, 5, 1e4, 2, -3]
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, OFFSET)
TABLE = pd.DataFrame({"age": OFFSET[:, 1], "income": HOLES[:, 3], "city": RNG.choice(["Bonn", "Ulm", "Trier"], 400),
                      "size": RNG.choice(["s", "m"], 400), "doors": RNG.choice([2, 4, 5], 400)})


def table_pipeline(estimator):
    return make_pipeline(
        make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
                                (OneHotEncoder(handle_unknown="ignore"), ["city"]),
                                (OrdinalEncoder(), ["size"]), (OneHotEncoder(drop="first"), ["doors"])), estimator)


def pipelines():
    """{name: (estimator, X, y)}, none fitted."""
    mlp = {"hidden_layer_sizes": (6,), "max_iter": 4, "random_state": 0}
    log = {"loss": "log_loss", "alpha": 0.01, "random_state": 0}
    union = FeatureUnion([("pca", PCA(2)), ("scaled", StandardScaler())])
    return {
        "StandardScaler + MLPClassifier": (make_pipeline(StandardScaler(), MLPClassifier(**mlp)), OFFSET, TEXTS),
        "MinMaxScaler + MLPClassifier, 2 classes": (make_pipeline(MinMaxScaler(), MLPClassifier(**mlp)), OFFSET, TWO),
        "RobustScaler + MLPRegressor": (make_pipeline(RobustScaler(), MLPRegressor(**mlp)), OFFSET, NUMBERS),
        "PCA(whiten) + MLPRegressor, 2 outputs": (make_pipeline(PCA(3, whiten=True), MLPRegressor(**mlp)), X, PAIRS),
        "MLPRegressor(poisson)": (MLPRegressor(loss="poisson", **mlp), X, COUNTS),
        "StandardScaler + SGDClassifier": (make_pipeline(StandardScaler(), SGDClassifier(**log)), OFFSET, TEXTS),
        "SimpleImputer + SGDClassifier": (
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), SGDClassifier(**log)), HOLES, TWO),
        "MaxAbsScaler + SGDRegressor": (make_pipeline(MaxAbsScaler(), SGDRegressor(random_state=0)), OFFSET, NUMBERS),
        "PolynomialFeatures + SGDRegressor": (
            make_pipeline(StandardScaler(), PolynomialFeatures(2), SGDRegressor(eta0=1e-3, random_state=0)), X,
            NUMBERS),
        "ColumnTransformer + SGDClassifier (sparse)": (table_pipeline(SGDClassifier(**log)), TABLE, TEXTS),
        "ColumnTransformer + MLPClassifier": (table_pipeline(MLPClassifier(**mlp)), TABLE, TWO),
        "ColumnTransformer by type + SGDClassifier (l1)": (
            make_pipeline(make_column_transformer((OneHotEncoder(), make_column_selector(dtype_exclude="number")),
                                                  remainder=KBinsDiscretizer(4)),
                          SGDClassifier(penalty="l1", **log)), TABLE.assign(income=OFFSET[:, 3]), TEXTS),
        "FeatureUnion + Perceptron": (make_pipeline(union, Perceptron(random_state=0)), X, TEXTS),
        "SelectKBest + Normalizer + SGDClassifier": (
            make_pipeline(SelectKBest(k=3), Normalizer(), SGDClassifier(**log)), OFFSET, TEXTS),
        "IncrementalPCA + LogisticRegression": (
            make_pipeline(StandardScaler(), IncrementalPCA(4), LogisticRegression()), OFFSET, TEXTS),
        "TruncatedSVD + LogisticRegression, 2 classes": (
            make_pipeline(StandardScaler(), TruncatedSVD(4), LogisticRegression()), OFFSET, TWO),
        "LinearRegression, 2 outputs": (LinearRegression(), X, PAIRS),
        "StandardScaler + Ridge": (make_pipeline(StandardScaler(), Ridge()), OFFSET, NUMBERS),
        "FunctionTransformer + Lasso": (
            make_pipeline(FunctionTransformer(np.square), StandardScaler(), Lasso(0.01)), X, NUMBERS),
        "ElasticNet": (ElasticNet(0.01), X, NUMBERS),
        "Binarizer + LinearSVC": (make_pipeline(Binarizer(), LinearSVC()), X, TEXTS),
        "LinearSVC, 2 classes": (LinearSVC(), X, TWO),
        "StandardScaler + LinearSVR": (make_pipeline(StandardScaler(), LinearSVR()), OFFSET, NUMBERS),
        "RidgeClassifier": (RidgeClassifier(), X, TEXTS),
        "HuberRegressor": (HuberRegressor(), X, NUMBERS),
        "MLPClassifier(lbfgs)": (MLPClassifier(solver="lbfgs", **mlp), X, TEXTS),
        "ColumnTransformer + Ridge": (table_pipeline(Ridge()), TABLE, NUMBERS),
        "PowerTransformer + MLPClassifier": (make_pipeline(PowerTransformer(), MLPClassifier(**mlp)), OFFSET, TEXTS),
        "PowerTransformer(box-cox) + SGDRegressor": (
            make_pipeline(PowerTransformer(method="box-cox"), SGDRegressor(random_state=0)), np.abs(X) + 0.1, NUMBERS),
        "QuantileTransformer + SGDClassifier": (
            make_pipeline(QuantileTransformer(n_quantiles=20), SGDClassifier(**log)), np.round(OFFSET), TEXTS),
        "TargetEncoder + LogisticRegression": (
            make_pipeline(make_column_transformer((TargetEncoder(random_state=0), ["city", "doors"])),
                          LogisticRegression()), TABLE, TEXTS),
        "SelectFromModel + weighted FeatureUnion + SGDRegressor": (
            make_pipeline(StandardScaler(), SelectFromModel(Lasso(0.01)),
                          FeatureUnion([("pca", PCA(2)), ("as it is", "passthrough")], transformer_weights={"pca": 3}),
                          SGDRegressor(random_state=0)), X, NUMBERS),
        "RFE + Ridge": (make_pipeline(RFE(LinearRegression(), n_features_to_select=3), Ridge()), X, NUMBERS),
        "FastICA + MLPRegressor": (make_pipeline(FastICA(3, random_state=0), MLPRegressor(**mlp)), X, PAIRS),
        "StandardScaler + PoissonRegressor": (
            make_pipeline(StandardScaler(), PoissonRegressor()), OFFSET, COUNTS.astype(float)),
        "GammaRegressor": (GammaRegressor(), X, np.abs(NUMBERS) + 0.1),
        "TweedieRegressor": (TweedieRegressor(power=1.5), X, np.abs(NUMBERS)),
        "float32 StandardScaler + MLPClassifier": (
            make_pipeline(StandardScaler(), MLPClassifier(**mlp)), X.astype(np.float32), TEXTS),
        "float32 SGDRegressor": (SGDRegressor(random_state=0), X.astype(np.float32), NUMBERS.astype(np.float32)),
    }
