"""The ModelProto: graphs, initializers, bindings, functions, metadata. Large tensors go through a temporary file that
is mapped, not copied."""

import os
import tempfile
from dataclasses import dataclass, field

import onnx
import torch
from onnx import helper, numpy_helper

from ...converters import optimizer_functions
from ...converters.metadata import properties
from ...converters.protos import remove_dead
from ...graph import OWN, TRAINING
from ...model import load, load_mapped
from ..shared.dtypes import TO_ONNX, to_numpy
from ..shared.metadata import KEY
from . import optimizer as optimizers
from . import schedule as schedules
from .emit import static

OPSET, IR = 22, 10
_LARGE = 1 << 26  # bytes above which initializers are mapped from a file
_SMALL = 1 << 10  # bytes of a tensor that stands in the model itself all the same
_LOSSES = {"CrossEntropyLoss": "cross_entropy", "cross_entropy": "cross_entropy", "NLLLoss": "nll", "nll_loss": "nll",
           "MSELoss": "mse", "mse_loss": "mse", "L1Loss": "l1", "l1_loss": "l1", "HuberLoss": "huber",
           "huber_loss": "huber", "BCELoss": "bce", "BCEWithLogitsLoss": "bce_logits",
           "binary_cross_entropy_with_logits": "bce_logits", "KLDivLoss": "kl", "kl_div": "kl"}


class Dims:
    """Names for the open sizes of one graph: the first is `batch`; an input's size is called as in `other`."""

    def __init__(self, graph, flat, other=None):
        self.names, self.by_input = {}, {}
        taken = set(other.names.values()) if other else set()
        users = [n for n in graph.graph.nodes if n.op == "placeholder" and n.name in graph.signature.user_inputs]
        self.types = {}
        for (name, _), node in zip(flat, users):
            val = node.meta.get("val")
            if not isinstance(val, torch.Tensor):
                continue
            self.types[name] = val
            for k, size in enumerate(val.shape):
                text = str(size)
                if static(size) is not None or not text.isidentifier():
                    continue
                if text not in self.names:
                    known = other.by_input.get((name, k)) if other else None
                    fresh = (("batch" if j == 0 else f"batch_{j}") for j in range(len(taken) + 1))
                    self.names[text] = known or next(f for f in fresh if f not in taken)
                    taken.add(self.names[text])
                self.by_input[name, k] = self.names[text]

    def __call__(self, size):
        n = static(size)
        return n if n is not None else self.names.get(str(size))

    def infos(self, only):
        """Declarations of the inputs among `only`."""
        return [_info(name, val.dtype, [self(s) for s in val.shape]) for name, val in self.types.items()
                if name in only]


def _info(name, dtype, shape):
    return helper.make_tensor_value_info(name, TO_ONNX[dtype], shape)


@dataclass(frozen=True)
class Outputs:
    """Outputs of both graphs under their final names, each (name, dtype, shape)."""

    main: list
    step: list = field(default_factory=list)
    loss: str | None = None
    bindings: list = field(default_factory=list)  # (state variable, value)
    forms: dict = field(default_factory=dict)  # output of the step -> the output that it is the training form of


@dataclass(frozen=True)
class Nodes:
    """Nodes of both graphs, and everything that they and the outputs read."""

    main: list
    main_reads: set
    algorithm: list = field(default_factory=list)
    algorithm_reads: set = field(default_factory=set)


@dataclass(frozen=True)
class File:
    """The file in memory, and what the self-check needs to know of it."""

    proto: onnx.ModelProto
    outputs: list  # (name, dtype, shape)
    train_outputs: list
    forms: dict  # output of the step -> the module's output that it is in training
    loss: str | None
    reads: set  # names that both graphs read
    algorithm_reads: set
    dims: Dims
    step_dims: Dims | None
    other_sizes: list  # batches for which forward may go another way
    folder: object  # of large tensors, or None

    def model(self, proto=None):
        """The loaded ot.Model of the file, or of a changed copy of it."""
        proto = proto or self.proto
        if self.folder is None:
            return load(proto.SerializeToString())
        path = os.path.join(self.folder.name, "model.onnx")
        with open(path, "wb") as f:
            f.write(proto.SerializeToString())
        return load_mapped(path)


