"""Inputs, targets and outputs: their names, their structure, and examples to compare the file with Keras on."""

import keras
import numpy as np

from ...errors import UsageError
from ..shared import versions

ROWS = 4  # of examples that are made here
MOST = 32  # of given ones
_SPARSE = ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy")


class Slot:
    """One tensor that is fed: name, element type, shape with None for open sizes, and an example."""

    def __init__(self, name, dtype, shape, example):
        self.name, self.dtype, self.shape, self.example = name, dtype, tuple(shape), example


class Call:
    def __init__(self, model, inputs, targets, sample_weight, training):
        self.model = model
        self.step = None  # Keras' step on these examples, once it was made
        self.inputs, self.input_structure = _inputs(model, inputs)
        rows = self.inputs[0].example.shape[0] if self.inputs[0].example.ndim else 0
        self.outputs, self.output_structure = None, None
        self.targets, self.target_structure = [], None
        self.weights, self.weight_structure = [], None
        if training:
            out = self._outputs()
            names = output_names(model, out)
            self.targets, self.target_structure = _targets(model, out, names, targets, rows)
            self.weights, self.weight_structure = _weights(sample_weight, names, keras.tree.flatten(out), rows)

    def _outputs(self):
        """What the model returns on the examples (KerasTensors)."""
        args = keras.tree.pack_sequence_as(self.input_structure, [
            keras.KerasTensor(s.shape, s.dtype) for s in self.inputs])
        return self.model.compute_output_spec(args) if not isinstance(self.model, keras.Sequential) \
            else self.model._functional.compute_output_spec(args)

    def fed(self):
        return [*self.inputs, *self.targets, *self.weights]


def _safe(name):
    return "".join(c if c.isalnum() or c in "_./-" else "_" for c in str(name)) or "input"


def _inputs(model, given):
    functional = getattr(model, "_functional", None) or model
    struct = getattr(functional, "_inputs_struct", None)
    if struct is not None:
        tensors, names = keras.tree.flatten(struct), _input_names(functional, struct)
        if given is None:
            examples = _random_examples(model, tensors)
        else:
            examples = _flat_like(struct, given, names, "inputs")
        slots = [Slot(_safe(n), x.dtype, x.shape, _rows(np.asarray(e), x.dtype, x.shape[:1] == (None,)))
                 for n, x, e in zip(names, tensors, examples)]
        return slots, struct
    if given is None:
        raise UsageError(f"{type(model).__name__} is written as a class: its inputs are not known", "OT1606",
                         "give an example: ot.from_keras(model, inputs=x[:8])")
    given = keras.tree.map_structure(lambda a: a if hasattr(a, "shape") else np.asarray(a), given)
    flat = keras.tree.flatten(given)
    names = _names_of(given, "inputs", len(flat))
    slots = []
    for n, a in zip(names, flat):
        a = versions.to_numpy(a)
        dtype = keras.config.floatx() if a.dtype.kind == "f" else a.dtype.name
        slots.append(Slot(_safe(n), dtype, (None, *a.shape[1:]), _rows(a, dtype)))
    return slots, keras.tree.map_structure(lambda a: None if a is None else 0, given)


def _names_of(structure, word, count):
    if _flat_dict(structure):
        return _flat_keys(structure)
    return [word] if count == 1 else [f"{word}_{k}" for k in range(count)]


def _input_names(functional, struct):
    if isinstance(struct, dict):
        return [k for k in sorted(struct)] if list(keras.tree.flatten(struct)) == [struct[k] for k in sorted(struct)] \
            else list(struct)
    return list(getattr(functional, "input_names", None) or [x.name for x in keras.tree.flatten(struct)])


