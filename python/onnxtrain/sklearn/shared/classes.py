"""The classes and functions that a file may name: nothing else is ever imported on its word."""

import importlib

import numpy as np

_CLASSES = {
    "sklearn.pipeline": ["Pipeline", "FeatureUnion"],
    "sklearn.compose": ["ColumnTransformer", "make_column_selector"],
    "sklearn.compose._column_transformer": ["_RemainderColsList"],
    "sklearn.preprocessing": ["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer",
                              "Binarizer", "PolynomialFeatures", "OneHotEncoder", "OrdinalEncoder", "KBinsDiscretizer",
                              "FunctionTransformer", "LabelBinarizer", "PowerTransformer", "QuantileTransformer",
                              "TargetEncoder"],
    "sklearn.impute": ["SimpleImputer", "MissingIndicator"],
    "sklearn.decomposition": ["PCA", "IncrementalPCA", "TruncatedSVD", "FastICA"],
    "sklearn.random_projection": ["GaussianRandomProjection"],
    "sklearn.kernel_approximation": ["RBFSampler"],
    "sklearn.feature_selection": ["VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr",
                                  "SelectFwe", "GenericUnivariateSelect", "SelectFromModel", "RFE", "RFECV",
                                  "SequentialFeatureSelector"],
    "sklearn.neural_network": ["MLPClassifier", "MLPRegressor"],
    "sklearn.neural_network._stochastic_optimizers": ["AdamOptimizer", "SGDOptimizer"],
    "sklearn.linear_model": ["SGDClassifier", "SGDRegressor", "Perceptron", "LogisticRegression",
                             "LogisticRegressionCV", "LinearRegression", "Ridge", "RidgeCV", "RidgeClassifier",
                             "RidgeClassifierCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge",
                             "ARDRegression", "HuberRegressor", "PoissonRegressor", "GammaRegressor",
                             "TweedieRegressor"],
    "sklearn.svm": ["LinearSVC", "LinearSVR"],
}
_FUNCTIONS = {"sklearn.feature_selection": ["f_classif", "f_regression", "chi2", "mutual_info_classif",
                                            "mutual_info_regression", "r_regression"]}
UFUNCS = ("log", "exp", "sqrt", "log1p", "expm1", "square", "absolute", "tanh", "sin", "cos", "sign", "negative",
          "reciprocal", "floor", "ceil", "arctan", "log2", "log10")


def _where(table):
    return {name: module for module, names in table.items() for name in names}


_CLASS_OF, _FUNCTION_OF = _where(_CLASSES), _where(_FUNCTIONS)


def find(name):
    """The class of this name, or None."""
    module = _CLASS_OF.get(name)
    return getattr(importlib.import_module(module), name, None) if module else None


def is_known(cls):
    return find(cls.__name__) is cls


def function_name(f):
    """The name under which a file may call a function, or None."""
    name = getattr(f, "__name__", "")
    if isinstance(f, np.ufunc) and name in UFUNCS:
        return name
    return name if name in _FUNCTION_OF and find_function(name) is f else None


def find_function(name):
    if name in UFUNCS:
        return getattr(np, name)
    module = _FUNCTION_OF.get(name)
    return getattr(importlib.import_module(module), name, None) if module else None
