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

from .function_runner import FunctionRunner  # noqa: E402


class Engine:
    name = "tinygrad"
    runtime = "tinygrad"
    fixed_shapes = True  # its reader keeps the sizes of the first call

    def devices(self):
        return [d.lower() for d in Device.get_available_devices()]

    def compile(self, step, device, threads=0):
        return Runner(step, device)


class Runner(FunctionRunner):
    def __init__(self, step, device):
        from tinygrad.nn.onnx import OnnxRunner

        self.device = device.upper()
        with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
            f.write(step.model)
            f.flush()
            self.runner = OnnxRunner(f.name)
        self.jits = {}
        super().__init__(step)

    def to_device(self, name, value):
        array = np.array(value, self.step_file.type_of(name), order="C")
        return Tensor(array, device=self.device).clone().realize()

    def to_host(self, value):
        return np.array(value.numpy())

    def kept(self, values):
        """The captured program writes into the same buffers every time: the state must not be one of them."""
        copies = {k: v.clone() for k, v in values.items()}
        Tensor.realize(*copies.values())
        return copies

    def _all(self, **given):
        """A value that is an input as it came is copied: replayed, it would be the input of the first call."""
        got = self.runner(given)
        taken = {id(v.uop) for v in given.values()}
        outputs = [got[k].clone() if id(got[k].uop) in taken else got[k].contiguous() for k in self.step_file.outputs]
        Tensor.realize(*outputs)  # all at once: what they share is computed once
        return tuple(outputs)

    def call(self, given):
        shapes = tuple(given[k].shape for k in self.step_file.data)
        if shapes not in self.jits:
            self.jits[shapes] = TinyJit(self._all)
        return dict(zip(self.step_file.outputs, self.jits[shapes](**given, **self.now)))