def _flat_like(struct, given, names, what):
    """Given examples in the order of the model's inputs."""
    if isinstance(given, dict) and not isinstance(struct, dict):
        missing = [n for n in names if n not in given]
        if missing:
            raise UsageError(f"{what}: there is nothing for '{missing[0]}'", "OT1606", f"one array each for {names}")
        return [versions.to_numpy(given[n]) for n in names]
    flat = [given] if hasattr(given, "shape") else keras.tree.flatten(given)
    if isinstance(given, list) and len(keras.tree.flatten(struct)) == 1 and not hasattr(given[0], "shape"):
        flat = [np.asarray(given)]
    if len(flat) != len(names):
        raise UsageError(f"{what}: {len(flat)} arrays for {len(names)} ({', '.join(names)})", "OT1606")
    return [versions.to_numpy(a) for a in flat]


def _rows(a, dtype, open_batch=True):
    a = np.asarray(a)
    if open_batch and a.ndim:
        a = a[:MOST]
        if len(a) == 1:
            a = np.repeat(a, 2, axis=0)
    return a if dtype == "string" else a.astype(versions.numpy_dtype(dtype))


def _random_examples(model, tensors):
    """Random numbers; where a size is open, a small one."""
    rng = np.random.default_rng(0)
    vocabulary = [layer.input_dim for layer in model._flatten_layers() if type(layer).__name__ == "Embedding"]
    high = max(1, min([*vocabulary, 8]))
    out = []
    for x in tensors:
        shape = [ROWS if k == 0 and d is None else (8 if d is None else d) for k, d in enumerate(x.shape)]
        if x.dtype.startswith(("int", "uint")) or vocabulary and len(shape) == 2 and _feeds_embedding(model, x):
            out.append(rng.integers(0, high, shape))
        elif x.dtype == "bool":
            out.append(rng.integers(0, 2, shape).astype(bool))
        else:
            out.append(rng.uniform(0, 1, shape))
    return out


def _feeds_embedding(model, x):
    functional = getattr(model, "_functional", None) or model
    for layer in functional._flatten_layers():
        for node in getattr(layer, "_inbound_nodes", []):
            if type(layer).__name__ in ("Embedding", "StringLookup", "IntegerLookup") and any(
                    t is x for t in node.input_tensors):
                return True
    return False


def output_names(model, outputs):
    """One name for each tensor that the model returns."""
    flat = keras.tree.flatten(outputs)
    if _flat_dict(outputs):
        return [_safe(k) for k in _flat_keys(outputs)]
    known = getattr(getattr(model, "_functional", None) or model, "output_names", None)
    if known and len(known) == len(flat) and all(n is not None for n in known) and len(set(known)) == len(known):
        return [_safe(n) for n in known]
    return ["output"] if len(flat) == 1 else [f"output_{k}" for k in range(len(flat))]


def _flat_dict(outputs):
    return isinstance(outputs, dict) and _is_flat(outputs)


def _flat_keys(outputs):
    """Keys in the order in which Keras flattens the dict."""
    places = keras.tree.pack_sequence_as(outputs, list(range(len(outputs))))
    return sorted(outputs, key=places.get)


def losses_by_output(model, outputs, names):
    """{name: its loss as compile() was given it}, None where an output has none."""
    given = model._compile_loss._user_loss
    if isinstance(outputs, (dict, list, tuple)) and isinstance(given, (dict, list, tuple)) and not _is_flat(outputs):
        each = keras.tree.flatten(given)
        return dict(zip(names, each)) if len(each) == len(names) else {n: each[0] for n in names}
    if isinstance(given, dict):
        keys = _flat_keys(outputs) if isinstance(outputs, dict) else names
        return {n: given.get(k, given.get(n)) for n, k in zip(names, keys)}
    if isinstance(given, (list, tuple)):
        return dict(zip(names, given)) if len(given) == len(names) else {n: given[0] for n in names}
    return {n: given for n in names}


def _is_flat(outputs):
    """Whether no structure lies in another."""
    return len(outputs) == len(keras.tree.flatten(outputs))


