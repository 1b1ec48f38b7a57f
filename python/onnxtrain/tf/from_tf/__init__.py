"""`from_tf`: a function of TensorFlow as a file. conversion.py has the stages in order."""

from .conversion import from_tf

__all__ = ["from_tf"]
