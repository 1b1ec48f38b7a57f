"""What people hand to `fit`, `evaluate` and `predict`: arrays, dicts of arrays, tables, batches one after the other."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping

import numpy as np

from . import _native
from .errors import DataError, UsageError


def _holds_arrays(batch):
    return all(hasattr(a, "__array__") and np.ndim(a) > 0
               for a in (batch.values() if isinstance(batch, Mapping) else batch))


def is_batches(x):
    """True for a generator, a loader or any other iterable of batches; False for arrays and what becomes one."""
    refuse_sparse(x, "x")
    if isinstance(x, (list, tuple)) and x and all(isinstance(b, (Mapping, tuple)) and len(b) > 0 and _holds_arrays(b)
                                                  for b in x):
        return True  # batches (x, y) or {name: array}, all there already
    if isinstance(x, (Mapping, list, tuple, str, bytes, os.PathLike, np.ndarray)) or hasattr(x, "__array__"):
        return False
    return hasattr(x, "__iter__") or callable(x)


def is_one_pass(x):
    return isinstance(x, Iterator)


def is_text(a):
    return a.dtype.kind in "UST" or (a.dtype == object and a.size > 0 and all(isinstance(v, str) for v in a.flat))


def text_columns(x):
    """Names of the columns of a table that hold text; empty for anything else."""
    names = column_names(x)
    if not names or not hasattr(x, "dtypes"):
        return []
    return [n for n, d in zip(names, list(x.dtypes)) if str(d) in ("object", "str", "string", "category", "String")]


def _all_numbers(words):
    try:
        np.asarray(words, dtype=float)
    except ValueError:
        return False
    return True


def refuse_sparse(x, name):
    """Matrices of scipy.sparse are no arrays, although they can be gone through."""
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise DataError(f"'{name}' is a sparse matrix ({type(x).__name__}), the model takes arrays", "OT2105",
                        "x.toarray()")


def array(x, name, text=False):
    """One column as an array; the first dimension counts the rows. `text`: strings are fine, some models take them."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise DataError(f"'{name}' has {int(np.ma.count_masked(x))} masked values, and a model has no masks", "OT2121",
                        "fill them in: x.filled(0), or leave those rows out")
    if (words := text_columns(x)) and not text:
        raise DataError(f"column {', '.join(map(repr, words))} of '{name}' holds text, the model takes numbers",
                        "OT2124",
                        f"leave it out: table.drop(columns={words!r}), or make a model for the table: ot.new(\"mlp\", "
                        "table, target=...)")
    refuse_sparse(x, name)
    try:
        a = np.asarray(x)
    except (RuntimeError, TypeError) as e:  # a tensor of PyTorch with a gradient, or on another device
        if not hasattr(x, "detach"):
            raise
        raise DataError(f"'{name}' is a tensor that is no array: {str(e).splitlines()[0]}", "OT2105",
                        "x.detach().cpu().numpy()") from e
    except ValueError as e:  # rows of different lengths
        raise DataError(f"'{name}' is not an array: {e}", "OT2105",
                        "rows of one length make an array: pad or cut the lists") from e
    if a.ndim > 0 and text and is_text(a):
        return a
    if a.dtype.kind in "OUST" or a.ndim == 0:
        kind = "a single value" if a.ndim == 0 else "text" if is_text(a) else "objects or rows of different lengths"
        if kind == "text" and _all_numbers(a):
            raise DataError(f"'{name}' is not an array of numbers: it holds numbers written as text", "OT2105",
                            "numpy.asarray(x, dtype=float)")
        raise DataError(f"'{name}' is not an array of numbers: it holds {kind}", "OT2105",
                        "classes, labels = numpy.unique(y, return_inverse=True) numbers labels; "
                        "a model that takes text trains on batches: fit(iterable)" if kind == "text"
                        else "numpy.asarray(..., dtype=numpy.float32) shows what is wrong with it")
    return a


