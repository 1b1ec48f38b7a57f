"""New networks for those who have data and no model."""

import json
import os
import re
import tempfile
from collections.abc import Mapping

from . import _native
from .data import column_names, columns, is_batches, some_rows
from .errors import DataError, Error, UsageError
from .hints import in_python
from .model import Model
from .session import feed_lists
from .tables import image_arrays, is_dataset, is_split_dataset, refuse_splits
from .text import offer_tokenizers


def _csv_of(table, path):
    """A table of another library (pandas, polars, pyarrow, Hugging Face datasets) as a csv file."""
    if hasattr(table, "to_pandas") and (is_dataset(table) or not hasattr(table, "to_csv")):
        table = table.to_pandas()
    if hasattr(table, "write_csv"):  # polars
        table.write_csv(path)
    elif hasattr(table, "iloc"):
        table.to_csv(path, index=False)
    else:
        table.to_csv(path)
    return path


def read_parquet(path):
    """A parquet file as a table; needs pandas with pyarrow, or polars."""
    try:
        import pandas

        try:
            return pandas.read_parquet(path)
        except (OSError, ValueError) as e:
            raise DataError(f"'{path}' cannot be read as parquet: {e}", "OT2206", "write the file again") from None
    except ImportError as e:
        try:
            import polars

            return polars.read_parquet(path)
        except ImportError:
            raise UsageError(f"reading '{path}' needs the package '{e.name or 'pyarrow'}'", "OT1733",
                             "pip install pandas pyarrow") from None


def _is_table(data):
    return column_names(data) is not None or hasattr(data, "to_pandas") or hasattr(data, "write_csv")


def new(kind, data, target=None, *, task="auto", hidden=None, dropout=0.0, seed=0, scale="auto", impute="auto",
        one_hot=(), embed=(), drop=None, layout="nchw", image_size=None, resize="stretch",
        skip_bad=False, images=None, encoding=None, separator=None, text=None, tokenizer=None, max_length=None,
        verbose=True):
    """A small network sized for the data, in standard ONNX, ready for `compile` and `fit`, or for `save`.

    kind: "linear", "mlp", "cnn", "resnet", "transformer", "lstm" or "gru". data: a path (csv, tsv, parquet, npz, npy,
    idx, a folder of images), a table (pandas, polars), (x, y), or {"x": array, "y": array}. target: the column to
    learn; several: ["a", "b"]. Columns of a table become inputs of their own; filling, scaling and encoding are part of
    the model. task: "classes" or "numbers". Images: image_size, resize ("stretch", "crop", "pad"), skip_bad=True leaves
    damaged ones out; a csv with a column of file names stands for its images, which lie beside it or in the folder
    images. text: the column of texts (several: "a,b"), cut by tokenizer, the path of a tokenizer.json, into at most
    max_length tokens. verbose=False prints nothing. docs/tables.md.
    """
    if target is not None and not isinstance(target, str):
        if isinstance(target, (tuple, list)) and target and all(isinstance(n, str) for n in target):
            target = ",".join(target)
        elif _is_table(data) or isinstance(data, (str, os.PathLike, tuple, list, Mapping)):
            raise UsageError(f"target is of type {type(target).__name__}, it names a column, or several", "OT1152",
                             "target='price', target=['price', 'kind'], or arrays: ot.new(kind, (x, y))")
        else:  # ot.new(kind, x, y)
            data, target = (data, target), None
    options = {"target": target, "drop": drop if drop is None or isinstance(drop, str) else ",".join(drop),
               "task": task, "hidden": None if hidden is None else list(hidden), "dropout": float(dropout),
               "seed": seed, "scale": scale, "impute": impute,
               "one_hot": [one_hot] if isinstance(one_hot, str) else list(one_hot),
               "embed": [embed] if isinstance(embed, str) else list(embed), "layout": layout, "encoding": encoding,
               "separator": separator, "resize": resize, "skip_bad": bool(skip_bad),
               "images": None if images is None else os.fspath(images),
               "text": text if text is None or isinstance(text, str) else ",".join(text), "max_length": max_length,
               "tokenizer": None if tokenizer is None else os.fspath(tokenizer),
               "image_size": [image_size] * 2 if isinstance(image_size, int) else image_size and list(image_size)}
    options = {k: v for k, v in options.items() if v is not None}
    if tokenizer is not None:
        offer_tokenizers(os.fspath(tokenizer))
    if is_split_dataset(data):
        refuse_splits(data)
    with tempfile.TemporaryDirectory() as folder:
        arrays = {}
        if isinstance(data, (str, os.PathLike)) and os.fspath(data).endswith(".parquet"):
            data = read_parquet(os.fspath(data))
        elif is_dataset(data) and (found := image_arrays(data, target)) is not None:
            data, options["target"] = found, ""
        if isinstance(data, (str, os.PathLike)):
            options["data"] = os.fspath(data)
        elif _is_table(data):
            options["data"] = _csv_of(data, os.path.join(folder, "table.csv"))
            options.setdefault("images", os.getcwd())
        elif isinstance(data, Mapping) or (isinstance(data, (tuple, list)) and len(data) == 2):
            arrays = some_rows(columns(data) if isinstance(data, Mapping) else columns(*data))
        else:
            alone = hasattr(data, "__array__")
            what = "an array alone" if alone else type(data).__name__
            raise UsageError(f"a new model needs data: a path, a table or (x, y), not {what}", "OT1156",
                             f"ot.new({kind!r}, (x, y))" if alone or is_batches(data) else
                             f"ot.new({kind!r}, 'data.csv', target='price')")
        try:
            native, notes = _native.new(kind, *feed_lists(arrays), json.dumps(options))
        except Error as e:  # a table of the caller's is no file to him
            said = [text.replace(f"'{folder}{os.sep}table.csv'", "the table") for text in (e.message, e.hint)]
            again = "table" + (f", target={target!r}" if target else "")
            said[1] = re.sub(r"onnxtrain new (\w+) --data \S+( --target \S+)? -o model.onnx",
                             lambda m: f'ot.new("{m[1]}", {again})', said[1])
            said = [text.replace("scale x yourself", "scale=" + repr(scale) if k == 0 else "scale='standard'")
                    for k, text in enumerate(said)]
            raise type(e)(said[0], e.code, said[1].replace(folder + os.sep, "")) from None
    if verbose:
        for label, text in json.loads(notes):
            said = in_python(text.replace("(--scale to change)", "(scale= to change)"))
            print(f"{label:9s} {said}".replace(folder + os.sep, ""))
    return Model(native)
