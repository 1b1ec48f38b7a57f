"""onnxtrain through its Python package."""

import numpy as np

from peers.base import Peer
from workloads import files


def optimizer_of(workload):
    import onnxtrain as ot

    o = workload.optimizer
    if o.kind == "sgd":
        return ot.SGD(lr=o.lr, momentum=o.momentum, weight_decay=o.weight_decay)
    kind = {"adam": ot.Adam, "adamw": ot.AdamW}[o.kind]
    return kind(lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps, weight_decay=o.weight_decay)


class OnnxtrainPython(Peer):
    title = "onnxtrain"
    package = "onnxtrain"

    @classmethod
    def how_to_install(cls):
        return "make build"

    def version(self):
        import onnxtrain

        return onnxtrain.__version__

    def prepare(self, workload):
        import onnxtrain as ot

        folder = files.write(workload)
        model = ot.prepare(str(folder / "model.onnx"), loss="cross_entropy", label="label",
                           optimizer=optimizer_of(workload))
        self.trainer = ot.Trainer(model, seed=0, threads=self.threads)
        self.feeds = {name: np.load(folder / f"{name}.npy") for name in ("x", "label")}

    def step(self, n):
        step, feeds = self.trainer.step, self.feeds
        for _ in range(n):
            result = step(feeds)
        return result.loss