def column_names(x):
    """Names of the columns of a table (pandas, polars, ...) as text; None for anything else."""
    names = getattr(x, "columns", None)
    if isinstance(x, Mapping) or names is None or callable(names) or not hasattr(x, "__array__"):
        return None
    return [str(n) for n in names]


def target_names(y):
    """Names of what is to be predicted, where y carries them."""
    names = column_names(y)
    if names is None:
        name = getattr(y, "name", None)
        names = [name] if isinstance(name, str) and name and hasattr(y, "__array__") else []
    return names


def _missing(v):
    return v is None or type(v).__name__ in ("NAType", "NaTType") or v != v


_NOTHING = frozenset(json.loads(_native.missing_words()))  # as in files (docs/tables.md)


def _nothing(v):
    return isinstance(v, str) and v.strip() in _NOTHING


class Text(str):
    """The kind "text" of a column, with the texts that the model knows there; none: it is not known."""

    def __new__(cls, known=()):
        made = super().__new__(cls, "text")
        made.known = dict.fromkeys(known)
        return made

    def meant(self, text):
        """The category that is meant: 3.0 is the category 3, TRUE the category True. None: there is none."""
        if text in self.known:
            return text
        for same in (str.lower if text.lower() in ("true", "false") else None, _number):
            if same and same(text) is not None:
                return next((c for c in self.known if same(c) == same(text)), None)
        return None


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def _texts(values, name, kind):
    values = ["" if _missing(v) else str(v) for v in values.tolist()]
    if not getattr(kind, "known", None):
        return values
    meant = {v: kind.meant(v) for v in dict.fromkeys(values)}
    unknown = [v for v, m in meant.items() if m is None]
    if unknown:
        rows = sum(meant[v] is None for v in values)
        have = "1 row has a value" if rows == 1 else f"{rows:,} rows have values"
        shown = ", ".join([repr(v or "(missing)") for v in unknown[:5]] + ["..."] * (len(unknown) > 5))
        warnings.warn(f"column '{name}': {have} that the training did not have, which counts as unknown: {shown}",
                      stacklevel=2)
    return [v if meant[v] is None else meant[v] for v in values]


def raw_column(values, name, kind):
    """A column of a table as an input of a model that takes raw columns: text with "" for what is missing, numbers
    with NaN, dates as days since 1970."""
    return _raw_values(values, name, kind).reshape(-1, 1)


