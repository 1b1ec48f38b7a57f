"""ONNX Runtime. The state stays on the device: two sets of buffers, each step reads one and writes the other."""

import numpy as np
import onnxruntime as ort

_PROVIDERS = {
    "cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider",
    "rocm": "ROCMExecutionProvider", "migraphx": "MIGraphXExecutionProvider", "dml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider", "openvino": "OpenVINOExecutionProvider", "qnn": "QNNExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
}
_MEMORY = {"cuda": "cuda", "tensorrt": "cuda", "rocm": "cuda", "migraphx": "cuda", "dml": "dml"}


class Engine:
    name = "onnxruntime"
    runtime = "onnxruntime"  # --for

    def devices(self):
        there = set(ort.get_available_providers())
        return [d for d, p in _PROVIDERS.items() if p in there]

    def compile(self, step, device, threads=0):
        return Runner(step, device, threads)


class Runner:
    def __init__(self, step, device, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        providers = [_PROVIDERS[device]] + ([] if device == "cpu" else ["CPUExecutionProvider"])
        self.session = ort.InferenceSession(step.model, options, providers=providers)
        self.step_file, self.memory = step, _MEMORY.get(device, "cpu")
        self.now = {}
        self.bindings = None
        self.set_state(step.state)

    def _value(self, array):
        # a copy: on the CPU the value is the array's own memory
        return ort.OrtValue.ortvalue_from_numpy(np.array(array, order="C"), self.memory, 0)

    def set_state(self, values):
        s = self.step_file
        self.now |= {k: self._value(np.asarray(v, s.type_of(k))) for k, v in values.items()}
        self.bindings = None

    def state(self):
        return {k: np.array(v.numpy()) for k, v in self.now.items()}

    def borrow(self, other, names):
        """State that another runner of this engine has, without a copy."""
        self.now |= {k: other.now[k] for k in names}
        self.bindings = None

    def undo(self):
        """The buffers that the last step read are still what they were."""
        self.now = self.bindings[0][1]
        self.bindings.reverse()

    def _bind(self):
        """Two bindings: from these buffers to others, and back."""
        s = self.step_file
        fed = s.fed
        fixed = {k: v for k, v in self.now.items() if k not in fed}
        here = {k: v for k, v in self.now.items() if k in fed}
        there = {k: self._value(np.empty(v.shape(), s.type_of(k))) for k, v in here.items()}
        self.bindings = []
        for source, target in ((here, there), (there, here)):
            b = self.session.io_binding()
            for k, v in {**fixed, **source}.items():
                if k in s.states:
                    b.bind_ortvalue_input(k, v)
            for out, names in s.feedback.items():
                b.bind_ortvalue_output(out, target[names[0]])
            self.bindings.append((b, {**fixed, **target}))
        self.shapes = None

    def step(self, feeds):
        if self.bindings is None:
            self._bind()
        binding, after = self.bindings[0]
        given = [np.asarray(feeds[k], order="C") for k in self.step_file.data]
        shapes = [a.shape for a in given]
        if shapes != self.shapes:  # a binding keeps the outputs that it made, with their shapes
            self.shapes = shapes
            for out in self.step_file.plain:
                for b, _ in self.bindings:
                    b.bind_output(out, "cpu")
        for k, a in zip(self.step_file.data, given):
            binding.bind_cpu_input(k, a)
        self.session.run_with_iobinding(binding)
        got = binding.get_outputs()[len(self.step_file.feedback):]  # the state is bound first
        self.bindings.reverse()
        self.now = after
        return {k: v.numpy() for k, v in zip(self.step_file.plain, got)}
