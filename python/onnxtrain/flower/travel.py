"""Which state of a training travels, in which form, and how it comes back.

Three groups. Trained parameters go through the strategy. Other floating-point state (moments of optimizers, running
statistics) is averaged by weight, whatever the strategy: the server optimizers of FedAdam and its kin would make
variances negative. Integers and booleans (step counters) are never averaged: see `middle`.
Types of less than 32 bits travel as float32, which holds all of their values, so that averages are not rounded twice.
"""

import numpy as np
from flwr.app import Array, ArrayRecord

from ..errors import DataError
from ..graph import TRAINING, read_graphs

REST = "onnxtrain.state"  # record of what travels beside the parameters
HOME = "onnxtrain.home"  # record, in the client's own memory, of what does not travel


def trained_names(model, state):
    """State variables that the file's gradients are taken by; where it has no Gradient (lowered files, gradients
    written by hand), floating-point state that the inference graph reads, but for statistics of normalizations."""
    graphs = read_graphs(model)
    by_gradient = {name for section in graphs.sections for node in section.algorithm.nodes
                   if node.kind == (TRAINING, "Gradient") for name in node.attrs.get("xs", ())}
    if by_gradient & set(state):
        return [n for n in state if n in by_gradient]
    statistics = {name for node in graphs.main.nodes if node.kind == ("", "BatchNormalization")
                  for name in node.inputs[3:5]}
    read = {name for node in graphs.main.nodes for name in node.inputs} & set(graphs.main.constants)
    return [n for n in state if n in read - statistics and is_float(state[n])]


def is_float(value):
    return value.dtype.kind in "fc" or "float" in value.dtype.name


def to_array(value):
    """A state variable as Flower's Array: a form that numpy can hold and average."""
    if is_float(value) and value.dtype.kind != "c" and value.dtype.itemsize < 4:
        value = value.astype(np.float32)
    elif not is_float(value) and value.dtype.kind not in "biu":  # integers of less than 8 bits
        value = value.astype(np.int8 if value.dtype.name.startswith("int") else np.uint8)
    return Array(np.ascontiguousarray(value).reshape(value.shape))


def from_array(array, like, name):
    """The value for a state variable that is now `like`; an error when it does not fit or is not finite."""
    try:
        value = array.numpy()
    except Exception as e:  # bytes of another machine
        raise DataError(f"'{name}' cannot be read: {e}", "OT5083") from None
    if value.shape != like.shape:
        raise DataError(f"'{name}' has shape {list(value.shape)}, here it is {list(like.shape)}", "OT5083")
    if value.dtype.kind not in "fc" if is_float(like) else value.dtype.kind not in "biu":
        raise DataError(f"'{name}' has elements of {value.dtype}, here they are {like.dtype}", "OT5083")
    with np.errstate(over="ignore", invalid="ignore"):
        made = value.astype(like.dtype)
    if is_float(like) and not np.isfinite(made.astype(made.dtype if made.dtype.kind == "c" else np.float64)).all():
        raise DataError(f"'{name}' is not finite", "OT5083")
    if not is_float(like) and not np.array_equal(made.astype(value.dtype), value):
        raise DataError(f"'{name}' has values that {like.dtype} does not hold", "OT5083")
    return made


def middle(values, weights):
    """Element by element the weighted median of arrays: always a value that one of them has, the common one where
    all agree. Means of counters, flags or seeds would be values that nobody ever had."""
    stack = np.stack(values)
    order = np.argsort(stack, axis=0, kind="stable")
    reached = np.cumsum(np.asarray(weights, np.float64)[order], axis=0)
    at = np.argmax(reached >= reached[-1:] / 2, axis=0)[None]
    return np.asarray(np.take_along_axis(stack, np.take_along_axis(order, at, 0), 0)[0])


class Travel:
    """The state variables of a trainer in three lists: `trained` and `rest` travel, `home` stays."""

    def __init__(self, trainer, model, mode):
        self.state = trainer.state
        values = {name: trainer.state[name] for name in trainer.state}
        for name, value in values.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST":
                raise DataError(f"state variable '{name}' is no tensor of numbers: it can neither travel nor wait for "
                                "the next round", "OT5082")
        self.like = values
        self.trained = trained_names(model, values)
        if not self.trained:
            raise DataError("the training changes no parameter: nothing would travel", "OT5082")
        others = [n for n in values if n not in self.trained]
        self.rest, self.home = (others, []) if mode == "all" else ([], others)

    def record(self, names):
        return ArrayRecord({name: to_array(self.state[name]) for name in names})

    def checked(self, record, names):
        """name -> value of a record that must have these names."""
        if wrong := set(names) ^ set(record):
            kind = "is missing" if next(iter(sorted(wrong))) in names else "is not known here"
            raise DataError(f"state variable '{min(wrong)}' {kind}: both sides train files with the same state",
                            "OT5083")
        return {name: from_array(record[name], self.like[name], name) for name in names}

    def take(self, record, names):
        """Writes the values of a record into the trainer: all of them, or none."""
        for name, value in self.checked(record, names).items():
            self.state[name] = value
