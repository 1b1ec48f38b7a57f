"""ONNX graphs node by node (opset 17)."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class GraphBuilder:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 0

    def weight(self, value, name=None):
        """An initializer: trained when it is float."""
        self.count += 1
        name = name or f"w{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def constant(self, value):
        """A value that is never trained; python numbers are float32."""
        value = np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        return self.node("Constant", value=numpy_helper.from_array(value))

    def node(self, op, *inputs, outputs=1, name=None, **attributes):
        self.count += 1
        made = [f"{name or f't{self.count}'}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name or f"{op}_{self.count}", **attributes))
        return made[0] if outputs == 1 else made

    def model(self, inputs, output, output_shape=None):
        """inputs: name -> (element type, shape); `output` is float32."""
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, output_shape)], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
