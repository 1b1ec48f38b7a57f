"""Everything that depends on TensorFlow's version, in one place.

`TABLE` says which versions are known: what was tried, and what differs. Code elsewhere in this package uses public
TensorFlow only, and these functions.
"""

import warnings

import tensorflow as tf

from ...errors import ModelError

TABLE = {  # (major, minor) -> notes
    (2, 18): "the oldest that is promised",
    (2, 19): "as 2.18",
    (2, 20): "as 2.18",
    (2, 21): "as 2.18; the version the tests run with",
}
OLDEST, TESTED = (2, 18), (2, 21)


def version_of(text):
    """"2.21.0-rc1" -> (2, 21)."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def check_version(text=None):
    """Refuses versions that are older than what is promised; newer ones than the tested are tried with a warning."""
    text = text or tf.__version__
    have = version_of(text)
    if have < OLDEST:
        raise ModelError(f"TensorFlow {text} is older than {OLDEST[0]}.{OLDEST[1]}, the oldest that onnxtrain knows",
                         "OT1607", f"pip install 'tensorflow=={TESTED[0]}.{TESTED[1]}.*'")
    if have > TESTED:
        warnings.warn(f"onnxtrain was tested with TensorFlow up to {TESTED[0]}.{TESTED[1]}; this is {text}",
                      stacklevel=3)
    return have
