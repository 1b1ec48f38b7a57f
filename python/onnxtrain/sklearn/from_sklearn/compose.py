"""Pipelines and what is composed of transformers: one table in, one table out."""

import numpy as np

from . import encode
from .preprocess import NUMBERS
from .table import joined


def transform(t, g, who, table):
    """The nodes of a fitted transformer."""
    if t is None or isinstance(t, str) and t == "passthrough":
        return table
    kind = type(t).__name__
    if kind == "Pipeline":
        for name, step in t.steps:
            table = transform(step, g, who.part(step, name), table)
        return table
    if kind == "ColumnTransformer":
        return _column_transformer(t, g, who, table)
    if kind == "FeatureUnion":
        return _feature_union(t, g, who, table)
    if kind in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"):
        return encode.encoder(t, g, who, table)
    if kind == "SimpleImputer" and encode.is_text([s for s in t.statistics_ if isinstance(s, str)][:1] or [0]):
        return encode.text_imputer(t, g, who, table)
    if kind == "FunctionTransformer" and t.func is None:
        return table
    if kind not in NUMBERS:
        who.refuse("this transformer has no form in ONNX here", f"there are {', '.join(sorted(NUMBERS))}, "
                   "OneHotEncoder, OrdinalEncoder, TargetEncoder, Pipeline, ColumnTransformer, FeatureUnion")
    _look_at(t, table)
    value = NUMBERS[kind](t, table.numbers(who), g, who, table)
    return table.made(value, _width(t, table), sparse=_is_sparse(t, table), same_values=kind == "SimpleImputer")


def _look_at(t, table):
    """What the fitted numbers say about the columns."""
    def fitted(*names):
        return next((a for n in names if (a := getattr(t, n, None)) is not None), None)

    center = fitted("mean_", "center_", "statistics_", "data_min_")
    scale = fitted("data_range_", "scale_")
    if type(t).__name__ == "QuantileTransformer":
        center, scale = t.quantiles_[len(t.quantiles_) // 2], np.ptp(t.quantiles_, axis=0) / 2
    if type(t).__name__ == "FunctionTransformer" or getattr(t, "method", "") == "box-cox":
        center, scale = [3.0] * table.width, [0.25] * table.width
    for k, s in enumerate(table.samples):
        if s.values is None and center is not None and len(center) == table.width and np.isfinite(float(center[k])):
            s.center = float(center[k])
        if s.values is None and scale is not None and len(scale) == table.width:
            s.scale = float(scale[k]) or 1.0


def _width(t, table):
    try:
        return len(t.get_feature_names_out())
    except (AttributeError, ValueError, NotImplementedError):
        return table.width


def _is_sparse(t, table):
    """Whether scikit-learn would have a sparse matrix here."""
    kind = type(t).__name__
    if kind == "KBinsDiscretizer":
        return t.encode == "onehot"
    return table.sparse and kind not in ("PCA", "IncrementalPCA", "TruncatedSVD")


def _column_transformer(t, g, who, table):
    parts = []
    for name, step, _ in t.transformers_:
        indices = t._transformer_to_input_indices.get(name, [])
        if isinstance(step, str) and step == "drop" or len(indices) == 0:
            continue
        part = who.part(step, name)
        parts.append(_weighted(t, name, transform(step, g, part, table.select(indices)), g, part))
    made = joined(g, parts)
    made.sparse = bool(t.sparse_output_)
    return made


def _feature_union(t, g, who, table):
    parts = []
    for name, step in t.transformer_list:
        if isinstance(step, str) and step == "drop":
            continue
        part = who.part(step, name)
        parts.append(_weighted(t, name, transform(step, g, part, table), g, part))
    return joined(g, parts)


def _weighted(t, name, table, g, who):
    """transformer_weights: what a part made, times its number."""
    weight = (t.transformer_weights or {}).get(name)
    return table if weight is None else table.made(g.Mul(table.numbers(who), g.real(weight)), table.width)
