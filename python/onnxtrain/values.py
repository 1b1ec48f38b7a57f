"""numpy <-> native values. Element types are numbered as in ONNX."""

import sys
import warnings

import numpy as np

from . import _native
from .errors import DataError, UsageError

_NUMPY = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
}
_FROM_NUMPY = {np.dtype(t): n for n, t in _NUMPY.items()}
_STRING = 8
# element types that numpy lacks: from ml_dtypes when it is installed
_ML_NAMES = {
    16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}
_SIGNED_SMALL = {22: 4, 26: 2}  # signed types narrower than a byte, by bits
_UNSIGNED_SMALL = {21: 4, 25: 2, 23: 4}


def _ml_dtypes():
    try:
        import ml_dtypes
    except ImportError as e:
        raise UsageError("this model uses an element type that numpy lacks", "OT1150", "pip install ml_dtypes") from e
    return ml_dtypes


def dtype_number(dtype):
    """ONNX's number of a numpy (or ml_dtypes) element type."""
    dtype = np.dtype(dtype)
    if dtype in _FROM_NUMPY:
        return _FROM_NUMPY[dtype]
    if dtype.kind in "USOT":
        return _STRING
    for number, name in _ML_NAMES.items():
        if dtype.name == name:
            return number
    if dtype.names:
        hint = f"give numbers: numpy.column_stack([x[n] for n in {list(dtype.names)}])"
    elif dtype.kind in "mM":
        hint = "give numbers, seconds for example: x.astype('int64')"
    else:
        hint = "give numbers: x.astype('float32')"
    raise DataError(f"element type {dtype} is not one of ONNX's", "OT2130", hint)


def numpy_dtype(number):
    if number in _NUMPY:
        return np.dtype(_NUMPY[number])
    if number == _STRING:
        return np.dtype(object)
    return np.dtype(getattr(_ml_dtypes(), _ML_NAMES[number]))


def _text(x):
    return x if isinstance(x, str) else x.decode("utf-8") if isinstance(x, bytes) else str(x)


def to_native(x, name="value"):
    """A numpy array, number, list (a sequence), dict (a map) or None -> native value; arrays are not copied."""
    if isinstance(x, _native.Value):
        return x
    if x is None:
        return _native.none()
    if isinstance(x, dict):
        keys, items = list(x.keys()), [to_native(v, name) for v in x.values()]
        if all(isinstance(k, str) for k in keys) and keys:
            return _native.string_map(keys, items)
        return _native.int_map([int(k) for k in keys], items)
    if isinstance(x, (list, tuple)) and (not x or not np.isscalar(x[0])):
        return _native.sequence([to_native(v, name) for v in x])
    a = np.asarray(x)
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    number = dtype_number(a.dtype)
    if number == _STRING:
        return _native.strings(list(a.shape), [_text(v) for v in a.ravel().tolist()])
    shape = list(a.shape)
    if number in _SIGNED_SMALL:
        a = a.astype(np.int8)
    elif number in (21, 25):
        a = a.astype(np.uint8)
    elif number == 23:
        a = a.view(np.uint8) & 15
    a = np.ascontiguousarray(a)
    return _native.tensor(number, shape, a.reshape(-1).view(np.uint8))


def from_native(v):
    """Native value -> numpy array, list, dict or None."""
    if v is None or v.kind == 0:
        return None
    if v.kind == 1:
        return _array(v)
    if v.kind == 2:
        return [from_native(i) for i in v.items()]
    if v.kind == 3:
        return dict(zip(v.keys(), (_scalar(from_native(i)) for i in v.items())))
    values, indices = v.sparse_parts()
    return from_native(values), from_native(indices)


def _scalar(x):
    return x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x


def _array(v):
    number, shape = v.dtype, tuple(v.shape)
    if number == _STRING:
        a = np.array([s.decode("utf-8", "surrogateescape") for s in v.strings()], dtype=object)
        return a.reshape(shape)
    if number in _SIGNED_SMALL or number in (21, 25):
        a = np.empty(shape, np.int8 if number in _SIGNED_SMALL else np.uint8)
        v.copy_to(a.reshape(-1).view(np.uint8))
        return a.astype(numpy_dtype(number))
    a = np.empty(shape, np.uint8 if number == 23 else numpy_dtype(number))
    if a.size:
        v.copy_to(a.reshape(-1).view(np.uint8))
    return a.view(numpy_dtype(number)) if number == 23 else a


class _Copied(np.ndarray):
    """A copy of what a model holds. Writing into a copy that has no name would change nothing: that is said."""

    _written = None  # how it is written; of the copy itself, not of what is made from it

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if self._written and sys.getrefcount(self) <= _UNNAMED:
            warnings.warn(f"this changes a copy that nobody keeps: take it, change it and write it back: "
                          f"w = {self._written}; w[...] = ...; {self._written} = w", UserWarning, stacklevel=2)


class _Counted:
    def __setitem__(self, key, value):
        global _UNNAMED
        _UNNAMED = sys.getrefcount(self)


_UNNAMED = 0
_Counted()[0] = 0  # how many references an object without a name has in there


def copied(value, written):
    """The same array, which says so when it is written to without being kept."""
    if type(value) is not np.ndarray or value.ndim == 0:
        return value
    out = value.view(_Copied)
    out._written = written
    return out
