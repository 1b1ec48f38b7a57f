"""`from_tf`: a function of TensorFlow as a model file.

Stages: source (source.py) -> graph (walk.py, lower/) -> file -> self-check (self_check.py) -> training by `prepare`.
"""

import json
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ...converters.obstacles import Obstacles
from ...converters.onnx_file import OPSET, Graph, Model
from ...errors import ModelError, UsageError
from ...graph import OWN
from ...model import load
from ...prepared import prepare
from ...recipe import Term, loss_names
from ..shared import versions
from ..shared.state import with_state
from .bindings import with_bindings
from .self_check import compare
from .source import opened, read_source
from .values import Behind, Sym, info
from .walk import Variable, Walk

KEY = "onnxtrain.tf"


@dataclass(frozen=True)
class File:
    """The file in memory, and what the self-check and the training need to know."""

    model: object  # ot.Model
    inputs: list  # (name, TensorSpec)
    outputs: list  # names
    variables: dict  # name -> Variable, those that the file reads
    assigned: dict  # name of a variable -> output of the main graph
    random: bool


def from_tf(source, signature=None, inputs=None, *, loss=None, optimizer=None, checkpoint=None, check=True, **recipe):
    """See onnxtrain.from_tf."""
    versions.check_version()
    if recipe and loss is None and optimizer is None:
        raise UsageError(f"{', '.join(f'{k}=' for k in recipe)}: options of a training, for which neither loss= nor "
                         "optimizer= is given", "OT1606", "loss='auto', optimizer=ot.Adam(lr=0.001)")
    source = opened(source)
    ours = _of_ours(source)
    if ours is not None and signature is None and loss is None and optimizer is None and checkpoint is None:
        return ours
    read = read_source(source, signature, inputs, checkpoint)
    file = _file(read)
    if check:
        compare(read, file, inputs)
    if loss is None and optimizer is None:
        return _inference(file)
    return _training(file, loss, optimizer, recipe)


def _of_ours(source):
    """The file inside a SavedModel that `to_tf` wrote, with the state that its variables have now."""
    asset = getattr(getattr(source, "onnx_file", None), "asset_path", None)
    if asset is None or not hasattr(source, "parameters") or not hasattr(source, "state"):
        return None
    path = asset.numpy().decode()
    return with_state(load(path), {**source.parameters, **source.state})


def _file(read):
    problems = Obstacles()
    function = read.function
    walk = Walk(versions.library_of(function.graph), problems)
    e = walk.w.e
    records = {name: Variable(name, v) for name, v in read.variables.items()}
    for name in records:
        e.claim(name)
    e.reserve([*(n for n, _ in read.inputs), *(n for n, _ in read.outputs)])
    names = {n: _free(e, n, records) for n, _ in read.inputs}
    args = [Sym(names[n], dtype=s.dtype, shape=s.shape) for n, s in read.inputs]
    args += [_captured(t, records, read.tables, problems) for t in function.captured_inputs]
    got = []
    try:
        got = walk.inline(function.graph, args)
    except Behind:
        pass
    problems.raise_()
    return _assemble(read, walk, records, names, got)


def _free(e, name, records):
    """Inputs keep their names unless a variable has it."""
    return e.claim_reserved(name) if name not in records else e.claim(name + "_input")


def _captured(t, records, tables, problems):
    """What the function reads from outside: a variable, a table, or a constant."""
    if t.dtype == tf.resource:
        for r in records.values():
            if r.variable.handle is t:
                return Sym(dtype=t.dtype, shape=[], resource=r)
        for handle, table in tables:
            if handle is t:
                return Sym(dtype=t.dtype, shape=[], resource=table)
        return Sym(dtype=t.dtype, shape=[], resource=object())
    if hasattr(t, "numpy"):
        return Sym(dtype=t.dtype, shape=t.shape, static=np.asarray(t.numpy()))
    problems.add(f"the function reads '{t.name}' of another graph")
    return Sym(dtype=t.dtype, shape=t.shape)


def _assemble(read, walk, records, names, got):
    e, w = walk.w.e, walk.w
    outputs, infos, taken = [], [], set(names.values()) | set(records)
    dims = _Dims()
    for name, at in read.outputs:
        s = got[at]
        made = e.place(w.plain(s), name, e.main, taken)
        outputs.append(made)
        infos.append(info(made, s.dtype, s.shape, dims.of_output))
    assigned = {}
    for r in records.values():
        if r.new is not None:
            made = e.place(w.plain(r.new), r.name + "/assigned", e.main, taken)
            assigned[r.name] = made
            infos.append(info(made, r.variable.dtype, r.variable.shape))
    nodes, _, reads, _ = e.split([i.name for i in infos], [])
    used = {n: r for n, r in records.items() if n in reads}
    initializers = {n: np.asarray(r.variable.numpy()) for n, r in used.items()}
    graph = Graph(read.title, nodes, [info(names[n], s.dtype, s.shape, dims.of_input) for n, s in read.inputs], infos,
                  initializers)
    opsets = {"": OPSET, OWN: 1, **walk.opsets}
    meta = {"tensorflow": tf.__version__, "frozen": [n for n, r in used.items() if not r.variable.trainable],
            "inputs": [names[n] for n, _ in read.inputs], "outputs": outputs}
    model = load(Model(graph, opsets, metadata={KEY: json.dumps({"format": 1, **meta})}).encode())
    inputs = [(names[n], s) for n, s in read.inputs]
    return File(model, inputs, outputs, used, assigned, walk.random)


class _Dims:
    """Names of open sizes: the first axis is `batch`."""

    def __init__(self):
        self.count = 0

    def of_input(self, axis):
        if axis == 0:
            return "batch"
        self.count += 1
        return f"size_{self.count}"

    def of_output(self, axis):
        return "batch" if axis == 0 else None


def _inference(file):
    if file.assigned:
        raise ModelError(f"the function assigns {', '.join(list(file.assigned)[:5])}: a model for inference has no "
                         "place for that", "OT1624",
                         "trace it with training=False, or give loss= and optimizer= for a training file")
    return file.model


def _training(file, loss, optimizer, recipe):
    """By `prepare`; what the forward pass assigns (running statistics) becomes part of the step."""
    if isinstance(loss, str) and loss in file.outputs:
        loss = [Term(kind="output", output=loss)]
    elif isinstance(loss, str) and loss not in ("auto", "output", *loss_names()) and not loss.endswith(".onnx"):
        raise UsageError(f"there is no loss '{loss}'", "OT1232",
                         f"one of {', '.join(loss_names())}; or an output: {', '.join(file.outputs)}")
    frozen = [n for n, v in file.variables.items() if not v.variable.trainable or n in file.assigned]
    freeze = recipe.pop("freeze", ())
    freeze = [freeze] if isinstance(freeze, str) else list(freeze)
    recipe.setdefault("mode", "as_is")
    made = prepare(file.model, loss=loss if loss is not None else "auto", optimizer=optimizer,
                   freeze=[*frozen, *freeze], **recipe)
    return with_bindings(made, file.assigned) if file.assigned else made
