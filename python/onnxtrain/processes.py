"""A Python program that several processes run together."""

import sys
import time

from . import _native

_before = None


def end_all_on_error():
    """An exception that nobody catches in one process ends all of them: the others would wait for it for ever."""
    global _before
    if _before is not None:
        return
    _before = sys.excepthook

    def hook(kind, value, trace):
        rank = _native.launch_rank()
        if rank > 0:  # the same mistake is made by all: rank 0 tells it first
            time.sleep(4 + 0.1 * rank)
            print(f"rank {rank}:", file=sys.stderr)
        _before(kind, value, trace)
        sys.stderr.flush()
        _native.abort_processes(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = hook
