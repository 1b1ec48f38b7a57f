"""`to_tf`: a file as a tf.Module. build.py has the stages in order."""

from .build import to_tf
from .module import OnnxModule

__all__ = ["OnnxModule", "to_tf"]
