"""OpenVINO. Two requests: each reads the state that the other one wrote."""

import numpy as np
import openvino as ov


class Engine:
    name = "openvino"
    runtime = "openvino"

    def __init__(self):
        self.core = ov.Core()

    def devices(self):
        return [d.lower() for d in self.core.available_devices]

    def compile(self, step, device, threads=0):
        return Runner(self.core, step, device, threads)


class Runner:
    def __init__(self, core, step, device, threads):
        config = {"PERFORMANCE_HINT": "LATENCY"}
        if device.startswith("cpu"):
            config["INFERENCE_PRECISION_HINT"] = "f32"
        if threads and device.startswith("cpu"):
            config["INFERENCE_NUM_THREADS"] = threads
        self.compiled = core.compile_model(core.read_model(step.model), device.upper(), config)
        self.step_file = step
        self.now, self.requests = {}, None
        self.set_state(step.state)

    def set_state(self, values):
        s = self.step_file
        # an array that OpenVINO may write to must be its own copy
        self.now |= {k: ov.Tensor(np.array(v, s.type_of(k), order="C")) for k, v in values.items()}
        self.requests = None

    def state(self):
        return {k: np.array(v.data) for k, v in self.now.items()}

    def borrow(self, other, names):
        """State that another runner of this engine has, without a copy."""
        self.now |= {k: other.now[k] for k in names}
        self.requests = None

    def undo(self):
        """The tensors that the last step read are still what they were."""
        self.now = self.requests[0][1]
        self.requests.reverse()

    def _request(self, source, target):
        r = self.compiled.create_infer_request()
        for k, v in source.items():
            if k in self.step_file.states:
                r.set_tensor(k, v)
        for out, names in self.step_file.feedback.items():
            r.set_tensor(out, target[names[0]])
        return r

    def _pair(self):
        s = self.step_file
        fed = s.fed
        here = self.now
        there = {k: ov.Tensor(np.empty_like(v.data)) if k in fed else v for k, v in here.items()}
        self.requests = [(self._request(here, there), there), (self._request(there, here), here)]

    def step(self, feeds):
        if self.requests is None:
            self._pair()
        request, after = self.requests[0]
        for k in self.step_file.data:
            request.set_tensor(k, ov.Tensor(np.array(feeds[k], order="C")))
        request.infer()
        self.requests.reverse()
        self.now = after
        return {k: np.array(request.get_tensor(k).data) for k in self.step_file.plain}
