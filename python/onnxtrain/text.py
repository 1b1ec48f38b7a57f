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


class TextRule:
    """The text column of a model, as its metadata has it."""

    def __init__(self, told):
        self.column, self.ids, self.mask = told["column"], told["ids"], told.get("mask")
        self.types, self.length, self.vocabulary = told.get("types"), told["length"], told.get("vocabulary", 0)
        self._content, self._name, self._tokenizer = told["tokenizer"], told.get("name", "tokenizer.json"), None

    def inputs(self, texts):
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._content, self._name)
        texts = ["" if t is None or t != t else str(t) for t in texts]
        ids, mask = self._tokenizer.encode(texts, self.length)
        if self.vocabulary and ids.size and ids.max() >= self.vocabulary:
            raise DataError(f"token {ids.max()} of '{self.column}' is beyond the embedding, which has "
                            f"{self.vocabulary} rows: the tokenizer is not the model's", "OT2221")
        made = {self.ids: ids}
        if self.mask:
            made[self.mask] = mask
        if self.types:
            made[self.types] = np.zeros_like(ids)
        return made


    def given(self, x):
        """The model's inputs from a table with the text column, or from texts alone; None for token ids."""
        names = column_names(x)
        if names is None and not isinstance(x, Mapping):
            texts = x.tolist() if isinstance(x, np.ndarray) else x
            if isinstance(texts, (list, tuple)) and texts and all(isinstance(t, str) for t in texts):
                return self.inputs(texts)
            return None
        if names is None:
            names = list(x)
        if self.column in names:
            return self.inputs(list(x[self.column]))
        if self.ids in names:
            return None
        raise DataError(f"the table has no column '{self.column}', which holds the texts; it has "
                        f"{', '.join(map(repr, names))}", "OT2160",
                        "give the table the column of the training, by this name")


def rule_of(metadata):
    """The rule in a file's metadata; None when there is none, or it makes no sense."""
    try:
        told = json.loads(metadata.get(KEY, "null"))
        whole = isinstance(told, dict) and all(isinstance(told.get(k), str) for k in ("column", "ids", "tokenizer"))
    except ValueError:
        return None
    return TextRule(told) if whole and isinstance(told.get("length"), int) else None
