"""Which versions of a framework a converter knows."""

import warnings

from ..errors import ModelError


def version_of(text):
    """"2.21.0-rc1" -> (2, 21)."""
    major, minor = text.split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()) or 0)


def check_range(framework, package, text, oldest, tested):
    """Refuses versions that are older than what is promised; newer ones than the tested are tried with a warning."""
    have = version_of(text)
    newest = f"{tested[0]}.{tested[1]}"
    if have < oldest:
        raise ModelError(f"{framework} {text} is older than {oldest[0]}.{oldest[1]}, the oldest that onnxtrain knows",
                         "OT1607", f"pip install '{package}=={newest}.*'")
    if have > tested:
        warnings.warn(f"onnxtrain was tested with {framework} up to {newest}; this is {text}", stacklevel=4)
    return have
