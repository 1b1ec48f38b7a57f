"""Prepared training models for the tests: exported architectures, and graphs made by hand."""

import copy
import io
import logging
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from architectures import ZOO, target_for
from models import feeds


def exported(module, args, dynamo=False):
    """The inference model by one of torch's exporters, as bytes; names kept."""
    module, names = copy.deepcopy(module).eval(), [f"in{k}" for k in range(len(args))]
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if dynamo:
                made = torch.onnx.export(
                    module, args, dynamo=True, optimize=False, input_names=names, output_names=["out"], verbose=False
                )
                return made.model_proto.SerializeToString()
            f = io.BytesIO()
            torch.onnx.export(module, args, f, dynamo=False, input_names=names, output_names=["out"])
            return f.getvalue()
    finally:
        logging.disable(logging.NOTSET)


def prepared(name, optimizer, dynamo=False, **options):
    """(original module, inputs, target, feeds, training model) of an architecture."""
    torch.manual_seed(0)
    make, loss, _ = ZOO[name]
    module, args = make()
    target = target_for(name, module.eval()(*args).detach())
    fed = {f"in{k}": a.numpy() for k, a in enumerate(args)}
    if target is not None:
        fed["label"] = target.numpy()
    return (
        module,
        args,
        target,
        fed,
        ot.prepare(exported(module, args, dynamo), loss=loss, optimizer=optimizer, **options),
    )


def mlp(seed=0, hidden=16, inputs=4, classes=3, middle=(), opset=17):
    """x -> Gemm -> Relu -> [nodes over 'a' giving 'b'] -> Gemm -> logits."""
    rng = np.random.default_rng(seed)
    weights = {"fc1.weight": rng.standard_normal((hidden, inputs)) * 0.5, "fc1.bias": np.zeros(hidden),
               "fc2.weight": rng.standard_normal((classes, hidden)) * 0.5, "fc2.bias": np.zeros(classes)}
    last = "b" if middle else "a"
    nodes = [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], "fc1", transB=1),
             helper.make_node("Relu", ["h"], ["a"], "relu"), *middle,
             helper.make_node("Gemm", [last, "fc2.weight", "fc2.bias"], ["logits"], "fc2", transB=1)]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", inputs])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", classes])],
                              [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 8
    onnx.checker.check_model(m)
    return m


def batch(n=16, seed=1):
    return feeds(n, seed)


def torch_step(made, inputs, targets):
    """A user's own loop."""
    made.optimizer.zero_grad()
    loss = made.loss(made.module(*inputs), targets)
    loss.backward()
    made.optimizer.step()
    if made.scheduler is not None:
        made.scheduler.step()
    return float(loss.detach())


def largest_difference(a, b, floor=1e-6):
    """(difference relative to the tensor's size, name) over all state variables of two trainers."""
    worst = (0.0, "")
    for name in a.state:
        x, y = (np.asarray(t.state[name], np.float64) for t in (a, b))
        if x.size:
            worst = max(worst, (float(np.abs(x - y).max() / (np.abs(x).max() + floor)), name))
    return worst
