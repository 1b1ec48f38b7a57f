"""What each operator of PyTorch's graphs is in ONNX. One module per family; TABLE joins them."""

from . import arithmetic, create, index, linear, loss, norm, pointwise, pool, recurrent, reduce, shape, write  # noqa: F401
from .base import TABLE, Args, Context, Unsupported, Value, key_of, static

__all__ = ["TABLE", "Args", "Context", "Unsupported", "Value", "key_of", "static"]
