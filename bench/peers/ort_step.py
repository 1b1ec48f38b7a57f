"""onnxruntime's inference engine on the training step that onnxtrain lowers to ordinary ONNX operators
(`prepare --lowered`, `export --step`). New state is bound to the next step's inputs, so that nothing is copied."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from peers.base import Peer
from peers.onnxtrain_cli import BINARY
from workloads import files


class OrtStep(Peer):
    title = "onnxruntime, lowered step"
    package = "onnxruntime"

    @classmethod
    def available(cls):
        return super().available() or (None if BINARY.exists() else f"there is no {BINARY} (make build)")

    @classmethod
    def how_to_install(cls):
        return ".venv/bin/pip install onnxruntime"

    def prepare(self, workload):
        import onnxruntime

        import onnxtrain as ot
        from peers.onnxtrain_python import optimizer_of

        x, labels = workload.data()
        data = {"x": x, "label": labels}
        with tempfile.TemporaryDirectory() as folder:
            lowered, flat = Path(folder) / "lowered.onnx", Path(folder) / "step.onnx"
            model = ot.prepare(str(files.write(workload) / "model.onnx"), loss="cross_entropy", label="label",
                               optimizer=optimizer_of(workload), lowered=True)
            model.save(str(lowered))
            subprocess.run([str(BINARY), "export", str(lowered), "--step", "0", "-o", str(flat)], check=True,
                           capture_output=True)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = self.threads, 3
            self.session = onnxruntime.InferenceSession(str(flat), options, providers=["CPUExecutionProvider"])
            state = ot.Trainer(str(lowered), seed=0, threads=self.threads).state
            section = model.info["training"][0]
            values = {i.name: data[i.name] if i.name in data else np.asarray(state[i.name])
                      for i in self.session.get_inputs()}
        self.binding = self.session.io_binding()
        for name, value in values.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
            self.binding.bind_ortvalue_input(name, value)
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.next = {b["value"]: b["key"] for b in section["update_binding"] if b["key"] in values}
        self.loss_name = next(o for o in self.outputs if o not in self.next)

    def step(self, n):
        for _ in range(n):
            for name in self.outputs:
                self.binding.bind_output(name)
            self.session.run_with_iobinding(self.binding)
            found = dict(zip(self.outputs, self.binding.get_outputs(), strict=True))
            for output, name in self.next.items():
                self.binding.bind_ortvalue_input(name, found[output])
        return float(found[self.loss_name].numpy())
