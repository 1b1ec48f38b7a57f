"""Encoders of categories, and imputers of texts. A category becomes its number, the number a row of a table that
scikit-learn's own transform has filled. A category that is not known, where that is an error, has no row."""

import numpy as np

from .nodes import INT64


def is_text(categories):
    return np.asarray(categories).dtype.kind in "OU" and all(isinstance(c, str) for c in categories)


def _kind(categories, who):
    if is_text(categories):
        return "text"
    try:
        np.asarray(categories, float)
    except (TypeError, ValueError):
        who.refuse("a column has texts beside missing values or numbers as categories",
                   "fill missing texts first: SimpleImputer(strategy='constant')")
    return "number"


def index_of(g, column, categories, kind, other):
    """[n] int64: which category each row of the column [n, 1] has; `other`: the number of one that is not known."""
    if kind == "text":
        same = g.Equal(column, g.constant(np.asarray(categories, object)[None]))
    else:
        known = np.asarray(categories, float)
        same = g.Equal(column, g.real(known[None]))
        if np.isnan(known).any():
            same = g.Or(same, g.And(g.IsNaN(column), g.constant(np.isnan(known)[None])))
    hits = g.cast(same, INT64)
    return g.Where(g.Equal(g.sum(hits, [1]), 0), int(other), g.ArgMax(hits, axis=1, keepdims=0))


def _rows(t, k):
    """Output of the encoder for every category of column k, and for one that is not known (or None)."""
    def encode(values):
        rows = np.empty((len(values), len(t.categories_)), object)
        for j, c in enumerate(t.categories_):
            rows[:, j] = values if j == k else [c[0]] * len(values)
        made = t.transform(rows)
        return made.toarray() if hasattr(made, "toarray") else np.asarray(made)
    known = encode(list(t.categories_[k]))
    if getattr(t, "handle_unknown", "mean of the target") == "error":
        return known, None
    unknown = "\0no category" if is_text(t.categories_[k]) else np.float64(8.9e307)
    return known, encode([unknown])


def encoder(t, g, who, table):
    """OneHotEncoder, OrdinalEncoder and TargetEncoder."""
    names = getattr(t, "feature_names_in_", None)
    t = _without_names(t) if names is not None else t
    made, width = [], 0
    ends = _ends(t)
    for k, categories in enumerate(t.categories_):
        kind = _kind(categories, who)
        chosen = table.select([k])
        chosen.samples[0].values = list(categories)
        column = chosen.matrix(kind, who)
        known, unknown = _rows(t, k)
        rows = known if unknown is None else np.concatenate([known, unknown])
        rows = rows[:, ends[k]:ends[k + 1]]
        index = index_of(g, column, categories, kind, len(categories))
        made.append(g.node("Gather", [g.real(rows.astype(float)), index], axis=0,
                           name=f"{who.path or 'encoder'}_category_of_column_{k}"))
        width += rows.shape[1]
    value = made[0] if len(made) == 1 else g.Concat(*made, axis=1)
    return table.made(value, width, sparse=bool(getattr(t, "sparse_output", False)))


def _ends(t):
    """Where the outputs of each column begin."""
    if type(t).__name__ == "OrdinalEncoder":
        return list(range(len(t.categories_) + 1))
    if type(t).__name__ == "TargetEncoder":
        each = len(t.encodings_) // len(t.categories_)  # one, or one of each class
        return list(range(0, len(t.encodings_) + 1, each))
    return np.cumsum([0, *t._n_features_outs]).tolist()


def _without_names(t):
    import copy
    t = copy.copy(t)
    del t.feature_names_in_
    return t


def text_imputer(t, g, who, table):
    """A missing text is the empty text in the file: ONNX has no other."""
    if t.add_indicator:
        who.refuse("add_indicator=True in columns of texts")
    missing = t.missing_values if isinstance(t.missing_values, str) else ""
    fill = np.asarray(t.statistics_, object)
    if not all(isinstance(f, str) for f in fill):
        who.refuse("a column of texts has no value to fill in")
    x = table.matrix("text", who)
    return table.made(g.Where(g.Equal(x, g.constant(np.asarray(missing, object))), g.constant(fill[None]), x),
                      len(fill), kind="text", same_values=True)
