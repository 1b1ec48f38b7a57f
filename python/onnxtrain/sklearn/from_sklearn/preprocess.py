"""Transformers of numbers as nodes: scalers, projections, imputers, selections. Their numbers are constants."""

import numpy as np

from . import reshaping
from .nodes import INT64


def standard_scaler(t, x, g, who, table):
    if t.with_mean:
        x = g.Sub(x, g.real(t.mean_))
    return g.Div(x, g.real(t.scale_)) if t.with_std else x


def robust_scaler(t, x, g, who, table):
    if t.with_centering:
        x = g.Sub(x, g.real(t.center_))
    return g.Div(x, g.real(t.scale_)) if t.with_scaling else x


def min_max_scaler(t, x, g, who, table):
    x = g.Add(g.Mul(x, g.real(t.scale_)), g.real(t.min_))
    return g.Clip(x, *(g.real(v) for v in t.feature_range)) if t.clip else x


def max_abs_scaler(t, x, g, who, table):
    x = g.Div(x, g.real(t.scale_))
    return g.Clip(x, g.real(-1), g.real(1)) if getattr(t, "clip", False) else x


def normalizer(t, x, g, who, table):
    norm = {"l1": lambda: g.ReduceSum(g.Abs(x), [1], keepdims=1),
            "l2": lambda: g.Sqrt(g.ReduceSum(g.Mul(x, x), [1], keepdims=1)),
            "max": lambda: g.ReduceMax(g.Abs(x), [1], keepdims=1)}[t.norm]()
    return g.Div(x, g.Where(g.Equal(norm, g.real(0)), g.real(1), norm))


def binarizer(t, x, g, who, table):
    return g.cast(g.Greater(x, g.real(t.threshold)), g.dtype)


def pca(t, x, g, who, table):
    """The centering is behind the projection, as in scikit-learn."""
    parts = t.components_
    x = g.Sub(g.MatMul(x, g.real(parts.T)), g.real(np.reshape(t.mean_, (1, -1)) @ parts.T))
    if not t.whiten:
        return x
    scale = np.sqrt(t.explained_variance_)
    scale[scale < np.finfo(scale.dtype).eps] = np.finfo(scale.dtype).eps
    return g.Div(x, g.real(scale))


def truncated_svd(t, x, g, who, table):
    return g.MatMul(x, g.real(t.components_.T))


def selection(t, x, g, who, table):
    return g.columns(x, t.get_support(indices=True))


def polynomial_features(t, x, g, who, table):
    """Products of columns; a column of ones stands where a product has fewer factors."""
    powers = t.powers_
    degree, ones = int(powers.sum(1).max(initial=0)), powers.shape[1]
    factors = [[k for k, p in enumerate(row) for _ in range(p)] for row in powers]
    x = g.Concat(x, g.Add(g.Mul(g.columns(x, [0]), g.real(0)), g.real(1)), axis=1)
    made = None
    for d in range(max(degree, 1)):
        part = g.columns(x, [f[d] if d < len(f) else ones for f in factors])
        made = part if made is None else g.Mul(made, part)
    return made


def _missing(t, x, g):
    value = t.missing_values
    return g.IsNaN(x) if isinstance(value, float) and np.isnan(value) else g.Equal(x, g.real(value))


def simple_imputer(t, x, g, who, table):
    if not isinstance(t.missing_values, (int, float)):
        who.refuse(f"missing_values={t.missing_values!r} in columns of numbers")
    missing = _missing(t, x, g)
    fill = np.asarray(t.statistics_, float)
    kept = np.flatnonzero(~np.isnan(fill)) if not np.isnan(fill).all() else np.arange(0)
    made = g.Where(missing, g.real(fill), x)
    if len(kept) < len(fill):
        made = g.columns(made, kept)
    if t.add_indicator:
        made = g.Concat(made, g.cast(g.columns(missing, t.indicator_.features_), g.dtype), axis=1)
    return made


def missing_indicator(t, x, g, who, table):
    return g.cast(g.columns(_missing(t, x, g), t.features_), g.dtype)


_FUNCTIONS = {"log": lambda g, x: g.Log(x), "exp": lambda g, x: g.Exp(x), "sqrt": lambda g, x: g.Sqrt(x),
              "log1p": lambda g, x: g.Log(g.Add(x, g.real(1))), "expm1": lambda g, x: g.Sub(g.Exp(x), g.real(1)),
              "square": lambda g, x: g.Mul(x, x), "absolute": lambda g, x: g.Abs(x), "tanh": lambda g, x: g.Tanh(x),
              "sin": lambda g, x: g.Sin(x), "cos": lambda g, x: g.Cos(x), "sign": lambda g, x: g.Sign(x),
              "negative": lambda g, x: g.Neg(x), "reciprocal": lambda g, x: g.Div(g.real(1), x),
              "floor": lambda g, x: g.Floor(x), "ceil": lambda g, x: g.Ceil(x), "arctan": lambda g, x: g.Atan(x),
              "log2": lambda g, x: g.Div(g.Log(x), g.real(np.log(2))),
              "log10": lambda g, x: g.Div(g.Log(x), g.real(np.log(10)))}


def function_transformer(t, x, g, who, table):
    name = getattr(t.func, "__name__", None)
    if t.func is None:
        return x
    if not isinstance(t.func, np.ufunc) or name not in _FUNCTIONS or t.kw_args:
        who.refuse(f"its function {name or t.func!r} is code of its own",
                   f"a function of numpy: {', '.join(_FUNCTIONS)}")
    return _FUNCTIONS[name](g, x)


def k_bins(t, x, g, who, table):
    """The number of inner edges that are not above the value; then a number, or a row of the table."""
    made, width = [], []
    for k, edges in enumerate(t.bin_edges_):
        column = g.columns(x, [k])
        passed = g.GreaterOrEqual(column, g.real(edges[1:-1][None]))
        index = g.sum(g.cast(passed, INT64), [1])
        count = int(t.n_bins_[k])
        if t.encode == "ordinal":
            made.append(g.Unsqueeze(g.cast(index, g.dtype), [1]))
        else:
            made.append(g.Gather(g.real(np.eye(count)), index, axis=0))
        width.append(count)
    return made[0] if len(made) == 1 else g.Concat(*made, axis=1)


# class -> its nodes: (transformer, value, graph, for messages, table) -> value
NUMBERS = {
    "StandardScaler": standard_scaler, "RobustScaler": robust_scaler, "MinMaxScaler": min_max_scaler,
    "MaxAbsScaler": max_abs_scaler, "Normalizer": normalizer, "Binarizer": binarizer, "PCA": pca,
    "IncrementalPCA": pca, "TruncatedSVD": truncated_svd, "PolynomialFeatures": polynomial_features,
    "SimpleImputer": simple_imputer, "MissingIndicator": missing_indicator, "KBinsDiscretizer": k_bins,
    "FunctionTransformer": function_transformer, "VarianceThreshold": selection, "SelectKBest": selection,
    "SelectPercentile": selection, "SelectFpr": selection, "SelectFdr": selection, "SelectFwe": selection,
    "GenericUnivariateSelect": selection, "SelectFromModel": selection, "RFE": selection, "RFECV": selection,
    "SequentialFeatureSelector": selection, "PowerTransformer": reshaping.power_transformer,
    "QuantileTransformer": reshaping.quantile_transformer, "RBFSampler": reshaping.rbf_sampler,
    "GaussianRandomProjection": reshaping.random_projection, "FastICA": reshaping.independent_components,
}
