"""Tables of other libraries as data: pandas and polars frames with the target named, Hugging Face datasets."""

import warnings

import numpy as np

from .errors import DataError


class Columns:
    """Columns of equal length with names: looks like a table to `data.column_names` and `data.by_name`."""

    def __init__(self, named):
        self._named = named
        self.columns = list(named)

    def __array__(self, dtype=None, copy=None):
        made = np.column_stack([np.asarray(v) for v in self._named.values()])
        return made if dtype is None else made.astype(dtype)

    def __getitem__(self, name):
        return self._named[name]

    def __len__(self):
        return len(next(iter(self._named.values()), ()))


def is_dataset(x):
    """A Hugging Face `datasets.Dataset`; the package need not be there to say no."""
    return type(x).__module__.split(".")[0] == "datasets" and hasattr(x, "column_names") and hasattr(x, "with_format")


def _is_frame(x):
    return hasattr(x, "columns") and hasattr(x, "__array__") and hasattr(x, "drop") and not isinstance(x, Columns)


def is_split_dataset(x):
    """A Hugging Face `datasets.DatasetDict`."""
    return is_dataset(x) and isinstance(x.column_names, dict)


def refuse_splits(x):
    raise DataError(f"this is a DatasetDict with the splits {', '.join(x.column_names)}", "OT2105",
                    f"take one of them: dataset[{next(iter(x.column_names))!r}]")


def holds_images(column):
    """Images of the package Pillow, as datasets with an image column give them."""
    return isinstance(column, list) and bool(column) and all(hasattr(v, "getbands") for v in column)


def _pixels(column):
    mode = "L" if all(v.mode in ("L", "1") for v in column) else "RGB"
    return [np.asarray(v.convert(mode)).reshape(v.height, v.width, -1).transpose(2, 0, 1) for v in column]


def image_arrays(x, target):
    """(x, y) of a dataset with one image column, None of any other."""
    column = next((n for n in x.column_names if holds_images(x[:1][n])), None)
    if column is None:
        return None
    named = dataset_columns(x)
    return named[column], _taken(named, [target or "label"], list(named))


def dataset_columns(x):
    if is_split_dataset(x):
        refuse_splits(x)
    rows = x[:]
    named = {}
    for name in x.column_names:
        column = rows[name]
        if holds_images(column):
            column = _pixels(column)
        try:
            named[name] = column if isinstance(column, np.ndarray) else np.stack([np.asarray(v) for v in column])
        except ValueError as e:
            raise DataError(f"column '{name}' of the dataset is no array: {e}", "OT2105",
                            "rows of one shape make an array: resize or pad them with dataset.map(...)") from e
    return named


def split(x, y, inputs):
    """(x, y) with y taken out of the table where it names columns, and a dataset as arrays. inputs: of the model."""
    several = isinstance(y, list) and y and all(isinstance(n, str) for n in y)
    names = [y] if isinstance(y, str) else y if several and len(y) != len(x) else None
    if is_dataset(x):
        named = dataset_columns(x)
        y = _taken(named, names, list(named)) if names else y
        if set(inputs) <= set(named):
            return {i: named[i] for i in inputs}, y
        images = [n for n, v in named.items() if v.ndim >= 3]
        if len(named) == 1 or (len(images) == 1 and len(inputs) == 1):  # a label beside the images is no input
            return named[(images or list(named))[0]], y
        return Columns(named), y
    if names and _is_frame(x):
        have = [str(c) for c in x.columns]
        y = _taken({n: np.asarray(x[n]) for n in names if n in have}, names, have)
        keep = [c for c in x.columns if str(c) not in names]
        return x[keep], y
    warn_order(x, y)
    return x, y


def warn_order(x, y):
    """Rows belong together by their place. Two pandas objects with the same index in another order say otherwise."""
    a, b = getattr(x, "index", None), getattr(y, "index", None)
    if not (hasattr(a, "equals") and hasattr(b, "equals")) or len(a) != len(b) or a.equals(b):
        return
    if a.is_unique and b.is_unique and a.isin(b).all():
        warnings.warn("[OT2103] x and y have the same index in another order; rows are taken by their place, not by "
                      "the index; help: y = y.loc[x.index]", UserWarning, stacklevel=4)


def _taken(named, names, have):
    missing = [n for n in names if n not in named]
    if missing:
        raise DataError(f"the table has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, have))}",
                        "OT2160", f"y={have[-1]!r}")
    found = [np.asarray(named.pop(n)) for n in names]
    if len(found) > 1 and any(a.dtype.kind in "OUST" for a in found):  # classes among them
        return dict(zip(names, found))
    return found[0] if len(found) == 1 else np.column_stack(found)