def assemble(request, call, state, traces, lowered, training):
    """The File of a conversion; training: None for an inference model."""
    dims = Dims(traces.evaluation, call.flat)
    step_dims = Dims(traces.training, call.flat, dims) if training else None
    other_sizes = traces.evaluation.other_sizes | (traces.training.other_sizes if training else set())
    outputs = _name_outputs(lowered, training, dims, step_dims)
    nodes = _split(lowered.emitter, outputs, training)
    stored = {n: t for n, t in state.tensors.items() if n not in state.non_persistent or n in state.used}
    tensors = _Tensors([*stored.values(), *(training.initial.values() if training else ())])
    name = type(request.module).__name__ or "module"
    inputs = call.names[:call.inputs]
    step_only = {n for n in inputs if n not in nodes.main_reads and n in nodes.algorithm_reads}
    graph = helper.make_graph(nodes.main, name, dims.infos(set(inputs) - step_only),
                              [_info(*o) for o in outputs.main], [tensors.proto(n, t) for n, t in stored.items()])
    opsets = [helper.make_opsetid("", OPSET)]
    if training:
        opsets += [helper.make_opsetid(TRAINING, 1), helper.make_opsetid(OWN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="onnxtrain")
    if training:
        wanted = (set(call.names[call.inputs:]) | step_only) & nodes.algorithm_reads
        types = {n: (t.dtype, list(t.shape)) for n, t in {**state.tensors, **training.initial}.items()}
        model.training_info.append(_training_info(name + "_training", step_dims.infos(wanted), lowered, training,
                                                  outputs, nodes, tensors, types))
        used = {n.op_type for n in nodes.algorithm if n.domain == OWN}
        model.functions.extend(optimizer_functions.function(n) for n in sorted(used))
    for key, value in sorted(_metadata(request, call, state, training, outputs).items()):
        model.metadata_props.add(key=key, value=value)
    tensors.close()
    return File(model, outputs.main, outputs.step, outputs.forms, outputs.loss,
                nodes.main_reads | nodes.algorithm_reads,
                nodes.algorithm_reads, dims, step_dims, sorted(other_sizes), tensors.folder)


# ---- outputs
def _main_outputs(lowered):
    """(name, Value) of the main graph's outputs: what the step computes as its loss is not one of them."""
    pairs = [(n, v) for n, v in zip(lowered.output_names, lowered.outputs) if v is not None]
    step = lowered.step
    if step is None:
        return pairs
    drop = {n for n, v in zip(step.output_names, step.outputs) if v is not None and v.name == step.loss.name}
    return [(n, v) for n, v in pairs if n not in drop] or pairs


def _name_outputs(lowered, training, dims, step_dims):
    e, step = lowered.emitter, lowered.step
    pairs = _main_outputs(lowered)
    watched = [v for _, v in pairs]
    if step is not None:
        watched += [v for v in step.outputs if v is not None] + [step.loss]
    main, taken = [], set()
    for wanted, v in pairs:
        dtype, shape = v.dtype, [dims(s) for s in v.shape]
        main.append((_place(e, wanted, v, e.main, taken, watched), dtype, shape))
    if step is None:
        return Outputs(main)
    train_outputs, forms = _train_outputs(e, step, step_dims, watched)
    loss = _name_loss(e, step.loss)
    bindings = [(key, e.current(value)) for key, value in training.bindings]
    return Outputs(main, train_outputs, loss, bindings, forms)


def _place(e, wanted, value, part, taken, watched):
    """Gives a value its output's name; `watched` values that are renamed with it know their new name."""
    old = value.name
    name = e.place(old, wanted, part, taken)
    for v in watched:
        v.name = e.current(v.name) if v.name == old else v.name
    return name


def _train_outputs(e, step, dims, watched):
    """Outputs in training form that the algorithm computes itself, and {name: the module's output}."""
    found, forms, taken = [], {}, {step.loss.name}  # the loss may be an output of the main graph
    algorithm = {o for n in e.algorithm.nodes for o in n.output}
    for wanted, v in zip(step.output_names, step.outputs):
        if v is None or v.name not in algorithm or v.name == step.loss.name:
            continue
        name = _place(e, wanted + "_train", v, e.algorithm, taken, watched)
        found.append((name, v.dtype, [dims(s) for s in v.shape]))
        forms[name] = wanted
    return found, forms


def _name_loss(e, loss):
    name = e.claim_reserved("loss")
    if e.makes(e.algorithm, loss.name):
        e.rename(loss.name, name)
        return name
    return e.node("Identity", [loss.name], named=[e.claim("loss_of_model")])[0]


def _split(e, outputs, training):
    """Main keeps what its outputs need; what only the step needs moves into the algorithm."""
    reads = {n for n, *_ in outputs.main}
    main = remove_dead(e.main.nodes, reads)
    if training is None:
        return Nodes(main, reads)
    kept = {id(n) for n in main}
    wanted = {outputs.loss, *[v for _, v in outputs.bindings], *[n for n, *_ in outputs.step]}
    used = remove_dead(e.main.nodes + e.algorithm.nodes, wanted)
    return Nodes(main, reads, [n for n in used if id(n) not in kept], wanted)


# ---- protos
class _Tensors:
    """TensorProtos; data of many bytes goes to a file in a folder that lives as long as the File."""

    def __init__(self, tensors):
        total = sum(t.numel() * t.element_size() for t in tensors)
        self.folder = tempfile.TemporaryDirectory(prefix="onnxtrain-") if total > _LARGE else None
        self._data = open(os.path.join(self.folder.name, "tensors.bin"), "wb") if self.folder else None

    def proto(self, name, tensor):
        tensor = tensor.detach()
        array = to_numpy(tensor)
        if self._data is None or array.nbytes < _SMALL:
            return numpy_helper.from_array(array, name)
        offset = self._data.tell()
        array.tofile(self._data)
        end = self._data.tell()
        self._data.write(b"\0" * (-end % 64))
        t = onnx.TensorProto(name=name, data_type=TO_ONNX[tensor.dtype], dims=list(tensor.shape),
                             data_location=onnx.TensorProto.EXTERNAL)
        place = {"location": os.path.basename(self._data.name), "offset": offset, "length": end - offset}
        for key, v in place.items():
            t.external_data.add(key=key, value=str(v))
        return t

    def close(self):
        if self._data:
            self._data.close()


def _training_info(name, inputs, lowered, training, outputs, nodes, tensors, types):
    info = onnx.TrainingInfoProto()
    g = info.algorithm
    g.name = name
    g.node.extend(nodes.algorithm)
    g.input.extend(inputs)
    g.initializer.extend(tensors.proto(n, t) for n, t in training.initial.items())
    g.output.append(_info(outputs.loss, lowered.step.loss.dtype, []))
    g.output.extend(_info(*o) for o in outputs.step)
    listed = {o.name for o in g.output}
    for key, value in outputs.bindings:
        if value in listed or value in nodes.main_reads:
            value = _copy(lowered.emitter, g, key, value)
        g.output.append(_info(value, *types[key]))
        listed.add(value)
        info.update_binding.add(key=key, value=value)
    g.value_info.extend(_info(grad, *types[n]) for n, grad in training.gradients.items())
    return info


def _copy(e, g, key, value):
    name = e.claim(key + "_new")
    g.node.append(helper.make_node("Identity", [value], [name], name=name + "_node"))
    return name


# ---- metadata (docs/decisions/0050-torch-files.md)
def _metadata(request, call, state, training, outputs):
    names = [n for n, *_ in outputs.main]
    info = _torch_info(request, call, state, training, names)
    if training is None:
        return properties(KEY, info)
    name = getattr(request.loss, "__name__", type(request.loss).__name__)
    forms = {copy: form for copy, form in outputs.forms.items() if form in names}
    return properties(KEY, info, _LOSSES.get(name, "custom"), names[0], forms)


def _torch_info(request, call, s, training, outputs):
    info = {"torch": torch.__version__, "module": _class_name(type(request.module)),
            "inputs": call.names[:call.inputs], "targets": call.names[call.inputs:], "outputs": outputs,
            "parameters": s.parameters, "buffers": s.buffers, "non_persistent": s.non_persistent, "ties": s.ties,
            "frozen": s.frozen}
    if training:
        loss = request.loss
        info["no_grad"] = [n for n in s.parameters if n not in s.frozen and n not in training.trained]
        info["loss"] = {"class": _class_name(loss), "state": s.of_loss} if loss is not None else None
        info["optimizer"] = optimizers.metadata(training.plan, training.frozen)
        if training.schedule is not None:
            info["scheduler"] = schedules.metadata(training.schedule, training.plan.first)
    return info


def _class_name(x):
    cls = x if hasattr(x, "__qualname__") else type(x)
    return f"{cls.__module__}.{cls.__qualname__}"

