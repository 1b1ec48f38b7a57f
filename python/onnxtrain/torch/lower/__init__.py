"""What each operator of PyTorch's graphs is in ONNX. One module per family; TABLE joins them."""

from . import arithmetic, create, index, linear, loss, norm, pairs, pointwise, pool, recurrent, reduce, resample, shape, write  # noqa: F401
from .base import TABLE, Args, Context, Unsupported, Value, key_of, static
from .pairs import COMPLEX, is_complex

__all__ = ["COMPLEX", "TABLE", "Args", "Context", "Unsupported", "Value", "is_complex", "key_of", "static"]
