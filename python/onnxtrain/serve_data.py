"""Data that the command line has read here, over a socket: python -m onnxtrain.serve_data FD

Parquet tables become csv, texts become token ids."""

import sys

import numpy as np

from .engines.serve import answer_all
from .errors import DataError
from .hints import for_shell
from .text import Tokenizer


def csv_of(path):
    """A parquet file as the bytes of a csv file: nothing for what is missing, dates as 2020-12-31 10:00:00."""
    from .networks import read_parquet

    table = read_parquet(path)
    if hasattr(table, "write_csv"):  # polars
        return table.write_csv().encode()
    nested = [str(c) for c in table.columns if any(isinstance(v, (list, dict, np.ndarray)) for v in table[c].head(100))]
    if nested:
        raise DataError(f"column '{nested[0]}' of '{path}' holds lists: a table has one value per field", "OT2206",
                        "write such columns as arrays: numpy.savez('data.npz', x=x, y=y)")
    return table.to_csv(index=False).encode()


class Reader:
    tokenizer = None

    def answer(self, message, _tensors):
        if message["do"] == "table":
            return {}, [("csv", np.frombuffer(csv_of(message["path"]), np.uint8))]
        if message["do"] == "tokenizer":
            self.tokenizer = Tokenizer(message["content"], message["name"])
            return {"vocabulary": int(self.tokenizer.vocabulary)}, ()
        if message["do"] == "tokens":
            ids, mask = self.tokenizer.encode(message["texts"], message["length"])
            return {}, [("ids", ids), ("mask", mask)]
        raise ValueError(f"unknown message {message['do']}")


if __name__ == "__main__":
    for_shell()
    sys.exit(answer_all(int(sys.argv[1]), lambda: (Reader(), {}), Reader.answer))
