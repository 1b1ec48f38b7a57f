"""Lookup tables and text, where ONNX has a form."""

import warnings

import numpy as np
import tensorflow as tf

from .table import Unsupported, op

_KEY = {tf.string: "keys_strings", tf.int64: "keys_int64s", tf.float32: "keys_floats"}
_VALUE = {tf.string: ("values_strings", "default_string"), tf.int64: ("values_int64s", "default_int64"),
          tf.float32: ("values_floats", "default_float")}


def _plain(array):
    return [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in array.reshape(-1).tolist()]


@op("LookupTableFindV2")
def find(n):
    table = n[0].resource
    if table is None or not hasattr(table, "keys"):
        raise Unsupported("its table is not known")
    keys, values = np.asarray(table.keys), np.asarray(table.values)
    kind, result = n[1].dtype, n.dtype
    cast = result == tf.int32
    result = tf.int64 if cast else result
    key_in = n.e.cast(n.plain(1), "int64") if kind == tf.int32 else n.plain(1)
    kind = tf.int64 if kind == tf.int32 else kind
    if kind not in _KEY or result not in _VALUE:
        raise Unsupported(f"ONNX has no table from {kind.name} to {result.name}")
    default = n[2].static
    if default is None:
        raise Unsupported("its default value depends on the data")
    name_values, name_default = _VALUE[result]
    attrs = {_KEY[kind]: _plain(keys), name_values: _plain(values), name_default: _plain(np.asarray(default))[0]}
    n.walk.opsets["ai.onnx.ml"] = 4
    name = n.e.op("LabelEncoder", key_in, domain="ai.onnx.ml", **attrs)
    return n.e.cast(name, "int32") if cast else name


@op("StringLower", "StringUpper")
def case(n):
    """ONNX's operator takes one row of texts and makes an empty text of no texts: one more goes through with them."""
    few = n.attr("encoding", "") == ""
    warnings.warn(f"tf.strings.{n.op.type[6:].lower()} ('{n.op.name}') is not the same for all letters in ONNX: " + (
        "TensorFlow changes only ASCII letters, the file all letters; with encoding='utf-8' both do"
        if few else "letters whose other case is several characters, such as \u00df, stay as they are in the file"),
        stacklevel=2)
    x = n.plain(0)
    one = n.e.node("Concat", [n.e.op("Reshape", x, n.e.ints([-1])), n.e.const(np.array([""], object))], axis=0)[0]
    made = n.e.op("StringNormalizer", one, case_change_action=n.op.type[6:].upper())
    return n.e.op("Reshape", n.e.op("Slice", made, n.e.ints([0]), n.e.ints([-1])), n.e.op("Shape", x))


@op("StringJoin")
def join(n):
    parts = [n.plain(k) for k in range(len(n.inputs))]
    between = n.attr("separator", "")
    made = parts[0]
    for p in parts[1:]:
        made = n.e.op("StringConcat", made, n.e.const(np.array(between, object))) if between else made
        made = n.e.op("StringConcat", made, p)
    return made


@op("StaticRegexFullMatch")
def regex(n):
    return n.e.op("RegexFullMatch", n.plain(0), pattern=n.attr("pattern"))


@op("StringToNumber")
def to_number(n):
    return n.e.op("Cast", n.plain(0), to=n.onnx_dtype(n.dtype))
