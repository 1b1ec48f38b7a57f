"""Random numbers of Python and numpy: a trace would fix what they gave. They are noted while tracing, and their
generators are put back where they stood."""

import contextlib
import random

import numpy as np

from .obstacles import place_here

_FIX = "draw it with torch (torch.rand, torch.randint), or outside of forward and give it as an input"
_PYTHON = ("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "gauss",
           "normalvariate", "betavariate", "expovariate", "getrandbits")
_NUMPY = ("rand", "randn", "random", "uniform", "normal", "randint", "choice", "permutation", "shuffle", "beta",
          "binomial", "random_sample", "standard_normal")


@contextlib.contextmanager
def kept():
    """Whatever runs inside, Python's and numpy's generators go on from where they are now."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@contextlib.contextmanager
def noted(obstacles, modules):
    """Every draw by the functions of `random` and `numpy.random` is an obstacle."""
    found, replaced = [], []

    def watched(f, what):
        def call(*args, **kwargs):
            found.append(what)
            obstacles.add(
                f"forward draws a random number with {what}, which a file would repeat for ever",
                place_here(modules),
                _FIX,
            )
            return f(*args, **kwargs)

        return call

    for owner, names, generator in ((random, _PYTHON, random.Random), (np.random, _NUMPY, np.random.RandomState)):
        for name in names:
            f = getattr(owner, name, None)
            if isinstance(getattr(f, "__self__", None), generator):
                replaced.append((owner, name, f))
                setattr(owner, name, watched(f, f"{owner.__name__}.{name}"))
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for owner, name, f in replaced:
            setattr(owner, name, f)
        moved = random.getstate() != python or any(
            not np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy)
        )
        if moved and not found:
            obstacles.add(
                "forward draws random numbers of Python or numpy, which a file would repeat for ever", fix=_FIX
            )
