"""Lookup tables and text, where ONNX has a form."""

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
    return n.e.op("StringNormalizer", n.plain(0), case_change_action=n.op.type[6:].upper())


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
