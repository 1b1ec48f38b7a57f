"""IREE: the step is compiled to machine code; results stay device arrays and are fed back as they are."""

import os
import subprocess
import sys
import tempfile

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np

from .function_runner import FunctionRunner

_TARGETS = {
    "cpu": ("local-task", ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
                           "--iree-llvmcpu-target-cpu=host"]),
    "cuda": ("cuda", ["--iree-hal-target-device=cuda"]),
    "vulkan": ("vulkan", ["--iree-hal-target-device=vulkan", "--iree-input-demote-i64-to-i32"]),
    "hip": ("hip", ["--iree-hal-target-device=hip"]),
    "metal": ("metal", ["--iree-hal-target-device=metal"]),
}


class Engine:
    name = "iree"
    runtime = "iree"

    def devices(self):
        out = []
        for name, (driver, _) in _TARGETS.items():
            try:
                if name == "cpu" or runtime.get_driver(driver).query_available_devices():
                    out.append(name)
            except Exception:  # noqa: BLE001  the driver is not built in, or finds no device
                continue
        return out

    def compile(self, step, device, threads=0):
        return Runner(step, device)


def compiled(model, flags):
    """The machine code of an ONNX model, by IREE's importer and compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source, mlir = os.path.join(folder, "step.onnx"), os.path.join(folder, "step.mlir")
        with open(source, "wb") as f:
            f.write(model)
        done = subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", source, "-o", mlir],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"IREE cannot import the step: {done.stderr.strip().splitlines()[-1]}")
        return compiler.compile_file(mlir, input_type="onnx", extra_args=flags)


class Runner(FunctionRunner):
    def __init__(self, step, device):
        driver, flags = _TARGETS[device]
        code = compiled(step.model, flags)
        config = runtime.Config(driver)
        context = runtime.SystemContext(config=config)
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
        self.device = config.device
        module = next(m for name, m in context.modules.items() if name not in ("hal", "vmvx"))
        functions = [n for n in module.vm_module.function_names if not n.startswith("__") and "$" not in n]
        self.function = getattr(module, functions[0])
        self.context = context
        self.inputs = [i["name"] for i in step.section["inputs"]]
        super().__init__(step)

    def to_device(self, name, value):
        array = np.asarray(value, self.step_file.type_of(name), order="C")
        return runtime.asdevicearray(self.device, array)

    def to_host(self, value):
        return np.array(value.to_host()).reshape(list(value.shape))

    def call(self, given):
        got = self.function(*[given[k] if k in given else self.now[k] for k in self.inputs])
        return dict(zip(self.step_file.outputs, got if isinstance(got, (tuple, list)) else [got]))
