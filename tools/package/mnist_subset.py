#!/usr/bin/env python3
"""A stratified part of MNIST for packages: the first 600 training and 100 test images of each digit.

    mnist_subset.py FROM TO      FROM holds the four idx.gz files
Needs no package. The result is the same every time.
"""

import gzip
import pathlib
import struct
import sys

EACH = {"train": 600, "t10k": 100}
PIXELS = 28 * 28


def rows_of(labels, each):
    """The first `each` rows of every class, in their order."""
    seen, rows = [0] * 10, []
    for row, label in enumerate(labels):
        seen[label] += 1
        if seen[label] <= each:
            rows.append(row)
    return rows


def write(path, data):
    with open(path, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(data)


def main():
    source, target = map(pathlib.Path, sys.argv[1:3])
    target.mkdir(parents=True, exist_ok=True)
    for part, each in EACH.items():
        labels = gzip.open(source / f"{part}-labels-idx1-ubyte.gz").read()[8:]
        images = gzip.open(source / f"{part}-images-idx3-ubyte.gz").read()[16:]
        rows = rows_of(labels, each)
        assert len(rows) == 10 * each, f"{part}: a class has fewer than {each} images"
        write(target / f"{part}-labels-idx1-ubyte.gz",
              struct.pack(">II", 2049, len(rows)) + bytes(labels[r] for r in rows))
        write(target / f"{part}-images-idx3-ubyte.gz", struct.pack(">IIII", 2051, len(rows), 28, 28)
              + b"".join(images[r * PIXELS:(r + 1) * PIXELS] for r in rows))
    (target / "subset.txt").write_text(
        f"{10 * EACH['train']:,} training and {10 * EACH['t10k']:,} test images of MNIST, each digit equally often\n")


if __name__ == "__main__":
    main()
