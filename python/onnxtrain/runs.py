"""Data of runs that is too large for their folders, as long as the process lives.

The library keeps small data in the run folder, so that `ot.resume("runs/cnn").fit(epochs=6)` needs nothing else.
"""

import os

KEPT_BYTES = 32 << 20  # larger data is not copied into the run folder
_IN_THIS_PROCESS = {}  # folder -> (data, validation data) of the last run whose data was too large to copy


def remember(folder, data, valid_data):
    """After a fit into the folder: holds the arrays when the library has not kept them."""
    _IN_THIS_PROCESS.clear()
    if not os.path.exists(os.path.join(folder, "data.npz")):
        _IN_THIS_PROCESS[os.path.realpath(folder)] = (data, valid_data)


def recall(folder):
    """(data, validation data) of the run in the folder; empty when they are not held here."""
    return _IN_THIS_PROCESS.get(os.path.realpath(folder), ({}, {})) if folder else ({}, {})
