"""What `from_tf` is given -> one concrete function, its arguments and results by name, its variables and tables."""

import os
import re
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from ...errors import ModelError, UsageError


@dataclass(frozen=True)
class Table:
    keys: object
    values: object


@dataclass(frozen=True)
class Source:
    function: object  # ConcreteFunction
    inputs: list  # (name, TensorSpec) in order
    outputs: list  # (name, index into the function's flat results)
    variables: dict  # name -> tf.Variable
    tables: list = field(default_factory=list)  # (handle, Table)
    title: str = "function"


def read_source(source, signature, examples, checkpoint):
    function, title = _function(source, signature, examples)
    root = source if hasattr(source, "_trackable_children") else None
    names = _variable_names(function, root)
    values = names if checkpoint is None else _with_checkpoint(names, root, os.fspath(checkpoint))
    return Source(function, _inputs(function), _outputs(function), values, _tables(root), title)


def opened(source):
    """A SavedModel for its folder; anything else as it is."""
    return _load(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else source


def _load(folder):
    if not os.path.isdir(folder):
        raise ModelError(f"'{folder}' is not a folder of a SavedModel", "OT1621",
                         "give the folder that holds saved_model.pb")
    if not os.path.exists(os.path.join(folder, "saved_model.pb")):
        raise ModelError(f"'{folder}' holds no saved_model.pb", "OT1621",
                         "write one with tf.saved_model.save(module, folder), or model.export(folder) in Keras")
    try:
        return tf.saved_model.load(folder)
    except Exception as e:  # noqa: BLE001 - whatever TensorFlow says about a damaged or foreign folder
        reason = (str(e).strip() or type(e).__name__).splitlines()[0]
        raise ModelError(f"TensorFlow cannot load '{folder}': {reason[:300]}", "OT1621") from None


# ---- functions
def _is_concrete(x):
    return hasattr(x, "captured_inputs") and hasattr(x, "structured_outputs")


def _is_function(x):
    return hasattr(x, "get_concrete_function") and not _is_concrete(x)


def _function(source, signature, examples):
    if _is_concrete(source):
        return source, "function"
    if _is_function(source):
        return _concrete(source, examples, "the function"), getattr(source, "__name__", "function")
    found = _functions(source)
    if not found:
        raise ModelError(f"{type(source).__name__} has no tf.function to convert", "OT1622",
                         "decorate a method with @tf.function(input_signature=[...])")
    name = signature or next((n for n in ("serving_default", "__call__", "call") if n in found), None)
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name not in found:
        said = f"there is no signature '{name}'" if name else "it has several functions, and none is the usual one"
        raise ModelError(f"{said}; there are {', '.join(sorted(found))}", "OT1622",
                         f"signature='{sorted(found)[0]}'")
    chosen = found[name]
    return (chosen if _is_concrete(chosen) else _concrete(chosen, examples, f"'{name}'")), name


def _functions(source):
    """{name: function}: signatures first, then methods."""
    found = {}
    for name in dir(source):
        if name.startswith("_") and name != "__call__":
            continue
        try:
            value = getattr(source, name)
        except Exception:  # noqa: BLE001 - a property that raises is no function
            continue
        if _is_function(value) or _is_concrete(value):
            found[name] = value
    signatures = getattr(source, "signatures", None)
    try:
        found.update(dict(signatures.items()) if signatures is not None else {})
    except AttributeError:
        pass
    return found


def _concrete(function, examples, what):
    try:
        if examples is None:
            return _only_one(function, what)
        return _by_examples(function, examples)
    except (ValueError, TypeError) as e:
        raise ModelError(f"{what} cannot be traced: {_first_line(e)}", "OT1622",
                         "inputs=(example, ...) with examples of its arguments, or "
                         "@tf.function(input_signature=[...])") from None


def _by_examples(function, examples):
    """The function for arguments like the examples, with an open first dimension; where its own signature fixes that
    one, with the examples' sizes."""
    args, named = _specs(examples)
    try:
        return function.get_concrete_function(*args, **named)
    except (ValueError, TypeError):
        if getattr(function, "input_signature", None) is None and not getattr(function, "concrete_functions", None):
            raise
    args, named = _specs(examples, open_rows=False)
    return function.get_concrete_function(*args, **named)


def _only_one(function, what):
    """The function without examples: by its input_signature, or the one trace that a SavedModel holds."""
    known = getattr(function, "concrete_functions", None)
    if known and getattr(function, "input_signature", None) is None:
        if len(known) > 1:
            known = sorted(known, key=lambda c: len(c.inputs))
            usable = [c for c in known if _flat_tensors(c)]
            known = usable[:1] or known[:1]
        return known[0]
    return function.get_concrete_function()


def _flat_tensors(concrete):
    return all(isinstance(s, tf.TensorSpec) for s in tf.nest.flatten(concrete.structured_input_signature))


def _specs(examples, open_rows=True):
    """Examples -> (positional, by name), as a rule with an open first dimension."""
    def spec(x):
        if isinstance(x, tf.TypeSpec):
            return x
        t = tf.convert_to_tensor(x)
        return tf.TensorSpec([None, *t.shape[1:]] if t.shape.rank and open_rows else t.shape, t.dtype)

    if isinstance(examples, dict):
        return (), {k: tf.nest.map_structure(spec, v) for k, v in examples.items()}
    many = isinstance(examples, (tuple, list))
    return tuple(tf.nest.map_structure(spec, v) for v in (examples if many else [examples])), {}


# ---- names
def _inputs(function):
    """(name, TensorSpec) of the arguments, in the order of the graph's own inputs."""
    count = len(function.inputs) - len(function.captured_inputs)
    found, taken = [], set()
    for given in tf.nest.flatten(function.structured_input_signature):
        if isinstance(given, (tf.RaggedTensorSpec, tf.SparseTensorSpec)):
            raise ModelError(f"an argument of the function is a {type(given).__name__.removesuffix('Spec')}", "OT1622",
                             "take dense tensors (values and row_splits) and make the ragged one inside")
    for k, t in enumerate(function.inputs[:count]):
        if t.dtype in (tf.resource, tf.variant):
            raise ModelError(f"argument {k} of the function is no plain tensor", "OT1622",
                             "convert a function of dense tensors: ragged and sparse ones have no form in the file")
        name = t.op.name.rsplit("/", 1)[-1]
        name = name if name not in taken else f"{name}_{k}"
        taken.add(name)
        found.append((name, tf.TensorSpec(t.shape, t.dtype, name)))
    return found


def _outputs(function):
    """(name, index into the graph's outputs)."""
    structured = function.structured_outputs
    if structured is None:
        raise ModelError("the function returns nothing", "OT1622")
    flat = tf.nest.flatten(structured, expand_composites=True)
    paths = [_path_name(p) for p in _paths(structured)]
    if len(paths) != len(flat):
        raise ModelError("the function returns ragged or sparse tensors", "OT1622", "return dense tensors")
    found, at = [], 0
    for name, spec in zip(paths, flat):
        if spec is None:
            continue
        found.append((name, at))
        at += 1
    return found


def _paths(x, prefix=()):
    if isinstance(x, dict):
        return [p for k in sorted(x) for p in _paths(x[k], (*prefix, str(k)))]
    if hasattr(x, "_fields"):
        return [p for k in x._fields for p in _paths(getattr(x, k), (*prefix, k))]
    if isinstance(x, (tuple, list)):
        return [p for k, v in enumerate(x) for p in _paths(v, (*prefix, str(k)))]
    return [prefix]


def _path_name(path):
    if not path:
        return "output"
    name = "_".join(path)
    return f"output_{name}" if name[0].isdigit() else name


def _variable_names(function, root):
    """{name: tf.Variable}: TensorFlow's own names; those that are not unique by their place in the object."""
    variables = []
    for v in [*function.graph.variables, *(getattr(root, "variables", None) or ())]:
        v = getattr(v, "value", v) if not hasattr(v, "handle") and hasattr(v, "value") else v
        if hasattr(v, "handle") and not any(v is w for w in variables):
            variables.append(v)
    captured = {id(t) for t in function.captured_inputs}
    variables = [v for v in variables if id(v.handle) in captured]
    names = [re.sub(r":\d+$", "", v.name) for v in variables]
    places = object_paths(root) if root is not None else {}
    made, result = set(), {}
    for v, name in zip(variables, names):
        if names.count(name) > 1:
            name = places.get(id(v), name)
        first, k = name, 1
        while name in made:
            name, k = f"{first}_{k}", k + 1
        made.add(name)
        result[name] = v
    return result


def object_paths(root):
    """{id(variable): its place in the object}, as checkpoints name it."""
    found, seen, pending = {}, set(), [("", root)]
    while pending:
        path, x = pending.pop(0)
        if id(x) in seen:
            continue
        seen.add(id(x))
        if hasattr(x, "handle") and hasattr(x, "assign"):
            found.setdefault(id(x), path)
        try:
            children = x._trackable_children()
        except Exception:  # noqa: BLE001 - not every object has parts
            continue
        pending += [(f"{path}/{name}" if path else name, child) for name, child in children.items()]
    return found


def _with_checkpoint(names, root, path):
    """Values of a checkpoint in the place of the variables' own; nothing is assigned."""
    if root is None:
        raise UsageError("a checkpoint belongs to a module or a SavedModel", "OT1623")
    path = tf.train.latest_checkpoint(path) or path if os.path.isdir(path) else path
    try:
        reader = tf.train.load_checkpoint(path)
        shapes = reader.get_variable_to_shape_map()
    except Exception as e:  # noqa: BLE001 - whatever TensorFlow says about the file
        raise ModelError(f"'{path}' is not a checkpoint: {_first_line(e)}", "OT1623") from None
    places, values, missing = object_paths(root), {}, []
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    for name, v in names.items():
        place = places.get(id(v), name)
        keys = [k for k in shapes if k in (name, place, place + suffix) or k.endswith("/" + place + suffix)]
        if len(keys) != 1 or list(shapes[keys[0]]) != v.shape.as_list():
            missing.append(name)
            continue
        values[name] = _Stored(v, reader.get_tensor(keys[0]))
    if missing:
        raise ModelError(f"the checkpoint '{path}' has no value for {', '.join(missing[:5])}"
                         + (f" and {len(missing) - 5} more" if len(missing) > 5 else ""), "OT1623",
                         "give the checkpoint of this very module")
    return values


class _Stored:
    """A variable with another value."""

    def __init__(self, variable, value):
        self.variable, self._value = variable, value
        self.handle, self.dtype, self.shape = variable.handle, variable.dtype, variable.shape
        self.trainable, self.name = variable.trainable, variable.name

    def numpy(self):
        return self._value


def _tables(root):
    """[(handle, Table)] of static lookup tables in the object."""
    found, seen, pending = [], set(), [root] if root is not None else []
    while pending:
        x = pending.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        handle = getattr(x, "resource_handle", None)
        if handle is not None:
            table = _export(x, handle)
            if table is not None:
                found.append((handle, table))
        try:
            pending += list(x._trackable_children().values())
        except Exception:  # noqa: BLE001 - not every object has parts
            continue
    return found


def _export(table, handle):
    for keys, values in ((tf.string, tf.int64), (tf.int64, tf.string), (tf.string, tf.float32), (tf.int64, tf.int64),
                         (tf.string, tf.int32), (tf.int64, tf.float32), (tf.string, tf.string), (tf.int32, tf.int64)):
        try:
            got = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=keys, Tvalues=values)
            return Table(np.asarray(got.keys), np.asarray(got.values))
        except (tf.errors.OpError, TypeError):
            continue
    return None


def _first_line(e):
    return (str(e).strip() or type(e).__name__).splitlines()[0][:300]
