"""The ModelProto: graphs, initializers, bindings, functions, metadata. Large tensors go through a temporary file that is
mapped, not copied."""

import json
import os
import tempfile

import onnx
import torch
from onnx import helper, numpy_helper

from ..model import load, load_mapped
from . import optimizer_functions
from .emit import ELEM, remove_dead, static, to_numpy

OPSET, IR = 22, 10
_LARGE = 1 << 26  # bytes above which initializers are mapped from a file
_SMALL = 1 << 10  # bytes of a tensor that stands in the model itself all the same
_LOSSES = {"CrossEntropyLoss": "cross_entropy", "cross_entropy": "cross_entropy", "NLLLoss": "nll", "nll_loss": "nll", "MSELoss": "mse",
           "mse_loss": "mse", "L1Loss": "l1", "l1_loss": "l1", "HuberLoss": "huber", "huber_loss": "huber", "BCELoss": "bce",
           "BCEWithLogitsLoss": "bce_logits", "binary_cross_entropy_with_logits": "bce_logits", "KLDivLoss": "kl", "kl_div": "kl"}


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


def _info(name, dtype, shape):
    return helper.make_tensor_value_info(name, ELEM[dtype], shape)


class File:
    def __init__(self, conversion, main_outputs, eval_graph, train_graph):
        self.c, self.e = conversion, conversion.e
        self.dims = Dims(eval_graph, conversion.call.flat)
        self.step_dims = Dims(train_graph, conversion.call.flat, self.dims) if conversion.training else None
        self.other_sizes = sorted(eval_graph.other_sizes | (train_graph.other_sizes if conversion.training else set()))
        self.names = self._output_names(main_outputs, eval_graph, train_graph)
        self._graphs(main_outputs)
        self.proto = self._model()

    # ---- outputs
    def _output_names(self, outputs, eval_graph, train_graph):
        """(name, Value) of the main graph's outputs: what the step computes as its loss is not one of them."""
        names = list(eval_graph.output_names)
        drop = set()
        if self.c.training:
            loss = self.c.loss_value.name
            drop = {n for n, v in zip(train_graph.output_names, self.c.train_outputs) if v is not None and v.name == loss}
        kept = [(n, v) for n, v in zip(names, outputs) if n not in drop and v is not None]
        return kept or [(n, v) for n, v in zip(names, outputs) if v is not None]

    def _place(self, wanted, value, part, taken):
        """Gives a value its output's name: by renaming when it is a node's own result, else by Identity."""
        e = self.e
        name = wanted if wanted in self.c.reserved else e.claim(wanted)
        self.c.reserved.discard(wanted)
        own = {o for n in part.nodes for o in n.output}
        old = value.name
        if old in own and old not in taken:
            e.rename(old, name)
            for v in self.watched:
                if v.name == old:
                    v.name = name
        else:
            before, e.part = e.part, part
            value = type(value)(e.node("Identity", [value.name], named=[e.claim(name + "_")])[0], value.dtype, value.shape)
            e.part = before
            e.rename(value.name, name)
        taken.add(name)
        return name

    def _graphs(self, main_outputs):
        c, e = self.c, self.e
        pairs = self.names
        self.watched = [v for _, v in pairs]
        if c.training:
            self.watched += [v for v in c.train_outputs if v is not None] + [c.loss_value]
        taken = set()
        self.outputs = []
        for wanted, v in pairs:
            dtype, shape = v.dtype, [self.dims(s) for s in v.shape]
            self.outputs.append((self._place(wanted, v, e.main, taken), dtype, shape))
        if c.training:
            self._training_outputs()
            c.bindings = [(key, e.current(value)) for key, value in c.bindings]
        self._split_parts()

    def _training_outputs(self):
        c, e = self.c, self.e
        c.loss_name = e.current(c.loss_name)  # it may be an output of the main graph
        self.train_outputs, taken = [], {c.loss_name}
        inference = dict(zip([n for n, _ in self.names], [n for n, *_ in self.outputs]))
        self.inference_form = {}  # output of the step -> the output of the main graph that it is in training mode
        algorithm = {o for n in e.algorithm.nodes for o in n.output}
        for (wanted, *_), v in zip([(n,) for n in c.train_output_names], c.train_outputs):
            if v is None or v.name not in algorithm or v.name == c.loss_name:
                continue
            name = self._place(wanted + "_train", v, e.algorithm, taken)
            self.train_outputs.append((name, v.dtype, [self.step_dims(s) for s in v.shape]))
            if wanted in inference:
                self.inference_form[name] = inference[wanted]
        name = "loss" if "loss" in c.reserved else e.claim("loss")
        c.reserved.discard("loss")
        if c.loss_value.name in {o for n in e.algorithm.nodes for o in n.output}:
            e.rename(c.loss_value.name, name)
            c.loss_name = self.loss = name
        else:
            self.loss = e.node("Identity", [c.loss_value.name], named=[e.claim("loss_of_model")])[0]

    def _split_parts(self):
        """Main keeps what its outputs need; what only the step needs moves into the algorithm."""
        e, c = self.e, self.c
        reads = {n for n, *_ in self.outputs}
        main = remove_dead(e.main.nodes, reads)
        self.main_reads, self.main_nodes, self.algorithm_nodes, self.reads = reads, main, [], reads
        if not c.training:
            return
        kept = {id(n) for n in main}
        wanted = {self.loss, *[v for _, v in c.bindings], *[n for n, *_ in self.train_outputs]}
        everything = e.main.nodes + e.algorithm.nodes
        used = remove_dead(everything, wanted)
        self.algorithm_nodes = [n for n in used if id(n) not in kept]
        self.algorithm_reads, self.reads = wanted, reads | wanted

    # ---- protos
    def _tensor(self, name, tensor):
        tensor = tensor.detach()
        array = to_numpy(tensor)
        if self.data is None or array.nbytes < _SMALL:
            return numpy_helper.from_array(array, name)
        offset = self.data.tell()
        array.tofile(self.data)
        end = self.data.tell()
        self.data.write(b"\0" * (-end % 64))
        t = onnx.TensorProto(name=name, data_type=ELEM[tensor.dtype], dims=list(tensor.shape), data_location=onnx.TensorProto.EXTERNAL)
        for key, v in (("location", os.path.basename(self.data.name)), ("offset", offset), ("length", end - offset)):
            t.external_data.add(key=key, value=str(v))
        return t

    @staticmethod
    def _input_infos(dims, only):
        return [_info(name, val.dtype, [dims(s) for s in val.shape]) for name, val in dims.types.items() if name in only]

    def _model(self):
        c, s = self.c, self.c.state
        inputs = c.call.names[:c.call.inputs]
        step_only = set()
        if c.training:
            step_only = {n for n in inputs if n not in self.main_reads and n in self.algorithm_reads}
        stored = {n: t for n, t in s.tensors.items() if n not in s.non_persistent or n in s.used}
        total = sum(t.numel() * t.element_size() for t in [*stored.values(), *(c.initial.values() if c.training else ())])
        self.folder = tempfile.TemporaryDirectory(prefix="onnxtrain-") if total > _LARGE else None
        self.data = open(os.path.join(self.folder.name, "tensors.bin"), "wb") if self.folder else None
        graph = helper.make_graph(
            self.main_nodes, type(c.module).__name__ or "module",
            self._input_infos(self.dims, set(inputs) - step_only), [_info(*o) for o in self.outputs],
            [self._tensor(n, t) for n, t in stored.items()])
        opsets = [helper.make_opsetid("", OPSET)]
        if c.training:
            opsets += [helper.make_opsetid("ai.onnx.preview.training", 1), helper.make_opsetid("ai.onnxtrain", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="onnxtrain")
        if c.training:
            wanted = set(c.call.names[c.call.inputs:]) | step_only
            model.training_info.append(self._training(self._input_infos(self.step_dims, wanted & self.algorithm_reads)))
            used = {n.op_type for n in self.algorithm_nodes if n.domain == "ai.onnxtrain"}
            model.functions.extend(optimizer_functions.function(n) for n in sorted(used))
        self._metadata(model)
        if self.data:
            self.data.close()
        return model

    def _metadata(self, model):
        c = self.c
        props = {"onnxtrain.torch": c.metadata([n for n, *_ in self.outputs])}
        if c.training:
            name = getattr(c.loss, "__name__", type(c.loss).__name__)
            props |= {"onnxtrain.rate": "learning_rate", "onnxtrain.loss": _LOSSES.get(name, "custom"), "onnxtrain.output": self.outputs[0][0]}
            if self.inference_form:
                props["onnxtrain.inference_form"] = json.dumps(self.inference_form)
        for key, value in sorted(props.items()):
            model.metadata_props.add(key=key, value=value)

    def _training(self, inputs):
        c = self.c
        info = onnx.TrainingInfoProto()
        g = info.algorithm
        g.name = (type(c.module).__name__ or "module") + "_training"
        g.node.extend(self.algorithm_nodes)
        g.input.extend(inputs)
        types = {n: (t.dtype, list(t.shape)) for n, t in {**c.state.tensors, **c.initial}.items()}
        g.initializer.extend(self._tensor(n, t) for n, t in c.initial.items())
        g.output.append(_info(self.loss, c.loss_value.dtype, []))
        g.output.extend(_info(*o) for o in self.train_outputs)
        listed = {o.name for o in g.output}
        for key, value in c.bindings:
            if value in listed or value in self.main_reads:
                value = self._copy(g, key, value)
            g.output.append(_info(value, *types[key]))
            listed.add(value)
            info.update_binding.add(key=key, value=value)
        g.value_info.extend(_info(grad, *types[n]) for n, grad in c.gradients.items())
        return info

    def _copy(self, g, key, value):
        name = self.e.claim(key + "_new")
        g.node.append(helper.make_node("Identity", [value], [name], name=name + "_node"))
        return name

    def model(self, proto=None):
        """The loaded ot.Model."""
        proto = proto or self.proto
        if self.folder is None:
            return load(proto.SerializeToString())
        path = os.path.join(self.folder.name, "model.onnx")
        with open(path, "wb") as f:
            f.write(proto.SerializeToString())
        return load_mapped(path)
