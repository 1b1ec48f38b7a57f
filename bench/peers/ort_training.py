"""ONNX Runtime Training 1.19.2 (on-device training) on the workload's ONNX file. Its training graphs are made once and
kept beside the model; that is no part of the cold start.

Its SGD has neither momentum nor weight decay: it does less work on W3, W4, W5 and W9.
"""

import hashlib
import importlib.util
import os
import sys
import types

from peers.base import Peer
from workloads import files


def training_api():
    """onnxruntime.training imports torch; the parts used here do not need it."""
    import onnxruntime

    package = types.ModuleType("onnxruntime.training")
    package.__path__ = [os.path.join(onnxruntime.__path__[0], "training")]
    sys.modules["onnxruntime.training"] = package
    import onnxruntime.training.api as api

    return api


def make_graphs(workload, model_path, folder):
    import numpy as np
    import onnx
    from onnxruntime.training import artifacts, onnxblock

    model = onnx.load(model_path)
    graph = model.graph
    for node in graph.node:  # the gradient builders want the optional outputs too
        want = {"LayerNormalization": 3, "Dropout": 2}.get(node.op_type, 0)
        node.output.extend(f"{node.output[0]}_more{k}" for k in range(len(node.output), want))
    if workload.label_per_token:
        shape = onnx.numpy_helper.from_array(np.array([-1, workload.classes]), "rows")
        graph.initializer.append(shape)
        graph.node.append(onnx.helper.make_node("Reshape", ["logits", "rows"], ["logits2d"]))
        del graph.output[:]
        rows = int(np.prod(workload.input_shape))
        graph.output.append(onnx.helper.make_tensor_value_info("logits2d", 1, [rows, workload.classes]))
    running = {p.name for p in workload.shapes.running} | {"rows"}
    names = [i.name for i in graph.initializer]
    o = workload.optimizer
    optimizer = onnxblock.optim.SGD() if o.kind == "sgd" else onnxblock.optim.AdamW(
        betas=(o.beta1, o.beta2), eps=o.eps, weight_decay=o.weight_decay)
    artifacts.generate_artifacts(model, requires_grad=[n for n in names if n not in running],
                                 frozen_params=[n for n in names if n in running],
                                 loss=artifacts.LossType.CrossEntropyLoss, optimizer=optimizer,
                                 artifact_directory=str(folder))


class OrtTraining(Peer):
    title = "ONNX Runtime Training"
    package = "onnxruntime"
    environment = "ort"

    @classmethod
    def available(cls):
        spec = importlib.util.find_spec("onnxruntime")
        if spec is None or not os.path.isdir(os.path.join(os.path.dirname(spec.origin), "training/api")):
            return f"onnxruntime-training is not installed ({cls.how_to_install()})"
        return None

    def version(self):
        import onnxruntime

        return onnxruntime.__version__

    def comparable_losses(self, workload, n):
        return min(n, 2) if workload.optimizer.momentum else n

    def prepare(self, workload):
        api = training_api()
        import onnxruntime

        source = files.write(workload)
        key = hashlib.sha256((files.fingerprint() + repr(workload.optimizer)).encode()).hexdigest()[:12]
        folder = source / f"ort-{key}"
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            make_graphs(workload, source / "model.onnx", folder)
            (folder / "done").touch()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        self.state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
        self.module = api.Module(str(folder / "training_model.onnx"), self.state, None, "cpu", options)
        self.optimizer = api.Optimizer(str(folder / "optimizer_model.onnx"), self.module)
        self.optimizer.set_learning_rate(workload.optimizer.lr)
        self.module.train()
        x, labels = workload.data()
        self.x, self.labels = x, labels.reshape(-1)

    def step(self, n):
        module, optimizer, x, labels = self.module, self.optimizer, self.x, self.labels
        for _ in range(n):
            loss = module(x, labels)
            optimizer.step()
            module.lazy_reset_grad()
        return float(loss)
