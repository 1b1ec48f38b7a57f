"""Text columns: token ids and a mask by a tokenizer of the package `tokenizers` (onnxtrain[text])."""

import json
from collections.abc import Mapping

import numpy as np

from .data import column_names
from .errors import DataError, UsageError

KEY = "onnxtrain.text"  # of a model's metadata


def _library():
    try:
        import tokenizers
    except ImportError:
        raise UsageError("text needs the package 'tokenizers'", "OT2220", "pip install onnxtrain[text]") from None
    return tokenizers


class Tokenizer:
    """Texts as ids [n, length], cut or padded, and a mask with 1 for every token that is there."""

    def __init__(self, content, name="tokenizer.json"):
        library = _library()
        try:
            self._t = library.Tokenizer.from_str(content)
        except Exception as e:  # noqa: BLE001  the package raises plain Exception
            raise DataError(f"'{name}' is no tokenizer: {e}", "OT2222", "tokenizer.save('tokenizer.json') writes one") \
                from None
        padding = self._t.padding or {}
        known = [self._t.token_to_id(t) for t in ("[PAD]", "<pad>", "<|endoftext|>", "</s>")]
        self.pad = padding.get("pad_id", next((k for k in known if k is not None), 0))
        self._t.no_padding()
        self.vocabulary = max(self._t.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, texts, length):
        self._t.enable_truncation(length)
        ids = np.full((len(texts), length), self.pad, np.int64)
        mask = np.zeros((len(texts), length), np.int64)
        for row, e in enumerate(self._t.encode_batch([str(t) for t in texts])):
            n = min(len(e.ids), length)
            ids[row, :n] = e.ids[:n]
            mask[row, :max(n, 1)] = 1  # a text without tokens is one token of padding
        return ids, mask


class _Maker:
    """Tokenizers for the library: what it reads itself (ot.new) it has cut here."""

    tokenizer = None

    def open(self, content, name):
        self.tokenizer = Tokenizer(content, name)
        return int(self.tokenizer.vocabulary)

    def encode(self, texts, length):
        ids, mask = self.tokenizer.encode(texts, length)
        return ids.tobytes(), mask.tobytes()


def offer_tokenizers(path):
    """Lets the library use tokenizers; an error now, in Python's words, when `path` is none."""
    from . import _native

    try:
        with open(path, encoding="utf-8") as f:
            content = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"the tokenizer '{path}' cannot be read: {e}", "OT2222",
                        "tokenizer.save('tokenizer.json') writes one") from None
    Tokenizer(content, str(path))
    _native.set_tokenizer(_Maker())


class TextRule:
    """The text columns of a model, as its metadata has them."""

    def __init__(self, told):
        self.columns = told.get("columns") or [told["column"]]
        self.ids, self.mask = told["ids"], told.get("mask")
        self.types, self.length, self.vocabulary = told.get("types"), told["length"], told.get("vocabulary", 0)
        self._content, self._name, self._tokenizer = told["tokenizer"], told.get("name", "tokenizer.json"), None

    @property
    def fed(self):
        """The inputs of the model that it feeds."""
        return {name for name in (self.ids, self.mask, self.types) if name}

    def inputs(self, texts):
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._content, self._name)
        texts = [_one_text(t) for t in texts]
        ids, mask = self._tokenizer.encode(texts, self.length)
        if self.vocabulary and ids.size and ids.max() >= self.vocabulary:
            raise DataError(f"token {ids.max()} of {_listed(self.columns)} is beyond the embedding, which has "
                            f"{self.vocabulary} rows: the tokenizer is not the model's", "OT2221")
        made = {self.ids: ids}
        if self.mask:
            made[self.mask] = mask
        if self.types:
            made[self.types] = np.zeros_like(ids)
        return made

    def given(self, x):
        """Its inputs from a table with the text columns, or from texts alone; None for token ids."""
        names = column_names(x)
        if names is None and not isinstance(x, Mapping):
            texts = x.tolist() if isinstance(x, np.ndarray) else x
            if isinstance(texts, (list, tuple)) and texts and all(isinstance(t, str) for t in texts):
                return self.inputs(texts)
            return None
        if names is None:
            names = list(x)
        missing = [c for c in self.columns if c not in names]
        if not missing:
            rows = zip(*([_one_text(t) for t in x[c]] for c in self.columns))
            return self.inputs([" ".join(t for t in row if t) for row in rows])
        if self.ids in names:
            return None
        raise DataError(f"the table has no column '{missing[0]}', which holds the texts; it has "
                        f"{_listed(names)}", "OT2160", "give the table the column of the training, by this name")


def _one_text(t):
    return "" if t is None or t != t or type(t).__name__ == "NAType" else str(t)


def _listed(names):
    return ", ".join(map(repr, names))


def rule_of(metadata):
    """The rule in a file's metadata; None when there is none, or it makes no sense."""
    try:
        told = json.loads(metadata.get(KEY, "null"))
        whole = isinstance(told, dict) and all(isinstance(told.get(k), str) for k in ("ids", "tokenizer"))
        columns = whole and (told.get("columns") or [told.get("column")])
        whole = isinstance(columns, list) and all(isinstance(c, str) for c in columns)
    except ValueError:
        return None
    return TextRule(told) if whole and isinstance(told.get("length"), int) else None