def _targets(model, outputs, names, given, rows):
    flat = keras.tree.flatten(outputs)
    if versions.compile_loss(model) is None:
        return [], None
    losses = losses_by_output(model, outputs, names)
    word = ["target"] if len(names) == 1 else [f"target_{n}" for n in names]
    single = not isinstance(outputs, (dict, list, tuple))
    if given is not None and (not isinstance(given, (dict, list, tuple)) or single and not isinstance(given, dict)):
        values = [given if hasattr(given, "shape") else np.asarray(given)]
        values += [None] * (len(names) - 1)
    elif given is not None and not single and not _is_flat(outputs):
        values = keras.tree.flatten(given)
        if len(values) != len(names):
            raise UsageError(f"targets: {len(values)} arrays for {len(names)} outputs", "OT1606")
    elif isinstance(given, dict):
        keys = _flat_keys(outputs) if isinstance(outputs, dict) else names
        values = [given.get(k, given.get(n)) for k, n in zip(keys, names)]
    elif given is not None:
        values = list(given)
    else:
        values = [_random_target(losses[n], x, rows) for n, x in zip(names, flat)]
    slots, packed = [], []
    for n, w, v, x in zip(names, word, values, flat):
        if losses[n] is None:
            packed.append(None)
            continue
        if v is None:
            raise UsageError(f"targets: there is nothing for the output '{n}'", "OT1606")
        a = versions.to_numpy(v)
        a = a if a.dtype.kind != "f" else a.astype(keras.config.floatx())
        slots.append(Slot(_safe(w), a.dtype.name, _open_as(a.shape, x), _rows(a, a.dtype.name)))
        packed.append(len(slots) - 1)
    return slots, (outputs, packed)


def _open_as(shape, output):
    """The shape of a target or of weights: sizes that are open in the output are open there too."""
    return (None, *[None if k < len(output.shape) and output.shape[k] is None else d
                    for k, d in enumerate(shape) if k])


def _random_target(loss, x, rows):
    rng = np.random.default_rng(1)
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    shape = [rows if k == 0 else (8 if d is None else d) for k, d in enumerate(x.shape)]
    if name in _SPARSE:
        return rng.integers(0, max(shape[-1], 1), shape[:-1])
    values = rng.uniform(0.05, 0.95, shape).astype(np.float32)
    return values / values.sum(-1, keepdims=True) if "ategorical" in name or "kl" in name.lower() else values


def _weights(given, names, outputs, rows):
    def slot(name, value, output):
        a, dtype = versions.to_numpy(value), keras.config.floatx()
        return Slot(name, dtype, _open_as(a.shape, output), _rows(a, dtype))

    if given is None or given is False:
        return [], None
    if given is True:
        given = np.linspace(0.5, 1.5, max(rows, 1)).astype(np.float32)
    if isinstance(given, dict):
        of = dict(zip(names, outputs))
        slots = [slot(f"sample_weight_{_safe(n)}", v, of.get(n, outputs[0])) for n, v in given.items()]
        return slots, dict(zip(given, range(len(slots))))
    if isinstance(given, (list, tuple)) and len(names) > 1:
        slots = [slot(f"sample_weight_{n}", v, x) for n, v, x in zip(names, given, outputs)]
        return slots, list(range(len(slots)))
    return [slot("sample_weight", given, outputs[0])], 0


def pack_targets(structure, values):
    """Targets in the structure that the model's loss takes."""
    outputs, packed = structure
    flat = [None if k is None else values[k] for k in packed]

    def fill(x):
        if isinstance(x, dict):
            return {k: fill(v) for k, v in x.items()}
        return type(x)(fill(v) for v in x) if isinstance(x, (list, tuple)) else flat[x]

    return fill(keras.tree.pack_sequence_as(outputs, range(len(flat))))


def pack_weights(structure, values):
    if structure is None:
        return None
    if isinstance(structure, int):
        return values[structure]
    if isinstance(structure, dict):
        return {k: values[v] for k, v in structure.items()}
    return [values[k] for k in structure]