def _raw_values(values, name, kind):
    values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if values.size == 0:
        raise DataError(f"the table has no rows: column '{name}' is empty", "OT2101", "give at least one row")
    if kind == "text":
        return np.array(_texts(values, name, kind), dtype=object)
    text = values.dtype.kind in "US" or (values.dtype == object and any(isinstance(v, str) for v in values.tolist()))
    if text and kind:  # as in a file
        return np.array(_native.column_numbers(name, kind, ["" if _missing(v) else str(v) for v in values.tolist()]))
    if kind and kind.startswith("date"):
        try:
            days = np.asarray(values, dtype="datetime64[ms]")
        except ValueError as e:
            raise DataError(f"column '{name}' holds no dates: {e}", "OT2181",
                            f"pandas.to_datetime(table['{name}'])") from None
        number = days.astype("int64") / 86400000.0
        return np.where(np.isnat(days), np.nan, number)
    if values.dtype == object or values.dtype.kind in "US":
        values = np.array([np.nan if _missing(v) or _nothing(v) else v for v in values.tolist()])
    if values.dtype.kind in "US":  # numbers that are written as text
        with contextlib.suppress(ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind in "US":
        raise DataError(f"column '{name}' holds text, the model takes numbers there", "OT2124",
                        f"pandas.to_numeric(table['{name}'])")
    return values


def refuse_array(x, kinds, inputs):
    """Columns without names for a model that takes them by name."""
    if kinds and len(inputs) > 1 and not isinstance(x, Mapping) and np.ndim(x) == 2:
        raise DataError(f"the model takes columns by their names: {', '.join(map(repr, inputs))}; an array has none",
                        "OT2160", f"pandas.DataFrame(x, columns={list(inputs)!r})")


def by_name(x, features, inputs, kinds=None, text=None):
    """A table as the array or arrays that the model takes: by the names it was trained on, whatever their order.
    features: those names; None when there are none. inputs: of the model. kinds: {input: "number", "text", "date"} of
    a model that takes raw columns. text: how a model of token ids reads its text column."""
    tokens = {} if text is None else text.given(x) or {}
    if tokens and len(tokens) == len(inputs):
        return tokens
    inputs = [i for i in inputs if i not in tokens]
    if tokens and column_names(x) is None and not isinstance(x, Mapping):
        raise DataError(f"the model takes {', '.join(map(repr, inputs))} beside the text: texts alone are not enough",
                        "OT2160", "give a table with these columns, or a dict of them")
    if (kinds or tokens) and (isinstance(x, Mapping) or column_names(x) is not None):
        missing = [i for i in inputs if i not in (x if isinstance(x, Mapping) else column_names(x))]
        if missing:
            there = [str(n) for n in (x if isinstance(x, Mapping) else x.columns)]
            raise DataError(f"the table has no column {', '.join(map(repr, missing))}, which the model takes; it has "
                            f"{', '.join(map(repr, there))}", "OT2160",
                            "give the table the columns of the training, by these names")
        kinds = kinds or {}
        fed = text.fed if text is not None else ()
        return {**tokens, **{i: np.asarray(x[i]) if i in fed else raw_column(x[i], i, kinds.get(i)) for i in inputs}}
    names = column_names(x)
    if names is None and isinstance(x, Mapping) and features and not set(x) & {*inputs, "x"}:
        names = [str(n) for n in x]
        columns = dict(zip(names, x.values()))
    elif names is not None:
        columns = None
    else:
        refuse_array(x, kinds, inputs)
        return x
    if len(set(names)) != len(names):
        raise DataError(f"the table has two columns of one name: {', '.join(names)}", "OT2108")
    if len(inputs) > 1 and set(inputs) <= set(names):  # one input per column
        return {i: np.asarray(x.iloc[:, names.index(i)] if columns is None and hasattr(x, "iloc") else x[i])
                for i in inputs}
    if features:
        missing = [f for f in features if f not in names]
        if missing:
            raise DataError(f"the table has no column {', '.join(map(repr, missing))}, which the model was trained on; "
                            f"it has {', '.join(map(repr, names))}", "OT2160",
                            "give the table the columns of the training, by these names")
        if columns is not None:
            return np.column_stack([np.asarray(columns[f]) for f in features])
        if names != list(features):
            return np.asarray(x)[:, [names.index(f) for f in features]]
    return x if columns is None else np.column_stack([np.asarray(c) for c in columns.values()])


def class_numbers(y, classes):
    """Labels that are names of the model's classes, as numbers; anything else as it is."""
    if y is None or not classes or isinstance(y, Mapping):
        return y
    labels = np.asarray(y)
    if labels.ndim != 1 or not is_text(labels):
        return y
    numbers = {name: k for k, name in enumerate(classes)}
    for row, label in enumerate(labels.tolist()):
        if label not in numbers:
            raise DataError(f"class '{label}' at row {row} of y is not among the classes of the model: "
                            f"{', '.join(map(repr, classes[:20]))}", "OT2114",
                            "correct the value or remove the row; a new class needs a new training")
    return np.array([numbers[label] for label in labels.tolist()])


def several_targets(y, model, targets):
    """y of a model that learns several columns of a table, each with an output of its own: {column: values} by the
    names of the training's targets, text as class numbers; anything else as it is."""
    learnt = model.learnt
    if y is None or not learnt or len(learnt) != len(targets):
        return y
    if column_names(y) is not None:
        y = {n: np.asarray(y[n]) for n in column_names(y)}
    elif not isinstance(y, Mapping) and np.ndim(y) == 2 and np.shape(y)[1] == len(learnt):
        y = dict(zip(learnt, np.asarray(y).T))  # a column for each, in their order
    if not isinstance(y, Mapping) or set(y) == set(targets):
        return y
    missing = [n for n in learnt if n not in y]
    if missing:
        raise DataError(f"y has no column {', '.join(map(repr, missing))}; the model learns "
                        f"{', '.join(map(repr, learnt))}", "OT2160", f"y={list(learnt)!r}")
    return {t: class_numbers(y[n], names) for t, (n, names) in zip(targets, learnt.items())}


def columns(x, y=None, text=False):
    """{name: array} of x and y; a dict keeps its names, anything else is called x and y."""
    if isinstance(x, (str, os.PathLike)):
        path = os.fspath(x)
        how = {".csv": "read_csv", ".tsv": "read_table", ".parquet": "read_parquet"}.get(os.path.splitext(path)[1])
        raise UsageError(f"expected arrays, got the path '{path}'", "OT1156",
                         (f"table = pandas.{how}('{path}')" if how else "data = dict(numpy.load('data.npz'))")
                         + ", or train from the command line: onnxtrain train MODEL --data FILE")
    named = dict(x) if isinstance(x, Mapping) else {"x": x}
    if isinstance(y, Mapping):
        named.update(y)
    elif y is not None:
        named["y"] = y
    return {k: array(v, k, text) for k, v in named.items()}


def known_keys(named, inputs, targets=()):
    """The same, and an error when an input or target was not given and a key is none of them: keys are not matched by
    guessing. "x" and "y" stand for the only input and target."""
    for usual, names in (("x", inputs), ("y", targets)):
        missing = [n for n in names if n not in named]
        if not missing or (len(missing) == 1 and usual in named and usual not in (*inputs, *targets)):
            continue
        other = [k for k in named if k not in (*inputs, *targets, "x", "y")]
        if usual == "y" and len(names) > 1 and len(other) == len(missing):
            continue  # by the names of the outputs that learn them
        if other:
            what = "input" if usual == "x" else "target"
            raise DataError(f"there is no {what} named {other[0]!r}: {what}s of the model are "
                            f"{', '.join(map(repr, names))}", "OT2195", f"{{{missing[0]!r}: {usual}}}")
    return named


def fraction(valid):
    """The part of the rows that validation gets."""
    try:
        part = float(valid)
    except (TypeError, ValueError):
        part = -1.0
    if not 0 <= part < 1:
        what = f"of shape {list(np.shape(valid))}" if np.ndim(valid) else repr(valid)
        if isinstance(valid, Mapping):
            what = f"a dict of {', '.join(map(repr, valid))}"
        raise UsageError(f"valid is {what}, neither from 0 up to 1 nor (x, y)", "OT1152",
                         "valid=0.1, or valid=(x_valid, y_valid)")
    return part


def some_rows(named):
    """The same, and an error when there are none."""
    for name, a in named.items():
        if len(a) == 0:
            raise DataError(f"'{name}' has no rows", "OT2101", "give at least one row")
    return named


def batch_feeds(item, inputs, targets):
    """A batch as an iterator gives it, (x, y), {name: array} or x, by the names of the model."""
    if isinstance(item, Mapping):
        named = dict(item)
    elif isinstance(item, (tuple, list)) and len(item) == 2:
        named = {}
        for part, usual in zip(item, "xy"):
            named.update(part if isinstance(part, Mapping) else {usual: part})
    elif isinstance(item, (tuple, list)) and len(item) == 1:
        named = {"x": item[0]}
    else:
        named = {"x": item}
    for usual, names in (("x", inputs), ("y", targets)):
        if usual in named and usual not in names and len(names) == 1:
            named[names[0]] = named.pop(usual)
    return {k: array(v, k, text=True) for k, v in named.items()}
