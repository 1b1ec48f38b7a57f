"""PyTorch under torch.compile (default mode) with a fused optimizer and, for images, channels last."""

from peers.torch_tuned import TorchTuned


class TorchCompile(TorchTuned):
    title = "PyTorch compiled"

    def prepare(self, workload):
        super().prepare(workload)
        import torch

        # inductor 2.13 fails on the fused LSTM inside a graph; nn.LSTM breaks the graph there, so this does too
        self.network.layers.lstm = torch.compiler.disable(lambda *a: torch.lstm(*a))
        self.loss = torch.compile(self.loss)
