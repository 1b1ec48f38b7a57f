"""Training files from ONNX's text syntax, and tensors as .pb files."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

TRAINING = "ai.onnx.preview.training"


class Section:
    """One training section: algorithm (text), its initializers, updates, initialization (text), its bindings."""

    def __init__(self, algorithm, update, initializers=None, initialization=None, initial=None):
        self.algorithm, self.update, self.initializers = algorithm, update, initializers or {}
        self.initialization, self.initial = initialization, initial or {}


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def training_file(main, initializers, *sections, opset=17, ir=8, domains=(), functions=""):
    """The bytes of a file: main graph (text) with these initializers, and its training sections."""
    more = "".join(f', "{d}" : 1' for d in domains)
    text = f'<ir_version: {ir}, opset_import: ["" : {opset}, "{TRAINING}" : 1{more}]>\n' + spelled(main) + functions
    model = parser.parse_model(text)
    model.graph.initializer.extend(tensor(k, v) for k, v in initializers.items())
    for s in sections:
        info = model.training_info.add()
        info.algorithm.CopyFrom(parser.parse_graph(spelled(s.algorithm)))
        info.algorithm.initializer.extend(tensor(k, v) for k, v in s.initializers.items())
        for key, name in s.update.items():
            info.update_binding.add(key=key, value=name)
        if s.initialization:
            info.initialization.CopyFrom(parser.parse_graph(spelled(s.initialization)))
        for key, name in s.initial.items():
            info.initialization_binding.add(key=key, value=name)
    return model.SerializeToString(deterministic=True)


def spelled(text):
    """`training.Gradient` in these texts is the operator of ai.onnx.preview.training."""
    return text.replace("training.", TRAINING + ".")


def node_file(graph, opset=17, ir=8, initializers=None):
    """An ordinary model whose graph may hold operators of the training domain."""
    return training_file(graph, initializers or {}, opset=opset, ir=ir)


def write_tensor(path, name, array):
    path.write_bytes(tensor(name, array).SerializeToString(deterministic=True))


def read_tensor(path):
    t = onnx.TensorProto.FromString(path.read_bytes())
    return t.name, numpy_helper.to_array(t)


def as_training(model):
    """A node case as a training file without state, for what runs training steps only: the graph's nodes become the
    algorithm, its inputs stay inputs of the main graph."""
    source = onnx.ModelProto.FromString(model)
    made = onnx.ModelProto.FromString(model)
    made.graph.ClearField("node")
    made.graph.ClearField("output")
    made.graph.ClearField("value_info")
    first = source.graph.input[0]
    made.graph.node.add(op_type="Identity", input=[first.name], output=["the.first.input"])
    out = made.graph.output.add()
    out.CopyFrom(first)
    out.name = "the.first.input"
    algorithm = made.training_info.add().algorithm
    algorithm.name = "step"
    algorithm.node.extend(source.graph.node)
    algorithm.node.add(op_type="Constant", output=["no.loss"]).attribute.add(
        name="value_float", f=0.0, type=onnx.AttributeProto.FLOAT
    )
    algorithm.output.extend([onnx.helper.make_tensor_value_info("no.loss", onnx.TensorProto.FLOAT, [])])
    algorithm.output.extend(source.graph.output)
    return made.SerializeToString(deterministic=True)
