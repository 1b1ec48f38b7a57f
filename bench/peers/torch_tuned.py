"""PyTorch, eager mode with a fused optimizer and, for images, channels last."""

from peers.torch_eager import TorchEager


class TorchTuned(TorchEager):
    title = "PyTorch tuned"
    fused, channels_last = True, True
