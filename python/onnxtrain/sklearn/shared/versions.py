"""scikit-learn's versions: what was tried, and the attributes whose names or rules a version may change.

| version | tried by |
| --- | --- |
| 1.9.1 | `make test`, `make figures-sklearn` |
| 1.7.2, 1.8.0 | `make test-versions` |
"""

import warnings

from ...errors import UsageError

OLDEST = (1, 7)  # sample_weight and the poisson loss of the MLPs


def sklearn():
    """The package, or a refusal with the command that installs it."""
    try:
        import sklearn
    except ImportError as e:
        raise UsageError(f"this needs the package '{e.name}'", "OT1733", "pip install 'onnxtrain[sklearn]'") from None
    parts = tuple(int(p) for p in sklearn.__version__.split(".")[:2])
    if parts < OLDEST:
        raise UsageError(f"scikit-learn {sklearn.__version__} is older than {'.'.join(map(str, OLDEST))}", "OT1733",
                         "pip install 'onnxtrain[sklearn]'")
    return sklearn


def say_if_other(written, here):
    """A file of another version: its fitted attributes may have other names here."""
    if written.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(f"the file was written with scikit-learn {written}, here is {here}: check the predictions",
                      stacklevel=3)
