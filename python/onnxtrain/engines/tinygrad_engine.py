"""tinygrad: the step as tinygrad tensors, captured once per set of shapes and replayed."""

import os
import shutil

# its CPU device wants a program called clang; Debian's are called by their version
if "CC" not in os.environ and not shutil.which("clang"):
    for _version in range(30, 12, -1):
        if shutil.which(f"clang-{_version}"):
            os.environ["CC"] = f"clang-{_version}"
            break

import tempfile  # noqa: E402

import numpy as np  # noqa: E402
from tinygrad import Device, Tensor, TinyJit  # noqa: E402


class Engine:
    name = "tinygrad"
    runtime = "tinygrad"

    def devices(self):
        return [d.lower() for d in Device.get_available_devices()]

    def compile(self, step, device, threads=0):
        return Runner(step, device)


class Runner:
    def __init__(self, step, device):
        from tinygrad.nn.onnx import OnnxRunner

        self.step_file, self.device = step, device.upper()
        with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
            f.write(step.model)
            f.flush()
            self.runner = OnnxRunner(f.name)
        self.now = {}
        self.jits = {}
        self.set_state(step.state)

    def _tensor(self, name, value):
        array = np.array(value, self.step_file.type_of(name), order="C")
        return Tensor(array, device=self.device).clone().realize()

    def set_state(self, values):
        self.now |= {k: self._tensor(k, v) for k, v in values.items()}

    def state(self):
        return {k: np.array(v.numpy()) for k, v in self.now.items()}

    def _all(self, **given):
        got = self.runner(given)
        return tuple(got[k].contiguous().realize() for k in self.step_file.outputs)

    def borrow(self, other, names):
        """State that another runner of this engine has, without a copy."""
        self.now |= {k: other.now[k] for k in names}

    def undo(self):
        self.now = self.before

    def step(self, feeds):
        s = self.step_file
        self.before = dict(self.now)
        given = {k: self._tensor(k, feeds[k]) for k in s.data}
        shapes = tuple(given[k].shape for k in s.data)
        if shapes not in self.jits:
            self.jits[shapes] = TinyJit(self._all)
        got = dict(zip(s.outputs, self.jits[shapes](**given, **self.now)))
        # the captured program writes into the same buffers every time: the state must not be one of them
        for out, names in s.feedback.items():
            for k in names:
                self.now[k] = got[out].clone().realize()
        return {k: np.array(got[k].numpy()) for k in s.plain}
