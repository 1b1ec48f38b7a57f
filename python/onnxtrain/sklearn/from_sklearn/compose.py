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
    if kind in ("OneHotEncoder", "OrdinalEncoder"):
        return encode.encoder(t, g, who, table)
    if kind == "SimpleImputer" and encode.is_text([s for s in t.statistics_ if isinstance(s, str)][:1] or [0]):
        return encode.text_imputer(t, g, who, table)
    if kind == "FunctionTransformer" and t.func is None:
        return table
    if kind not in NUMBERS:
        who.refuse("this transformer has no form in ONNX here", f"there are {', '.join(sorted(NUMBERS))}, "
                   "OneHotEncoder, OrdinalEncoder, Pipeline, ColumnTransformer, FeatureUnion")
    _look_at(t, table)
    value = NUMBERS[kind](t, table.numbers(who), g, who, table)
    return table.made(value, _width(t, table), sparse=_is_sparse(t, table), same_values=kind == "SimpleImputer")


def _look_at(t, table):
    """What the fitted numbers say about the columns."""
    def fitted(*names):
        return next((a for n in names if (a := getattr(t, n, None)) is not None), None)

    center = fitted("mean_", "center_", "statistics_", "data_min_")
    scale = fitted("data_range_", "scale_")
    if type(t).__name__ == "FunctionTransformer":
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
        parts.append(transform(step, g, who.part(step, name), table.select(indices)))
    if t.transformer_weights:
        who.refuse("transformer_weights", "multiply in a scaler instead")
    made = joined(g, parts)
    made.sparse = bool(t.sparse_output_)
    return made


def _feature_union(t, g, who, table):
    if t.transformer_weights:
        who.refuse("transformer_weights", "multiply in a scaler instead")
    parts = [transform(step, g, who.part(step, name), table) for name, step in t.transformer_list
             if not (isinstance(step, str) and step == "drop")]
    return joined(g, parts)
