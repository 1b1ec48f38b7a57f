"""onnxtrain as an ONNX backend (onnx.backend.base.Backend): prepare, run_model, run_node, supports_device."""

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from .model import load
from .session import Session
from .trainer import Trainer


class OnnxtrainRep(BackendRep):
    def __init__(self, model):
        self._session = Session(load(model.SerializeToString()))
        initializers = {i.name for i in model.graph.initializer}
        self._inputs = [i.name for i in model.graph.input if i.name not in initializers]
        self._outputs = [o.name for o in model.graph.output]

    def run(self, inputs, **kwargs):
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            feeds = dict(zip(self._inputs, inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        got = self._session.run(feeds)
        return tuple(got[name] for name in self._outputs)


class OnnxtrainTraining:
    """What `onnxtrain conformance` asks of a training backend: initialize, step, state."""

    def __init__(self, model):
        self._trainer = Trainer(load(model.SerializeToString()))

    def initialize(self):
        self._trainer.initialize()

    def step(self, feeds, which=None):
        return dict(self._trainer.step(feeds, which).outputs)

    def state(self):
        return {name: np.array(value) for name, value in self._trainer.state.items()}


class OnnxtrainBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        super().prepare(model, device, **kwargs)
        return OnnxtrainRep(model)

    @classmethod
    def prepare_training(cls, model):
        """A training file: an object with initialize(), step(feeds, which) and state()."""
        return OnnxtrainTraining(model)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        names = [n for n in node.input if n]
        values = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
        infos = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(values[n]).dtype),
                                               np.asarray(values[n]).shape)
            for n in names
        ]
        outs = [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n]
        graph = onnx.helper.make_graph([node], "node", infos, outs)
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        got = OnnxtrainRep(model).run(values)
        return namedtupledict("Outputs", [n for n in node.output if n])(*got)

    @classmethod
    def supports_device(cls, device):
        return Device(device).type == DeviceType.CPU


prepare = OnnxtrainBackend.prepare
prepare_training = OnnxtrainBackend.prepare_training
run_model = OnnxtrainBackend.run_model
run_node = OnnxtrainBackend.run_node
supports_device = OnnxtrainBackend.supports_device
