"""What each operator of PyTorch's graphs is in ONNX. One module per family; TABLE joins them."""

from . import (  # noqa: F401
    arithmetic,
    assign,
    complex_pairs,
    create,
    index,
    linear,
    loss,
    norm,
    pointwise,
    pool,
    recurrent,
    reduce,
    resample,
    shape,
)
from .base import TABLE, Args, Context, Unsupported, Value, key_of, static
from .complex_pairs import COMPLEX, is_complex

__all__ = ["COMPLEX", "TABLE", "Args", "Context", "Unsupported", "Value", "is_complex", "key_of", "static"]
